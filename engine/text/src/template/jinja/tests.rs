//! Jinja's tests: `value is name`.

use super::args::Args;
use super::ast::CompareOp;
use super::meter::{Meter, Result, invalid};
use super::ops;
use super::value::{Number, Value};

/// Whether a value passes a test.
pub(crate) fn check(name: &str, value: &Value, mut args: Args, meter: &Meter) -> Result<bool> {
    let comparison = match name {
        "eq" | "==" | "equalto" => Some(CompareOp::Eq),
        "ne" | "!=" => Some(CompareOp::Ne),
        "lt" | "<" | "lessthan" => Some(CompareOp::Lt),
        "le" | "<=" => Some(CompareOp::Le),
        "gt" | ">" | "greaterthan" => Some(CompareOp::Gt),
        "ge" | ">=" => Some(CompareOp::Ge),
        "in" => Some(CompareOp::In),
        _ => None,
    };
    let passed = match comparison {
        Some(op) => ops::compare(op, value, &args.need("other")?, meter)?,
        None => kind(name, value, &mut args, meter)?,
    };
    args.end(name)?;
    Ok(passed)
}

fn kind(name: &str, value: &Value, args: &mut Args, meter: &Meter) -> Result<bool> {
    Ok(match name {
        "defined" => !matches!(value, Value::Undefined(_)),
        "undefined" => matches!(value, Value::Undefined(_)),
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => value.number().is_some(),
        "string" => matches!(value, Value::Str(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "sequence" => matches!(
            value,
            Value::Str(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Undefined(_)
        ),
        "iterable" => matches!(
            value,
            Value::Str(_)
                | Value::List(_)
                | Value::Tuple(_)
                | Value::Dict(_)
                | Value::Iter(_)
                | Value::Undefined(_)
        ),
        "callable" => matches!(
            value,
            Value::Macro(_) | Value::Function(_) | Value::Method(_) | Value::Loop(_) | Value::Undefined(_)
        ),
        "sameas" => same(value, &args.need("other")?, meter)?,
        "even" => integer(value)? % 2 == 0,
        "odd" => integer(value)? % 2 != 0,
        "divisibleby" => match args.int("num")? {
            Some(n) if n != 0 => integer(value)?.checked_rem(n).unwrap_or(0) == 0,
            _ => return invalid("`divisibleby` needs a number other than 0"),
        },
        "lower" => value.as_str().is_some_and(|text| is_case(text, char::is_lowercase, char::is_uppercase)),
        "upper" => value.as_str().is_some_and(|text| is_case(text, char::is_uppercase, char::is_lowercase)),
        _ => return invalid(format!("there is no test named `{name}`")),
    })
}

fn is_case(text: &str, wanted: fn(char) -> bool, other: fn(char) -> bool) -> bool {
    text.chars().any(wanted) && !text.chars().any(other)
}

fn integer(value: &Value) -> Result<i128> {
    match value.number() {
        Some(Number::Int(n)) => Ok(n),
        _ => invalid(format!("an integer is needed, not {}", value.type_name())),
    }
}

/// Python's `is`: of the same type, and equal. Two equal lists that are not one are told apart by Python, but not here.
fn same(a: &Value, b: &Value, meter: &Meter) -> Result<bool> {
    Ok(std::mem::discriminant(a) == std::mem::discriminant(b) && a.equals(b, meter)?)
}
