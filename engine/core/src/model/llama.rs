//! Llama 1 to 3, and what comes in its shape: Mistral, SmolLM2.

use super::Architecture;
use super::dense::Dense;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "llama",
    model_types: &["llama", "mistral"],
    layer_types: &[],
    rope_neox: false,
    window_pattern: None,
    rules: &[],
    fields: &[],
    read: |keys, _| Dense::default().read(keys),
};
