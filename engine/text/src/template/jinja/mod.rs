//! Jinja, as far as chat templates use it, with the meaning that Python's Jinja and Hugging Face's settings give it.
//!
//! It is our own for the sake of one property that no engine at hand has: every string knows which of its bytes the
//! template wrote and which came from the user ([`Origin`]), through all operations, so that what a user types cannot
//! become a control token. And it is Python's Jinja in what templates rely on unknowingly: how values are printed, that
//! generators are true and yield once, that `x['items']` finds a method, which accesses are undefined and which fail.
//!
//! Where it knowingly differs: `safe` and `escape` give plain text (Jinja escapes what is later added to such text, also
//! where nothing else is escaped), integers have 128 bits, calls and values nest some hundred levels at most, `groupby`
//! gives pairs without names, and what no chat template needs is missing and said to be: other template files,
//! characters by name, filters for HTML.
//!
//! `lexer` and `parser` make a [`Program`]; a [`Machine`] renders it, and charges all it does to a [`Meter`].

mod access;
mod args;
mod ast;
mod eval;
mod expressions;
mod filters;
mod format;
mod functions;
mod lexer;
mod machine;
mod meter;
mod methods;
mod ops;
mod parser;
mod python;
mod show;
mod strings;
mod tests;
mod text;
mod value;

pub(super) use ast::Program;
pub(super) use machine::Machine;
pub(super) use meter::{Fault, Meter};
pub(super) use parser::parse;
pub(super) use python::is_space;
pub(super) use text::{Origin, Text};
pub(super) use value::{DictBuilder, ListBuilder, Value};
