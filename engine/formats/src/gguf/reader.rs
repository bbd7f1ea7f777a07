//! Reading and checking whole headers.

use super::{GgufError, Metadata, cursor::Cursor, split, tensor::Entries};
use crate::table::{MAX_NAME_BYTES, Table, Tally};
use crate::{SharedBytes, Tensor, bytes::OpenError};
use std::path::{Path, PathBuf};

/// Most tensors read; a mixture of experts of 10^12 parameters, stored unfused, has some 200,000.
const MAX_TENSORS: u64 = 1 << 19;
/// Fewest bytes of a tensor's entry: name length, number of dimensions, type, offset.
const MIN_TENSOR_INFO: u64 = 8 + 4 + 4 + 8;
/// Largest alignment read and written.
pub(super) const MAX_ALIGNMENT: u32 = 1 << 20;
/// Alignment of files that do not say.
pub(super) const DEFAULT_ALIGNMENT: u32 = 32;
/// The key that says.
pub(super) const ALIGNMENT_KEY: &str = "general.alignment";

/// A model in GGUF files, checked as a whole: every tensor that is listed is inside its file, of a known type, and shares
/// no byte with another.
///
/// A model split over files `…-00001-of-00003.gguf` is one `Gguf`: its metadata are those of the first part, its tensors
/// those of all.
#[derive(Clone, Debug)]
pub struct Gguf {
    version: u32,
    alignment: u32,
    file_bytes: u64,
    paths: Vec<PathBuf>,
    metadata: Metadata,
    table: Table,
}

impl Gguf {
    /// Maps the file at `path` and checks it. The file must not be changed in place while it is open. When it is a part
    /// of a split model, whichever, the other parts are opened too: they lie beside it and are named alike.
    ///
    /// # Errors
    /// A file that cannot be opened or is no valid GGUF file, a part that is missing or belongs to another model; see
    /// [`GgufError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Gguf, GgufError> {
        let path = path.as_ref();
        let bytes = map(path)?;
        match split::parts_of(path, &bytes)? {
            None => Gguf::join(&[bytes], vec![path.to_owned()]),
            Some(paths) => {
                let files = split::open_parts(&paths)?;
                Gguf::join(&files, paths)
            }
        }
    }

    /// Checks a file that is already in memory.
    ///
    /// # Errors
    /// Bytes that are no valid GGUF file, or one part of several; see [`GgufError`].
    pub fn parse(bytes: impl Into<SharedBytes>) -> Result<Gguf, GgufError> {
        Gguf::parse_parts(&[bytes.into()])
    }

    /// Checks the parts of a split model, in order and already in memory.
    ///
    /// # Errors
    /// Bytes that are no valid GGUF files, or parts that do not belong together or are not all; see [`GgufError`].
    pub fn parse_parts(parts: &[SharedBytes]) -> Result<Gguf, GgufError> {
        Gguf::join(parts, Vec::new())
    }

    /// Reads the parts as one model. `paths` name them in errors.
    fn join(files: &[SharedBytes], paths: Vec<PathBuf>) -> Result<Gguf, GgufError> {
        let in_part = |part: usize| {
            let path = paths.get(part).filter(|_| files.len() > 1).cloned();
            move |error| match path {
                Some(path) => GgufError::Part { path, source: Box::new(error) },
                None => error,
            }
        };
        let mut heads = Vec::with_capacity(files.len());
        let mut tally = Tally::default();
        for (part, bytes) in files.iter().enumerate() {
            let head = Head::read(bytes).map_err(in_part(part))?;
            split::check(&head.metadata, part, files.len()).map_err(in_part(part))?;
            tally.join(&head.entries.tally);
            heads.push(head);
        }
        split::check_tensors(heads.first().map(|head| &head.metadata), files.len(), tally.rows() as u64)?;
        let mut table = table_for(&tally)?;
        let mut first = None;
        for (part, head) in heads.into_iter().enumerate() {
            let Head { version, alignment, metadata, entries } = head;
            entries.put(&mut table).map_err(in_part(part))?;
            first.get_or_insert((version, alignment, metadata));
        }
        table.index().map_err(|name| GgufError::DuplicateTensor { tensor: name.to_owned() })?;
        // No part at all is like an empty file.
        let Some((version, alignment, metadata)) = first else { return Err(magic_error(&[])) };
        let file_bytes = files.iter().map(|bytes| bytes.len() as u64).sum();
        Ok(Gguf { version, alignment, file_bytes, paths, metadata, table })
    }

    /// Format version, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Alignment of tensor data in the file, or in its first part, in bytes.
    pub fn alignment(&self) -> u32 {
        self.alignment
    }

    /// Size of the file, or of all parts, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The files, part after part; none when it was parsed from memory.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors, in file order, part after part.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> + Clone {
        self.table.iter()
    }

    /// The tensor of this name, if there is one.
    pub fn find_tensor(&self, name: &str) -> Option<Tensor<'_>> {
        self.table.find(name)
    }

    /// The tensor of this name.
    ///
    /// # Errors
    /// [`GgufError::MissingTensor`].
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>, GgufError> {
        self.find_tensor(name).ok_or_else(|| GgufError::MissingTensor { tensor: name.to_owned() })
    }
}

