//! Ops: what each reads, writes and means.

use super::{BufferId, StateId, WeightId};
use memra_kernels::rope::Scaling;
use memra_kernels::{Cost, KernelKey};
use serde::Serialize;

/// Rotary position embedding of the heads of one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rope {
    /// Heads a row.
    pub heads: usize,
    /// Values a head.
    pub head_dim: usize,
    /// Leading values of a head that are rotated.
    pub dims: usize,
    /// Base of the frequencies (`rope_theta`).
    pub base: f32,
    /// Whether value `i` pairs with `i + dims / 2` (NeoX) instead of with its neighbour (llama in GGUF files).
    pub neox: bool,
    /// How the frequencies are changed.
    pub scaling: Scaling,
    /// Vector of `dims / 2` numbers that the frequencies are divided by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factors: Option<WeightId>,
}

/// How a layer attends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Attend {
    /// Query heads; a multiple of the state's heads.
    pub heads: usize,
    /// Factor on the dot products.
    pub scale: f32,
    /// Keys a row sees at most, its own included; `None`: all up to its own.
    pub window: Option<usize>,
    /// Scores become `softcap · tanh(score / softcap)`.
    pub softcap: Option<f32>,
}

/// How a mixture of experts chooses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Routing {
    /// Experts a row uses.
    pub used: usize,
    /// Whether each expert's score is the sigmoid of its logit, instead of all together a softmax.
    pub sigmoid: bool,
    /// Whether the weights of the chosen experts are divided by their sum.
    pub renormalise: bool,
    /// What weights are multiplied by in the end.
    pub scale: f32,
}

/// A gated delta net layer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DeltaNet {
    /// Query and key heads.
    pub key_heads: usize,
    /// Value heads, a multiple of `key_heads`.
    pub value_heads: usize,
    /// Values of a query or key head.
    pub key_dim: usize,
    /// Values of a value head.
    pub value_dim: usize,
    /// Whether value head `h` uses key head `h % key_heads`, instead of sharing one with its neighbours.
    pub tiled: bool,
    /// Added to the square of a query's or key's length where it is brought to one.
    pub eps: f32,
}

