//! One process launch: isolated, bounded, and gone afterwards with everything it started.
//!
//! The child leads its own process group and dies when the thread that launched it dies. It inherits nothing of the
//! environment but what is passed. Output is captured as bytes, up to a cap, by threads; the waiting thread sleeps in
//! `poll` so that it does not disturb what is measured. Nothing is ever signalled by name: only the group just made,
//! and only before its leader is reaped, while its number cannot belong to anyone else.
#![allow(unsafe_code, reason = "signals have to be set between fork and exec")]

use crate::record::Exit;
use crate::{Stop, one_line};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    set_parent_process_death_signal, waitid,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// How often the waiting thread looks at the stop flag.
const STOP_CHECK: Duration = Duration::from_millis(200);
/// How long output is waited for after the whole group is gone.
const DRAIN: Duration = Duration::from_secs(2);

/// What to launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program, as a path; it is not searched for.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: BTreeMap<OsString, OsString>,
    /// Its working folder; the caller's where `None`.
    pub dir: Option<PathBuf>,
    /// After this long it is killed.
    pub time_limit: Duration,
    /// Bytes kept of each of stdout and stderr; the rest is read and dropped.
    pub output_cap: usize,
    /// Whether a first stop request is passed on as SIGINT, for children that know how to finish.
    pub pass_interrupt: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// Whether a second stop request ended it.
    pub stopped: bool,
    /// Head of stdout.
    pub stdout: Captured,
    /// Head of stderr.
    pub stderr: Captured,
    /// From launch to exit.
    pub duration: Duration,
    /// Whether a descendant left the process group and still holds an output pipe.
    pub escaped: bool,
}

/// What a stream carried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes, up to the cap.
    pub bytes: Vec<u8>,
    /// Bytes dropped after that.
    pub dropped: u64,
}

/// A launch that did not happen, or could not be waited for.
#[derive(Debug, thiserror::Error)]
#[error("{program}: {doing}: {source}")]
pub struct ChildError {
    /// The program.
    pub program: PathBuf,
    /// What failed.
    pub doing: &'static str,
    /// What the system said.
    pub source: io::Error,
}

impl Launch {
    /// Runs `program` to its end, without arguments, environment or limit worth naming; fill in what differs.
    pub fn new(program: impl Into<PathBuf>) -> Launch {
        Launch {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            dir: None,
            time_limit: Duration::from_secs(600),
            output_cap: 16 << 20,
            pass_interrupt: false,
        }
    }

    /// Program and arguments for records and messages; bytes that are not UTF-8 are replaced.
    pub fn argv(&self) -> Vec<String> {
        let args = self.args.iter().map(|a| a.to_string_lossy().into_owned());
        std::iter::once(self.program.to_string_lossy().into_owned()).chain(args).collect()
    }

    /// Launches, waits, and leaves no process of the group behind.
    ///
    /// # Errors
    /// The program cannot be started, or the system refuses to wait for it. How it ended is not an error.
    pub fn run(&self, stop: &Stop) -> Result<Finished, ChildError> {
        let fail = |doing| move |source| ChildError { program: self.program.clone(), doing, source };
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(&self.env).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        // SAFETY: the closure makes system calls only and allocates nothing, so it may run between fork and exec.
        unsafe { command.pre_exec(prepare) };
        let started = Instant::now();
        let mut child = command.spawn().map_err(fail("cannot be started"))?;
        let pid = Pid::from_child(&child);
        let out = Reader::start(child.stdout.take(), self.output_cap);
        let err = Reader::start(child.stderr.take(), self.output_cap);

        let waited = self.wait(pid, started, stop);
        let duration = started.elapsed();
        // The leader is dead or about to be, but not reaped: its group number is still its own. ESRCH means that
        // nobody else was in the group.
        _ = kill_process_group(pid, Signal::KILL);
        let status = child.wait().map_err(fail("cannot be waited for"))?;
        let (timeout, stopped) = waited.map_err(fail("cannot be watched"))?;
        let (stdout, out_open) = out.finish();
        let (stderr, err_open) = err.finish();
        let exit = Exit { code: status.code(), signal: status.signal(), timeout };
        Ok(Finished { exit, stopped, stdout, stderr, duration, escaped: out_open || err_open })
    }

    /// Sleeps until the child exits (it stays unreaped), the time limit passes, or a second stop request comes.
    /// Returns `(timeout, stopped)`.
    fn wait(&self, pid: Pid, started: Instant, stop: &Stop) -> io::Result<(bool, bool)> {
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        let mut interrupted = false;
        loop {
            let left = self.time_limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok((true, false));
            }
            if stop.now() {
                return Ok((false, true));
            }
            if self.pass_interrupt && stop.requested() && !interrupted {
                interrupted = true;
                kill_process_group(pid, Signal::INT)?;
            }
            let pause = Timespec::try_from(left.min(STOP_CHECK)).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&pause)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break,
                Err(e) => return Err(e.into()),
            }
        }
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        Ok((false, false))
    }
}

/// Runs in the child before the program does. A program that a shell put in the background is born deaf to Ctrl-C, and
/// so would its own children be; ours must hear it.
fn prepare() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: setting a signal to its default installs no code of ours.
        if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// A thread that reads one pipe to its end.
struct Reader {
    captured: Arc<Mutex<Captured>>,
    done: mpsc::Receiver<()>,
}

impl Reader {
    fn start(pipe: Option<impl Read + Send + 'static>, cap: usize) -> Reader {
        let captured = Arc::new(Mutex::new(Captured::default()));
        let (tell, done) = mpsc::channel();
        let shared = Arc::clone(&captured);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            let Some(mut pipe) = pipe else { return };
            while let Ok(n) = pipe.read(&mut buffer) {
                if n == 0 {
                    break;
                }
                let mut captured = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = n.min(cap.saturating_sub(captured.bytes.len()));
                captured.bytes.extend_from_slice(&buffer[..room]);
                captured.dropped += (n - room) as u64;
            }
            _ = tell.send(());
        });
        Reader { captured, done }
    }

    /// What was read, and whether someone still holds the other end.
    fn finish(self) -> (Captured, bool) {
        let open = matches!(self.done.recv_timeout(DRAIN), Err(mpsc::RecvTimeoutError::Timeout));
        let captured = std::mem::take(&mut *self.captured.lock().unwrap_or_else(PoisonError::into_inner));
        (captured, open)
    }
}

impl Captured {
    /// As text for people; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The last lines as one, for an error message.
    pub fn tail(&self, lines: usize) -> String {
        let text = self.text();
        let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        one_line(&all[all.len().saturating_sub(lines)..].join(" | "), 1000)
    }
}

#[cfg(test)]
mod tests;
