//! The one place that maps files.
#![allow(unsafe_code, reason = "mapping a file is unsafe: another process may change it under us")]

use memmap2::Mmap;
use std::{fs::File, io};

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
