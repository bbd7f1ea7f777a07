//! Where a session was measured: this binary, this checkout, this machine.

use crate::Stop;
use crate::child::Launch;
use crate::record::{Competitor, Design, Host, Model, Session, Tool};
use crate::subject::{Finder, find_program};
use sha2::{Digest, Sha256};
use std::fs::{File, read_to_string};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// SHA-256 of a file's bytes, lower-case hex.
///
/// # Errors
/// The file cannot be read.
pub fn file_hash(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            n => hasher.update(&buffer[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Identifies a model: a file, or a folder with weights and configuration. A folder's hash is that of the lines which
/// `sha256sum` prints for its `.json` and `.safetensors` files, in order of their names' bytes.
///
/// # Errors
/// A file cannot be read, or a folder holds none.
pub fn model(path: &Path) -> io::Result<Model> {
    let size_bytes = model_bytes(path)?;
    if !path.is_dir() {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(Model { name, size_bytes, file_hash: file_hash(path)? });
    }
    let mut hasher = Sha256::new();
    for file in folder_files(path)? {
        let name = file.file_name().unwrap_or_default();
        hasher.update([file_hash(&file)?.as_bytes(), b"  ", name.as_encoded_bytes(), b"\n"].concat());
    }
    let name = path.canonicalize()?.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Model { name, size_bytes, file_hash: hex(&hasher.finalize()) })
}

/// Bytes of a model's file or of its folder's files.
///
/// # Errors
/// As [`model`].
pub fn model_bytes(path: &Path) -> io::Result<u64> {
    let files = if path.is_dir() { folder_files(path)? } else { vec![path.to_owned()] };
    files.iter().map(|file| Ok(file.metadata()?.len())).sum()
}

/// The files that make up a folder's model, in order of their names.
fn folder_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = folder.read_dir()?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let is_part = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "json" || end == "safetensors") && path.is_file()
    };
    let mut files: Vec<PathBuf> = entries.into_iter().filter(is_part).collect();
    files.sort();
    if files.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "a folder without .safetensors and .json files"));
    }
    Ok(files)
}

/// The provenance record of a session that `command` starts here and now.
///
/// # Errors
/// This binary cannot be read. Whatever else is not readable is left empty or `None`.
pub fn session(
    command: &str,
    finder: &Finder,
    design: Option<Design>,
    competitors: Vec<Competitor>,
) -> io::Result<Session> {
    Ok(Session {
        command: command.to_owned(),
        tool: tool(finder)?,
        host: host(),
        device_class: memra_kernels::cpu::device_class(),
        isa: memra_kernels::cpu::Isa::detect().name().to_owned(),
        design,
        competitors,
        extra: serde_json::Map::new(),
    })
}

fn tool(finder: &Finder) -> io::Result<Tool> {
    let checkout = finder.self_exe.ancestors().find(|dir| dir.join(".git").exists());
    let git = |args: &[&str]| checkout.and_then(|dir| git(finder, dir, args));
    Ok(Tool {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git_sha: git(&["rev-parse", "HEAD"]),
        git_dirty: git(&["status", "--porcelain", "--untracked-files=no"]).map(|text| !text.is_empty()),
        binary_hash: file_hash(&finder.self_exe)?,
        rustc: env!("MEMRA_RUSTC").to_owned(),
    })
}

fn git(finder: &Finder, dir: &Path, args: &[&str]) -> Option<String> {
    let mut launch = Launch::new(find_program(&finder.path, "git")?);
    launch.args = args.iter().map(Into::into).collect();
    launch.dir = Some(dir.to_owned());
    launch.env = finder.env.clone();
    launch.time_limit = Duration::from_secs(10);
    let done = launch.run(&Stop::new()).ok()?;
    (done.exit.code == Some(0)).then(|| done.stdout.text().trim().to_owned())
}

/// This machine.
pub fn host() -> Host {
    let file = |path: &str| read_to_string(path).unwrap_or_default();
    let identity =
        [file("/etc/machine-id"), file("/proc/sys/kernel/hostname"), memra_kernels::cpu::cpu_name()];
    Host {
        os: os_name(&file("/etc/os-release")),
        kernel: file("/proc/sys/kernel/osrelease").trim().to_owned(),
        cpu_model: memra_kernels::cpu::cpu_name(),
        n_cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        ram_bytes: ram_bytes(&file("/proc/meminfo")).unwrap_or(0),
        governor: governor(&file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        host_id_hash: hex(&Sha256::digest(format!("memra host {}", identity.join("\n"))))[..16].to_owned(),
    }
}

fn os_name(os_release: &str) -> String {
    let line = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.map_or_else(|| std::env::consts::OS.to_owned(), |name| name.trim_matches('"').to_owned())
}

fn ram_bytes(meminfo: &str) -> Option<u64> {
    let kib = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(kib.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

fn governor(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hash_to_known_values() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.b.gguf");
        std::fs::write(&path, "abc").unwrap();
        let model = model(&path).unwrap();
        assert_eq!((model.name.as_str(), model.size_bytes), ("a.b", 3));
        assert_eq!(model.file_hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(file_hash(&dir.path().join("none")).is_err());
    }

    #[test]
    fn a_folder_hashes_as_sha256sum_lists_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("Some.Model-1B");
        std::fs::create_dir_all(folder.join("sub.json")).unwrap();
        assert!(model(&folder).unwrap_err().to_string().contains(".safetensors"));
        for (name, text) in [("model.safetensors", "abc"), ("config.json", "{}"), ("notes.txt", "x")] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let model = model(&folder).unwrap();
        assert_eq!((model.name.as_str(), model.size_bytes), ("Some.Model-1B", 5));
        // sha256sum config.json model.safetensors | sha256sum
        assert_eq!(model.file_hash, "bb26275d74d8b85c193d98418b10723876d6a1ef2da1f60287213e8b8a65bf38");
    }

    #[test]
    fn system_texts_are_read() {
        assert_eq!(os_name("A=1\nPRETTY_NAME=\"Debian 12\"\n"), "Debian 12");
        assert_eq!(ram_bytes("MemTotal:       16 kB\n"), Some(16384));
        assert_eq!((ram_bytes(""), governor("\n")), (None, None));
        let host = host();
        assert_eq!(host.host_id_hash.len(), 16);
        assert!(host.n_cores > 0);
    }
}
