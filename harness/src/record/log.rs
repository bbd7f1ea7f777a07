//! The append-only log: `DATA/<yyyy-mm>/<session id>.jsonl`.
//!
//! A session writes its own files, so writers never meet by design; a lock around each append keeps them apart where
//! they do. Trials, of which a sweep makes thousands, go to `<session id>.trials.jsonl`, which stays out of git; those
//! that a dispatch entry cites are kept in the main file too ([`Log::keep`]). A file that would pass
//! [`MAX_FILE_BYTES`] is continued in `<session id>-2.jsonl`, and so on, so that each can be committed.
//!
//! A line is the record's JSON with `,"crc":"xxxxxxxx"` put before its last brace: CRC-32C, hex, of the JSON without it.

use super::{Body, Record, SCHEMA};
use crate::exit::Code;
use rustix::fs::{FlockOperation, fdatasync, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Files are continued in a new one before they pass this size.
pub const MAX_FILE_BYTES: u64 = 900_000;

const CRC_KEY: &str = ",\"crc\":\"";
/// Length of `,"crc":"xxxxxxxx"}`.
const CRC_TAIL: usize = CRC_KEY.len() + 8 + 2;

/// What went wrong with a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A record that must not be written.
    #[error("{kind} record not written: {problem}")]
    Invalid {
        /// Kind of the record.
        kind: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Lines that are not records, apart from a torn last one.
    #[error("corrupt log, {} line(s):\n  {}\nmove these lines out of the file, or restore it from a copy", problems.len(), problems.join("\n  "))]
    Corrupt {
        /// `file:line: what`, one each.
        problems: Vec<String>,
    },
}

impl LogError {
    /// The exit code it means.
    pub fn code(&self) -> Code {
        match self {
            LogError::Corrupt { .. } => Code::Corrupt,
            LogError::Io { .. } | LogError::Invalid { .. } => Code::Unfit,
        }
    }
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> LogError + '_ {
    move |source| LogError::Io { path: path.to_owned(), source }
}

/// The records of one session, open for appending.
#[derive(Debug)]
pub struct Log {
    month_dir: PathBuf,
    session_id: String,
    main: Appender,
    trials: Option<Appender>,
    warnings: Vec<String>,
}

impl Log {
    /// Starts a new session under `data_dir`.
    ///
    /// # Errors
    /// The folder or file cannot be made.
    pub fn create(data_dir: &Path) -> Result<Log, LogError> {
        let session_id = ulid::Ulid::generate().to_string();
        let month_dir = data_dir.join(&now()[..7]);
        fs::create_dir_all(&month_dir).map_err(io_error(&month_dir))?;
        Log::open(month_dir, session_id)
    }

    /// Goes on with a session that was interrupted.
    ///
    /// # Errors
    /// No such session, or its file cannot be opened.
    pub fn resume(data_dir: &Path, session_id: &str) -> Result<Log, LogError> {
        let name = format!("{session_id}.jsonl");
        let month_dir = month_dirs(data_dir)?.into_iter().find(|dir| dir.join(&name).exists());
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no session {session_id} here"));
        Log::open(month_dir.ok_or_else(|| io_error(data_dir)(missing()))?, session_id.to_owned())
    }

    fn open(month_dir: PathBuf, session_id: String) -> Result<Log, LogError> {
        let mut warnings = Vec::new();
        let main = Appender::open(&month_dir, &session_id, "", &mut warnings)?;
        Ok(Log { month_dir, session_id, main, trials: None, warnings })
    }

    /// ULID of the session.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// The main file being written.
    pub fn path(&self) -> &Path {
        &self.main.path
    }

    /// What was set aside when files were opened, for the user to know; emptied by the call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Writes one record and waits until it is on disk. The returned record carries its new ID.
    ///
    /// # Errors
    /// [`LogError::Invalid`] when it is inconsistent or holds a NaN or an infinity; [`LogError::Io`] when it could not
    /// be written, in which case the file ends with the record before it.
    pub fn append(&mut self, body: impl Into<Body>) -> Result<Record, LogError> {
        let body = body.into();
        let record = Record {
            schema: SCHEMA.to_owned(),
            id: ulid::Ulid::generate().to_string(),
            session_id: self.session_id.clone(),
            at: now(),
            body,
        };
        let line = encode(&record)?;
        if matches!(record.body, Body::Trial(_)) {
            if self.trials.is_none() {
                let opened =
                    Appender::open(&self.month_dir, &self.session_id, ".trials", &mut self.warnings)?;
                self.trials = Some(opened);
            }
            if let Some(trials) = &mut self.trials {
                trials.append(line.as_bytes())?;
            }
        } else {
            self.main.append(line.as_bytes())?;
        }
        Ok(record)
    }

    /// Writes a trial that was appended before to the main file too, under its ID, because a dispatch entry cites it.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn keep(&mut self, record: &Record) -> Result<(), LogError> {
        self.main.append(encode(record)?.as_bytes())
    }
}

