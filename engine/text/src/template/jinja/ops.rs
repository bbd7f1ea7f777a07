//! Operators on values, as Python has them.

use super::ast::{CompareOp, MathOp};
use super::format;
use super::meter::{Fault, Meter, Result, invalid};
use super::text::TextBuilder;
use super::value::{List, ListBuilder, Number, Value};
use std::cmp::Ordering;
use std::rc::Rc;

/// Largest integer that stands for a count.
fn count(n: i128) -> usize {
    usize::try_from(n.max(0)).unwrap_or(usize::MAX)
}

/// `a op b`
pub(crate) fn math(op: MathOp, a: &Value, b: &Value, meter: &Rc<Meter>) -> Result<Value> {
    match (op, a, b) {
        (MathOp::Add, Value::Str(a), Value::Str(b)) => {
            let mut out = TextBuilder::new(meter)?;
            out.push_text(a)?;
            out.push_text(b)?;
            Ok(Value::Str(out.finish()))
        }
        (MathOp::Add, Value::List(a), Value::List(b)) => Ok(Value::List(chain(a, b, meter)?)),
        (MathOp::Add, Value::Tuple(a), Value::Tuple(b)) => Ok(Value::Tuple(chain(a, b, meter)?)),
        (MathOp::Mul, Value::Str(text), Value::Int(n)) | (MathOp::Mul, Value::Int(n), Value::Str(text)) => {
            let mut out = TextBuilder::new(meter)?;
            out.repeat(text, count(*n))?;
            Ok(Value::Str(out.finish()))
        }
        (MathOp::Mul, Value::List(list), Value::Int(n)) | (MathOp::Mul, Value::Int(n), Value::List(list)) => {
            let mut out = ListBuilder::new(meter)?;
            let times = if list.items().is_empty() { 0 } else { count(*n) };
            out.room(times.saturating_mul(list.items().len()))?;
            for _ in 0..times {
                out.meter().steps(1)?;
                out.extend(list.items())?;
            }
            Ok(Value::List(out.finish()?))
        }
        (MathOp::Mod, Value::Str(text), _) => Ok(Value::Str(format::percent(text, b, meter)?)),
        _ => match (a.number(), b.number()) {
            (Some(x), Some(y)) => numbers(op, x, y).map(Number::value),
            _ => {
                invalid(format!("`{}` does not work on {} and {}", symbol(op), a.type_name(), b.type_name()))
            }
        },
    }
}

fn chain(a: &List, b: &List, meter: &Rc<Meter>) -> Result<List> {
    let mut out = ListBuilder::new(meter)?;
    out.extend(a.items())?;
    out.extend(b.items())?;
    out.finish()
}

fn symbol(op: MathOp) -> &'static str {
    match op {
        MathOp::Add => "+",
        MathOp::Sub => "-",
        MathOp::Mul => "*",
        MathOp::Div => "/",
        MathOp::FloorDiv => "//",
        MathOp::Mod => "%",
        MathOp::Pow => "**",
    }
}

fn numbers(op: MathOp, a: Number, b: Number) -> Result<Number> {
    let zero = || Fault::Invalid("division by zero".into());
    if let (Number::Int(x), Number::Int(y)) = (a, b) {
        let exact = match op {
            MathOp::Add => x.checked_add(y),
            MathOp::Sub => x.checked_sub(y),
            MathOp::Mul => x.checked_mul(y),
            MathOp::FloorDiv | MathOp::Mod if y == 0 => return Err(zero()),
            MathOp::FloorDiv => x.checked_div(y).map(|q| q - i128::from(x % y != 0 && (x < 0) != (y < 0))),
            MathOp::Mod => x.checked_rem(y).map(|r| if r != 0 && (r < 0) != (y < 0) { r + y } else { r }),
            MathOp::Pow if y >= 0 => u32::try_from(y).ok().and_then(|y| x.checked_pow(y)),
            MathOp::Pow | MathOp::Div => return floats(op, x as f64, y as f64).map(Number::Float),
        };
        let too_large = || Fault::Invalid("the result does not fit 128 bits".into());
        return exact.map(Number::Int).ok_or_else(too_large);
    }
    floats(op, a.float(), b.float()).map(Number::Float)
}

