//! Qwen3: Llama with a norm on each head of queries and keys.

use super::Architecture;
use super::dense::Dense;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "qwen3",
    model_types: &["qwen3"],
    layer_types: &[],
    rope_neox: true,
    window_pattern: None,
    rules: &[],
    fields: &[],
    read: |keys, _| Dense { head_norms: true, ..Dense::default() }.read(keys),
};
