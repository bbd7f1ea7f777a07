//! GGUF: one file that holds metadata, a tensor table and tensor data.

mod cursor;
mod error;
mod metadata;
mod reader;
mod tensor;
mod value;
mod writer;

pub use error::GgufError;
pub use metadata::Metadata;
pub use reader::Gguf;
pub use tensor::Tensor;
pub use value::{Array, FromValue, ToValue, Value, ValueType};
pub use writer::{GgufBody, GgufWriter};
