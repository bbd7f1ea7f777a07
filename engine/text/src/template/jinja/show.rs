//! Values as text: `str`, `repr` and JSON, as Python writes them.

use super::meter::{Meter, Result, invalid};
use super::python;
use super::text::{Origin, Text, TextBuilder};
use super::value::{List, Value};
use std::rc::Rc;

/// `str(value)`
pub(crate) fn text(value: &Value, meter: &Rc<Meter>) -> Result<Text> {
    if let Value::Str(text) = value {
        return Ok(text.clone());
    }
    let mut out = TextBuilder::new(meter)?;
    write(value, &mut out)?;
    Ok(out.finish())
}

/// Appends `str(value)`.
pub(crate) fn write(value: &Value, out: &mut TextBuilder) -> Result<()> {
    match value {
        Value::Str(text) => out.push_text(text),
        Value::Undefined(_) => Ok(()),
        _ => repr(value, out),
    }
}

/// Appends `repr(value)`.
pub(crate) fn repr(value: &Value, out: &mut TextBuilder) -> Result<()> {
    out.meter().steps(1)?;
    match value {
        Value::None => out.made("None"),
        Value::Undefined(_) => out.made("Undefined"),
        Value::Bool(value) => out.made(if *value { "True" } else { "False" }),
        Value::Int(value) => out.made(&value.to_string()),
        Value::Float(value) => out.made(&python::float(*value)),
        Value::Str(text) => out.push(&python::repr(text.as_str()), text.origin()),
        Value::List(list) => sequence("[", list, "]", out),
        Value::Tuple(list) => sequence("(", list, if list.items().len() == 1 { ",)" } else { ")" }, out),
        Value::Dict(dict) => {
            out.made("{")?;
            for (i, (key, value)) in dict.entries().iter().enumerate() {
                out.made(if i > 0 { ", " } else { "" })?;
                repr(key, out)?;
                out.made(": ")?;
                repr(value, out)?;
            }
            out.made("}")
        }
        _ => out.made(&format!("<{}>", value.type_name())),
    }
}

fn sequence(open: &str, list: &List, close: &str, out: &mut TextBuilder) -> Result<()> {
    out.made(open)?;
    for (i, item) in list.items().iter().enumerate() {
        out.made(if i > 0 { ", " } else { "" })?;
        repr(item, out)?;
    }
    out.made(close)
}

/// How to write JSON: the arguments of `json.dumps` that Hugging Face's `tojson` takes.
#[derive(Debug, Default)]
pub(crate) struct JsonStyle {
    pub(crate) ensure_ascii: bool,
    /// What a level is indented by; none is one line.
    pub(crate) indent: Option<Text>,
    /// Between items, and between key and value.
    pub(crate) separators: Option<(Text, Text)>,
    pub(crate) sort_keys: bool,
}

/// Appends `json.dumps(value)`.
pub(crate) fn json(value: &Value, style: &JsonStyle, out: &mut TextBuilder) -> Result<()> {
    Json { style, out, level: 0 }.value(value)
}

struct Json<'a> {
    style: &'a JsonStyle,
    out: &'a mut TextBuilder,
    level: usize,
}

impl Json<'_> {
    fn value(&mut self, value: &Value) -> Result<()> {
        self.out.meter().steps(1)?;
        match value {
            Value::None => self.out.made("null"),
            Value::Bool(value) => self.out.made(if *value { "true" } else { "false" }),
            Value::Int(value) => self.out.made(&value.to_string()),
            Value::Float(value) => self.out.made(&float(*value)),
            Value::Str(text) => self.string(text.as_str(), text.origin()),
            Value::List(list) | Value::Tuple(list) => {
                self.group("[", list.items().iter(), "]", |json, item| json.value(item))
            }
            Value::Dict(dict) => {
                let mut entries: Vec<&(Value, Value)> = dict.entries().iter().collect();
                if self.style.sort_keys {
                    self.out.meter().steps(entries.len() * 8)?;
                    entries.sort_by(|(a, _), (b, _)| a.as_str().cmp(&b.as_str()));
                }
                self.group("{", entries.into_iter(), "}", |json, (key, value)| {
                    json.key(key)?;
                    match &json.style.separators {
                        Some((_, colon)) => json.out.push_text(colon)?,
                        None => json.out.made(": ")?,
                    }
                    json.value(value)
                })
            }
            _ => invalid(format!("a value of type {} cannot be written as JSON", value.type_name())),
        }
    }

    fn string(&mut self, text: &str, origin: Origin) -> Result<()> {
        let mut literal = String::with_capacity(text.len() + 2);
        python::json_string(text, self.style.ensure_ascii, &mut literal);
        self.out.push(&literal, origin)
    }

    fn key(&mut self, key: &Value) -> Result<()> {
        match key {
            Value::Str(text) => self.string(text.as_str(), text.origin()),
            Value::None => self.out.made("\"null\""),
            Value::Bool(value) => self.out.made(if *value { "\"true\"" } else { "\"false\"" }),
            Value::Int(value) => self.out.made(&format!("\"{value}\"")),
            Value::Float(value) => self.out.made(&format!("\"{}\"", float(*value))),
            _ => invalid(format!("a key of type {} cannot be written as JSON", key.type_name())),
        }
    }

    fn group<'v, T: 'v>(
        &mut self,
        open: &str,
        items: impl ExactSizeIterator<Item = T>,
        close: &str,
        mut each: impl FnMut(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        self.out.made(open)?;
        let some = items.len() > 0;
        self.level += 1;
        for (i, item) in items.enumerate() {
            if i > 0 {
                match (&self.style.separators, &self.style.indent) {
                    (Some((comma, _)), _) => self.out.push_text(comma)?,
                    (None, Some(_)) => self.out.made(",")?,
                    (None, None) => self.out.made(", ")?,
                }
            }
            self.new_line()?;
            each(self, item)?;
        }
        self.level -= 1;
        if some {
            self.new_line()?;
        }
        self.out.made(close)
    }

    fn new_line(&mut self) -> Result<()> {
        if let Some(indent) = &self.style.indent {
            self.out.made("\n")?;
            self.out.repeat(indent, self.level)?;
        }
        Ok(())
    }
}

fn float(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => python::float(value),
    }
}
