//! The functions that a template can call.

use super::args::Args;
use super::machine::Machine;
use super::meter::{Fault, Result, invalid};
use super::text::Text;
use super::value::{Dict, DictBuilder, Function, ListBuilder, Value};
use super::{ops, show};

/// Longest range; the limit of Jinja's sandbox.
const MAX_RANGE: i128 = 100_000;

/// Calls a function.
pub(super) fn call(machine: &mut Machine<'_>, function: Function, mut args: Args) -> Result<Value> {
    match function {
        Function::Range => range(machine, args),
        Function::Dict => Ok(Value::Dict(dict(machine, args)?)),
        Function::Namespace => {
            let dict = dict(machine, args)?;
            let mut attributes = Vec::new();
            for (key, value) in dict.entries() {
                let Value::Str(key) = key else { return invalid("names of a namespace must be strings") };
                attributes.push((key.clone(), value.clone()));
            }
            machine.namespace(attributes)
        }
        Function::RaiseException => {
            let message = args.need("message")?;
            args.end("raise_exception")?;
            Err(Fault::Raised(show::text(&message, machine.meter())?.as_str().to_owned()))
        }
        Function::StrftimeNow => {
            let format = args.need_text("format")?;
            args.end("strftime_now")?;
            machine.meter().bytes(64 * format.len())?;
            let text = machine.now.strftime(format.as_str());
            Ok(Value::Str(Text::new(machine.meter(), &text, format.origin())?))
        }
    }
}

fn range(machine: &Machine<'_>, mut args: Args) -> Result<Value> {
    let first = args.int("start")?;
    let second = args.int("stop")?;
    let step = args.int("step")?.unwrap_or(1);
    args.end("range")?;
    let (start, stop) = match (first, second) {
        (Some(start), Some(stop)) => (start, stop),
        (Some(stop), None) => (0, stop),
        _ => return invalid("`range` needs integers"),
    };
    if step == 0 {
        return invalid("`range` cannot step by 0");
    }
    let distance = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
    let size = step.checked_abs().unwrap_or(i128::MAX);
    let count = if distance <= 0 { 0 } else { (distance - 1) / size + 1 };
    if count > MAX_RANGE {
        return invalid(format!("`range` of {count} numbers; at most {MAX_RANGE} are allowed"));
    }
    let mut list = ListBuilder::new(machine.meter())?;
    for i in 0..count {
        list.push(Value::Int(start + i * step))?;
    }
    Ok(Value::List(list.finish()?))
}

/// `dict(…)`: a dict, or pairs, and named values.
fn dict(machine: &Machine<'_>, mut args: Args) -> Result<Dict> {
    let meter = machine.meter();
    let mut dict = DictBuilder::new(meter)?;
    match args.positional.pop_front() {
        None => {}
        Some(Value::Dict(from)) => {
            from.entries().iter().try_for_each(|(key, value)| dict.set(key.clone(), value.clone()))?;
        }
        Some(pairs) => {
            for pair in ops::iterate(&pairs, meter)?.items() {
                match ops::iterate(pair, meter)?.items() {
                    [key, value] => dict.set(key.clone(), value.clone())?,
                    _ => return invalid("`dict` needs pairs of key and value"),
                }
            }
        }
    }
    for (key, value) in args.named.drain(..) {
        dict.set(Value::Str(key), value)?;
    }
    args.end("dict")?;
    dict.finish()
}
