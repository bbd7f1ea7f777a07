//! The night: the whole loop, each stage a fresh process of the same binary.
//!
//! Stages run one after another: a look at the machine, a model, the kernel check, the walls, the sweep, tuned against
//! untuned, each rival that is installed, the board. What a stage prints is kept; a stage that fails stops only those
//! that need what it makes. One night runs at a time in a data folder.

mod stages;

pub use stages::{Counts, ModelSource, Stage};

use crate::Stop;
use crate::child::{Finished, Launch};
use crate::exit::Code;
use crate::subject::describe;
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the night is to do.
#[derive(Clone, Debug)]
pub struct NightlyPlan {
    /// This binary.
    pub exe: PathBuf,
    /// Arguments that every stage gets after its own, so that it runs under the caller's configuration.
    pub args: Vec<OsString>,
    /// Environment of the stages.
    pub env: BTreeMap<OsString, OsString>,
    /// Where logs and tables lie.
    pub data_dir: PathBuf,
    /// Where the model comes from.
    pub model: ModelSource,
    /// Rivals that are installed.
    pub rivals: Vec<String>,
    /// Why other rivals are left out, to be told in the summary.
    pub left_out: Vec<String>,
    /// Minutes instead of hours.
    pub quick: bool,
}

/// A night that could not start.
#[derive(Debug, thiserror::Error)]
pub enum NightlyError {
    /// Another one runs.
    #[error("another `memra nightly` (process {pid}) runs in {data_dir}; wait for it, or stop it")]
    Running {
        /// Its process ID.
        pid: String,
        /// The data folder.
        data_dir: PathBuf,
    },
    /// A file could not be written.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What came of the night.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Where the stages' output is kept.
    pub log_dir: PathBuf,
    /// The model it was about.
    pub model: Option<PathBuf>,
    /// Stages in order.
    pub stages: Vec<StageResult>,
    /// Rivals left out, and why.
    pub left_out: Vec<String>,
    /// Output and summaries that could not be kept.
    pub not_kept: Vec<String>,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// The verdict of the night.
    pub code: Code,
}

/// What came of a stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageResult {
    /// Its name.
    pub name: String,
    /// Arguments after the program.
    pub args: Vec<String>,
    /// Why it did not run, if it did not.
    pub skipped: Option<String>,
    /// How it ended, in words.
    pub outcome: String,
    /// What its end means; `None` if it did not run.
    pub code: Option<Code>,
    /// Whether that counts for the night.
    pub counts: bool,
    /// How long it took.
    pub seconds: f64,
    /// Its output, as `<log>.out` and `<log>.err`.
    pub log: Option<PathBuf>,
}

/// Someone who is told of the night's progress.
pub trait NightlyEvents {
    /// A stage starts.
    fn started(&mut self, stage: &Stage, args: &[String]);
    /// A stage is over, or was skipped.
    fn finished(&mut self, result: &StageResult);
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> NightlyError + '_ {
    move |source| NightlyError::Io { path: path.to_owned(), source }
}

/// Runs the night.
///
/// # Errors
/// Another night runs in this data folder, or nothing can be written there.
pub fn run(plan: &NightlyPlan, events: &mut dyn NightlyEvents, stop: &Stop) -> Result<Summary, NightlyError> {
    fs::create_dir_all(&plan.data_dir).map_err(io_error(&plan.data_dir))?;
    let _lock = lock(&plan.data_dir)?;
    let stamp = jiff::Timestamp::now().strftime("%Y-%m-%dT%H%M%SZ").to_string();
    let log_dir = plan.data_dir.join("nightly").join(stamp);
    fs::create_dir_all(&log_dir).map_err(io_error(&log_dir))?;
    let model = if let ModelSource::File(path) = &plan.model { Some(path.clone()) } else { None };
    let mut night = Night { plan, log_dir, model, results: Vec::new(), not_kept: Vec::new() };
    for stage in stages::all(plan) {
        let result = match night.why_not(&stage, stop) {
            Some(reason) => skipped(&stage, reason),
            None => night.run_stage(&stage, events, stop),
        };
        events.finished(&result);
        night.results.push(result);
    }
    let interrupted = stop.requested();
    let counted = night.results.iter().filter(|r| r.counts).filter_map(|r| r.code);
    let lost = (!night.not_kept.is_empty()).then_some(Code::Unfit);
    let code = Code::worst(counted.chain(interrupted.then_some(Code::Interrupted)).chain(lost));
    let mut summary = Summary {
        log_dir: night.log_dir,
        model: night.model,
        stages: night.results,
        left_out: plan.left_out.clone(),
        not_kept: night.not_kept,
        interrupted,
        code,
    };
    if let Err(error) = summary.save() {
        summary.not_kept.push(error.to_string());
        summary.code = Code::worst([code, Code::Unfit]);
    }
    Ok(summary)
}

