//! The Program: a static, typed list of ops over pre-allocated buffers, which executors interpret or lower.
//!
//! A Program is built once for a [`Bucket`] (numeric path, class, upper bounds of rows). Everything that varies from
//! step to step (token ids, positions, sequences, pages, which rows' logits are wanted) is an argument of the step,
//! never part of the Program, so a device can capture and replay it.

mod builder;
mod op;
mod report;

pub use builder::{Builder, Value};
pub use op::{Attend, DeltaNet, Op, OpKind, Rope, Routing};
pub use report::WorkItem;

use memra_kernels::{DType, NumericClass, NumericPath};
use serde::Serialize;

/// Index of a buffer in [`Program::buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct BufferId(pub u32);

/// Index of a weight in [`Program::weights`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct WeightId(pub u32);

/// Index of a state in [`Program::states`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct StateId(pub u32);

/// What a Program is built for. Sizes are upper bounds: a step may hold fewer rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Bucket {
    /// Numeric path of its kernels.
    pub path: NumericPath,
    /// Type of the activations that matrix products see.
    pub class: NumericClass,
    /// Rows (tokens, of any sequences) a step holds at most.
    pub rows: usize,
    /// Rows of a step whose logits are wanted, at most.
    pub logits: usize,
    /// Storage type of keys and values.
    pub kv: DType,
    /// Keys each row attends to, for the cost figures only.
    pub context: usize,
}

/// How many rows of a buffer a step fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// One for each row of the step.
    Rows,
    /// One for each row whose logits are wanted.
    Logits,
}

/// What a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// f32 values.
    F32,
    /// 8-bit blocks of 32 with an f32 scale each.
    Q8,
    /// Which of so many experts each row uses (as many as the buffer is wide) with their weights, and where its slots lie.
    Routes {
        /// Experts there are.
        experts: usize,
    },
}

/// A buffer that executors allocate once, for the whole bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BufferSpec {
    /// Which rows it holds.
    pub extent: Extent,
    /// Rows for each of these: 1, or the experts a row uses.
    pub slots: usize,
    /// Values a row.
    pub width: usize,
    /// What it holds.
    pub storage: Storage,
}

/// A tensor of the model that ops read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WeightSpec {
    /// Its name, as GGUF files have it.
    pub name: String,
    /// Its storage type.
    pub dtype: DType,
    /// Rows (output features; 1 for a vector).
    pub n: usize,
    /// Values a row (input features).
    pub k: usize,
    /// Matrices of this size: 1, or the number of experts.
    pub stack: usize,
}

/// State that outlives a step, one instance a sequence. Each kind has a store of its own in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum StateSpec {
    /// Keys and values of every earlier position, in pages.
    Kv {
        /// Key-value heads.
        heads: usize,
        /// Values a head.
        head_dim: usize,
        /// Storage type.
        dtype: DType,
    },
    /// f32 values that every token replaces, all of them.
    Recurrent {
        /// Values a sequence.
        values: usize,
    },
}

/// A model lowered to a list of ops for one bucket.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    /// What it was built for.
    pub bucket: Bucket,
    /// Tensors that ops read.
    pub weights: Vec<WeightSpec>,
    /// Buffers that ops read and write.
    pub buffers: Vec<BufferSpec>,
    /// State that ops read and append to.
    pub states: Vec<StateSpec>,
    /// Ops in an order that satisfies their dependencies.
    pub ops: Vec<Op>,
    /// Where the logits end up: f32, `[logits][vocabulary]`.
    pub logits: BufferId,
    /// Where the normed state of every row ends up that the logits are made from, if it is kept: f32, `[rows][width]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<BufferId>,
}

impl Program {
    /// Whether an op's result is f32 values in a buffer.
    pub(crate) fn is_f32(&self, op: &Op) -> bool {
        op.kind.writes().is_some_and(|id| self.buffers[id.0 as usize].storage == Storage::F32)
    }
}

impl BufferSpec {
    /// Rows to allocate for `bucket`.
    pub fn rows(&self, bucket: &Bucket) -> usize {
        self.slots
            * match self.extent {
                Extent::Rows => bucket.rows,
                Extent::Logits => bucket.logits,
            }
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        match self.storage {
            Storage::F32 => 4 * self.width,
            Storage::Q8 => self.width + 4 * self.width.div_ceil(32),
            Storage::Routes { .. } => 16 * self.width,
        }
    }
}

impl WeightSpec {
    /// Bytes in the model file.
    pub fn bytes(&self) -> usize {
        // A tensor was checked against its file when the specification was made: its rows fill whole blocks.
        self.stack * self.n * self.dtype.row_bytes(self.k).unwrap_or(0)
    }
}

impl StateSpec {
    /// Bytes kept for each position of a sequence.
    pub fn bytes_per_token(&self) -> usize {
        match *self {
            StateSpec::Kv { heads, head_dim, dtype } => 2 * heads * dtype.row_bytes(head_dim).unwrap_or(0),
            StateSpec::Recurrent { .. } => 0,
        }
    }

    /// Bytes kept for a sequence, however long it is.
    pub fn bytes_per_sequence(&self) -> usize {
        match *self {
            StateSpec::Kv { .. } => 0,
            StateSpec::Recurrent { values } => 4 * values,
        }
    }
}

#[cfg(test)]
mod tests;