/// What an op computes. Every buffer has one row a token; `out` is overwritten, other roles are named as used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum OpKind {
    /// `out[r] = table[token[r]]`, decoded to f32.
    Embed {
        /// Embedding table, `[vocabulary][width]`.
        table: WeightId,
        /// f32.
        out: BufferId,
    },
    /// `out = x / sqrt(mean(x²) + eps) · weight`, row by row; by a weight shorter than a row, head by head.
    RmsNorm {
        /// f32.
        x: BufferId,
        /// Vector of the row's width, or of a head's.
        weight: WeightId,
        /// Added to the mean square.
        eps: f32,
        /// f32.
        out: BufferId,
    },
    /// Rounds rows to 8-bit blocks, once for every matrix product that reads them.
    Quantise {
        /// f32.
        x: BufferId,
        /// q8.
        out: BufferId,
    },
    /// `out[r][n] = Σ_k x[r][k] · weight[n][k] (+ bias[n])`.
    Matmul {
        /// f32 or q8, by the Program's class.
        x: BufferId,
        /// Matrix `[n][k]`.
        weight: WeightId,
        /// Vector `[n]`, added to the product.
        bias: Option<WeightId>,
        /// f32.
        out: BufferId,
    },
    /// Rotates pairs of each head by an angle that grows with the row's position, in place.
    Rope {
        /// f32, `[heads][head_dim]`.
        x: BufferId,
        /// Frequencies and pairing.
        rope: Rope,
    },
    /// Appends a key row and a value row to the row's sequence, at the row's position.
    KvAppend {
        /// f32, `[kv_heads][head_dim]`.
        k: BufferId,
        /// f32, `[kv_heads][head_dim]`.
        v: BufferId,
        /// Key-value state.
        state: StateId,
    },
    /// Causal attention of each row over its sequence's keys at positions up to its own, or the last of these.
    Attention {
        /// f32, `[heads][head_dim]`.
        q: BufferId,
        /// Key-value state.
        state: StateId,
        /// Heads, scale, window.
        attend: Attend,
        /// f32, `[heads][head_dim]`.
        out: BufferId,
    },
    /// `out = silu(gate) · up`.
    SwiGlu {
        /// f32.
        gate: BufferId,
        /// f32.
        up: BufferId,
        /// f32.
        out: BufferId,
    },
    /// `out = gelu(gate) · up`, with the tanh form of GELU.
    GeGlu {
        /// f32.
        gate: BufferId,
        /// f32.
        up: BufferId,
        /// f32.
        out: BufferId,
    },
    /// `x += y`, in place.
    Add {
        /// f32.
        x: BufferId,
        /// f32.
        y: BufferId,
    },
    /// `x *= factor`, in place.
    Scale {
        /// f32.
        x: BufferId,
        /// The factor.
        factor: f32,
    },
    /// `x = cap · tanh(x / cap)`, in place.
    Softcap {
        /// f32.
        x: BufferId,
        /// What no value passes.
        cap: f32,
    },
    /// The states that the step brings along, one for each row: what a head that predicts further tokens starts from.
    Hidden {
        /// f32.
        out: BufferId,
    },
    /// Values `from ..` of every `every` values of a row, so many of each as make up the width of `out`.
    Columns {
        /// f32.
        x: BufferId,
        /// Values that repeat.
        every: usize,
        /// First of those taken.
        from: usize,
        /// f32.
        out: BufferId,
    },
    /// The values of `a`, then those of `b`.
    Concat {
        /// f32.
        a: BufferId,
        /// f32.
        b: BufferId,
        /// f32.
        out: BufferId,
    },
    /// Mixes each channel with its own last few values, then SiLU.
    ShortConv {
        /// f32, `[channels]`.
        x: BufferId,
        /// Filters `[channels][taps]`.
        weight: WeightId,
        /// Recurrent state: the last inputs.
        state: StateId,
        /// f32, `[channels]`.
        out: BufferId,
    },
    /// `exp(rate · softplus(a + bias))`, how much of its state a head keeps, then `sigmoid(b)`, how much of an error it takes
    /// in.
    DeltaGates {
        /// f32, `[heads]`.
        a: BufferId,
        /// f32, `[heads]`.
        b: BufferId,
        /// Vector `[heads]`, negative.
        rate: WeightId,
        /// Vector `[heads]`.
        bias: WeightId,
        /// f32, `[2][heads]`.
        out: BufferId,
    },
    /// The gated delta rule, row by row of each sequence.
    DeltaScan {
        /// f32, queries, keys, values.
        qkv: BufferId,
        /// f32, `[2][value_heads]`.
        gates: BufferId,
        /// Sizes.
        net: DeltaNet,
        /// Recurrent state: a matrix for each value head.
        state: StateId,
        /// f32, `[value_heads][value_dim]`.
        out: BufferId,
    },
    /// `out = x / sqrt(mean(x²) + eps) · weight · silu(gate)`, head by head.
    GatedRmsNorm {
        /// f32.
        x: BufferId,
        /// f32.
        gate: BufferId,
        /// Vector of a head's width.
        weight: WeightId,
        /// Added to the mean square.
        eps: f32,
        /// f32.
        out: BufferId,
    },
    /// Multiplies by the sigmoid of a gate, in place: one gate for each value, or for as many as there are more of them.
    SigmoidGate {
        /// f32.
        x: BufferId,
        /// f32; its width divides that of `x`.
        gate: BufferId,
    },
    /// Chooses each row's experts, and sorts rows by expert: each of a row's experts is a slot.
    Route {
        /// f32, one for each expert.
        logits: BufferId,
        /// Vector, added to the scores for the choice alone.
        bias: Option<WeightId>,
        /// Scores and weights.
        routing: Routing,
        /// Routes.
        out: BufferId,
    },
    /// Copies each slot's row.
    GatherSlots {
        /// f32 or q8, by the Program's class.
        x: BufferId,
        /// Where rows go.
        routes: BufferId,
        /// The same, one row for each slot.
        out: BufferId,
    },
    /// `out[s][n] = Σ_k x[s][k] · weight[e][n][k]`, with `e` the expert of slot `s`.
    Experts {
        /// f32 or q8, by the Program's class; one row for each slot.
        x: BufferId,
        /// Where slots belong.
        routes: BufferId,
        /// Matrices `[experts][n][k]`.
        weight: WeightId,
        /// f32, one row for each slot.
        out: BufferId,
    },
    /// Adds up each row's slots, times their weights.
    Combine {
        /// f32, one row for each slot.
        x: BufferId,
        /// Where slots belong, and their weights.
        routes: BufferId,
        /// f32.
        out: BufferId,
    },
    /// Keeps the rows whose logits are wanted, in the order the step lists them.
    Gather {
        /// f32, all rows.
        x: BufferId,
        /// f32, wanted rows.
        out: BufferId,
    },
}

/// One op of a Program.
#[derive(Clone, Debug, Serialize)]
pub struct Op {
    /// Readable name, such as `blk.3.attn_q`.
    pub name: String,
    /// What it computes, on which buffers.
    #[serde(flatten)]
    pub kind: OpKind,
    /// Earlier ops, by index, whose results this one reads or whose buffers it reuses.
    pub after: Vec<u32>,
    /// Neighbouring ops with the same number may run as one fused launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuse: Option<u32>,
    /// Its entry in the tuner's work list, if its kernel has a tuning space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KernelKey>,
    /// What one step of a full bucket moves and computes.
    #[serde(flatten)]
    pub cost: Cost,
}

