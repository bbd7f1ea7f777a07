//! Methods of strings, dicts and lists: Python's, less those that change the object, which the sandbox forbids.

use super::args::Args;
use super::meter::{Meter, Result, invalid};
use super::strings::{self, Ends};
use super::text::Text;
use super::value::{Dict, List, ListBuilder, Value};
use super::{format, python};
use std::rc::Rc;

/// In order, for binary search.
const STRING: [&str; 39] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "islower",
    "isnumeric",
    "isspace",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];
const DICT: [&str; 5] = ["copy", "get", "items", "keys", "values"];
const LIST: [&str; 3] = ["copy", "count", "index"];

/// Whether a value has a method of this name.
pub(crate) fn exists(value: &Value, name: &str) -> bool {
    match value {
        Value::Str(_) => STRING.binary_search(&name).is_ok(),
        Value::Dict(_) => DICT.contains(&name),
        Value::List(_) => LIST.contains(&name),
        Value::Tuple(_) => LIST[1..].contains(&name),
        _ => false,
    }
}

/// Calls a method that exists.
pub(crate) fn call(value: &Value, name: &str, mut args: Args, meter: &Rc<Meter>) -> Result<Value> {
    let result = match value {
        Value::Str(text) => string(text, name, &mut args)?,
        Value::Dict(dict) => of_dict(dict, name, &mut args, meter)?,
        Value::List(list) | Value::Tuple(list) => of_list(value, list, name, &mut args, meter)?,
        _ => return invalid(format!("a {} has no method `{name}`", value.type_name())),
    };
    args.end(name)?;
    Ok(result)
}

fn of_dict(dict: &Dict, name: &str, args: &mut Args, meter: &Rc<Meter>) -> Result<Value> {
    let entries = dict.entries().iter();
    match name {
        "get" => {
            let key = args.need("key")?;
            let default = args.take("default").unwrap_or(Value::None);
            Ok(dict.get(&key)?.cloned().unwrap_or(default))
        }
        "items" => {
            let mut items = ListBuilder::new(meter)?;
            for (key, value) in entries {
                items.push(Value::Tuple(List::new(meter, [key.clone(), value.clone()])?))?;
            }
            Ok(Value::List(items.finish()?))
        }
        "keys" => Ok(Value::List(List::new(meter, entries.map(|(key, _)| key.clone()))?)),
        "values" => Ok(Value::List(List::new(meter, entries.map(|(_, value)| value.clone()))?)),
        _ => Ok(Value::Dict(dict.clone())),
    }
}

fn of_list(value: &Value, list: &List, name: &str, args: &mut Args, meter: &Rc<Meter>) -> Result<Value> {
    if name == "copy" {
        return Ok(value.clone());
    }
    let wanted = args.need("value")?;
    let mut count = 0;
    for (at, item) in list.items().iter().enumerate() {
        if item.equals(&wanted, meter)? {
            if name == "index" {
                return Ok(Value::Int(at as i128));
            }
            count += 1;
        }
    }
    if name == "index" { invalid("the value is not in the list") } else { Ok(Value::Int(count)) }
}

fn string(text: &Text, name: &str, args: &mut Args) -> Result<Value> {
    let meter = text.meter();
    meter.bytes(4 * text.len())?;
    let changed = match name {
        "strip" => strings::strip(text, args.text("chars")?.as_ref(), Ends::Both)?,
        "lstrip" => strings::strip(text, args.text("chars")?.as_ref(), Ends::Left)?,
        "rstrip" => strings::strip(text, args.text("chars")?.as_ref(), Ends::Right)?,
        "upper" => text.map(str::to_uppercase)?,
        "lower" => text.map(str::to_lowercase)?,
        "casefold" => text.map(|piece| piece.to_lowercase().replace('ß', "ss"))?,
        "title" => text.map(python::title)?,
        "capitalize" => python_capitalize(text)?,
        "swapcase" => text.map(swapcase)?,
        "replace" => {
            let (old, new) = (args.need_text("old")?, args.need_text("new")?);
            strings::replace(text, &old, &new, limit(args.int("count")?))?
        }
        "join" => join(text, &args.need("iterable")?)?,
        "format" => format::braces(text, args)?,
        "removeprefix" => {
            let prefix = args.need_text("prefix")?;
            let found = text.as_str().starts_with(prefix.as_str());
            text.slice(if found { prefix.len() } else { 0 }..text.len())?
        }
        "removesuffix" => {
            let suffix = args.need_text("suffix")?;
            let found = text.as_str().ends_with(suffix.as_str());
            text.slice(0..text.len() - if found { suffix.len() } else { 0 })?
        }
        "ljust" | "rjust" | "center" => {
            let width = args.int("width")?.unwrap_or(0);
            let fill = args.text("fillchar")?.map_or_else(|| Text::made(meter, " "), Ok)?;
            if fill.as_str().chars().count() != 1 {
                return invalid("the fill must be one character");
            }
            let ends = match name {
                "ljust" => Ends::Right,
                "rjust" => Ends::Left,
                _ => Ends::Both,
            };
            strings::pad(text, width, &fill, ends)?
        }
        "zfill" => zfill(text, args.int("width")?.unwrap_or(0))?,
        _ => return search(text, name, args),
    };
    Ok(Value::Str(changed))
}

