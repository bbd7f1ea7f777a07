//! The metadata of real shapes, key by key as llama.cpp's converter writes them.

use super::Quant;
use super::shape::{Arch, Shape};
use super::vocab::{self, Vocabulary};
use crate::Error;
use memra_formats::GgufWriter;

/// Base of the rotary frequencies in Gemma 3's windowed layers.
const GEMMA3_WINDOW_ROPE_BASE: f32 = 10_000.0;

impl Shape {
    fn vocabulary(&self) -> Vocabulary {
        match self.arch {
            Arch::Llama => vocab::llama3(),
            Arch::Qwen3 | Arch::Qwen3Moe => vocab::qwen3(),
            Arch::Gemma3 => vocab::gemma3(),
        }
    }

    /// Size of its vocabulary.
    pub(super) fn n_vocab(&self) -> usize {
        match self.arch {
            Arch::Llama => 128_256,
            Arch::Qwen3 | Arch::Qwen3Moe => 151_936,
            Arch::Gemma3 => 262_144,
        }
    }
}

/// A file's metadata, with no tensor declared yet.
pub(super) fn header(basename: &str, shape: &Shape, quant: Quant) -> Result<GgufWriter, Error> {
    let mut header = GgufWriter::new();
    header.metadata("general.architecture", shape.arch.name())?;
    header.metadata("general.type", "model")?;
    header.metadata("general.name", &format!("{} with random weights", shape.name))?;
    header.metadata("general.basename", basename)?;
    header.metadata("general.size_label", shape.size_label)?;
    hyperparameters(&mut header, shape)?;
    header.metadata("general.file_type", &quant.file_type())?;
    header.metadata("general.quantization_version", &2u32)?;
    shape.vocabulary().write(&mut header)?;
    Ok(header)
}

fn hyperparameters(header: &mut GgufWriter, shape: &Shape) -> Result<(), Error> {
    let arch = shape.arch.name();
    let count = |v: usize| u32::try_from(v).unwrap_or(u32::MAX);
    let mut integer = |key: &str, value: u32| header.metadata(&format!("{arch}.{key}"), &value).map(|_| ());
    integer("block_count", count(shape.n_layers))?;
    integer("context_length", shape.n_ctx)?;
    integer("embedding_length", count(shape.n_embd))?;
    integer("feed_forward_length", count(shape.n_ff))?;
    integer("attention.head_count", count(shape.n_heads))?;
    integer("attention.head_count_kv", count(shape.n_kv_heads))?;
    if shape.arch == Arch::Llama {
        integer("vocab_size", count(shape.n_vocab()))?;
        integer("rope.dimension_count", count(shape.head_dim))?;
    } else {
        integer("attention.key_length", count(shape.head_dim))?;
        integer("attention.value_length", count(shape.head_dim))?;
    }
    if let Some(moe) = shape.moe {
        integer("expert_count", count(moe.n_experts))?;
        integer("expert_used_count", count(moe.n_used))?;
        integer("expert_feed_forward_length", count(moe.n_ff))?;
    }
    if let Some(window) = shape.sliding_window {
        integer("attention.sliding_window", window)?;
    }
    let mut float = |key: &str, value: f32| header.metadata(&format!("{arch}.{key}"), &value).map(|_| ());
    float("attention.layer_norm_rms_epsilon", shape.rms_eps)?;
    float("rope.freq_base", shape.rope_base)?;
    if shape.arch == Arch::Gemma3 {
        float("rope.freq_base_swa", GEMMA3_WINDOW_ROPE_BASE)?;
    }
    if let Some(factor) = shape.rope_factor {
        float("rope.scaling.factor", factor)?;
        header.metadata(&format!("{arch}.rope.scaling.type"), "linear")?;
    }
    Ok(())
}
