//! What identifies a piece of work to the tuner and the dispatch table.

use crate::DType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Type of the activations a matrix product sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumericClass {
    /// f32 activations: the oracle.
    F32,
    /// 8-bit activation blocks of 32 with an f32 scale: the default on the CPU.
    #[default]
    Q8,
}

/// The two numeric paths of DESIGN.md. On the CPU both have the same reduction order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumericPath {
    /// One token, a batch, a K+1 verify, a graph replay.
    Decode,
    /// Prompt chunks of any size.
    Prompt,
}

/// One entry of a tuner's work list: a kernel family at a shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelKey {
    /// Kernel family, such as `matmul`.
    pub family: String,
    /// Storage type of the weights.
    pub dtype: DType,
    /// Type of the activations.
    pub class: NumericClass,
    /// Which numeric path runs it.
    pub path: NumericPath,
    /// Output features.
    pub n: usize,
    /// Input features.
    pub k: usize,
    /// Activation rows (the bucket's upper bound).
    pub m: usize,
}

/// What one launch must move and compute at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Bytes read and written once each.
    pub bytes: u64,
    /// Floating-point (or integer) operations, a multiply-add counted as two.
    pub flops: u64,
}

impl NumericClass {
    /// Every class, oracle first.
    pub const ALL: [NumericClass; 2] = [NumericClass::F32, NumericClass::Q8];

    /// The lower-case name used in flags, tables and records.
    pub fn name(self) -> &'static str {
        match self {
            NumericClass::F32 => "f32",
            NumericClass::Q8 => "q8",
        }
    }
}

impl fmt::Display for NumericClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for NumericClass {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|c| c.name() == s)
            .ok_or_else(|| format!("numeric class `{s}` is not known; use f32 or q8"))
    }
}

impl NumericPath {
    /// The lower-case name used in keys, tables and records.
    pub fn name(self) -> &'static str {
        match self {
            NumericPath::Decode => "decode",
            NumericPath::Prompt => "prompt",
        }
    }
}

impl fmt::Display for KernelKey {
    /// `matmul/Q4_1/q8/decode n=576 k=1536 m=1`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KernelKey { family, dtype, class, path, n, k, m } = self;
        write!(f, "{family}/{dtype}/{class}/{} n={n} k={k} m={m}", path.name())
    }
}
