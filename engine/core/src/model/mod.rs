//! Models: from a file to a configuration, a Program, and weights ready to compute with.

mod config;
mod file;
mod llama;
mod loaded;

pub use config::ModelConfig;
pub use file::ModelFile;
pub(crate) use loaded::Weight;
pub use loaded::{LoadOptions, Model};

use crate::Error;
use crate::program::{Builder, Value};

/// A model architecture: how its configuration differs, and how its Program is built.
#[derive(Debug)]
struct Architecture {
    /// As `general.architecture` names it.
    name: &'static str,
    /// Pairing of rotated values, which GGUF fixes by architecture.
    rope_neox: bool,
    /// Emits the Program and returns the logits.
    build: fn(&ModelConfig, &mut Builder<'_>) -> Result<Value, Error>,
}

/// Every architecture this build knows.
const ARCHITECTURES: &[Architecture] = &[llama::ARCHITECTURE];

impl Architecture {
    fn find(name: &str) -> Option<&'static Architecture> {
        ARCHITECTURES.iter().find(|a| a.name == name)
    }

    fn names() -> String {
        ARCHITECTURES.iter().map(|a| a.name).collect::<Vec<_>>().join(", ")
    }
}
