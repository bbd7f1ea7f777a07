//! Arguments of calls, filters and tests.

use super::meter::{Fault, Result, invalid};
use super::text::Text;
use super::value::Value;
use std::collections::VecDeque;

/// Arguments that are yet to be taken.
#[derive(Debug, Default)]
pub(crate) struct Args {
    pub(crate) positional: VecDeque<Value>,
    pub(crate) named: Vec<(Text, Value)>,
}

impl Args {
    pub(crate) fn new(positional: Vec<Value>, named: Vec<(Text, Value)>) -> Args {
        Args { positional: positional.into(), named }
    }

    /// The next parameter, whose name is `name`: by position, or else by name.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.positional.pop_front().or_else(|| self.take_named(name))
    }

    /// A parameter that can be given by name only.
    pub(crate) fn take_named(&mut self, name: &str) -> Option<Value> {
        let at = self.named.iter().position(|(found, _)| found.as_str() == name)?;
        Some(self.named.remove(at).1)
    }

    /// As [`Args::take`], but it must be there.
    pub(crate) fn need(&mut self, name: &str) -> Result<Value> {
        self.take(name).ok_or_else(|| Fault::Invalid(format!("the argument `{name}` is missing")))
    }

    /// A string; `None` stands for one that is not given.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<Text>> {
        match self.take(name) {
            None | Some(Value::None) => Ok(None),
            Some(Value::Str(text)) => Ok(Some(text)),
            Some(other) => invalid(format!("`{name}` must be a string, not {}", other.type_name())),
        }
    }

    pub(crate) fn need_text(&mut self, name: &str) -> Result<Text> {
        self.text(name)?.ok_or_else(|| Fault::Invalid(format!("the argument `{name}` is missing")))
    }

    /// An integer; `None` stands for one that is not given.
    pub(crate) fn int(&mut self, name: &str) -> Result<Option<i128>> {
        match self.take(name) {
            None | Some(Value::None) => Ok(None),
            Some(Value::Int(n)) => Ok(Some(n)),
            Some(Value::Bool(n)) => Ok(Some(i128::from(n))),
            Some(other) => invalid(format!("`{name}` must be an integer, not {}", other.type_name())),
        }
    }

    /// Whether a flag is set; false where it is not given.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        self.take(name).is_some_and(|value| value.truthy())
    }

    /// All have been taken.
    pub(crate) fn end(&self, what: &str) -> Result<()> {
        match self.named.first() {
            Some((name, _)) => invalid(format!("`{what}` takes no argument `{}`", name.as_str())),
            None if self.positional.is_empty() => Ok(()),
            None => invalid(format!("`{what}` is given too many arguments")),
        }
    }
}