/// Maps a file.
pub(super) fn map(path: &Path) -> Result<SharedBytes, GgufError> {
    let path = path.to_owned();
    SharedBytes::open(&path).map_err(|error| match error {
        OpenError::Io(source) => GgufError::Open { path, source },
        OpenError::NotAFile => GgufError::NotAFile { path },
    })
}

fn table_for(tally: &Tally) -> Result<Table, GgufError> {
    check_count(tally.rows() as u64)?;
    let limit = MAX_NAME_BYTES as u64;
    Table::with_room(tally).ok_or(GgufError::TooMany {
        what: "bytes of tensor names".into(),
        count: limit + 1,
        limit,
    })
}

fn check_count(count: u64) -> Result<(), GgufError> {
    let limit = MAX_TENSORS;
    if count > limit { Err(GgufError::TooMany { what: "tensors".into(), count, limit }) } else { Ok(()) }
}

/// The header of one file.
pub(super) struct Head<'a> {
    version: u32,
    alignment: u32,
    pub(super) metadata: Metadata,
    entries: Entries<'a>,
}

impl<'a> Head<'a> {
    pub(super) fn read(bytes: &'a SharedBytes) -> Result<Head<'a>, GgufError> {
        let mut cursor = Cursor::new(bytes, 0);
        let (version, n_tensors, n_keys) = read_counts(bytes, &mut cursor)?;
        let metadata = Metadata::read(bytes, &mut cursor, n_keys)?;
        let alignment = read_alignment(&metadata)?;
        let entries = Entries::check(bytes, cursor, n_tensors, alignment)?;
        Ok(Head { version, alignment, metadata, entries })
    }
}

fn magic_error(bytes: &[u8]) -> GgufError {
    GgufError::Magic { found: bytes[..bytes.len().min(4)].escape_ascii().to_string() }
}

/// Version, and the numbers of tensors and keys.
fn read_counts(bytes: &[u8], cursor: &mut Cursor<'_>) -> Result<(u32, u64, u64), GgufError> {
    if !bytes.starts_with(b"GGUF") {
        return Err(magic_error(bytes));
    }
    cursor.u32("the magic")?;
    let version = cursor.u32("the version")?;
    if version != 2 && version != 3 {
        let hint = match version {
            1 => "an early format; convert the model again",
            v if (1..=3).contains(&v.swap_bytes()) => {
                "a big-endian file; convert the model for little-endian machines"
            }
            _ => "newer than this reader, or corrupt",
        };
        return Err(GgufError::Version { version, hint });
    }
    let n_tensors = cursor.u64("the tensor count")?;
    let n_keys = cursor.u64("the key count")?;
    let (offset, left) = (cursor.pos(), cursor.left());
    let need = u128::from(n_tensors) * u128::from(MIN_TENSOR_INFO);
    if need > left as u128 {
        return Err(GgufError::Truncated { what: "the tensor table".into(), offset, need, left });
    }
    check_count(n_tensors)?;
    Ok((version, n_tensors, n_keys))
}

fn read_alignment(metadata: &Metadata) -> Result<u32, GgufError> {
    match metadata.value_of(ALIGNMENT_KEY) {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(super::Value::U32(a)) if a.is_power_of_two() && a <= MAX_ALIGNMENT => Ok(a),
        Some(other) => {
            let found = format!("{} {other}", other.value_type());
            Err(GgufError::Alignment { found, limit: MAX_ALIGNMENT })
        }
    }
}
