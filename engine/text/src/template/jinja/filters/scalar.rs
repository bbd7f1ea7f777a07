//! Filters whose result is one string, number or bool.

use super::super::args::Args;
use super::super::machine::Machine;
use super::super::meter::{Meter, Result, invalid};
use super::super::show::{self, JsonStyle};
use super::super::strings::{self, Ends};
use super::super::text::{Text, TextBuilder};
use super::super::value::{Number, Value};
use super::super::{format, python};
use std::rc::Rc;

/// Applies the filter, if it is one of these.
pub(super) fn apply(
    machine: &mut Machine<'_>,
    name: &str,
    value: &Value,
    args: &mut Args,
) -> Result<Option<Value>> {
    let meter = &Rc::clone(machine.meter());
    Ok(Some(match name {
        "tojson" => Value::Str(tojson(value, args, meter)?),
        "int" => int(value, args)?,
        "float" => {
            let default = args.take("default").unwrap_or(Value::Float(0.0));
            float(value).map_or(default, Value::Float)
        }
        "abs" => match value.number() {
            Some(Number::Int(n)) => Value::Int(n.saturating_abs()),
            Some(Number::Float(n)) => Value::Float(n.abs()),
            None => return invalid(format!("`abs` needs a number, not {}", value.type_name())),
        },
        "round" => round(value, args)?,
        "default" | "d" => {
            let default = args.take("default_value");
            let missing = match (args.flag("boolean"), value) {
                (_, Value::Undefined(_)) => true,
                (boolean, value) => boolean && !value.truthy(),
            };
            match (missing, default) {
                (true, Some(default)) => default,
                (true, None) => Value::made(meter, "")?,
                (false, _) => value.clone(),
            }
        }
        "length" | "count" => Value::Int(length(value, meter)? as i128),
        "wordcount" => {
            let text = show::text(value, meter)?;
            meter.bytes(text.len())?;
            let words = text.as_str().split(|c: char| c != '_' && !c.is_alphanumeric());
            Value::Int(words.filter(|word| !word.is_empty()).count() as i128)
        }
        "attr" => {
            let name = args.need_text("name")?;
            match value {
                Value::Dict(_) => Value::Undefined(super::super::value::Hint::Key(name)),
                _ => machine.attribute(value, &name)?,
            }
        }
        _ => return Ok(on_text(name, value, args, meter)?.map(Value::Str)),
    }))
}

/// Filters that take any value as text.
fn on_text(name: &str, value: &Value, args: &mut Args, meter: &Rc<Meter>) -> Result<Option<Text>> {
    let text = || show::text(value, meter);
    Ok(Some(match name {
        "string" | "safe" => text()?,
        "trim" => strings::strip(&text()?, args.text("chars")?.as_ref(), Ends::Both)?,
        "upper" => text()?.map(str::to_uppercase)?,
        "lower" => text()?.map(str::to_lowercase)?,
        "capitalize" => {
            let first = std::cell::Cell::new(true);
            let change = |piece: &str| {
                if first.replace(false) { python::capitalize(piece) } else { piece.to_lowercase() }
            };
            text()?.map(change)?
        }
        "title" => text()?.map(title)?,
        "replace" => {
            let (old, new) = (args.need("old")?, args.need("new")?);
            let count = args.int("count")?.and_then(|n| usize::try_from(n).ok());
            strings::replace(&text()?, &show::text(&old, meter)?, &show::text(&new, meter)?, count)?
        }
        "indent" => {
            let indent = match args.take("width") {
                Some(Value::Str(indent)) => indent,
                Some(Value::Int(width)) => spaces(width, meter)?,
                None => spaces(4, meter)?,
                Some(other) => return invalid(format!("`width` is of type {}", other.type_name())),
            };
            let (first, blank) = (args.flag("first"), args.flag("blank"));
            strings::indent(&text()?, &indent, first, blank)?
        }
        "center" => {
            strings::pad(&text()?, args.int("width")?.unwrap_or(80), &Text::made(meter, " ")?, Ends::Both)?
        }
        "format" => {
            let positional = args.positional.drain(..);
            let values = Value::Tuple(super::super::value::List::new(meter, positional)?);
            let mut dict = super::super::value::DictBuilder::new(meter)?;
            let named = !args.named.is_empty();
            args.named.drain(..).try_for_each(|(key, value)| dict.set(Value::Str(key), value))?;
            let values = if named { Value::Dict(dict.finish()?) } else { values };
            format::percent(&text()?, &values, meter)?
        }
        "escape" | "e" => text()?.map(escape)?,
        _ => return Ok(None),
    }))
}

