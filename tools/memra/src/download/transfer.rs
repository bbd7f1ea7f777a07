//! One attempt at a file: what is asked of the server, and what its answer means for the bytes that are there.

use super::http::{Answer, Get};
use super::partial::{Note, Partial};
use super::{Downloader, Event, Job, Patience, Trouble, sha256_of};
use crate::exit::Exit;
use memra_harness::doctor::free_bytes;
use std::io::{self, Read};
use std::time::Instant;

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum End {
    /// Every byte is there; the checksum that they should have, if anyone said it.
    Whole {
        sha256: Option<String>,
    },
    /// The file at its place is the server's.
    Unchanged,
    Stopped,
}

impl Downloader<'_> {
    pub(super) fn attempt(
        &self,
        job: &Job,
        partial: &mut Partial,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<End, Trouble> {
        if !continues(job, partial) {
            partial.restart().map_err(Trouble::Final)?;
        }
        let note = partial.note().cloned().unwrap_or_default();
        let from = partial.len();
        if from > 0 && note.size == Some(from) {
            return Ok(End::Whole { sha256: note.sha256 });
        }
        let get = Get { url: &job.url, from, if_range: note.strong_etag() };
        let answer = self.client.get(&get)?;
        let total = match answer.status {
            200 => {
                // The whole file: the server knows no ranges, or the file is another by now.
                if from > 0 {
                    partial.restart().map_err(Trouble::Final)?;
                }
                answer.content_length
            }
            206 => match answer.content_range {
                Some((start, total)) if start == from && from > 0 => total,
                _ => return again(partial, "the server sent another range than was asked for"),
            },
            416 if from > 0 => return again(partial, "the file on the server is shorter than what is there"),
            _ => return Err(answer.refusal(&job.url)),
        };
        let sha256 = expected_sha256(job, &answer)?;
        let size = expected_size(job, total)?;
        if partial.len() == 0 && is_unchanged(job, size, sha256.as_deref()) {
            return Ok(End::Unchanged);
        }
        check_room(job, partial, size)?;
        let note = Note { url: job.url.clone(), etag: answer.etag.clone(), size, sha256: sha256.clone() };
        partial.set_note(note).map_err(Trouble::Final)?;
        self.receive(answer, partial, size, tell)
            .map(|stopped| if stopped { End::Stopped } else { End::Whole { sha256 } })
    }

    /// Reads the body to its end; says whether it was stopped before.
    fn receive(
        &self,
        mut answer: Answer,
        partial: &mut Partial,
        size: Option<u64>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, Trouble> {
        let mut meter = Meter::new(&self.patience, partial.len());
        let mut buffer = vec![0; 1 << 17];
        tell(Event::At(partial.len(), size));
        loop {
            if self.stop.requested() {
                return Ok(true);
            }
            let bytes = match answer.body.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => &buffer[..n],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Trouble::passing(format!("the connection broke off: {error}"))),
            };
            if size.is_some_and(|size| bytes.len() as u64 > size - partial.len()) {
                return again(partial, "the server sent more bytes than it announced");
            }
            partial.append(bytes)?;
            tell(Event::At(partial.len(), size));
            meter.check(partial.len())?;
        }
        match size {
            Some(size) if partial.len() < size => {
                let at = partial.len();
                Err(Trouble::passing(format!("the connection broke off at {at} of {size} bytes")))
            }
            _ => Ok(false),
        }
    }
}

/// Whether what is there is a part of this job's file: of the same checksum, or from the same place and of a version
/// that the server can tell from others.
fn continues(job: &Job, partial: &Partial) -> bool {
    let Some(note) = partial.note() else { return false };
    let fits =
        note.size.is_none_or(|size| partial.len() <= size && job.size.is_none_or(|wanted| wanted == size));
    let same = match (&job.sha256, &note.sha256) {
        (Some(wanted), Some(noted)) => wanted == noted,
        _ => note.url == job.url && (note.strong_etag().is_some() || note.sha256.is_some()),
    };
    fits && same
}

/// Begins anew with the next attempt.
fn again<T>(partial: &mut Partial, why: &str) -> Result<T, Trouble> {
    partial.restart().map_err(Trouble::Final)?;
    Err(Trouble::passing(why))
}

fn expected_sha256(job: &Job, answer: &Answer) -> Result<Option<String>, Trouble> {
    match (&job.sha256, &answer.linked_sha256) {
        (Some(wanted), Some(offered)) if wanted != offered => Err(Trouble::failure(
            Exit::Corrupt,
            format!(
                "{}: the server's file has SHA-256 {offered}, not {wanted}; nothing was fetched",
                job.url
            ),
        )),
        (wanted, offered) => Ok(wanted.clone().or_else(|| offered.clone())),
    }
}

fn expected_size(job: &Job, total: Option<u64>) -> Result<Option<u64>, Trouble> {
    match (job.size, total) {
        (Some(wanted), Some(total)) if wanted != total => Err(Trouble::failure(
            Exit::Corrupt,
            format!("{}: the server's file has {total} bytes, not {wanted}; nothing was fetched", job.url),
        )),
        (wanted, total) => Ok(wanted.or(total)),
    }
}

/// Whether the file at its place is the one on the server: by its checksum, or by its size where there is none.
fn is_unchanged(job: &Job, size: Option<u64>, sha256: Option<&str>) -> bool {
    let there = std::fs::metadata(&job.target).ok().filter(std::fs::Metadata::is_file);
    there.is_some_and(|there| {
        size == Some(there.len())
            && sha256.is_none_or(|wanted| sha256_of(&job.target).is_ok_and(|found| found == wanted))
    })
}

fn check_room(job: &Job, partial: &Partial, size: Option<u64>) -> Result<(), Trouble> {
    let missing = size.map_or(0, |size| size.saturating_sub(partial.len()));
    match free_bytes(&job.target) {
        Some(free) if free < missing => Err(Trouble::failure(
            Exit::Unfit,
            format!(
                "{}: {} MiB are missing and {} MiB are free on this disk; make room, or set paths.cache",
                job.target.display(),
                missing >> 20,
                free >> 20
            ),
        )),
        _ => Ok(()),
    }
}

/// Notices a connection that is alive but brings next to nothing.
struct Meter {
    patience: Patience,
    since: Instant,
    /// Bytes that were there then.
    from: u64,
}

impl Meter {
    fn new(patience: &Patience, from: u64) -> Meter {
        Meter { patience: *patience, since: Instant::now(), from }
    }

    fn check(&mut self, at: u64) -> Result<(), Trouble> {
        let (window, least) = self.patience.slow;
        if self.since.elapsed() < window {
            return Ok(());
        }
        let bytes = at - self.from;
        if bytes < least {
            let seconds = window.as_secs_f64();
            return Err(Trouble::passing(format!("only {bytes} bytes came in {seconds} s")));
        }
        *self = Meter::new(&self.patience, at);
        Ok(())
    }
}
