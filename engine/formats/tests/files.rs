//! What is at a path: things that are no regular files, and files that change while they are open.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use common::{entry, header, safetensors};
use memra_formats::{
    Checkpoint, Gguf, GgufError, GgufWriter, Json, JsonError, Safetensors, SafetensorsError,
};
use memra_kernels::DType;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// What `open` gives; it must not wait for anything.
fn at_once<T: Send + 'static>(open: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(open()));
    receiver.recv_timeout(Duration::from_secs(20)).expect("opening waits for something")
}

fn is_refused(path: &Path) {
    let at = path.to_owned();
    let gguf = at_once(move || Gguf::open(at));
    assert!(matches!(gguf, Err(GgufError::NotAFile { .. })), "{path:?}: {gguf:?}");
    let at = path.to_owned();
    let safetensors = at_once(move || Safetensors::open(at));
    assert!(matches!(safetensors, Err(SafetensorsError::NotAFile { .. })), "{path:?}: {safetensors:?}");
    let at = path.to_owned();
    let json = at_once(move || Json::open(at));
    assert!(matches!(json, Err(JsonError::NotAFile { .. })), "{path:?}: {json:?}");
}

#[test]
fn directories_pipes_and_devices() {
    let dir = tempfile::tempdir().unwrap();
    is_refused(dir.path());
    is_refused(Path::new("/dev/zero"));
    let pipe = dir.path().join("pipe.gguf");
    match Command::new("mkfifo").arg(&pipe).status() {
        Ok(made) if made.success() => {
            is_refused(&pipe);
            let link = dir.path().join("link.gguf");
            std::os::unix::fs::symlink(&pipe, &link).unwrap();
            is_refused(&link);
        }
        failed => eprintln!("NOT TESTED: pipes, because mkfifo gave {failed:?}"),
    }
}

#[test]
fn files_that_are_absent_unreadable_or_empty() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("absent");
    assert!(matches!(Gguf::open(&path), Err(GgufError::Open { .. })));
    assert!(matches!(Safetensors::open(&path), Err(SafetensorsError::Open { .. })));
    std::fs::write(&path, []).unwrap();
    assert!(matches!(Gguf::open(&path), Err(GgufError::Magic { .. })));
    assert!(matches!(Safetensors::open(&path), Err(SafetensorsError::Short { bytes: 0 })));
    assert!(matches!(Json::open(&path), Err(JsonError::Document { .. })));
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o0)).unwrap();
    match std::fs::read(&path) {
        Ok(_) => eprintln!("NOT TESTED: a file without permission, because this user may read every file"),
        Err(_) => {
            let error = Gguf::open(&path).unwrap_err();
            assert!(matches!(error, GgufError::Open { .. }), "{error:?}");
            assert!(error.to_string().contains("absent: "), "{error}");
        }
    }
}

#[test]
fn a_hole_of_a_terabyte_is_no_model() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hole");
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(Gguf::open(&path), Err(GgufError::Magic { .. })));
    let error = Safetensors::open(&path).unwrap_err();
    assert!(matches!(error, SafetensorsError::Header { .. }), "{error:?}");
    assert!(matches!(Json::open(&path), Err(JsonError::TooLarge { .. })));
}

#[test]
fn documents_that_are_no_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.json"), "{}").unwrap();
    let weights = safetensors(&header(&[entry("w", "U8", "1", 0, 1)]), 1);
    std::fs::write(dir.path().join("model.safetensors"), weights).unwrap();
    assert!(Checkpoint::open(dir.path()).unwrap().summary().problems.is_empty());
    for name in ["tokenizer.json", "tokenizer_config.json", "generation_config.json"] {
        std::os::unix::fs::symlink("/dev/zero", dir.path().join(name)).unwrap();
    }
    let problems = Checkpoint::open(dir.path()).unwrap().summary().problems;
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.ends_with("is not a regular file")), "{problems:?}");
}

/// Zeros are empty texts, empty names and empty tensors, and a hole of them costs its maker nothing.
#[test]
fn holes_behind_a_head_are_not_walked() {
    let dir = tempfile::tempdir().unwrap();
    let hole = |name: &str, head: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, head).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        path
    };
    let head = |n_tensors: u64, n_keys: u64| {
        [&b"GGUF\x03\0\0\0"[..], &n_tensors.to_le_bytes(), &n_keys.to_le_bytes()].concat()
    };
    for items in [8u32, 9] {
        let array = [9u32.to_le_bytes(), items.to_le_bytes()].concat();
        let key = [&1u64.to_le_bytes(), &b"k"[..], &array, &(1u64 << 36).to_le_bytes()].concat();
        let path = hole("array.gguf", &[head(0, 1), key].concat());
        let error = at_once(move || Gguf::open(path)).unwrap_err();
        assert!(matches!(error, GgufError::TooMany { .. }), "{error:?}");
    }
    let path = hole("tensors.gguf", &head(1 << 19, 0));
    let error = at_once(move || Gguf::open(path)).unwrap_err();
    assert!(matches!(error, GgufError::Overlap { .. }), "{error:?}");
    std::fs::write(dir.path().join("config.json"), "{}").unwrap();
    std::fs::write(dir.path().join("model.safetensors"), safetensors("{}", 0)).unwrap();
    hole("tokenizer.json", b"{");
    let path = dir.path().to_owned();
    let problems = at_once(move || Checkpoint::open(path).unwrap().summary().problems);
    assert!(problems[0].contains("has 1099511627776 bytes; memra reads at most"), "{problems:?}");
}

/// A file with a tensor of some pages.
fn pages() -> Vec<u8> {
    let mut writer = GgufWriter::new();
    writer.tensor("w", &[1 << 14], DType::F32).unwrap();
    let mut body = writer.begin(Vec::new()).unwrap();
    body.append(&[7; 1 << 16]).unwrap();
    body.finish().unwrap()
}

#[test]
fn a_file_may_be_replaced_while_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.gguf");
    std::fs::write(&path, pages()).unwrap();
    let gguf = Gguf::open(&path).unwrap();
    let new = dir.path().join("new");
    std::fs::write(&new, b"something else").unwrap();
    std::fs::rename(&new, &path).unwrap();
    assert!(gguf.tensor("w").unwrap().data().iter().all(|&byte| byte == 7));
    assert!(matches!(Gguf::open(&path), Err(GgufError::Magic { .. })));
}

/// Cutting a mapped file short takes pages from under the reader. No check can come before the read that fails, so the
/// system ends the process: with a signal, and never with wrong numbers.
#[test]
#[cfg(target_os = "linux")]
fn a_file_cut_short_while_it_is_open_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    const SIGBUS: i32 = 7;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("model.gguf"), pages()).unwrap();
    // In a process of its own, and without a core file.
    let reads = Command::new("sh")
        .args(["-c", "ulimit -c 0; exec \"$0\" --exact --ignored reads_a_file_cut_short"])
        .arg(std::env::current_exe().unwrap())
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&reads.stderr);
    assert_eq!(reads.status.signal(), Some(SIGBUS), "{:?}: {said}", reads.status);
}

#[test]
#[ignore = "the test above runs it in a process of its own, which it ends"]
fn reads_a_file_cut_short() {
    let gguf = Gguf::open("model.gguf").unwrap();
    std::fs::File::options().write(true).open("model.gguf").unwrap().set_len(100).unwrap();
    let sum: u64 = gguf.tensor("w").unwrap().data().iter().map(|&byte| u64::from(byte)).sum();
    panic!("read {sum} from a file that is not there any more");
}
