//! safetensors: the weights of a model in one file or several, and the JSON documents in its folder.
//!
//! The reader is our own, on serde_json, where the format's own crate is used to check it in tests. That crate takes the
//! last of two tensors of one name, does not say which tensor is wrong, holds the header in maps several times its size,
//! and borrows views from a buffer where a model must own its mapping.

mod error;
mod folder;
mod header;
mod index;
mod reader;

pub use error::SafetensorsError;
pub use folder::ModelFolder;
pub use reader::Safetensors;
