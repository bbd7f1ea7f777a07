//! Qwen2 and 2.5: Llama with biases on queries, keys and values.

use super::Architecture;
use super::dense::{Dense, QKV_BIASES};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "qwen2",
    model_types: &["qwen2"],
    layer_types: &[],
    rope_neox: true,
    window_pattern: None,
    rules: &[],
    fields: &[],
    read: |keys, _| Dense { required: QKV_BIASES, ..Dense::default() }.read(keys),
};
