//! Fetching files over HTTP: resumed where they broke off, checked, and at their place whole or not at all.
//!
//! A file grows as `NAME.partial`, with `NAME.partial.json` beside it, which says what it is a part of. The next attempt,
//! in this process or a later one, goes on from there if the server still has the same file.

mod http;
pub(crate) mod hub;
mod name;
mod partial;
mod transfer;

pub(crate) use http::{Client, Network};
pub(crate) use name::{below, percent_decoded};

use crate::exit::{Exit, Failure};
use memra_harness::Stop;
use partial::Partial;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Patience, in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// To resolve a name and to connect.
    pub(crate) connect: Duration,
    /// Until the next bytes arrive.
    pub(crate) read: Duration,
    /// Over this long, so many bytes must arrive at least.
    pub(crate) slow: (Duration, u64),
    /// Attempts in a row that bring nothing worth mentioning, before it gives up.
    pub(crate) tries: u32,
    /// An attempt that brings so many bytes is no failure.
    pub(crate) progress: u64,
    /// Wait after the first failure; it doubles with each further one.
    pub(crate) wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            connect: Duration::from_secs(15),
            read: Duration::from_secs(30),
            slow: (Duration::from_secs(60), 64 << 10),
            tries: 6,
            progress: 1 << 20,
            wait: Duration::from_secs(1),
        }
    }
}

/// A file to fetch.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) url: String,
    /// Where it goes; the folder is there.
    pub(crate) target: PathBuf,
    /// Its size, where that is known beforehand.
    pub(crate) size: Option<u64>,
    /// Its SHA-256 in lower-case hexadecimal digits, where that is known beforehand.
    pub(crate) sha256: Option<String>,
}

/// How a fetch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Fetched,
    /// The same file was there before.
    AlreadyThere,
    /// Asked to stop; what was fetched is kept.
    Stopped,
}

/// What a fetch tells while it runs.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// So many bytes are there, of so many.
    At(u64, Option<u64>),
    /// An attempt failed for this reason, and another follows.
    Again(&'a str),
}

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It may go better next time.
    Passing(Setback),
    /// It will not.
    Final(anyhow::Error),
}

/// What went wrong with an attempt that may be repeated.
#[derive(Debug)]
pub(crate) struct Setback {
    why: String,
    /// The wait that the server asked for.
    wait: Option<Duration>,
    /// No connection came about, which more than a second attempt seldom mends.
    unreachable: bool,
}

impl Trouble {
    fn passing(why: impl Into<String>) -> Trouble {
        Trouble::Passing(Setback { why: why.into(), wait: None, unreachable: false })
    }

    fn failure(exit: Exit, message: impl Into<String>) -> Trouble {
        Trouble::Final(Failure::error(exit, message))
    }
}

/// The longest wait between attempts, whatever a server asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Attempts where no connection comes about.
const TRIES_TO_CONNECT: u32 = 2;

/// Fetches files.
#[derive(Debug)]
pub(crate) struct Downloader<'a> {
    pub(crate) client: Client,
    pub(crate) patience: Patience,
    pub(crate) stop: &'a Stop,
}

