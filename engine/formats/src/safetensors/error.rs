//! What can be wrong with safetensors files.

use crate::{JsonError, ScalarType};
use std::{io, path::PathBuf};

/// A safetensors model that cannot be read. Offsets are bytes from the beginning of the data section, shapes slowest
/// first.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SafetensorsError {
    /// The file cannot be opened or mapped.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The path asked for.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A directory, pipe or device where a file was expected.
    #[error(
        "{path} is not a regular file; give the path of a .safetensors file or of the folder that holds the model"
    )]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// What is wrong with one file of several.
    #[error("{path}: {source}")]
    Shard {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<SafetensorsError>,
    },
    /// A JSON document beside the weights.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A folder without weights.
    #[error(
        "{path} has neither model.safetensors nor model.safetensors.index.json; give the folder of a model in safetensors"
    )]
    NoWeights {
        /// The folder.
        path: PathBuf,
    },
    /// Fewer bytes than a header needs.
    #[error(
        "the file is {bytes} bytes long but begins with the length of a header in 8; it is truncated, or no safetensors file"
    )]
    Short {
        /// Its size.
        bytes: usize,
    },
    /// A header that does not fit the file, or is larger than any.
    #[error(
        "the header claims {claimed} bytes where the file has {left} left and memra reads at most {limit}; the file is truncated, or no safetensors file"
    )]
    HeaderLength {
        /// Bytes by the first number of the file.
        claimed: u64,
        /// Bytes after that number.
        left: usize,
        /// Largest header read.
        limit: usize,
    },
    /// A header that is not the JSON object it should be.
    #[error("the header is damaged: {source}")]
    Header {
        /// What is wrong, with the column.
        source: serde_json::Error,
    },
    /// The header's entry of a tensor is not what it should be.
    #[error("the header's entry of tensor `{tensor}` is damaged: {problem}")]
    Entry {
        /// The tensor.
        tensor: String,
        /// What is wrong, with the column.
        problem: String,
    },
    /// A name that no writer writes.
    #[error("a tensor name is not printable: {tensor:?}; the file is damaged")]
    Name {
        /// The name.
        tensor: String,
    },
    /// A value type that safetensors does not define.
    #[error(
        "tensor `{tensor}`: type {dtype:?} is not one of safetensors'; the file is damaged, or newer than this reader"
    )]
    Type {
        /// The tensor.
        tensor: String,
        /// The name in the header.
        dtype: String,
    },
    /// More tensors than any model has.
    #[error("the model has {count} {what}; memra reads at most {limit}")]
    TooMany {
        /// `tensors` or `files`.
        what: &'static str,
        /// How many.
        count: usize,
        /// The largest number read.
        limit: usize,
    },
    /// A shape whose size does not fit the address space, or ends inside a byte.
    #[error("tensor `{tensor}`: {shape:?} values of type {dtype} {problem}; the file is damaged")]
    Size {
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Its type.
        dtype: ScalarType,
        /// `overflow` or `end inside a byte`.
        problem: &'static str,
    },
    /// A shape that does not take the bytes the header gives the tensor.
    #[error(
        "tensor `{tensor}`: {shape:?} values of type {dtype} are {expected} bytes but the header gives it bytes {start} to {end}; the file is damaged"
    )]
    Span {
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Its type.
        dtype: ScalarType,
        /// Bytes by shape and type.
        expected: usize,
        /// First byte.
        start: u64,
        /// Byte after the last.
        end: u64,
    },
    /// A tensor that reaches past the end of the file.
    #[error(
        "tensor `{tensor}` ends at byte {end} but the file has {available} bytes of data; it is truncated or damaged, fetch it again"
    )]
    OutsideFile {
        /// The tensor.
        tensor: String,
        /// Byte after its last.
        end: u64,
        /// Bytes there are.
        available: usize,
    },
    /// Two tensors that share bytes.
    #[error("tensors `{first}` and `{second}` overlap; the file is damaged")]
    Overlap {
        /// The one that begins first.
        first: String,
        /// The other.
        second: String,
    },
    /// Bytes that belong to no tensor.
    #[error("bytes {start} to {end} belong to no tensor; the file is damaged")]
    Gap {
        /// The first of them.
        start: u64,
        /// The byte after the last.
        end: u64,
    },
    /// A name that occurs twice, in one file or in two.
    #[error("tensor `{tensor}` occurs twice; the file is damaged, or files of different models are mixed up")]
    DuplicateTensor {
        /// The tensor.
        tensor: String,
    },
    /// The index's entry of a tensor is not a text.
    #[error("{index}: the entry of tensor `{tensor}` is damaged: {problem}")]
    IndexEntry {
        /// The index.
        index: PathBuf,
        /// The tensor.
        tensor: String,
        /// What is wrong, with line and column.
        problem: String,
    },
    /// An index that leads outside its folder.
    #[error(
        "{index}: tensor `{tensor}` is said to be in {file:?}, which is not a file name; the index is damaged, or malicious"
    )]
    ShardName {
        /// The index.
        index: PathBuf,
        /// The tensor.
        tensor: String,
        /// Where it is said to be.
        file: String,
    },
    /// A file that the index names and that is not there.
    #[error(
        "tensor `{tensor}` should be in a file that cannot be opened: {source}; fetch the model's missing files"
    )]
    MissingShard {
        /// The first tensor of the index that is in it.
        tensor: String,
        /// Its path, and the system's reason.
        source: Box<SafetensorsError>,
    },
    /// A tensor that is not where the index says.
    #[error(
        "tensor `{tensor}` is not in {path}, where the index says it is; the files are of different models, or damaged"
    )]
    NotInShard {
        /// The tensor.
        tensor: String,
        /// The file that the index names.
        path: PathBuf,
    },
    /// A tensor that must be there is not.
    #[error("tensor `{tensor}` is missing; the model is incomplete or of another architecture")]
    MissingTensor {
        /// The tensor.
        tensor: String,
    },
}
