//! The one place that maps files.
#![allow(unsafe_code, reason = "mapping a file is unsafe: another process may change it under us")]

use memmap2::Mmap;
use std::{fs::File, io};

/// Maps a whole file for reading.
///
/// Changing a model file in place while it is mapped changes the weights being read, and truncating it kills the
/// process (SIGBUS): replace model files by renaming a new one over the old.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the mapping is private and read-only. Its bytes are only ever read as plain old data (`u8`) and every
    // value taken from them is checked when it is used, so a concurrent change can give wrong numbers but no broken
    // invariant of ours; the remaining hazard is the one documented above.
    unsafe { Mmap::map(file) }
}
