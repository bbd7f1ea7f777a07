//! Kernel families of memra: what each means, a scalar reference, a CPU version, its cost and its tuning space.
//!
//! Nothing here knows of models or files. Tensors are row-major; `n` counts output features (weight rows), `k` input
//! features (weight columns), `m` activation rows (tokens).

pub mod cpu;
pub mod dispatch;
mod dtype;
mod key;
pub mod matmul;
pub mod quant;
pub mod space;

pub use dtype::{DType, RowError};
pub use key::{Cost, KernelKey, NumericClass, NumericPath};