fn spaces(width: i128, meter: &Rc<Meter>) -> Result<Text> {
    let mut out = TextBuilder::new(meter)?;
    out.repeat(&Text::made(meter, " ")?, usize::try_from(width).unwrap_or(0))?;
    Ok(out.finish())
}

/// Jinja's title case: a word begins after white space, `-` or an opening bracket.
fn title(piece: &str) -> String {
    let mut out = String::with_capacity(piece.len());
    let begins = |c: char| python::is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<');
    let mut start = true;
    for c in piece.chars() {
        if start {
            out.extend(c.to_uppercase())
        } else {
            out.extend(c.to_lowercase())
        }
        start = begins(c);
    }
    out
}

fn escape(piece: &str) -> String {
    let mut out = String::with_capacity(piece.len());
    for c in piece.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// Hugging Face's `tojson`: `json.dumps` without Jinja's escapes for HTML.
fn tojson(value: &Value, args: &mut Args, meter: &Rc<Meter>) -> Result<Text> {
    let mut style = JsonStyle { ensure_ascii: args.flag("ensure_ascii"), ..JsonStyle::default() };
    style.indent = match args.take("indent") {
        None | Some(Value::None) => None,
        Some(Value::Str(indent)) => Some(indent),
        Some(Value::Int(width)) => Some(spaces(width, meter)?),
        Some(other) => return invalid(format!("`indent` is of type {}", other.type_name())),
    };
    style.separators = match args.take("separators") {
        None | Some(Value::None) => None,
        Some(Value::Tuple(pair) | Value::List(pair)) => match pair.items() {
            [Value::Str(comma), Value::Str(colon)] => Some((comma.clone(), colon.clone())),
            _ => return invalid("`separators` must be two strings"),
        },
        Some(_) => return invalid("`separators` must be two strings"),
    };
    style.sort_keys = args.flag("sort_keys");
    let mut out = TextBuilder::new(meter)?;
    show::json(value, &style, &mut out)?;
    Ok(out.finish())
}

fn length(value: &Value, meter: &Meter) -> Result<usize> {
    match value {
        Value::Str(text) => {
            meter.bytes(text.len())?;
            Ok(text.as_str().chars().count())
        }
        Value::List(list) | Value::Tuple(list) => Ok(list.items().len()),
        Value::Dict(dict) => Ok(dict.entries().len()),
        Value::Undefined(_) => Ok(0),
        _ => invalid(format!("a value of type {} has no length", value.type_name())),
    }
}

/// `int(value, base)`, of a text also `int(float(text))`, or else the default.
fn int(value: &Value, args: &mut Args) -> Result<Value> {
    let default = args.take("default").unwrap_or(Value::Int(0));
    let base = args.int("base")?.and_then(|base| u32::try_from(base).ok()).unwrap_or(10);
    if !(2..=36).contains(&base) {
        return invalid("`base` must be from 2 to 36");
    }
    let parsed = match value {
        Value::Str(text) => {
            let text = text.as_str().trim_matches(python::is_space).replace('_', "");
            i128::from_str_radix(&text, base).ok().or_else(|| whole(text.parse().ok()?))
        }
        _ => match value.number() {
            Some(Number::Int(n)) => Some(n),
            Some(Number::Float(n)) => whole(n),
            None => None,
        },
    };
    Ok(parsed.map_or(default, Value::Int))
}

/// A float without its fraction, if it is a number of 128 bits.
fn whole(n: f64) -> Option<i128> {
    (n.is_finite() && n.abs() < 1e38).then_some(n as i128)
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Str(text) => text.as_str().trim_matches(python::is_space).replace('_', "").parse().ok(),
        _ => value.number().map(Number::float),
    }
}

fn round(value: &Value, args: &mut Args) -> Result<Value> {
    let precision = args.int("precision")?.unwrap_or(0).clamp(-300, 300) as i32;
    let method = args.text("method")?;
    let Some(number) = value.number() else {
        return invalid(format!("`round` needs a number, not {}", value.type_name()));
    };
    let scale = 10f64.powi(precision);
    Ok(Value::Float(match method.as_ref().map_or("common", |method| method.as_str()) {
        "common" => match number {
            Number::Int(n) if precision >= 0 => return Ok(Value::Int(n)),
            Number::Float(n) if precision >= 0 => {
                // The digits that are kept are those of the exact value, ties to even, as in Python.
                format!("{n:.*}", precision.unsigned_abs() as usize).parse().unwrap_or(n)
            }
            _ => (number.float() * scale).round_ties_even() / scale,
        },
        "ceil" => (number.float() * scale).ceil() / scale,
        "floor" => (number.float() * scale).floor() / scale,
        other => return invalid(format!("`{other}` is no way to round; there are common, ceil and floor")),
    }))
}
