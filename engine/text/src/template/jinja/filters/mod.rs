//! Filters: `value | name`. They are Jinja's, with Hugging Face's `tojson`.

mod items;
mod scalar;

use super::args::Args;
use super::machine::Machine;
use super::meter::{Result, invalid};
use super::value::Value;

/// Filters of Jinja that need more than a chat template can want: random numbers, HTML, prose.
const UNSUPPORTED: [&str; 13] = [
    "filesizeformat",
    "forceescape",
    "pprint",
    "random",
    "slice",
    "striptags",
    "truncate",
    "urlencode",
    "urlize",
    "wordwrap",
    "xmlattr",
    "mark_safe",
    "markdown",
];

/// Applies a filter.
pub(super) fn apply(machine: &mut Machine<'_>, name: &str, value: Value, mut args: Args) -> Result<Value> {
    let result = match scalar::apply(machine, name, &value, &mut args)? {
        Some(result) => result,
        None => match items::apply(machine, name, &value, &mut args)? {
            Some(result) => result,
            None if UNSUPPORTED.contains(&name) => {
                return invalid(format!("the filter `{name}` is not supported"));
            }
            None => return invalid(format!("there is no filter named `{name}`")),
        },
    };
    args.end(name)?;
    Ok(result)
}
