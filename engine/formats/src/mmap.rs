//! The one place that maps files.
#![allow(unsafe_code, reason = "mapping a file is unsafe: another process may change it under us")]

use memmap2::Mmap;
use std::{fs::File, io, ops::Range};

/// Maps a whole file for reading.
///
/// Changing a model file in place while it is mapped changes the weights being read, and truncating it kills the
/// process (SIGBUS): replace model files by renaming a new one over the old.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only, and sound as long as nobody changes the file, which no system can forbid and
    // the documentation of `Gguf::open` asks for. A change all the same can give wrong numbers, text that is not
    // UTF-8, or the SIGBUS above; it moves no range that was checked, since ranges are kept here and not read again.
    unsafe { Mmap::map(file) }
}

/// Drops the resident pages of a part of a mapping; the next read fetches them again.
pub(crate) fn evict(map: &Mmap, range: Range<usize>) {
    #[cfg(unix)]
    // SAFETY: a mapping made by [`map`] is read-only, so no page of it holds anything that its file does not.
    // It is advice: a system that declines it loses nothing.
    let _ =
        unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len()) };
    #[cfg(not(unix))]
    let _ = (map, range);
}
