//! One typed configuration: defaults, then a TOML file, then `--set KEY=VALUE`, then flags. Later wins, unknown keys
//! are refused, and every value remembers where it came from.

mod percent;
mod schema;
mod sources;

pub(crate) use percent::Percent;
pub(crate) use schema::{Config, KvType, Paths};
pub(crate) use sources::{Entry, Loaded, Request, load, plain};
