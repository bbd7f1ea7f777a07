//! A file that appears at its place whole or not at all.

use crate::Error;
use memra_formats::GgufError;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// `PATH.partial`, locked while it is written. Dropped before [`Partial::commit`], it is removed.
#[derive(Debug)]
pub(super) struct Partial {
    file: File,
    path: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl Partial {
    pub(super) fn create(target: &Path) -> Result<Partial, Error> {
        let write = |error: io::Error| Error::from(GgufError::from(error));
        // A rename would put the model in the place of a device or pipe.
        if fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            return Err(Error::Argument(format!("{} is there and is not a regular file", target.display())));
        }
        let mut path = target.as_os_str().to_owned();
        path.push(".partial");
        let path = PathBuf::from(path);
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Argument(format!("{}: no such folder", target.display())),
            _ => write(error),
        })?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let message = format!("{} is being written by another process", target.display());
                return Err(write(io::Error::new(io::ErrorKind::ResourceBusy, message)));
            }
            // A file system without locks: two writers at once are then the user's affair.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let partial = Partial { file, path, target: target.to_owned(), committed: false };
        partial.file.set_len(0).or_else(ignore_devices).map_err(write)?;
        Ok(partial)
    }

    /// Moves the file to its place.
    pub(super) fn commit(mut self) -> Result<(), Error> {
        fs::rename(&self.path, &self.target).map_err(GgufError::from)?;
        self.committed = true;
        Ok(())
    }
}

/// A device cannot be cut short, and need not be.
fn ignore_devices(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::InvalidInput { Ok(()) } else { Err(error) }
}

impl Write for Partial {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.committed {
            // What cannot be removed is overwritten by the next attempt.
            _ = fs::remove_file(&self.path);
        }
    }
}
