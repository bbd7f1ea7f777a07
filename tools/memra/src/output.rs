//! Where output goes: data to stdout, talk to stderr, files into place whole.

use crate::exit::Failure;
use anyhow::Context as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

/// Says something on stderr. That nobody listens, or that its disk is full, changes nothing.
macro_rules! say {
    ($($text:tt)*) => {
        _ = ::std::io::Write::write_fmt(&mut ::std::io::stderr(), format_args!("{}\n", format_args!($($text)*)))
    };
}
pub(crate) use say;

/// Standard output: data only. When its reader goes (`memra … | head`) the rest is dropped, and what the command found
/// still decides the exit code.
#[derive(Debug)]
pub(crate) struct Out {
    stdout: Stdout,
    closed: bool,
}

/// Standard output.
pub(crate) fn stdout() -> Out {
    Out { stdout: io::stdout(), closed: false }
}

impl Out {
    /// Whether the reader has gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Takes a broken pipe for success, once and for all.
    fn settle<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(instead)
            }
            other => other,
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed {
            return Ok(bytes.len());
        }
        let written = self.stdout.write(bytes);
        self.settle(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let flushed = self.stdout.flush();
        self.settle(flushed, ())
    }
}

/// A file that appears in its place when it is whole; until then, and on any error, what was there stays.
pub(crate) struct OutFile {
    path: PathBuf,
    partial: tempfile::NamedTempFile,
    out: BufWriter<File>,
}

impl OutFile {
    /// Begins a file beside `path`, which must not be any of `inputs`, nor anything but a regular file.
    pub(crate) fn create(path: &Path, inputs: &[&Path]) -> anyhow::Result<OutFile> {
        let name = || path.display().to_string();
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                let message = format!("{}: not a regular file; give another place for the output", name());
                return Err(Failure::usage(message));
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e).with_context(name),
        }
        let real = |path: &Path| fs::canonicalize(path).ok();
        if inputs.iter().any(|input| real(input).is_some_and(|input| real(path) == Some(input))) {
            let message = format!("{}: is read by this command; give another place for the output", name());
            return Err(Failure::usage(message));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        builder.prefix(".memra-").suffix(".partial");
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let partial = builder.tempfile_in(folder.unwrap_or(Path::new("."))).with_context(name)?;
        let out = BufWriter::new(partial.reopen().with_context(name)?);
        Ok(OutFile { path: path.to_owned(), partial, out })
    }

    /// Moves the file into its place.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let name = self.path.display().to_string();
        self.out.flush().with_context(|| name.clone())?;
        self.partial.persist(&self.path).map_err(|e| e.error).with_context(|| name)?;
        Ok(())
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_never_over_an_input_or_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let (out, input) = (folder.path().join("out"), folder.path().join("in"));
        fs::write(&input, "kept").unwrap();
        fs::write(&out, "old").unwrap();
        let mut file = OutFile::create(&out, &[&input]).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&out).unwrap(), "old");
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&out).unwrap(), "new");

        drop(OutFile::create(&out, &[]).unwrap());
        assert_eq!(
            (fs::read_to_string(&out).unwrap().as_str(), fs::read_dir(folder.path()).unwrap().count()),
            ("new", 2)
        );

        std::os::unix::fs::symlink(&input, folder.path().join("link")).unwrap();
        for refused in
            [input.clone(), folder.path().join("link"), folder.path().to_owned(), "/dev/null".into()]
        {
            let error = OutFile::create(&refused, &[&input]).err().unwrap().to_string();
            assert!(error.contains("another place"), "{error}");
        }
        assert_eq!(fs::read_to_string(&input).unwrap(), "kept");
    }
}
