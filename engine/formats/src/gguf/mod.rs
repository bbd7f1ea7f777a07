//! GGUF: metadata, a tensor table and tensor data, in one file or several.

mod cursor;
mod error;
mod metadata;
mod reader;
mod split;
mod tensor;
mod value;
mod writer;
mod writer_split;

pub use error::GgufError;
pub use metadata::Metadata;
pub use reader::Gguf;
pub use split::split_file_name;
pub use value::{Array, FromValue, ToValue, Value, ValueType};
pub use writer::{GgufBody, GgufWriter};
pub use writer_split::GgufSplitBody;
