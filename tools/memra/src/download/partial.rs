//! The file that grows, and the note beside it that says what it is a part of.

use super::{Trouble, hash_reader, hex};
use crate::exit::{Exit, Failure};
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What a partial file is a part of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) url: String,
    /// The server's name for this version of the file.
    pub(super) etag: Option<String>,
    pub(super) size: Option<u64>,
    pub(super) sha256: Option<String>,
}

impl Note {
    /// The entity tag, if it stands for the same bytes and not only for the same content.
    pub(super) fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/"))
    }
}

/// A file that is being fetched, locked as long as it is open.
#[derive(Debug)]
pub(super) struct Partial {
    file: File,
    path: PathBuf,
    note_path: PathBuf,
    note: Option<Note>,
    len: u64,
    hasher: Sha256,
}

impl Partial {
    /// Opens `TARGET.partial`, with what an earlier process left in it.
    pub(super) fn open(target: &Path) -> anyhow::Result<Partial> {
        let beside = |suffix: &str| {
            let mut name = target.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let (path, note_path) = (beside(".partial"), beside(".partial.json"));
        let shown = || path.display().to_string();
        // A device may have no end, and a rename would put the file in its place.
        for there in [&path, &target.to_owned()] {
            if fs::metadata(there).is_ok_and(|there| !there.is_file()) {
                return Err(Failure::usage(format!(
                    "{} is there and is not a regular file",
                    there.display()
                )));
            }
        }
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(shown)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let message = format!("{} is being fetched by another process; wait for it", target.display());
            return Err(Failure::error(Exit::Unfit, message));
        }
        let note = fs::read(&note_path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut hasher = Sha256::new();
        let len = hash_reader(&mut hasher, &mut file).with_context(shown)?;
        Ok(Partial { file, path, note_path, note, len, hasher })
    }

    /// Bytes that are there.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// What they are a part of, as far as an earlier attempt noted it.
    pub(super) fn note(&self) -> Option<&Note> {
        self.note.as_ref()
    }

    /// Notes what the bytes to come are a part of.
    pub(super) fn set_note(&mut self, note: Note) -> anyhow::Result<()> {
        if self.note.as_ref() != Some(&note) {
            let text = serde_json::to_vec(&note)?;
            fs::write(&self.note_path, text).with_context(|| self.note_path.display().to_string())?;
            self.note = Some(note);
        }
        Ok(())
    }

    /// Begins anew, with nothing.
    pub(super) fn restart(&mut self) -> anyhow::Result<()> {
        // The note goes first: bytes without one are never taken for a part of anything.
        self.note = None;
        _ = fs::remove_file(&self.note_path);
        self.cut().with_context(|| self.path.display().to_string())
    }

    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        (self.len, self.hasher) = (0, Sha256::new());
        Ok(())
    }

    /// Adds bytes.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        if let Err(error) = self.file.write_all(bytes) {
            // What of them reached the file is not known; the next attempt needs to know.
            _ = self.file.set_len(self.len);
            _ = self.file.seek(SeekFrom::Start(self.len));
            let (path, kept) = (self.path.display(), self.len);
            return Err(Trouble::failure(
                Exit::Unfit,
                format!("{path}: {error}; {kept} bytes are kept: make room and run the same command again"),
            ));
        }
        self.hasher.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// SHA-256 of what is there, in hexadecimal digits.
    pub(super) fn sha256(&self) -> String {
        hex(self.hasher.clone())
    }

    /// Whether the file begins with these bytes.
    pub(super) fn begins_with(&self, bytes: &[u8]) -> bool {
        let mut head = vec![0; bytes.len()];
        File::open(&self.path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == bytes
    }

    /// Moves the whole file to its place.
    pub(super) fn commit(self, target: &Path) -> anyhow::Result<()> {
        self.file.sync_all().with_context(|| self.path.display().to_string())?;
        fs::rename(&self.path, target).with_context(|| target.display().to_string())?;
        _ = fs::remove_file(&self.note_path);
        Ok(())
    }
}

impl Drop for Partial {
    /// An empty file is of no use to anybody.
    fn drop(&mut self) {
        if self.len == 0 {
            _ = fs::remove_file(&self.path);
            _ = fs::remove_file(&self.note_path);
        }
    }
}
