//! Model files, safe on any input.
//!
//! [`Gguf::open`] maps a file and checks its whole header before anything is used; after that metadata and tensors are
//! views of the mapping. [`GgufWriter`] writes such files, tensor by tensor. Every number that comes from a file goes
//! through checked arithmetic, and memory used is bounded by the size of the header.

mod bytes;
mod gguf;
mod mmap;

pub use bytes::SharedBytes;
pub use gguf::{
    Array, FromValue, Gguf, GgufBody, GgufError, GgufWriter, Metadata, Tensor, ToValue, Value, ValueType,
};
