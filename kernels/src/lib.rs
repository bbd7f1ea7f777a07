//! Kernel families of memra: what each means, a scalar reference, a CPU version, its cost and its tuning space.
//!
//! Nothing here knows of models or files. Tensors are row-major; `n` counts output features (weight rows), `k` input
//! features (weight columns), `m` activation rows (tokens).

#[cfg(target_endian = "big")]
compile_error!("files and packed weights are little-endian, and kernels read them in place");

pub mod activation;
pub mod attention;
pub mod check;
pub mod cpu;
pub mod delta;
pub mod dispatch;
mod dtype;
pub mod elementwise;
mod error;
pub mod family;
pub mod fault;
mod key;
pub mod math;
pub mod matmul;
pub mod moe;
pub mod norm;
pub mod quant;
pub mod rope;
pub mod space;
pub mod testdata;

pub use dtype::{DType, RowError};
pub use error::ShapeError;
pub use key::{Cost, KernelKey, NumericClass, NumericPath};
