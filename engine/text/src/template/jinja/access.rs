//! Attributes, items and slices. Jinja's sandbox looks for an attribute of the object first and then for an item, or
//! the other way round for `[…]`; what there is not is undefined, and only what is undefined itself may not be asked.

use super::machine::Machine;
use super::meter::{Meter, Result, invalid};
use super::methods;
use super::text::{Text, TextBuilder};
use super::value::{Hint, ListBuilder, Value};
use std::rc::Rc;

impl Machine<'_> {
    /// `value.name`
    pub(super) fn attribute(&self, value: &Value, name: &Text) -> Result<Value> {
        if methods::exists(value, name.as_str()) {
            return Ok(Value::Method(Rc::new((value.clone(), name.clone()))));
        }
        let found = match value {
            Value::Undefined(hint) => return self.undefined(hint),
            Value::Dict(dict) => dict.get_str(name.as_str()).cloned(),
            Value::Namespace(id) => self.namespace_get(*id, name.as_str()),
            Value::Loop(id) => self.loop_attribute(*id, name.as_str())?,
            _ => None,
        };
        Ok(found.unwrap_or_else(|| Value::Undefined(Hint::Key(name.clone()))))
    }

    /// `value[key]`
    pub(super) fn item(&self, value: &Value, key: &Value) -> Result<Value> {
        let found = match (value, key) {
            (Value::Undefined(hint), _) => return self.undefined(hint),
            // A key that cannot be one is as good as one that is not there.
            (Value::Dict(dict), _) => dict.get(key).ok().flatten().cloned(),
            (Value::List(list) | Value::Tuple(list), Value::Int(_) | Value::Bool(_)) => {
                position(key, list.items().len()).and_then(|at| list.items().get(at).cloned())
            }
            (Value::Str(text), Value::Int(_) | Value::Bool(_)) => {
                let range = char_range(text, key)?;
                range.map(|range| text.slice(range)).transpose()?.map(Value::Str)
            }
            _ => None,
        };
        match (found, key) {
            (Some(found), _) => Ok(found),
            (None, Value::Str(name)) => self.attribute_as_item(value, name),
            (None, _) => {
                let key = super::show::text(key, self.meter())?;
                Ok(Value::Undefined(Hint::Key(key)))
            }
        }
    }

    /// What `value["name"]` gives where there is no such item.
    fn attribute_as_item(&self, value: &Value, name: &Text) -> Result<Value> {
        match value {
            Value::Dict(_) if !methods::exists(value, name.as_str()) => {
                Ok(Value::Undefined(Hint::Key(name.clone())))
            }
            _ => self.attribute(value, name),
        }
    }
}

/// Where an index points in a sequence of `len`.
fn position(index: &Value, len: usize) -> Option<usize> {
    let index = match index {
        Value::Bool(index) => i128::from(*index),
        Value::Int(index) => *index,
        _ => return None,
    };
    let from_start = if index < 0 { index + len as i128 } else { index };
    usize::try_from(from_start).ok().filter(|&at| at < len)
}

/// Bytes of the character that an index points to.
fn char_range(text: &Text, index: &Value) -> Result<Option<std::ops::Range<usize>>> {
    let string = text.as_str();
    text.meter().bytes(string.len())?;
    let Some(at) = position(index, string.chars().count()) else { return Ok(None) };
    Ok(string.char_indices().nth(at).map(|(at, c)| at..at + c.len_utf8()))
}

/// The positions that `[start:stop:step]` takes of `len`, by Python's rules: first, step, how many.
fn slice_positions(len: usize, parts: [Option<i128>; 3]) -> Result<(i128, i128, usize)> {
    let [start, stop, step] = parts;
    let (len, step) = (len as i128, step.unwrap_or(1));
    if step == 0 {
        return invalid("a slice cannot step by 0");
    }
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let bound = |index: Option<i128>, default: i128| match index {
        None => default,
        Some(index) if index < 0 => (index.saturating_add(len)).max(low),
        Some(index) => index.min(high),
    };
    let (first, end) = if step > 0 {
        (bound(start, low), bound(stop, high))
    } else {
        (bound(start, high), bound(stop, low))
    };
    let distance = if step > 0 { end - first } else { first - end };
    let size = step.unsigned_abs() as i128;
    let count = if distance <= 0 { 0 } else { (distance - 1) / size.max(1) + 1 };
    Ok((first, step, usize::try_from(count).unwrap_or(0)))
}

