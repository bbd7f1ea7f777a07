//! The dispatch table on disk, and the trials that it cites.

use super::SweepError;
use crate::record::{Body, Record};
use memra_kernels::dispatch::{Entry, Table};
use rustix::fs::{FlockOperation, flock};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where the table of a device class lies: `DATA/dispatch/<device-class>.toml`.
pub fn table_path(data_dir: &Path, device_class: &str) -> PathBuf {
    data_dir.join("dispatch").join(format!("{device_class}.toml"))
}

/// The table of a device class; an empty one where there is no file.
///
/// # Errors
/// When the file cannot be read, is not a table, or is another device's.
pub fn load_table(data_dir: &Path, device_class: &str) -> Result<Table, SweepError> {
    let path = table_path(data_dir, device_class);
    let text = match fs::read_to_string(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Table::empty(device_class)),
        text => text.map_err(|source| SweepError::Io { path: path.clone(), source })?,
    };
    let table = Table::parse(&path.display().to_string(), &text)?;
    if table.device_class == device_class {
        Ok(table)
    } else {
        Err(SweepError::OtherDevice { path, found: table.device_class, want: device_class.to_owned() })
    }
}

/// Puts `entry` into the table on disk, other writers' entries kept.
///
/// The file is replaced as a whole: whoever reads it sees the old one or the new one, also after a crash.
pub(super) fn store(data_dir: &Path, device_class: &str, entry: Entry) -> Result<(), SweepError> {
    let path = table_path(data_dir, device_class);
    let fail = |source: io::Error| SweepError::Io { path: path.clone(), source };
    let dir = path.parent().unwrap_or(data_dir);
    fs::create_dir_all(dir).map_err(fail)?;
    let dir_file = File::open(dir).map_err(fail)?;
    // Held from reading to renaming, so that two sweeps do not undo each other's entries; released with the handle.
    flock(&dir_file, FlockOperation::LockExclusive).map_err(|e| fail(e.into()))?;
    let mut table = load_table(data_dir, device_class)?;
    table.insert(entry);
    let temporary = path.with_extension("toml.new");
    let mut file = File::create(&temporary).map_err(fail)?;
    let written = file.write_all(table.to_text().as_bytes()).and_then(|()| file.sync_all());
    if let Err(e) = written.and_then(|()| fs::rename(&temporary, &path)) {
        // The old table is whole; what is left of the new one is of no use.
        let _ = fs::remove_file(&temporary);
        return Err(fail(e));
    }
    dir_file.sync_all().map_err(fail)
}

/// The trials that entries of a table cite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cited {
    /// Those found, in the order of the log.
    pub records: Vec<Record>,
    /// IDs cited that no record has, with the key of the entry.
    pub missing: Vec<String>,
}

/// Finds the trials that entries of `table` cite among `records`: all of a sweep's trials that need be kept for good.
pub fn cited_trials(table: &Table, records: &[Record]) -> Cited {
    let wanted: HashSet<&str> = table.entries.iter().flat_map(|e| &e.evidence).map(String::as_str).collect();
    let is_cited = |r: &&Record| matches!(r.body, Body::Trial(_)) && wanted.contains(r.id.as_str());
    let found: Vec<Record> = records.iter().filter(is_cited).cloned().collect();
    let have: HashSet<&str> = found.iter().map(|r| r.id.as_str()).collect();
    let missing = table
        .entries
        .iter()
        .flat_map(|e| e.evidence.iter().map(move |id| (e, id)))
        .filter(|(_, id)| !have.contains(id.as_str()))
        .map(|(e, id)| format!("{id} ({})", e.key))
        .collect();
    Cited { missing, records: found }
}
