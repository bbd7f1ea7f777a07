//! Models: from a file or a folder to a configuration, a Program, and weights ready to compute with.
//!
//! `source` opens either kind of model as tensors and hyperparameters under GGUF's names; [`ModelConfig`] is what
//! architectures share; each architecture is a file that says what it adds, and builds the Program.

mod blocks;
mod config;
mod dense;
mod experts;
mod file;
mod gemma;
mod hybrid;
mod llama;
mod loaded;
mod qwen2;
mod qwen3;
mod qwen3moe;
mod rope;
mod source;
mod template;
mod tokenizer;
mod windows;

pub use config::ModelConfig;
pub use file::ModelFile;
pub(crate) use loaded::Weight;
pub use loaded::{LoadOptions, Model};
pub use rope::RopeConfig;
pub use template::chat_template;

use crate::Error;
use crate::program::{Builder, Value};
use source::{Field, Keys, Rule};
use std::fmt::Debug;

/// A model architecture: what it is called, how its files differ from others', and what it computes.
#[derive(Debug)]
struct Architecture {
    /// As `general.architecture` names it in GGUF files.
    name: &'static str,
    /// As `model_type` names it in `config.json`.
    model_types: &'static [&'static str],
    /// Types of layers in `config.json`, beside attention with and without a window.
    layer_types: &'static [&'static str],
    /// Pairing of rotated values in GGUF files, which is fixed by architecture; in folders it is that of GPT-NeoX always.
    rope_neox: bool,
    /// Every so many layers one sees the whole context, where the model has a sliding window and does not say.
    window_pattern: Option<usize>,
    /// Names of tensors in folders, where they are not the common ones.
    rules: &'static [Rule],
    /// Hyperparameters of its own, and where `config.json` has them.
    fields: &'static [Field],
    /// Reads what is not shared.
    read: Read,
}

/// Reads an architecture's own hyperparameters.
type Read = fn(&Keys<'_>, &ModelConfig) -> Result<Box<dyn Graph>, Error>;

/// What a model computes: an architecture with its own hyperparameters.
trait Graph: Debug + Send + Sync {
    /// Emits the Program and returns its result, the logits.
    fn build(&self, config: &ModelConfig, b: &mut Builder<'_>) -> Result<Value, Error>;

    /// Emits the Program of the head that predicts the token after the next (MTP), if the model has one, and returns its
    /// logits. Its rows bring the next token, and the state that predicted it.
    fn build_mtp(&self, config: &ModelConfig, b: &mut Builder<'_>) -> Result<Option<Value>, Error> {
        let _ = (config, b);
        Ok(None)
    }
}

/// Every architecture this build knows.
const ARCHITECTURES: &[Architecture] = &[
    llama::ARCHITECTURE,
    qwen2::ARCHITECTURE,
    qwen3::ARCHITECTURE,
    qwen3moe::ARCHITECTURE,
    hybrid::QWEN3NEXT,
    hybrid::QWEN35,
    hybrid::QWEN35MOE,
    gemma::GEMMA2,
    gemma::GEMMA3,
];

impl Architecture {
    fn by_gguf(name: &str) -> Option<&'static Architecture> {
        ARCHITECTURES.iter().find(|a| a.name == name)
    }

    fn by_model_type(name: &str) -> Option<&'static Architecture> {
        ARCHITECTURES.iter().find(|a| a.model_types.contains(&name))
    }

    fn gguf_names() -> String {
        ARCHITECTURES.iter().map(|a| a.name).collect::<Vec<_>>().join(", ")
    }

    fn model_types() -> String {
        let types = ARCHITECTURES.iter().flat_map(|a| a.model_types.iter().copied());
        types.collect::<Vec<_>>().join(", ")
    }
}