/// `value[start:stop:step]`
pub(super) fn slice(value: &Value, parts: [Value; 3], meter: &Rc<Meter>) -> Result<Value> {
    let mut bounds = [None; 3];
    for (bound, part) in bounds.iter_mut().zip(&parts) {
        *bound = match part {
            Value::None => None,
            Value::Int(n) => Some(*n),
            Value::Bool(n) => Some(i128::from(*n)),
            _ => return invalid(format!("a slice needs integers, not {}", part.type_name())),
        };
    }
    match value {
        Value::Str(text) => Ok(Value::Str(slice_text(text, bounds)?)),
        Value::List(list) | Value::Tuple(list) => {
            let items = list.items();
            let (first, step, count) = slice_positions(items.len(), bounds)?;
            let list = match usize::try_from(first) {
                Ok(from) if step == 1 => list.stretch(from, count),
                _ => {
                    let mut out = ListBuilder::new(meter)?;
                    for i in 0..count {
                        let at = usize::try_from(first + step * i as i128).ok();
                        out.push(at.and_then(|at| items.get(at)).cloned().unwrap_or(Value::None))?;
                    }
                    out.finish()?
                }
            };
            Ok(if matches!(value, Value::List(_)) { Value::List(list) } else { Value::Tuple(list) })
        }
        _ => invalid(format!("a value of type {} cannot be sliced", value.type_name())),
    }
}

fn slice_text(text: &Text, bounds: [Option<i128>; 3]) -> Result<Text> {
    let string = text.as_str();
    text.meter().bytes(string.len())?;
    let length = string.chars().count();
    let (first, step, count) = slice_positions(length, bounds)?;
    if count == 0 {
        return text.slice(0..0);
    }
    let stride = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    let skip = usize::try_from(if step > 0 { first } else { length as i128 - 1 - first }).unwrap_or(0);
    if step == 1 {
        let mut chars = string.char_indices().skip(skip);
        let from = chars.next().map_or(string.len(), |(at, _)| at);
        let to = chars.nth(count - 1).map_or(string.len(), |(at, _)| at);
        return text.slice(from..to);
    }
    let mut out = TextBuilder::new(text.meter())?;
    let mut push = |(at, c): (usize, char)| {
        text.meter().steps(1)?;
        out.push_part(text, at..at + c.len_utf8())
    };
    if step > 0 {
        string.char_indices().skip(skip).step_by(stride).take(count).try_for_each(&mut push)?;
    } else {
        string.char_indices().rev().skip(skip).step_by(stride).take(count).try_for_each(&mut push)?;
    }
    Ok(out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_take_what_pythons_take() {
        let meter = Meter::new(1 << 20, 1 << 20);
        let text = Value::made(&meter, "aé日d").unwrap();
        let part = |n: Option<i128>| n.map_or(Value::None, Value::Int);
        for (start, stop, step, expected) in [
            (None, None, None, "aé日d"),
            (Some(1), None, None, "é日d"),
            (Some(-2), None, None, "日d"),
            (None, Some(-1), None, "aé日"),
            (Some(1), Some(3), None, "é日"),
            (Some(3), Some(1), None, ""),
            (None, None, Some(-1), "d日éa"),
            (None, None, Some(2), "a日"),
            (None, None, Some(-2), "dé"),
            (Some(2), Some(0), Some(-1), "日é"),
            (Some(9), Some(-9), Some(-3), "da"),
            (Some(i128::MAX), Some(i128::MIN), Some(i128::MIN + 1), "d"),
            (Some(-9), Some(9), Some(i128::MAX), "a"),
        ] {
            let sliced = slice(&text, [part(start), part(stop), part(step)], &meter).unwrap();
            assert_eq!(sliced.as_str(), Some(expected), "{start:?}:{stop:?}:{step:?}");
            let chars = super::super::ops::iterate(&text, &meter).unwrap();
            let list = slice(&Value::List(chars), [part(start), part(stop), part(step)], &meter).unwrap();
            let Value::List(list) = list else { panic!("a slice of a list is no list") };
            let joined: String = list.items().iter().filter_map(Value::as_str).collect();
            assert_eq!(joined, expected, "{start:?}:{stop:?}:{step:?}");
        }
        assert!(slice(&text, [Value::None, Value::None, Value::Int(0)], &meter).is_err());
    }
}
