//! Model files, safe on any input.
//!
//! [`Checkpoint::open`] reads what is at a path: [`Gguf`] files, whole or split, or a [`ModelFolder`] of [`Safetensors`]
//! and JSON documents. Opening maps the files and checks their whole headers before anything is used; after that metadata
//! and [`Tensor`]s are views of the mappings, alike for every format. [`GgufWriter`] writes GGUF files, tensor by tensor.
//!
//! Every number that comes from a file goes through checked arithmetic. What is allocated to read a file is never more
//! than its size and some kilobytes, and the time is linear in it, but for a sort of the names.
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
mod checkpoint;
mod dims;
mod footprint;
mod gguf;
mod json;
mod mmap;
mod params;
mod safetensors;
mod storage;
mod summary;
mod table;
mod vocabulary;

pub use bytes::SharedBytes;
pub use checkpoint::{Checkpoint, CheckpointError};
pub use dims::Dims;
pub use footprint::{
    Cache, CacheBytes, DecodeWeights, Experts, Footprint, LayerCache, ModelShape, PerLayer, Unknown,
};
pub use gguf::{
    Array, FromValue, Gguf, GgufBody, GgufError, GgufSplitBody, GgufWriter, Metadata, ToValue, Value,
    ValueType, split_file_name,
};
pub use json::{Json, JsonError};
pub use safetensors::{ModelFolder, Safetensors, SafetensorsError};
pub use storage::{ScalarType, Storage};
pub use summary::{Summary, TensorRow, TypeShare};
pub use table::{Tensor, UnsupportedType};
