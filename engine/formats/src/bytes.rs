//! Bytes of a file, shared by everything that was found in it.

use memmap2::Mmap;
use std::{fmt, fs, io, ops::Deref, ops::Range, path::Path, sync::Arc};

/// A run of a file's bytes that keeps the mapping (or buffer) behind it alive; cloning it is cheap.
///
/// Alignment: a mapping begins at a page, so a tensor is aligned in memory as it is in its file. Bytes given to
/// [`crate::Gguf::parse`] lie wherever the caller's buffer does.
#[derive(Clone)]
pub struct SharedBytes {
    backing: Backing,
    range: Range<usize>,
}

#[derive(Clone)]
enum Backing {
    Mapped(Arc<Mmap>),
    Owned(Arc<[u8]>),
}

/// Why a file cannot be read.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// The system's reason.
    Io(io::Error),
    /// It is a directory, pipe or device.
    NotAFile,
}

impl SharedBytes {
    /// Maps a file.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        // Asked before opening: opening a pipe would wait for a writer.
        if !fs::metadata(path).map_err(OpenError::Io)?.is_file() {
            return Err(OpenError::NotAFile);
        }
        let map = fs::File::open(path).and_then(|file| crate::mmap::map(&file)).map_err(OpenError::Io)?;
        Ok(SharedBytes { range: 0..map.len(), backing: Backing::Mapped(Arc::new(map)) })
    }

    /// The part `range` of these bytes, or `None` when it is not inside them.
    pub fn slice(&self, range: Range<usize>) -> Option<SharedBytes> {
        self.get(range.clone())?;
        let start = self.range.start;
        Some(SharedBytes { backing: self.backing.clone(), range: start + range.start..start + range.end })
    }

    /// Gives the memory these bytes occupy back to the system, where they are mapped: for after they were copied to a
    /// better layout. They stay readable, from the file.
    pub fn evict(&self) {
        if let Backing::Mapped(map) = &self.backing {
            crate::mmap::evict(map, self.range.clone());
        }
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let all: &[u8] = match &self.backing {
            Backing::Mapped(map) => map,
            Backing::Owned(bytes) => bytes,
        };
        &all[self.range.clone()]
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        SharedBytes { range: 0..bytes.len(), backing: Backing::Owned(bytes.into()) }
    }
}

impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> Self {
        SharedBytes { range: 0..bytes.len(), backing: Backing::Owned(bytes.into()) }
    }
}

impl Default for SharedBytes {
    fn default() -> Self {
        SharedBytes::from(&[][..])
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({:?})", self.range)
    }
}