/// Now, RFC 3339 in UTC with milliseconds.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The line of a record, its newline included.
fn encode(record: &Record) -> Result<String, LogError> {
    let invalid = |problem: String| LogError::Invalid { kind: record.body.kind(), problem };
    record.validate().map_err(invalid)?;
    let json = serde_json::to_string(record).map_err(|e| invalid(e.to_string()))?;
    // JSON has no NaN: it becomes null, and then the record does not read back as itself.
    if serde_json::from_str::<Record>(&json).ok().as_ref() != Some(record) {
        return Err(invalid(format!("a number in it is NaN or infinite: {json}")));
    }
    let crc = crc32c::crc32c(json.as_bytes());
    Ok(format!("{}{CRC_KEY}{crc:08x}\"}}\n", &json[..json.len() - 1]))
}

/// The record on a line without its newline.
fn decode(line: &[u8]) -> Result<Record, String> {
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
    let split = text.len().checked_sub(CRC_TAIL).filter(|at| text.is_char_boundary(*at));
    let (head, tail) = text.split_at(split.ok_or("too short to be a record")?);
    let crc =
        tail.strip_prefix(CRC_KEY).and_then(|rest| rest.strip_suffix("\"}")).ok_or("no crc at its end")?;
    let json = format!("{head}}}");
    let computed = format!("{:08x}", crc32c::crc32c(json.as_bytes()));
    if computed != crc {
        return Err(format!("crc is {computed}, the line says {crc}"));
    }
    let record: Record = serde_json::from_str(&json).map_err(|e| e.to_string())?;
    record.validate()?;
    Ok(record)
}

/// One file, and its continuations, open for appending.
#[derive(Debug)]
struct Appender {
    dir: PathBuf,
    stem: String,
    suffix: &'static str,
    part: u32,
    path: PathBuf,
    file: File,
}

impl Appender {
    fn open(
        dir: &Path,
        stem: &str,
        suffix: &'static str,
        warnings: &mut Vec<String>,
    ) -> Result<Self, LogError> {
        let mut part = 1;
        while part_path(dir, stem, suffix, part + 1).exists() {
            part += 1;
        }
        let path = part_path(dir, stem, suffix, part);
        let file = open_append(&path)?;
        let mut appender = Appender { dir: dir.to_owned(), stem: stem.to_owned(), suffix, part, path, file };
        warnings.extend(appender.set_torn_tail_aside()?);
        Ok(appender)
    }

    /// Moves what follows the last newline to `<file>.torn`, so that nothing is ever glued to it.
    fn set_torn_tail_aside(&mut self) -> Result<Option<String>, LogError> {
        let Self { path, file, .. } = self;
        let fail = |e| io_error(path)(e);
        flock(&*file, FlockOperation::LockExclusive).map_err(|e| fail(e.into()))?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes)).map_err(fail)?;
        let keep = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let mut warning = None;
        if keep < bytes.len() {
            let torn = PathBuf::from(format!("{}.torn", path.display()));
            let mut aside = open_append(&torn)?;
            aside.write_all(&bytes[keep..]).and_then(|()| aside.write_all(b"\n")).map_err(io_error(&torn))?;
            aside.sync_data().map_err(io_error(&torn))?;
            file.set_len(keep as u64).map_err(fail)?;
            let n = bytes.len() - keep;
            warning = Some(format!(
                "{}: a torn last line ({n} bytes) was moved to {}",
                path.display(),
                torn.display()
            ));
        }
        flock(&*file, FlockOperation::Unlock).map_err(|e| fail(e.into()))?;
        Ok(warning)
    }

    fn append(&mut self, line: &[u8]) -> Result<(), LogError> {
        let len = self.file.metadata().map_err(io_error(&self.path))?.len();
        if len > 0 && len + line.len() as u64 > MAX_FILE_BYTES {
            self.part += 1;
            self.path = part_path(&self.dir, &self.stem, self.suffix, self.part);
            self.file = open_append(&self.path)?;
        }
        flock(&self.file, FlockOperation::LockExclusive).map_err(|e| io_error(&self.path)(e.into()))?;
        let written = write_whole(&mut self.file, line);
        flock(&self.file, FlockOperation::Unlock).map_err(|e| io_error(&self.path)(e.into()))?;
        written.map_err(io_error(&self.path))
    }
}

