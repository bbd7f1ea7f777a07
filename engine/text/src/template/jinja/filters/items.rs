//! Filters over the items of a list or dict.

use super::super::args::Args;
use super::super::ast::CompareOp;
use super::super::machine::Machine;
use super::super::meter::{Meter, Result, invalid};
use super::super::text::Text;
use super::super::value::{Hint, List, ListBuilder, Value};
use super::super::{ops, strings, tests};
use std::rc::Rc;

/// Applies the filter, if it is one of these. Those that go through items one by one give nothing for any value that is
/// false, such as `none`, as in Jinja.
pub(super) fn apply(
    machine: &mut Machine<'_>,
    name: &str,
    value: &Value,
    args: &mut Args,
) -> Result<Option<Value>> {
    let meter = &Rc::clone(machine.meter());
    Ok(Some(match name {
        "list" => Value::List(List::new(meter, ops::iterate(value, meter)?.items().iter().cloned())?),
        "first" => first(value, meter)?,
        "last" => {
            ops::iterate(value, meter)?.items().last().cloned().unwrap_or(Value::Undefined(Hint::Nothing))
        }
        "reverse" => match value {
            Value::Str(text) => Value::Str(strings::reverse(text)?),
            _ => generator(ops::iterate(value, meter)?.items().iter().rev().cloned(), meter)?,
        },
        "join" => {
            let separator = args.text("d")?.map_or_else(|| Text::made(meter, ""), Ok)?;
            let key = Key::take(args)?;
            let items = key.of_all(machine, ops::iterate(value, meter)?.items())?;
            Value::Str(strings::join(&separator, &items)?)
        }
        "items" => match value {
            Value::Undefined(_) => generator([], meter)?,
            Value::Dict(dict) => {
                let mut pairs = ListBuilder::new(meter)?;
                for (key, value) in dict.entries() {
                    pairs.push(Value::Tuple(List::new(meter, [key.clone(), value.clone()])?))?;
                }
                pairs.generator()?
            }
            _ => return invalid(format!("`items` needs a dict, not {}", value.type_name())),
        },
        "map" | "select" | "reject" | "selectattr" | "rejectattr" if !value.truthy() => {
            *args = Args::default();
            generator([], meter)?
        }
        "map" => map(machine, value, args)?,
        "select" | "reject" | "selectattr" | "rejectattr" => select(machine, name, value, args)?,
        "sort" => sort(machine, value, args)?,
        "dictsort" => dictsort(value, args, meter)?,
        "unique" => unique(machine, value, args)?,
        "groupby" => groupby(machine, value, args)?,
        "min" | "max" => extreme(machine, name == "max", value, args)?,
        "sum" => {
            let key = Key::take(args)?;
            let start = args.take("start").unwrap_or(Value::Int(0));
            let items = key.of_all(machine, ops::iterate(value, meter)?.items())?;
            let add = |sum: Value, item: &Value| ops::math(super::super::ast::MathOp::Add, &sum, item, meter);
            items.iter().try_fold(start, add)?
        }
        "batch" => batch(value, args, meter)?,
        _ => return Ok(None),
    }))
}

fn generator(items: impl IntoIterator<Item = Value>, meter: &Rc<Meter>) -> Result<Value> {
    let mut out = ListBuilder::new(meter)?;
    items.into_iter().try_for_each(|item| out.push(item))?;
    out.generator()
}

fn first(value: &Value, meter: &Rc<Meter>) -> Result<Value> {
    let first = match value {
        Value::Iter(generator) => generator.next(),
        Value::Str(text) => {
            let end = text.as_str().chars().next().map(char::len_utf8);
            end.map(|end| text.slice(0..end).map(Value::Str)).transpose()?
        }
        _ => ops::iterate(value, meter)?.items().first().cloned(),
    };
    Ok(first.unwrap_or(Value::Undefined(Hint::Nothing)))
}

/// What a filter looks at in each item: the item, or an attribute of it (`a.b.0`).
struct Key {
    path: Vec<Value>,
    default: Option<Value>,
}

impl Key {
    /// The parameter `attribute`.
    fn take(args: &mut Args) -> Result<Key> {
        match args.take("attribute") {
            None | Some(Value::None) => Ok(Key { path: Vec::new(), default: None }),
            Some(attribute) => Key::new(&attribute),
        }
    }