/// A limit of replacements or cuts: negative is none.
fn limit(n: Option<i128>) -> Option<usize> {
    n.and_then(|n| usize::try_from(n).ok())
}

/// Methods that do not give a string.
fn search(text: &Text, name: &str, args: &mut Args) -> Result<Value> {
    let (string, meter) = (text.as_str(), text.meter());
    match name {
        "split" | "rsplit" => {
            let separator = args.text("sep")?;
            let max = limit(args.int("maxsplit")?);
            strings::split(text, separator.as_ref(), max, name == "rsplit")
        }
        "splitlines" => {
            let keep = args.flag("keepends");
            let mut lines = ListBuilder::new(meter)?;
            for (line, next) in strings::lines(string) {
                let end = if keep { next } else { line.end };
                lines.push(Value::Str(text.slice(line.start..end)?))?;
            }
            Ok(Value::List(lines.finish()?))
        }
        "partition" | "rpartition" => partition(text, &args.need_text("sep")?, name == "rpartition"),
        "startswith" => affix(&args.need("prefix")?, |affix| string.starts_with(affix)),
        "endswith" => affix(&args.need("suffix")?, |affix| string.ends_with(affix)),
        "find" | "rfind" | "index" | "rindex" => {
            let sub = args.need_text("sub")?;
            let found =
                if name.starts_with('r') { string.rfind(sub.as_str()) } else { string.find(sub.as_str()) };
            match found {
                Some(at) => Ok(Value::Int(string[..at].chars().count() as i128)),
                None if name.ends_with("find") => Ok(Value::Int(-1)),
                None => invalid("substring not found"),
            }
        }
        "count" => Ok(Value::Int(string.matches(args.need_text("sub")?.as_str()).count() as i128)),
        _ => Ok(Value::Bool(is(string, name))),
    }
}

fn affix(wanted: &Value, found: impl Fn(&str) -> bool) -> Result<Value> {
    match wanted {
        Value::Str(affix) => Ok(Value::Bool(found(affix.as_str()))),
        Value::Tuple(list) => Ok(Value::Bool(list.items().iter().filter_map(Value::as_str).any(found))),
        _ => invalid(format!("a string or a tuple of strings is needed, not {}", wanted.type_name())),
    }
}

fn partition(text: &Text, separator: &Text, from_right: bool) -> Result<Value> {
    let (string, wanted) = (text.as_str(), separator.as_str());
    if wanted.is_empty() {
        return invalid("empty separator");
    }
    let found = if from_right { string.rfind(wanted) } else { string.find(wanted) };
    let (from, to) = match found {
        Some(at) => (at, at + wanted.len()),
        None if from_right => (0, 0),
        None => (string.len(), string.len()),
    };
    let parts = [text.slice(0..from)?, text.slice(from..to)?, text.slice(to..string.len())?];
    Ok(Value::Tuple(List::new(text.meter(), parts.map(Value::Str))?))
}

fn join(separator: &Text, items: &Value) -> Result<Text> {
    let items = super::ops::iterate(items, separator.meter())?;
    match items.items().iter().find(|item| item.as_str().is_none()) {
        Some(other) => invalid(format!("`join` needs strings, not {}", other.type_name())),
        None => strings::join(separator, items.items()),
    }
}

/// `str.capitalize`: only the first piece begins a string.
fn python_capitalize(text: &Text) -> Result<Text> {
    let first = std::cell::Cell::new(true);
    text.map(|piece| if first.replace(false) { python::capitalize(piece) } else { piece.to_lowercase() })
}

fn swapcase(piece: &str) -> String {
    let mut out = String::with_capacity(piece.len());
    for c in piece.chars() {
        if c.is_uppercase() { out.extend(c.to_lowercase()) } else { out.extend(c.to_uppercase()) }
    }
    out
}

fn zfill(text: &Text, width: i128) -> Result<Text> {
    let sign = usize::from(text.as_str().starts_with(['+', '-']));
    let (sign, digits) = (text.slice(0..sign)?, text.slice(sign..text.len())?);
    let digits = strings::pad(
        &digits,
        width.saturating_sub(sign.len() as i128),
        &Text::made(text.meter(), "0")?,
        Ends::Left,
    )?;
    let empty = text.slice(0..0)?;
    strings::join(&empty, &[Value::Str(sign), Value::Str(digits)])
}

/// The predicates: all characters are of a kind, and there is one.
fn is(string: &str, name: &str) -> bool {
    let all = |kind: fn(char) -> bool| !string.is_empty() && string.chars().all(kind);
    match name {
        "isspace" => all(python::is_space),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isdigit" | "isdecimal" => all(|c| c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric())),
        "isnumeric" => all(char::is_numeric),
        "isascii" => string.is_ascii(),
        "isupper" => string.chars().any(char::is_uppercase) && !string.chars().any(char::is_lowercase),
        "islower" => string.chars().any(char::is_lowercase) && !string.chars().any(char::is_uppercase),
        _ => false,
    }
}