impl Downloader<'_> {
    /// Fetches a file, or what is missing of it.
    ///
    /// # Errors
    /// Exit code 2 where the server has no such file or wants to know who asks, 5 where the network or the disk does
    /// not do, 7 where the file is not what it should be. After an error of code 5 what was fetched is kept.
    pub(crate) fn fetch(&self, job: &Job, tell: &mut dyn FnMut(Event<'_>)) -> anyhow::Result<Outcome> {
        if is_there(job)? {
            return Ok(Outcome::AlreadyThere);
        }
        let mut partial = Partial::open(&job.target)?;
        let (mut failures, mut may_restart) = (0, partial.len() > 0);
        loop {
            let before = partial.len();
            match self.attempt(job, &mut partial, tell) {
                Ok(transfer::End::Stopped) => return Ok(Outcome::Stopped),
                Ok(transfer::End::Unchanged) => return Ok(Outcome::AlreadyThere),
                Ok(transfer::End::Whole { sha256 }) => {
                    let Err(problem) = check(&partial, &job.target, sha256.as_deref()) else {
                        partial.commit(&job.target)?;
                        return Ok(Outcome::Fetched);
                    };
                    partial.restart()?;
                    // Perhaps what an earlier process left was no part of this file.
                    if !std::mem::take(&mut may_restart) {
                        return Err(Failure::error(Exit::Corrupt, problem));
                    }
                    tell(Event::Again(&problem));
                }
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Passing(setback)) => {
                    let progressed = partial.len() >= before.saturating_add(self.patience.progress);
                    failures = if progressed { 0 } else { failures + 1 };
                    if !self.is_worth_another(&setback, failures) {
                        return Err(gave_up(job, &partial, &setback.why));
                    }
                    tell(Event::Again(&setback.why));
                    if !self.rest(&setback, failures) {
                        return Ok(Outcome::Stopped);
                    }
                }
            }
        }
    }

    /// Fetches a document of at most `limit` bytes into memory; `None` when asked to stop.
    ///
    /// # Errors
    /// As [`Downloader::fetch`].
    pub(crate) fn document(&self, url: &str, limit: u64) -> anyhow::Result<Option<Vec<u8>>> {
        let mut failures = 0;
        loop {
            match self.client.document(url, limit) {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Passing(setback)) => {
                    failures += 1;
                    if !self.is_worth_another(&setback, failures) {
                        return Err(Failure::error(Exit::Unfit, setback.why));
                    }
                    if !self.rest(&setback, failures) {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn is_worth_another(&self, setback: &Setback, failures: u32) -> bool {
        failures < if setback.unreachable { TRIES_TO_CONNECT } else { self.patience.tries }
    }

    /// Waits after so many failures; says whether nobody asked to stop meanwhile.
    fn rest(&self, setback: &Setback, failures: u32) -> bool {
        let backoff = self.patience.wait * (1 << failures.saturating_sub(1).min(6));
        let mut left = setback.wait.unwrap_or(backoff).min(LONGEST_WAIT);
        while !left.is_zero() && !self.stop.requested() {
            let nap = left.min(Duration::from_millis(50));
            std::thread::sleep(nap);
            left -= nap;
        }
        !self.stop.requested()
    }
}

fn gave_up(job: &Job, partial: &Partial, why: &str) -> anyhow::Error {
    let kept = match partial.len() {
        0 => String::new(),
        bytes => format!("; {bytes} bytes are kept, and the same command goes on from there"),
    };
    let name = job.target.file_name().unwrap_or_default().display();
    Failure::error(Exit::Unfit, format!("{name}: {why}{kept}"))
}

/// Whether the file is at its place already, as far as can be known without asking the server.
fn is_there(job: &Job) -> anyhow::Result<bool> {
    let Some(expected) = &job.sha256 else { return Ok(false) };
    let Ok(there) = std::fs::metadata(&job.target) else { return Ok(false) };
    if !there.is_file() || job.size.is_some_and(|size| size != there.len()) {
        return Ok(false);
    }
    Ok(sha256_of(&job.target)? == *expected)
}

/// What is wrong with a file that has arrived.
fn check(partial: &Partial, target: &Path, expected: Option<&str>) -> Result<(), String> {
    let name = target.display();
    if let Some(expected) = expected {
        let found = partial.sha256();
        return if found == expected {
            Ok(())
        } else {
            Err(format!("{name}: SHA-256 is {found} instead of {expected}; the file was thrown away"))
        };
    }
    // With no checksum at hand, at least an error page is told from a model.
    let is_gguf = target.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    if is_gguf && !partial.begins_with(b"GGUF") {
        return Err(format!("{name}: what the server sent is not a GGUF file; it was thrown away"));
    }
    Ok(())
}

/// SHA-256 of a file, in hexadecimal digits.
pub(crate) fn sha256_of(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    hash_reader(&mut hasher, File::open(path)?)?;
    Ok(hex(hasher))
}

fn hash_reader(hasher: &mut Sha256, mut from: impl Read) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 17];
    let mut total = 0;
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(total),
            n => {
                hasher.update(&buffer[..n]);
                total += n as u64;
            }
        }
    }
}

fn hex(hasher: Sha256) -> String {
    use std::fmt::Write;
    hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
pub(crate) mod test_server;
#[cfg(test)]
mod tests;