impl OpKind {
    /// The kernel family that runs it.
    pub fn family(&self) -> &'static str {
        match self {
            OpKind::Embed { .. } => "embed",
            OpKind::RmsNorm { .. } => "rms_norm",
            OpKind::Quantise { .. } => "quantise",
            OpKind::Matmul { .. } => "matmul",
            OpKind::Rope { .. } => "rope",
            OpKind::KvAppend { .. } => "kv_append",
            OpKind::Attention { .. } => "attention",
            OpKind::SwiGlu { .. } => "swiglu",
            OpKind::GeGlu { .. } => "geglu",
            OpKind::Add { .. } => "add",
            OpKind::Scale { .. } => "scale",
            OpKind::Softcap { .. } => "softcap",
            OpKind::Hidden { .. } => "hidden",
            OpKind::Columns { .. } => "columns",
            OpKind::Concat { .. } => "concat",
            OpKind::ShortConv { .. } => "short_conv",
            OpKind::DeltaGates { .. } => "delta_gates",
            OpKind::DeltaScan { .. } => "delta_scan",
            OpKind::GatedRmsNorm { .. } => "gated_rms_norm",
            OpKind::SigmoidGate { .. } => "sigmoid_gate",
            OpKind::Route { .. } => "route",
            OpKind::GatherSlots { .. } => "gather_slots",
            OpKind::Experts { .. } => "experts",
            OpKind::Combine { .. } => "combine",
            OpKind::Gather { .. } => "gather",
        }
    }

    /// Buffers it reads, those it changes in place included.
    pub fn reads(&self) -> impl Iterator<Item = BufferId> + use<> {
        let pair = match *self {
            OpKind::Embed { .. } | OpKind::Hidden { .. } => [None, None],
            OpKind::RmsNorm { x, .. }
            | OpKind::Quantise { x, .. }
            | OpKind::Matmul { x, .. }
            | OpKind::Rope { x, .. }
            | OpKind::Scale { x, .. }
            | OpKind::Softcap { x, .. }
            | OpKind::Gather { x, .. } => [Some(x), None],
            OpKind::Attention { q, .. } => [Some(q), None],
            OpKind::KvAppend { k, v, .. } => [Some(k), Some(v)],
            OpKind::SwiGlu { gate, up, .. } | OpKind::GeGlu { gate, up, .. } => [Some(gate), Some(up)],
            OpKind::Add { x, y } => [Some(x), Some(y)],
            OpKind::Columns { x, .. } | OpKind::ShortConv { x, .. } => [Some(x), None],
            OpKind::Concat { a, b, .. } | OpKind::DeltaGates { a, b, .. } => [Some(a), Some(b)],
            OpKind::DeltaScan { qkv, gates, .. } => [Some(qkv), Some(gates)],
            OpKind::SigmoidGate { x, gate } | OpKind::GatedRmsNorm { x, gate, .. } => [Some(x), Some(gate)],
            OpKind::Route { logits, .. } => [Some(logits), None],
            OpKind::GatherSlots { x, routes, .. }
            | OpKind::Experts { x, routes, .. }
            | OpKind::Combine { x, routes, .. } => [Some(x), Some(routes)],
        };
        pair.into_iter().flatten()
    }

    /// The buffer it writes or changes in place.
    pub fn writes(&self) -> Option<BufferId> {
        match *self {
            OpKind::Embed { out, .. }
            | OpKind::RmsNorm { out, .. }
            | OpKind::Quantise { out, .. }
            | OpKind::Matmul { out, .. }
            | OpKind::Attention { out, .. }
            | OpKind::SwiGlu { out, .. }
            | OpKind::GeGlu { out, .. }
            | OpKind::Hidden { out }
            | OpKind::Columns { out, .. }
            | OpKind::Concat { out, .. }
            | OpKind::ShortConv { out, .. }
            | OpKind::DeltaGates { out, .. }
            | OpKind::DeltaScan { out, .. }
            | OpKind::GatedRmsNorm { out, .. }
            | OpKind::Route { out, .. }
            | OpKind::GatherSlots { out, .. }
            | OpKind::Experts { out, .. }
            | OpKind::Combine { out, .. }
            | OpKind::Gather { out, .. } => Some(out),
            OpKind::Rope { x, .. }
            | OpKind::Add { x, .. }
            | OpKind::SigmoidGate { x, .. }
            | OpKind::Scale { x, .. }
            | OpKind::Softcap { x, .. } => Some(x),
            OpKind::KvAppend { .. } => None,
        }
    }

    /// The state it reads, and whether it changes it.
    pub fn state(&self) -> Option<(StateId, bool)> {
        match *self {
            OpKind::KvAppend { state, .. } => Some((state, true)),
            OpKind::Attention { state, .. } => Some((state, false)),
            OpKind::ShortConv { state, .. } | OpKind::DeltaScan { state, .. } => Some((state, true)),
            _ => None,
        }
    }

    /// Weights it reads.
    pub fn weights(&self) -> impl Iterator<Item = WeightId> + use<> {
        let pair = match *self {
            OpKind::Embed { table, .. } => [Some(table), None],
            OpKind::RmsNorm { weight, .. } => [Some(weight), None],
            OpKind::Matmul { weight, bias, .. } => [Some(weight), bias],
            OpKind::Rope { rope, .. } => [rope.factors, None],
            OpKind::ShortConv { weight, .. } | OpKind::GatedRmsNorm { weight, .. } => [Some(weight), None],
            OpKind::DeltaGates { rate, bias, .. } => [Some(rate), Some(bias)],
            OpKind::Route { bias, .. } => [bias, None],
            OpKind::Experts { weight, .. } => [Some(weight), None],
            _ => [None, None],
        };
        pair.into_iter().flatten()
    }

    /// The same op on other buffers.
    pub(super) fn map_buffers(self, f: impl Fn(BufferId) -> BufferId) -> OpKind {
        match self {
            OpKind::Embed { table, out } => OpKind::Embed { table, out: f(out) },
            OpKind::RmsNorm { x, weight, eps, out } => OpKind::RmsNorm { x: f(x), weight, eps, out: f(out) },
            OpKind::Quantise { x, out } => OpKind::Quantise { x: f(x), out: f(out) },
            OpKind::Matmul { x, weight, bias, out } => OpKind::Matmul { x: f(x), weight, bias, out: f(out) },
            OpKind::Rope { x, rope } => OpKind::Rope { x: f(x), rope },
            OpKind::KvAppend { k, v, state } => OpKind::KvAppend { k: f(k), v: f(v), state },
            OpKind::Attention { q, state, attend, out } => {
                OpKind::Attention { q: f(q), state, attend, out: f(out) }
            }
            OpKind::SwiGlu { gate, up, out } => OpKind::SwiGlu { gate: f(gate), up: f(up), out: f(out) },
            OpKind::GeGlu { gate, up, out } => OpKind::GeGlu { gate: f(gate), up: f(up), out: f(out) },
            OpKind::Add { x, y } => OpKind::Add { x: f(x), y: f(y) },
            OpKind::Scale { x, factor } => OpKind::Scale { x: f(x), factor },
            OpKind::Softcap { x, cap } => OpKind::Softcap { x: f(x), cap },
            OpKind::Hidden { out } => OpKind::Hidden { out: f(out) },
            OpKind::Columns { x, every, from, out } => OpKind::Columns { x: f(x), every, from, out: f(out) },
            OpKind::Concat { a, b, out } => OpKind::Concat { a: f(a), b: f(b), out: f(out) },
            OpKind::ShortConv { x, weight, state, out } => {
                OpKind::ShortConv { x: f(x), weight, state, out: f(out) }
            }
            OpKind::DeltaGates { a, b, rate, bias, out } => {
                OpKind::DeltaGates { a: f(a), b: f(b), rate, bias, out: f(out) }
            }
            OpKind::DeltaScan { qkv, gates, net, state, out } => {
                OpKind::DeltaScan { qkv: f(qkv), gates: f(gates), net, state, out: f(out) }
            }
            OpKind::GatedRmsNorm { x, gate, weight, eps, out } => {
                OpKind::GatedRmsNorm { x: f(x), gate: f(gate), weight, eps, out: f(out) }
            }
            OpKind::SigmoidGate { x, gate } => OpKind::SigmoidGate { x: f(x), gate: f(gate) },
            OpKind::Route { logits, bias, routing, out } => {
                OpKind::Route { logits: f(logits), bias, routing, out: f(out) }
            }
            OpKind::GatherSlots { x, routes, out } => {
                OpKind::GatherSlots { x: f(x), routes: f(routes), out: f(out) }
            }
            OpKind::Experts { x, routes, weight, out } => {
                OpKind::Experts { x: f(x), routes: f(routes), weight, out: f(out) }
            }
            OpKind::Combine { x, routes, out } => OpKind::Combine { x: f(x), routes: f(routes), out: f(out) },
            OpKind::Gather { x, out } => OpKind::Gather { x: f(x), out: f(out) },
        }
    }
}