    fn new(attribute: &Value) -> Result<Key> {
        let path = match attribute {
            Value::Int(_) => vec![attribute.clone()],
            Value::Str(text) => {
                let mut path = Vec::new();
                let mut from = 0;
                for part in text.as_str().split('.') {
                    let number = part.parse::<u32>().ok();
                    let name = text.slice(from..from + part.len())?;
                    path.push(number.map_or(Value::Str(name), |n| Value::Int(n.into())));
                    from += part.len() + 1;
                }
                path
            }
            _ => return invalid(format!("`attribute` must be a string, not {}", attribute.type_name())),
        };
        Ok(Key { path, default: None })
    }

    fn of(&self, machine: &Machine<'_>, item: &Value) -> Result<Value> {
        let mut value = item.clone();
        for part in &self.path {
            machine.meter().steps(1)?;
            value = machine.item(&value, part)?;
            if let (Value::Undefined(_), Some(default)) = (&value, &self.default) {
                value = default.clone();
            }
        }
        Ok(value)
    }

    fn of_all(&self, machine: &Machine<'_>, items: &[Value]) -> Result<Vec<Value>> {
        items.iter().map(|item| self.of(machine, item)).collect()
    }

    /// As [`Key::of_all`], for comparing: strings in lower case unless case matters.
    fn for_order(&self, machine: &Machine<'_>, items: &[Value], case: bool) -> Result<Vec<Value>> {
        let fold = |value: Value| match value {
            Value::Str(text) if !case => Ok(Value::Str(text.map(str::to_lowercase)?)),
            other => Ok(other),
        };
        items.iter().map(|item| self.of(machine, item).and_then(fold)).collect()
    }
}

/// `map(attribute=…)` or `map('filter', …)`.
fn map(machine: &mut Machine<'_>, value: &Value, args: &mut Args) -> Result<Value> {
    let meter = &Rc::clone(machine.meter());
    let items = ops::iterate(value, meter)?;
    if let Some(attribute) = args.take_named("attribute") {
        let key = Key { default: args.take_named("default"), ..Key::new(&attribute)? };
        return generator(key.of_all(machine, items.items())?, meter);
    }
    let filter = args.need_text("filter")?;
    let mut out = ListBuilder::new(meter)?;
    let (positional, named) = (std::mem::take(&mut args.positional), std::mem::take(&mut args.named));
    machine.enter()?;
    for item in items.items() {
        let args = Args { positional: positional.clone(), named: named.clone() };
        out.push(super::apply(machine, filter.as_str(), item.clone(), args)?)?;
    }
    machine.leave();
    out.generator()
}

/// `select`, `reject`, and their forms that look at an attribute.
fn select(machine: &mut Machine<'_>, name: &str, value: &Value, args: &mut Args) -> Result<Value> {
    let meter = &Rc::clone(machine.meter());
    let wanted = name.starts_with("select");
    let key = match name.ends_with("attr") {
        true => Some(Key::new(&args.need("attribute")?)?),
        false => None,
    };
    let test = args.text("test")?;
    let (positional, named) = (std::mem::take(&mut args.positional), std::mem::take(&mut args.named));
    let mut out = ListBuilder::new(meter)?;
    for item in ops::iterate(value, meter)?.items() {
        let looked_at = key.as_ref().map_or_else(|| Ok(item.clone()), |key| key.of(machine, item))?;
        let passed = match &test {
            None => looked_at.truthy(),
            Some(test) => {
                let args = Args { positional: positional.clone(), named: named.clone() };
                meter.steps(1 + positional.len())?;
                tests::check(test.as_str(), &looked_at, args, meter)?
            }
        };
        if passed == wanted {
            out.push(item.clone())?;
        }
    }
    out.generator()
}

/// Indices of `keys` in their order.
fn order(keys: &[Value], meter: &Meter) -> Result<Vec<usize>> {
    let mut less = |a: &usize, b: &usize| ops::compare(CompareOp::Lt, &keys[*a], &keys[*b], meter);
    ops::sort((0..keys.len()).collect(), &mut less)
}

fn sort(machine: &mut Machine<'_>, value: &Value, args: &mut Args) -> Result<Value> {
    let meter = &Rc::clone(machine.meter());
    let (reverse, case) = (args.flag("reverse"), args.flag("case_sensitive"));
    let key = Key::take(args)?;
    let items = ops::iterate(value, meter)?;
    let keys = key.for_order(machine, items.items(), case)?;
    Ok(Value::List(sorted(items.items(), &keys, reverse, meter)?))
}

/// Items in the order of their keys. In reverse, equals keep their order too.
fn sorted(items: &[Value], keys: &[Value], reverse: bool, meter: &Rc<Meter>) -> Result<List> {
    let order = if reverse {
        let mut greater = |a: &usize, b: &usize| ops::compare(CompareOp::Gt, &keys[*a], &keys[*b], meter);
        ops::sort((0..keys.len()).collect(), &mut greater)?
    } else {
        order(keys, meter)?
    };
    List::new(meter, order.into_iter().map(|at| items[at].clone()))
}

