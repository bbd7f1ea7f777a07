//! Models that can be made up, by name.

use super::{shape, toy};

/// A model that can be made up.
#[derive(Debug)]
pub struct Preset {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    /// One shape and mix of types of our own.
    Toy(toy::Shape),
    /// A real model's shape.
    Real(shape::Shape),
}

/// Every preset, smallest first within a family.
pub static PRESETS: [Preset; 9] = [
    Preset {
        name: "tiny",
        about: "About 2 MB: computes in milliseconds",
        shape: Shape::Toy(toy::Shape {
            name: "memra tiny",
            n_layers: 4,
            n_embd: 256,
            n_heads: 8,
            n_kv_heads: 4,
            n_ff: 512,
            n_ctx: 1024,
        }),
    },
    Preset {
        name: "small",
        about: "About 65 MB: more than caches hold",
        shape: Shape::Toy(toy::Shape {
            name: "memra small",
            n_layers: 16,
            n_embd: 768,
            n_heads: 12,
            n_kv_heads: 4,
            n_ff: 2048,
            n_ctx: 4096,
        }),
    },
    real("qwen3-0.6b", "Qwen3-0.6B", shape::QWEN3_0_6B),
    real("qwen3-8b", "Qwen3-8B", shape::QWEN3_8B),
    real("qwen3-30b-a3b", "Qwen3-30B-A3B, 128 experts", shape::QWEN3_30B_A3B),
    real("llama-3-8b", "Llama-3-8B", shape::LLAMA_3_8B),
    real("gemma-3-270m", "Gemma-3-270m", shape::GEMMA_3_270M),
    real("gemma-3-1b", "Gemma-3-1b", shape::GEMMA_3_1B),
    real("gemma-3-4b", "Gemma-3-4b, its text model", shape::GEMMA_3_4B),
];

const fn real(name: &'static str, about: &'static str, shape: shape::Shape) -> Preset {
    Preset { name, about, shape: Shape::Real(shape) }
}

impl Preset {
    /// The preset of this name.
    pub fn find(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Whether it has the shape of a real model, and so a choice of types.
    pub fn is_real(&self) -> bool {
        matches!(self.shape, Shape::Real(_))
    }
}
