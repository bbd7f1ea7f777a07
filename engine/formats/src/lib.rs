//! Model files, safe on any input.
//!
//! [`Gguf::open`] maps a file and checks its whole header before anything is used; after that metadata and tensors are
//! views of the mapping. [`GgufWriter`] writes such files, tensor by tensor. Every number that comes from a file goes
//! through checked arithmetic, and memory used is a small multiple of the size of the header.
//!
//! ```
//! use memra_formats::{Gguf, GgufError, GgufWriter};
//! use memra_kernels::DType;
//!
//! let mut writer = GgufWriter::new();
//! writer.metadata("general.architecture", "llama")?;
//! writer.metadata("tokenizer.ggml.tokens", &["a", "b"][..])?;
//! writer.tensor("output_norm.weight", &[2], DType::F32)?;
//! let mut body = writer.begin(Vec::new())?;
//! body.append(&1f32.to_le_bytes())?;
//! body.append(&2f32.to_le_bytes())?;
//!
//! let gguf = Gguf::parse(body.finish()?)?;
//! assert_eq!(gguf.metadata().get::<Vec<&str>>("tokenizer.ggml.tokens")?, ["a", "b"]);
//! assert_eq!(gguf.metadata().find::<u32>("llama.block_count")?, None);
//! assert_eq!(gguf.tensor("output_norm.weight")?.data()[4..], 2f32.to_le_bytes());
//! # Ok::<(), GgufError>(())
//! ```

mod bytes;
mod gguf;
mod mmap;

pub use bytes::SharedBytes;
pub use gguf::{
    Array, FromValue, Gguf, GgufBody, GgufError, GgufWriter, Metadata, Tensor, ToValue, Value, ValueType,
};