fn dictsort(value: &Value, args: &mut Args, meter: &Rc<Meter>) -> Result<Value> {
    let case = args.flag("case_sensitive");
    let by = args.text("by")?;
    let reverse = args.flag("reverse");
    let Value::Dict(dict) = value else {
        return invalid(format!("`dictsort` needs a dict, not {}", value.type_name()));
    };
    let by_value = by.is_some_and(|by| by.as_str() == "value");
    let (mut pairs, mut keys) = (Vec::new(), Vec::new());
    for (key, value) in dict.entries() {
        pairs.push(Value::Tuple(List::new(meter, [key.clone(), value.clone()])?));
        keys.push(match if by_value { value } else { key } {
            Value::Str(text) if !case => Value::Str(text.map(str::to_lowercase)?),
            other => other.clone(),
        });
    }
    Ok(Value::List(sorted(&pairs, &keys, reverse, meter)?))
}

fn unique(machine: &mut Machine<'_>, value: &Value, args: &mut Args) -> Result<Value> {
    let meter = &Rc::clone(machine.meter());
    let case = args.flag("case_sensitive");
    let key = Key::take(args)?;
    let items = ops::iterate(value, meter)?;
    let keys = key.for_order(machine, items.items(), case)?;
    let mut out = ListBuilder::new(meter)?;
    for (at, item) in items.items().iter().enumerate() {
        let mut seen = false;
        for earlier in &keys[..at] {
            seen = seen || earlier.equals(&keys[at], meter)?;
        }
        if !seen {
            out.push(item.clone())?;
        }
    }
    out.generator()
}

/// Pairs of a key and the items that have it, in the order of keys.
fn groupby(machine: &mut Machine<'_>, value: &Value, args: &mut Args) -> Result<Value> {
    let meter = &Rc::clone(machine.meter());
    let attribute = args.need("attribute")?;
    let key = Key { default: args.take("default"), ..Key::new(&attribute)? };
    let case = args.flag("case_sensitive");
    let items = ops::iterate(value, meter)?;
    let folded = key.for_order(machine, items.items(), case)?;
    let mut groups = ListBuilder::new(meter)?;
    let order = order(&folded, meter)?;
    let mut rest = order.as_slice();
    while let [first, ..] = rest {
        let mut group = ListBuilder::new(meter)?;
        let name = key.of(machine, &items.items()[*first])?;
        while let [at, after @ ..] = rest {
            if !folded[*at].equals(&folded[*first], meter)? {
                break;
            }
            group.push(items.items()[*at].clone())?;
            rest = after;
        }
        groups.push(Value::Tuple(List::new(meter, [name, Value::List(group.finish()?)])?))?;
    }
    Ok(Value::List(groups.finish()?))
}

fn extreme(machine: &mut Machine<'_>, largest: bool, value: &Value, args: &mut Args) -> Result<Value> {
    let meter = &Rc::clone(machine.meter());
    let case = args.flag("case_sensitive");
    let key = Key::take(args)?;
    let items = ops::iterate(value, meter)?;
    let keys = key.for_order(machine, items.items(), case)?;
    let op = if largest { CompareOp::Gt } else { CompareOp::Lt };
    let mut best = 0;
    for at in 1..keys.len() {
        if ops::compare(op, &keys[at], &keys[best], meter)? {
            best = at;
        }
    }
    Ok(items.items().get(best).cloned().unwrap_or(Value::Undefined(Hint::Nothing)))
}

/// Lists of `linecount` items each, the last filled up if `fill_with` is given.
fn batch(value: &Value, args: &mut Args, meter: &Rc<Meter>) -> Result<Value> {
    let size = args.int("linecount")?.and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0);
    let Some(size) = size else { return invalid("`batch` needs a number of items") };
    let fill = args.take("fill_with").filter(|fill| !matches!(fill, Value::None));
    let mut out = ListBuilder::new(meter)?;
    for chunk in ops::iterate(value, meter)?.items().chunks(size) {
        let mut row = ListBuilder::new(meter)?;
        row.room(if fill.is_some() { size } else { 0 })?;
        chunk.iter().try_for_each(|item| row.push(item.clone()))?;
        for _ in chunk.len()..if fill.is_some() { size } else { 0 } {
            row.push(fill.clone().unwrap_or(Value::None))?;
        }
        out.push(Value::List(row.finish()?))?;
    }
    out.generator()
}