fn floats(op: MathOp, a: f64, b: f64) -> Result<f64> {
    let divides = matches!(op, MathOp::Div | MathOp::FloorDiv | MathOp::Mod);
    if b == 0.0 && divides {
        return invalid("division by zero");
    }
    Ok(match op {
        MathOp::Add => a + b,
        MathOp::Sub => a - b,
        MathOp::Mul => a * b,
        MathOp::Div => a / b,
        MathOp::FloorDiv => (a / b).floor(),
        MathOp::Mod => {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
        MathOp::Pow => a.powf(b),
    })
}

/// `-a`
pub(crate) fn negate(a: &Value) -> Result<Value> {
    match a.number() {
        Some(Number::Int(n)) => match n.checked_neg() {
            Some(n) => Ok(Value::Int(n)),
            None => invalid("the result does not fit 128 bits"),
        },
        Some(Number::Float(n)) => Ok(Value::Float(-n)),
        None => invalid(format!("`-` does not work on {}", a.type_name())),
    }
}

/// `a op b` of a comparison.
pub(crate) fn compare(op: CompareOp, a: &Value, b: &Value, meter: &Meter) -> Result<bool> {
    match op {
        CompareOp::Eq => a.equals(b, meter),
        CompareOp::Ne => a.equals(b, meter).map(|equal| !equal),
        CompareOp::In => contains(b, a, meter),
        CompareOp::NotIn => contains(b, a, meter).map(|inside| !inside),
        CompareOp::Lt => Ok(order(a, b, meter)? == Some(Ordering::Less)),
        CompareOp::Gt => Ok(order(a, b, meter)? == Some(Ordering::Greater)),
        CompareOp::Le => Ok(order(a, b, meter)?.is_some_and(Ordering::is_le)),
        CompareOp::Ge => Ok(order(a, b, meter)?.is_some_and(Ordering::is_ge)),
    }
}

/// The order of two values; none with NaN.
pub(crate) fn order(a: &Value, b: &Value, meter: &Meter) -> Result<Option<Ordering>> {
    meter.steps(1)?;
    if let (Some(a), Some(b)) = (a.number(), b.number()) {
        return Ok(a.compare(b));
    }
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => {
            meter.bytes(a.len().min(b.len()))?;
            Ok(Some(a.as_str().cmp(b.as_str())))
        }
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            for (a, b) in a.items().iter().zip(b.items()) {
                if !a.equals(b, meter)? {
                    return order(a, b, meter);
                }
            }
            Ok(Some(a.items().len().cmp(&b.items().len())))
        }
        _ => invalid(format!("{} and {} have no order", a.type_name(), b.type_name())),
    }
}

/// `item in container`
fn contains(container: &Value, item: &Value, meter: &Meter) -> Result<bool> {
    let in_items = |list: &List| {
        for found in list.items() {
            if found.equals(item, meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    match container {
        Value::Str(text) => match item.as_str() {
            Some(item) => {
                meter.bytes(text.len())?;
                Ok(text.as_str().contains(item))
            }
            None => invalid(format!("`in` a string needs a string, not {}", item.type_name())),
        },
        Value::List(list) | Value::Tuple(list) => in_items(list),
        Value::Dict(dict) => Ok(dict.get(item)?.is_some()),
        Value::Undefined(_) => Ok(false),
        Value::Iter(generator) => {
            while let Some(found) = generator.next() {
                if found.equals(item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => invalid(format!("`in` does not work on {}", container.type_name())),
    }
}

/// What a loop over the value goes through.
pub(crate) fn iterate(value: &Value, meter: &Rc<Meter>) -> Result<List> {
    match value {
        Value::List(list) | Value::Tuple(list) => Ok(list.clone()),
        Value::Undefined(_) => List::new(meter, []),
        Value::Dict(dict) => List::new(meter, dict.entries().iter().map(|(key, _)| key.clone())),
        Value::Iter(generator) => List::new(meter, std::iter::from_fn(|| generator.next())),
        Value::Str(text) => {
            let mut chars = ListBuilder::new(meter)?;
            for (at, c) in text.as_str().char_indices() {
                chars.push(Value::Str(text.slice(at..at + c.len_utf8())?))?;
            }
            chars.finish()
        }
        _ => invalid(format!("a value of type {} cannot be looped over", value.type_name())),
    }
}

/// Sorts by `less`, keeping the order of equals. Unlike the standard library's, it bears any `less`, also one that fails.
pub(crate) fn sort<T>(items: Vec<T>, less: &mut impl FnMut(&T, &T) -> Result<bool>) -> Result<Vec<T>> {
    if items.len() < 2 {
        return Ok(items);
    }
    let mut left = items;
    let right = left.split_off(left.len() / 2);
    let (left, right) = (sort(left, less)?, sort(right, less)?);
    let mut sorted = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let side = if less(b, a)? { &mut right } else { &mut left };
        sorted.extend(side.next());
    }
    sorted.extend(left);
    sorted.extend(right);
    Ok(sorted)
}