/// One `write(2)`, then a sync; what a full disk left of the line is taken back.
fn write_whole(file: &mut File, line: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    let result = match file.write(line) {
        Ok(n) if n == line.len() => fdatasync(&*file).map_err(io::Error::from),
        Ok(n) => Err(io::Error::other(format!("only {n} of {} bytes fitted on the disk", line.len()))),
        Err(e) => Err(e),
    };
    if result.is_err() {
        file.set_len(before)?;
    }
    result
}

fn part_path(dir: &Path, stem: &str, suffix: &str, part: u32) -> PathBuf {
    let part = if part == 1 { String::new() } else { format!("-{part}") };
    dir.join(format!("{stem}{part}{suffix}.jsonl"))
}

fn open_append(path: &Path) -> Result<File, LogError> {
    OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io_error(path))
}

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Records, in the order of files (by name) and lines; a record kept in two files counts once, and two that differ
    /// cannot have one ID.
    pub records: Vec<Record>,
    /// Torn last lines that were left out.
    pub warnings: Vec<String>,
}

/// Reads one file.
///
/// # Errors
/// [`LogError::Corrupt`] names every line that is not a record, apart from a last one without its newline.
pub fn read(path: &Path) -> Result<Reading, LogError> {
    read_files(&[path.to_owned()])
}

/// Reads every `*.jsonl` in the month folders (`yyyy-mm`) of `data_dir`. A folder that is not there holds nothing.
///
/// # Errors
/// As [`read`], over all files.
pub fn read_dir(data_dir: &Path) -> Result<Reading, LogError> {
    let mut files = Vec::new();
    for dir in month_dirs(data_dir)? {
        files.extend(
            sorted_entries(&dir)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "jsonl")),
        );
    }
    read_files(&files)
}

fn read_files(files: &[PathBuf]) -> Result<Reading, LogError> {
    let mut reading = Reading::default();
    let mut problems = Vec::new();
    let mut places = std::collections::HashMap::new();
    for path in files {
        let bytes = fs::read(path).map_err(io_error(path))?;
        let mut lines = bytes.split(|b| *b == b'\n');
        let tail = lines.next_back().unwrap_or_default();
        if !tail.is_empty() {
            let warning = format!("{}: a torn last line ({} bytes) was left out", path.display(), tail.len());
            reading.warnings.push(warning);
        }
        for (number, line) in lines.enumerate() {
            let unique = decode(line).and_then(|record| match places.get(&record.id) {
                Some(&place) if reading.records[place] == record => Ok(None),
                Some(_) => Err(format!("another record has its id {}", record.id)),
                None => Ok(Some(record)),
            });
            match unique {
                Ok(Some(record)) => {
                    places.insert(record.id.clone(), reading.records.len());
                    reading.records.push(record);
                }
                Ok(None) => {}
                Err(problem) => problems.push(format!("{}:{}: {problem}", path.display(), number + 1)),
            }
        }
    }
    if problems.is_empty() { Ok(reading) } else { Err(LogError::Corrupt { problems }) }
}

fn month_dirs(data_dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    if !data_dir.exists() {
        return Ok(Vec::new());
    }
    let is_month = |path: &PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().as_bytes();
        name.len() == 7
            && name.iter().enumerate().all(|(i, b)| if i == 4 { *b == b'-' } else { b.is_ascii_digit() })
    };
    Ok(sorted_entries(data_dir)?.into_iter().filter(is_month).collect())
}

fn sorted_entries(dir: &Path) -> Result<Vec<PathBuf>, LogError> {
    let entries = fs::read_dir(dir).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let mut paths: Vec<PathBuf> = entries.map_err(io_error(dir))?.into_iter().map(|e| e.path()).collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests;
