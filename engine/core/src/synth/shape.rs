//! Shapes of real models, as their published configurations give them.

/// Which architecture a shape belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arch {
    Llama,
    Qwen3,
    Qwen3Moe,
    Gemma3,
}

/// Experts of every layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moe {
    pub(super) n_experts: usize,
    pub(super) n_used: usize,
    pub(super) n_ff: usize,
}

/// Sizes and constants of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) arch: Arch,
    /// `general.name`, less the note that the weights are random.
    pub(super) name: &'static str,
    pub(super) size_label: &'static str,
    pub(super) n_layers: usize,
    pub(super) n_embd: usize,
    pub(super) n_heads: usize,
    pub(super) n_kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) n_ff: usize,
    pub(super) moe: Option<Moe>,
    pub(super) n_ctx: u32,
    pub(super) rope_base: f32,
    pub(super) rms_eps: f32,
    /// Positions that windowed layers see.
    pub(super) sliding_window: Option<u32>,
    /// Factor of linear rope scaling.
    pub(super) rope_factor: Option<f32>,
    /// Whether the embedding is the output head too.
    pub(super) tied: bool,
}

impl Arch {
    /// `general.architecture`, and the prefix of its keys.
    pub(super) fn name(self) -> &'static str {
        match self {
            Arch::Llama => "llama",
            Arch::Qwen3 => "qwen3",
            Arch::Qwen3Moe => "qwen3moe",
            Arch::Gemma3 => "gemma3",
        }
    }
}

const QWEN3: Shape = Shape {
    arch: Arch::Qwen3,
    name: "Qwen3 8B",
    size_label: "8B",
    n_layers: 36,
    n_embd: 4096,
    n_heads: 32,
    n_kv_heads: 8,
    head_dim: 128,
    n_ff: 12288,
    moe: None,
    n_ctx: 40960,
    rope_base: 1e6,
    rms_eps: 1e-6,
    sliding_window: None,
    rope_factor: None,
    tied: false,
};

const GEMMA3: Shape = Shape {
    arch: Arch::Gemma3,
    name: "Gemma 3 270m",
    size_label: "270M",
    n_layers: 18,
    n_embd: 640,
    n_heads: 4,
    n_kv_heads: 1,
    head_dim: 256,
    n_ff: 2048,
    moe: None,
    n_ctx: 32768,
    rope_base: 1e6,
    rms_eps: 1e-6,
    sliding_window: Some(512),
    rope_factor: None,
    tied: true,
};

pub(super) const QWEN3_0_6B: Shape = Shape {
    name: "Qwen3 0.6B",
    size_label: "0.6B",
    n_layers: 28,
    n_embd: 1024,
    n_heads: 16,
    n_ff: 3072,
    tied: true,
    ..QWEN3
};

pub(super) const QWEN3_8B: Shape = QWEN3;

pub(super) const QWEN3_30B_A3B: Shape = Shape {
    arch: Arch::Qwen3Moe,
    name: "Qwen3 30B A3B",
    size_label: "30B-A3B",
    n_layers: 48,
    n_embd: 2048,
    n_kv_heads: 4,
    n_ff: 6144,
    moe: Some(Moe { n_experts: 128, n_used: 8, n_ff: 768 }),
    ..QWEN3
};

pub(super) const LLAMA_3_8B: Shape = Shape {
    arch: Arch::Llama,
    name: "Llama 3 8B",
    n_layers: 32,
    n_ff: 14336,
    n_ctx: 8192,
    rope_base: 500_000.0,
    rms_eps: 1e-5,
    ..QWEN3
};

pub(super) const GEMMA_3_270M: Shape = GEMMA3;

pub(super) const GEMMA_3_1B: Shape =
    Shape { name: "Gemma 3 1b", size_label: "1B", n_layers: 26, n_embd: 1152, n_ff: 6912, ..GEMMA3 };

pub(super) const GEMMA_3_4B: Shape = Shape {
    name: "Gemma 3 4b",
    size_label: "4B",
    n_layers: 34,
    n_embd: 2560,
    n_heads: 8,
    n_kv_heads: 4,
    n_ff: 10240,
    n_ctx: 131_072,
    sliding_window: Some(1024),
    rope_factor: Some(8.0),
    ..GEMMA3
};