/// Holds the data folder for this process until dropped; the system lets go of it if the process dies.
fn lock(data_dir: &Path) -> Result<File, NightlyError> {
    let path = data_dir.join("nightly.lock");
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = open.map_err(io_error(&path))?;
    // A process being started by the last holder may keep its lock for the moment until it executes.
    let mut tries = 20;
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        tries -= 1;
        if tries > 0 {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        let mut pid = String::new();
        file.read_to_string(&mut pid).map_err(io_error(&path))?;
        return Err(NightlyError::Running { pid: pid.trim().to_owned(), data_dir: data_dir.to_owned() });
    }
    let write = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    write.map_err(io_error(&path))?;
    Ok(file)
}

struct Night<'a> {
    plan: &'a NightlyPlan,
    log_dir: PathBuf,
    model: Option<PathBuf>,
    results: Vec<StageResult>,
    not_kept: Vec<String>,
}

fn skipped(stage: &Stage, reason: String) -> StageResult {
    StageResult {
        name: stage.name.clone(),
        args: Vec::new(),
        outcome: format!("skipped: {reason}"),
        skipped: Some(reason),
        code: None,
        counts: false,
        seconds: 0.0,
        log: None,
    }
}

impl Night<'_> {
    /// Why a stage is not to run, if so.
    fn why_not(&self, stage: &Stage, stop: &Stop) -> Option<String> {
        if stop.requested() {
            return Some("interrupted".to_owned());
        }
        match (&self.model, stage.makes_model, stage.needs_model) {
            (Some(model), true, _) => Some(format!("there is a model: {}", model.display())),
            (None, _, true) => Some("there is no model".to_owned()),
            _ => None,
        }
    }

    fn run_stage(&mut self, stage: &Stage, events: &mut dyn NightlyEvents, stop: &Stop) -> StageResult {
        let mut launch = Launch::new(&self.plan.exe);
        launch.args = stage.args(self.model.as_deref());
        launch.args.extend(self.plan.args.iter().cloned());
        launch.env = self.plan.env.clone();
        launch.time_limit = stage.limit;
        launch.pass_interrupt = true;
        let args = launch.argv().split_off(1);
        events.started(stage, &args);
        let started = Instant::now();
        let ran = launch.run(stop);
        let seconds = started.elapsed().as_secs_f64();
        let log = self.log_dir.join(format!("{:02}-{}", self.results.len() + 1, stage.name));
        let (code, outcome) = match &ran {
            Ok(done) => {
                // A full disk costs the output, not the night.
                let kept = [keep(&log, "out", &done.stdout.bytes), keep(&log, "err", &done.stderr.bytes)];
                self.not_kept.extend(kept.into_iter().filter_map(Result::err).map(|error| error.to_string()));
                (code_of(done), outcome(done))
            }
            Err(e) => (Code::Unfit, e.to_string()),
        };
        if let (Ok(done), true, Code::Pass) = (&ran, stage.makes_model, code) {
            self.model = model_path(&done.stdout.text());
        }
        let counts = stage.counts.holds_for(code) && !(stage.makes_model && stage.has_fallback);
        StageResult {
            name: stage.name.clone(),
            args,
            skipped: None,
            outcome,
            code: Some(code),
            counts,
            seconds,
            log: Some(log),
        }
    }
}

/// A process that ends in no documented way could not do its work.
fn code_of(done: &Finished) -> Code {
    done.exit.code.and_then(Code::from_number).unwrap_or(Code::Unfit)
}

fn outcome(done: &Finished) -> String {
    let tail = done.stderr.tail(1);
    match (done.exit.code, tail.is_empty()) {
        (Some(0), _) => "done".to_owned(),
        (_, true) => describe(&done.exit),
        (_, false) => format!("{}: {tail}", describe(&done.exit)),
    }
}

fn keep(log: &Path, extension: &str, bytes: &[u8]) -> Result<(), NightlyError> {
    let path = log.with_added_extension(extension);
    fs::write(&path, bytes).map_err(io_error(&path))
}

/// The last line that a model-making stage printed, if it is the path of a file.
fn model_path(stdout: &str) -> Option<PathBuf> {
    let line = stdout.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(PathBuf::from(line)).filter(|path| path.is_file())
}

impl Summary {
    /// Writes it beside the stages' output.
    fn save(&self) -> Result<(), NightlyError> {
        let path = self.log_dir.join("summary.json");
        let json = serde_json::to_string_pretty(self).map_err(|e| io_error(&path)(e.into()))?;
        fs::write(&path, json + "\n").map_err(io_error(&path))
    }

    /// For people: one line a stage, then the verdict.
    pub fn text(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        let width = self.stages.iter().map(|stage| stage.name.len()).max().unwrap_or(0);
        for stage in &self.stages {
            let remark = if stage.code.is_some() && !stage.counts { " (does not count)" } else { "" };
            let StageResult { name, seconds, outcome, .. } = stage;
            _ = writeln!(text, "{name:width$}  {seconds:7.1} s  {outcome}{remark}");
        }
        for rival in &self.left_out {
            _ = writeln!(text, "left out: {rival}");
        }
        for problem in &self.not_kept {
            _ = writeln!(text, "not kept: {problem}");
        }
        _ = writeln!(text, "logs: {}", self.log_dir.display());
        _ = writeln!(text, "verdict: {} (exit {})", self.code.words(), self.code.number());
        text
    }
}
