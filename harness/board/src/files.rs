//! Files that are replaced as a whole, or not at all.

use crate::Error;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeSet,
    fs, io,
    io::Write,
    path::{Component, Path, PathBuf},
};

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    Written,
    Removed,
}

/// The bytes of a file; `None` when it is not there.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path)(e)),
    }
}

/// Makes the file hold `bytes` (its folder is made too), or not be there.
///
/// # Errors
/// What the file system refuses; the file is then as it was.
pub(crate) fn replace(path: &Path, bytes: Option<&[u8]>) -> Result<Change, Error> {
    let old = read(path)?;
    if old.as_deref() == bytes {
        return Ok(Change::None);
    }
    let Some(bytes) = bytes else {
        fs::remove_file(path).map_err(Error::io(path))?;
        return Ok(Change::Removed);
    };
    // A link stays a link: what it leads to is replaced.
    let path = if old.is_some() { path.canonicalize().map_err(Error::io(path))? } else { path.to_owned() };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = folder.join(name);
    write_new(&temporary, &path, bytes).inspect_err(|_| {
        // What is left of the new file is of no use; the old one is whole.
        let _ = fs::remove_file(&temporary);
    })?;
    Ok(Change::Written)
}

fn write_new(temporary: &Path, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = fs::File::create(temporary).map_err(Error::io(temporary))?;
    file.write_all(bytes).map_err(Error::io(temporary))?;
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(old.permissions()).map_err(Error::io(temporary))?;
    }
    file.sync_all().map_err(Error::io(temporary))?;
    fs::rename(temporary, path).map_err(Error::io(path))
}

/// First 12 hex digits of the SHA-256 of the log's lines, sorted, so that merging or splitting files changes nothing.
/// Trial logs are left out, since they are not committed; so is a torn last line.
///
/// # Errors
/// A folder or file that cannot be read.
pub(crate) fn log_hash(data_dir: &Path) -> Result<String, Error> {
    let mut lines = BTreeSet::new();
    for folder in entries(data_dir)?.into_iter().filter(|path| path.is_dir()) {
        for path in entries(&folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".jsonl") && !name.ends_with(".trials.jsonl") {
                let bytes = fs::read(&path).map_err(Error::io(&path))?;
                let whole = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
                lines.extend(whole.map(<[u8]>::to_vec));
            }
        }
    }
    let mut hash = Sha256::new();
    lines.iter().for_each(|line| hash.update(line));
    Ok(hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect())
}

/// What is in a folder; nothing when it is not there.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let listed = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.and_then(|entries| entries.map(|e| e.map(|e| e.path())).collect()),
    };
    listed.map_err(Error::io(folder))
}

/// The path of `folder` from the folder of the file `from`, with `/` between its parts; empty when they are the same.
///
/// # Errors
/// When the working directory, to which both may be relative, cannot be told.
pub(crate) fn relative(folder: &Path, from: &Path) -> Result<String, Error> {
    let (folder, from) = (plain(folder)?, plain(from)?);
    let here: Vec<Component> = from.parent().unwrap_or(&from).components().collect();
    let there: Vec<Component> = folder.components().collect();
    let shared = here.iter().zip(&there).take_while(|(a, b)| a == b).count();
    let up = here[shared..].iter().map(|_| "..".to_owned());
    let down = there[shared..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
    Ok(up.chain(down).collect::<Vec<_>>().join("/"))
}

/// An absolute path without `.` and `..`.
fn plain(path: &Path) -> Result<PathBuf, Error> {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path).map_err(Error::io(path))?.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_between_folders() {
        for (folder, from, expected) in [
            ("/x/boards", "/x/README.md", "boards"),
            ("/x/a/../boards/main", "/x/README.md", "boards/main"),
            ("/x/boards", "/x/docs/y/README.md", "../../boards"),
            ("/x", "/x/README.md", ""),
            ("boards", "README.md", "boards"),
        ] {
            assert_eq!(
                relative(Path::new(folder), Path::new(from)).unwrap(),
                expected,
                "{folder} from {from}"
            );
        }
    }

    #[test]
    fn a_file_is_written_once_and_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.md");
        assert_eq!(replace(&path, Some(b"1")).unwrap(), Change::Written);
        assert_eq!(replace(&path, Some(b"1")).unwrap(), Change::None);
        let mut read_only = fs::metadata(&path).unwrap().permissions();
        read_only.set_readonly(true);
        fs::set_permissions(&path, read_only).unwrap();
        assert_eq!(replace(&path, Some(b"2")).unwrap(), Change::Written);
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert!(fs::metadata(&path).unwrap().permissions().readonly());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
        assert_eq!(replace(&path, None).unwrap(), Change::Removed);
        assert_eq!(replace(&path, None).unwrap(), Change::None);
    }
}
