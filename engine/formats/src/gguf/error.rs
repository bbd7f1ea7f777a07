//! What can be wrong with a GGUF file.

use crate::Storage;
use memra_kernels::{DType, RowError};
use std::borrow::Cow;
use std::{fmt, io, path::PathBuf};

/// A GGUF file that cannot be read or written. Offsets are bytes from the beginning of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The file cannot be opened or mapped.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The path asked for.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A directory, pipe or device where a file was expected.
    #[error("{path} is not a regular file; give the path of a .gguf file")]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// Writing failed.
    #[error("cannot write the GGUF file: {0}")]
    Write(#[from] io::Error),
    /// The first four bytes are not `GGUF`.
    #[error("not a GGUF file: it begins with `{found}` instead of `GGUF`")]
    Magic {
        /// The first bytes, escaped.
        found: String,
    },
    /// A version or byte order that is not read.
    #[error("GGUF version {version} is not supported ({hint}); memra reads little-endian versions 2 and 3")]
    Version {
        /// The number in the file.
        version: u32,
        /// What it probably is.
        hint: &'static str,
    },
    /// The file ends inside something, or a length in it is absurd.
    #[error("byte {offset}: {what} needs {need} bytes but {left} are left; the file is truncated or corrupt")]
    Truncated {
        /// What was being read.
        what: Cow<'static, str>,
        /// Where it begins.
        offset: usize,
        /// Bytes it takes, at least.
        need: u128,
        /// Bytes that remain.
        left: usize,
    },
    /// More keys or tensors than any model has.
    #[error("the file claims {count} {what}; memra reads at most {limit}")]
    TooMany {
        /// `metadata keys` or `tensors`.
        what: Cow<'static, str>,
        /// The number in the file.
        count: u64,
        /// The largest number read.
        limit: u64,
    },
    /// A name that no writer writes.
    #[error("byte {offset}: {what} is not printable UTF-8 of at most 65535 bytes; the file is corrupt")]
    Name {
        /// `a metadata key` or `a tensor name`.
        what: &'static str,
        /// Where its characters begin.
        offset: usize,
    },
    /// A name that is not to be written.
    #[error("the name {name:?}… cannot be written: names are printable and of at most 65535 bytes")]
    Unprintable {
        /// The beginning of the name.
        name: String,
    },
    /// A metadata value of a type GGUF does not define.
    #[error(
        "key `{key}`: value type {id} is not defined by GGUF; the file is corrupt or newer than this reader"
    )]
    ValueType {
        /// The key.
        key: String,
        /// The type number in the file.
        id: u32,
    },
    /// Arrays nested too deeply.
    #[error("key `{key}`: arrays are nested deeper than {limit}")]
    Nested {
        /// The key.
        key: String,
        /// Deepest nesting read.
        limit: usize,
    },
    /// A key that occurs twice.
    #[error("metadata key `{key}` occurs twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A tensor name that occurs twice.
    #[error("tensor `{tensor}` occurs twice")]
    DuplicateTensor {
        /// The name.
        tensor: String,
    },
    /// A key that must be there is not.
    #[error("metadata key `{key}` is missing; the file is incomplete or was made for another purpose")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A key whose value has another type, or does not fit.
    #[error("metadata key `{key}` must be {expected} but is {found}")]
    WrongType {
        /// The key.
        key: String,
        /// What was asked for.
        expected: String,
        /// What the file holds.
        found: String,
    },
    /// A tensor that must be there is not.
    #[error("tensor `{tensor}` is missing; the file is incomplete or holds another architecture")]
    MissingTensor {
        /// The name.
        tensor: String,
    },
    /// `general.alignment` is not usable.
    #[error("general.alignment is {found}; it must be a u32 power of two of at most {limit}")]
    Alignment {
        /// The value in the file.
        found: String,
        /// Largest alignment read.
        limit: u32,
    },
    /// A tensor of more than four dimensions.
    #[error("tensor `{tensor}` has {n_dims} dimensions; GGUF allows at most 4")]
    Dimensions {
        /// The name.
        tensor: String,
        /// The number in the file.
        n_dims: u64,
    },
    /// A tensor whose size does not fit the address space.
    #[error(
        "tensor `{tensor}`: the size of {dims:?} values of type {storage} overflows; the file is corrupt"
    )]
    Size {
        /// The name.
        tensor: String,
        /// Dimensions, fastest first.
        dims: Vec<usize>,
        /// Storage type.
        storage: Storage,
    },
    /// Rows that do not fill whole blocks.
    #[error("tensor `{tensor}`: {source}")]
    Row {
        /// The name.
        tensor: String,
        /// The row length and type.
        source: RowError,
    },
    /// A storage type that memra does not read.
    #[error(
        "tensor `{tensor}`: type {id} ({name}) is not supported; use a file quantised as one of {supported}"
    )]
    TensorType {
        /// The name.
        tensor: String,
        /// The number in the file.
        id: u32,
        /// Its name in ggml, where it has one.
        name: &'static str,
        /// Types that are read.
        supported: String,
    },
    /// A storage type that GGUF cannot hold.
    #[error("tensor `{tensor}`: GGUF has no number for type {dtype}; store it as another type")]
    NotInGguf {
        /// The name.
        tensor: String,
        /// The type asked for.
        dtype: DType,
    },
    /// A tensor that does not begin at a multiple of the alignment.
    #[error(
        "tensor `{tensor}` begins at data offset {offset}, which is not a multiple of the alignment {alignment}"
    )]
    Misaligned {
        /// The name.
        tensor: String,
        /// Offset from the beginning of the data section.
        offset: u64,
        /// The file's alignment.
        alignment: u32,
    },
    /// A tensor that reaches past the end of the file.
    #[error(
        "tensor `{tensor}` needs {bytes} bytes at data offset {offset} but the data section has {available}; the file is truncated or corrupt, fetch it again"
    )]
    OutsideFile {
        /// The name.
        tensor: String,
        /// Offset from the beginning of the data section.
        offset: u64,
        /// Size of the tensor.
        bytes: usize,
        /// Size of the data section.
        available: usize,
    },
    /// Two tensors that share bytes.
    #[error("tensors `{first}` and `{second}` overlap; the file is corrupt")]
    Overlap {
        /// The one that begins first.
        first: String,
        /// The other.
        second: String,
    },
    /// One part of a split model, without the others.
    #[error(
        "the file is part {part} of {count}; keep all parts in one folder under names that end in -{part:05}-of-{count:05}.gguf, and open any of them"
    )]
    OnePart {
        /// Which part, from 1.
        part: u32,
        /// Number of parts.
        count: u16,
    },
    /// A part of a split model that cannot be opened.
    #[error("part {part} of {count} is missing: {source}")]
    MissingPart {
        /// Which part, from 1.
        part: usize,
        /// Number of parts.
        count: usize,
        /// Its path, and the system's reason.
        source: Box<GgufError>,
    },
    /// What is wrong with one part of a split model.
    #[error("{path}: {source}")]
    Part {
        /// The part's file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<GgufError>,
    },
    /// Files that are not the parts of one model.
    #[error("`{key}` is {found} but must be {expected}; the parts are mixed up, or of different models")]
    SplitMismatch {
        /// The key.
        key: &'static str,
        /// What a file says.
        found: u64,
        /// What the files are.
        expected: u64,
    },
    /// Tensor data handed to the writer does not fit what was declared.
    #[error("tensor data: {problem}")]
    Data {
        /// What does not fit, with the tensor's name.
        problem: String,
    },
}

impl GgufError {
    /// The same, said of a part of `owner` where it does not name any key or tensor: ``key `k` ``.
    pub(super) fn of(mut self, owner: impl fmt::Display) -> GgufError {
        if let GgufError::Truncated { what, .. } | GgufError::TooMany { what, .. } = &mut self {
            *what = format!("{what} of {owner}").into();
        }
        self
    }
}
