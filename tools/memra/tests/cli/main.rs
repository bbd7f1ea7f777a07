//! The binary from outside: exit codes, what goes to stdout and what to stderr, and JSON that parses.

#![allow(clippy::unwrap_used, reason = "a test")]

mod compare;
mod download;
mod inspect;
mod model;
mod pull;
mod synth;
mod template;
#[path = "../../src/download/test_server.rs"]
#[allow(dead_code, reason = "the unit tests of the downloads use the rest")]
mod test_server;
mod tokens;
mod usage;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A folder with an empty home in it, in which memra runs and leaves no trace elsewhere.
struct Place {
    folder: tempfile::TempDir,
}

/// What a run printed and how it ended.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memra"));
        command.args(args).current_dir(self.path()).env_clear();
        command.env("HOME", self.path()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Runs memra where no file may grow beyond so many blocks of 512 bytes, as if the disk were full then.
    fn memra_on_a_full_disk(&self, blocks: u32, args: &[&str]) -> Ran {
        let memra = self.command(args);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""), "sh"]);
        shell.arg(memra.get_program()).args(memra.get_args());
        shell.current_dir(self.path()).env_clear().env("HOME", self.path());
        Ran::from(shell.env("PATH", "/usr/bin:/bin").output().unwrap())
    }

    /// Everything in the models cache, as paths in it.
    fn cached(&self) -> Vec<String> {
        let cache = self.path().join(".cache/memra/models");
        let mut found = Vec::new();
        let mut folders = vec![cache.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path => found.push(path.strip_prefix(&cache).unwrap().to_str().unwrap().to_owned()),
                }
            }
        }
        found.sort();
        found
    }

    fn memra(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ran {
    /// Ended with `code`; where that is not 0, it printed no data and said `why` on stderr.
    #[track_caller]
    fn expect(&self, code: i32, why: &str) {
        let Ran { stdout, stderr, .. } = self;
        assert_eq!(self.code, Some(code), "stdout: {stdout}\nstderr: {stderr}");
        assert!(stderr.contains(why), "stderr does not say `{why}`: {stderr}");
        assert!(code == 0 || stdout.is_empty(), "an error printed data: {stdout}");
    }

    /// Ended well and printed nothing but JSON.
    #[track_caller]
    fn json(&self) -> Value {
        self.expect(0, "");
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// A tiny model, made once for all tests.
fn tiny() -> &'static str {
    static TINY: OnceLock<PathBuf> = OnceLock::new();
    let path = TINY.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tiny-{}.gguf", std::process::id()));
        let made = Place::new().memra(&["synth", "tiny", path.to_str().unwrap()]);
        assert_eq!(made.stdout.trim(), path.to_str().unwrap(), "{}", made.stderr);
        path
    });
    path.to_str().unwrap()
}
