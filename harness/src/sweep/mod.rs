//! The sweep: finds, for every kernel and shape of a work list, the configuration that is right and, beyond noise,
//! fastest on this device, and puts it into the dispatch table.
//!
//! For each key, the largest share of the end-to-end time first: the feasible points of the tuning space are drawn
//! ([`Strategy`]); each is checked against the reference before it is timed; those that are right race in rounds of
//! fresh random order until few are left; these are timed afresh, all equally often; those that cannot be told from the
//! fastest are a tie, which what rules now wins, then the default, then the most frugal; and where that is not what
//! rules now, the two are compared once more head to head, on times that no selection has touched. Only when the whole
//! interval of that comparison lies above [`FLOOR`] does the table change.
//!
//! Every trial is a record in the log before the next one starts. A sweep that was killed goes on where it was: trials
//! of the same session, key, kernel source and configuration are taken from the log.

mod candidates;
mod cpu;
mod decide;
mod device;
mod events;
mod lab;
mod race;
mod report;
mod table;
mod tune;
mod work;

pub use candidates::{EXHAUSTIVE_MAX, RANDOM_DRAWS, Strategy, Survey};
pub use cpu::CpuDevice;
pub use decide::{CONFIDENCE, CONFIRM_PAIRS, FINAL_ROUNDS, FINALISTS, FLOOR, Speedup};
pub use device::{Check, Device, Load, Prepared};
pub use events::{Events, Silent};
pub use lab::Rejected;
pub use report::{KeyReport, Outcome, SweepReport};
pub use table::{Cited, cited_trials, load_table, table_path};
pub use work::{WorkError, WorkItem, WorkList, matches};

use crate::Stop;
use crate::exit::Code;
use crate::record::{Body, Log, LogError, Record, Session, read_dir};
use candidates::Terrain;
use lab::{Halt, Journal, Lab};
use memra_kernels::dispatch::{Table, TableError, embedded};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Key of a session record's `extra` that says which sweep may go on with it.
const MARK: &str = "sweep";

/// What is to be swept, and how.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    /// Kernels and shapes.
    pub work: WorkList,
    /// Only keys that this glob [`matches()`].
    pub kernel: Option<String>,
    /// How spaces are searched.
    pub strategy: Strategy,
    /// Time for all keys together, split by their shares. A key that is begun measures its default and incumbent, and
    /// ends with a final of at least three, so a very small budget is overrun.
    pub budget: Option<Duration>,
    /// Seed of draws, orders and inputs.
    pub seed: u64,
    /// Leave keys alone that have a valid entry.
    pub only_missing: bool,
    /// Plant a wrong configuration in each space, which must be rejected.
    pub plant_wrong: bool,
    /// Share of the machine's CPU time, 0 to 1: a key during which others took more is not decided, since what wins then
    /// may not win on an idle machine.
    pub max_foreign_cpu: f64,
    /// Where logs and tables lie.
    pub data_dir: PathBuf,
}

/// What keeps a sweep from going on.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The log failed; without it nothing is measured.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The dispatch table, or one that this binary carries, is not readable.
    #[error("{0}; move the file away or restore it, then sweep again")]
    Table(#[from] TableError),
    /// The dispatch table could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A table that holds for another device.
    #[error("{path} is the table of {found}, not of {want}; move it to the name of its device")]
    OtherDevice {
        /// The file.
        path: PathBuf,
        /// The device class in it.
        found: String,
        /// The device class that its name stands for.
        want: String,
    },
    /// Nothing to do.
    #[error("no key of the work list matches `{glob}`; keys look like `{example}`")]
    NoMatch {
        /// The glob.
        glob: String,
        /// A key.
        example: String,
    },
}

impl SweepError {
    /// The exit code of the command.
    pub fn code(&self) -> Code {
        match self {
            SweepError::NoMatch { .. } => Code::Usage,
            SweepError::Log(LogError::Io { .. } | LogError::Invalid { .. }) | SweepError::Io { .. } => {
                Code::Unfit
            }
            SweepError::Log(LogError::Corrupt { .. })
            | SweepError::Table(_)
            | SweepError::OtherDevice { .. } => Code::Corrupt,
        }
    }
}

impl SweepPlan {
    /// The keys to sweep, in order.
    ///
    /// # Errors
    /// When the glob matches none.
    fn items(&self) -> Result<Vec<&WorkItem>, SweepError> {
        let Some(glob) = &self.kernel else { return Ok(self.work.items.iter().collect()) };
        let items: Vec<&WorkItem> = self.work.items.iter().filter(|i| matches(glob, &i.key)).collect();
        if items.is_empty() {
            let example = self.work.items.first().map_or_else(String::new, |i| i.key.to_string());
            return Err(SweepError::NoMatch { glob: glob.clone(), example });
        }
        Ok(items)
    }

    /// Whether a record is of a comparison during which others took too much of the machine.
    fn is_disturbed(&self, record: &Record) -> bool {
        let Body::Trial(trial) = &record.body else { return false };
        trial.extra.get("foreign_cpu_frac").and_then(Value::as_f64).is_some_and(|f| f > self.max_foreign_cpu)
    }

    /// The tables that rule on a device, in order of priority: the user's, then those that this binary carries.
    fn tables(&self, device_class: &str) -> Result<Vec<Table>, SweepError> {
        let mut tables = vec![load_table(&self.data_dir, device_class)?];
        tables.extend(embedded()?.into_iter().map(|(_, t)| t).filter(|t| t.device_class == device_class));
        Ok(tables)
    }

    fn terrain(
        &self,
        device: &dyn Device,
        item: &WorkItem,
        tables: &[Table],
    ) -> Result<Terrain, Box<Survey>> {
        let tables: Vec<&Table> = tables.iter().collect();
        Terrain::survey(device, item, self.strategy, &tables, self.plant_wrong)
    }
}

/// Looks every key's space over and runs nothing: `--dry-run`.
///
/// # Errors
/// When a table is not readable, or no key matches.
pub fn survey(plan: &SweepPlan, device: &dyn Device) -> Result<Vec<Survey>, SweepError> {
    let tables = plan.tables(device.class())?;
    let look =
        |item| plan.terrain(device, item, &tables).map_or_else(|survey| *survey, |terrain| terrain.survey);
    Ok(plan.items()?.into_iter().map(look).collect())
}

/// Opens the log of a sweep: with `go_on` that of the newest session that it can go on with, and what that session
/// holds; else, or where there is none, a new one that begins with `session`.
///
/// A sweep can go on with a session of the same device class on the same machine with the same seed, strategy and
/// threads; comparisons head to head that others disturbed are made again. A file that the interruption left with a torn last line is read without it.
///
/// # Errors
/// When logs cannot be read or written.
pub fn open_log(
    plan: &SweepPlan,
    device: &dyn Device,
    mut session: Session,
    go_on: bool,
) -> Result<(Log, Vec<Record>), SweepError> {
    let mark = json!({ "seed": plan.seed, "strategy": plan.strategy, "threads": device.threads() });
    if go_on {
        let mut records = read_dir(&plan.data_dir)?.records;
        let fits = |record: &&Record| match &record.body {
            Body::Session(old) => {
                old.command == session.command
                    && old.device_class == session.device_class
                    && old.host.host_id_hash == session.host.host_id_hash
                    && old.extra.get(MARK) == Some(&mark)
            }
            _ => false,
        };
        let newest = records.iter().filter(fits).max_by(|a, b| a.at.cmp(&b.at));
        if let Some(id) = newest.map(|r| r.session_id.clone()) {
            records.retain(|r| r.session_id == id && !plan.is_disturbed(r));
            return Ok((Log::resume(&plan.data_dir, &id)?, records));
        }
    }
    session.extra.insert(MARK.to_owned(), mark);
    let mut log = Log::create(&plan.data_dir)?;
    log.append(session)?;
    Ok((log, Vec::new()))
}

/// Sweeps `plan` on `device`.
///
/// `log` and `prior`, what an interrupted sweep of the same session left in it, come from [`open_log`]. The table on
/// disk changes key by key.
///
/// # Errors
/// When the log or the table fails, or no key matches. What was measured until then is in the log.
pub fn run(
    plan: &SweepPlan,
    device: &mut dyn Device,
    log: &mut Log,
    prior: &[Record],
    events: &mut dyn Events,
    stop: &Stop,
) -> Result<SweepReport, SweepError> {
    let items = plan.items()?;
    let mut journal = Journal::new(log, prior, events, stop);
    let mut report = SweepReport {
        device_class: device.class().to_owned(),
        threads: device.threads(),
        session_id: journal.session_id().to_owned(),
        table: table_path(&plan.data_dir, device.class()),
        strategy: plan.strategy,
        seed: plan.seed,
        keys: Vec::new(),
        trials: 0,
        reused: 0,
        stopped: false,
    };
    let mut budget = plan.budget.unwrap_or(Duration::MAX);
    for (index, item) in items.iter().enumerate() {
        let shares: f64 = items[index..].iter().map(|i| i.share).sum();
        let part = if shares > 0.0 { (item.share / shares).min(1.0) } else { 1.0 };
        let own = if plan.budget.is_some() { budget.mul_f64(part) } else { Duration::MAX };
        // Read anew for each key: what won for one shape is tried for the next.
        let tables = plan.tables(device.class())?;
        let turn = Turn { plan, item, tables: &tables, prior, index, total: items.len(), budget: own };
        let (key, halt) = turn.take(device, &mut journal);
        budget = budget.saturating_sub(Duration::from_secs_f64(key.spent_s));
        journal.events.key_finished(&key);
        report.keys.push(key);
        match halt {
            Some(Halt::Error(error)) => return Err(error),
            Some(Halt::Stopped) => {
                report.stopped = true;
                break;
            }
            _ => {}
        }
    }
    (report.trials, report.reused) = (journal.written, journal.reused);
    Ok(report)
}

/// One key's turn in a sweep.
struct Turn<'a> {
    plan: &'a SweepPlan,
    item: &'a WorkItem,
    tables: &'a [Table],
    prior: &'a [Record],
    index: usize,
    total: usize,
    budget: Duration,
}

impl Turn<'_> {
    fn take(&self, device: &mut dyn Device, journal: &mut Journal<'_>) -> (KeyReport, Option<Halt>) {
        let terrain = match self.plan.terrain(device, self.item, self.tables) {
            Ok(terrain) => terrain,
            Err(survey) => {
                let reason = survey.problem.clone().unwrap_or_default();
                journal.events.key_started(self.index, self.total, &survey);
                return (KeyReport::new(*survey, Outcome::Unmeasurable { reason }), None);
            }
        };
        let survey = terrain.survey.clone();
        journal.events.key_started(self.index, self.total, &survey);
        if let Some(void) = &survey.void_entry {
            journal.events.warning(&format!("{}: {void}", self.item.key));
        }
        if self.plan.plant_wrong && terrain.planted.is_empty() {
            journal.events.warning(&format!("{}: this family has no wrong kernel to plant", self.item.key));
        }
        if let Some(report) = self.done_before(&survey, journal.session_id()) {
            return (report, None);
        }
        if let Some(reason) = self.reason_to_skip(&survey) {
            return (KeyReport::new(survey, Outcome::Skipped { reason }), None);
        }
        let mut report = KeyReport::new(survey, Outcome::Skipped { reason: "stopped".to_owned() });
        let seed = race::mix(self.plan.seed, &self.item.key.to_string());
        let load = Load {
            key: self.item.key.clone(),
            working_set_bytes: self.plan.work.step_bytes(self.item.key.path),
            seed,
        };
        let class = device.class().to_owned();
        let mut lab = Lab::new(device, journal, terrain.family, load);
        let tuned = tune::tune(&mut lab, &terrain, seed, self.budget, &mut report);
        let disturbed = report.foreign_cpu_frac.filter(|share| *share > self.plan.max_foreign_cpu);
        let entry = match tuned {
            Ok(entry) => entry,
            Err(Halt::Unmeasurable(reason)) => {
                report.outcome = Outcome::Unmeasurable { reason };
                return (report, None);
            }
            Err(halt) => return (report, Some(halt)),
        };
        if let Some(share) = disturbed
            && matches!(report.outcome, Outcome::Improved | Outcome::Kept | Outcome::Default)
        {
            let (took, limit) = (100.0 * share, 100.0 * self.plan.max_foreign_cpu);
            let reason = format!(
                "others took {took:.0} % of the machine's CPU time (limit {limit:.0} %): sweep again when it is idle"
            );
            report.outcome = Outcome::Disturbed { reason };
            report.winner = None;
            report.evidence.clear();
            return (report, None);
        }
        let Some((entry, evidence)) = entry else { return (report, None) };
        let written = journal.keep(&evidence).and_then(|()| table::store(&self.plan.data_dir, &class, entry));
        (report, written.err().map(Halt::Error))
    }

    /// The report of a key that this session had put into the table before it was interrupted.
    fn done_before(&self, survey: &Survey, session_id: &str) -> Option<KeyReport> {
        let entry = self.tables.first()?.entries.iter().find(|e| e.key == self.item.key)?;
        let cited = |r: &Record| r.session_id == session_id && entry.evidence.contains(&r.id);
        if survey.incumbent.as_ref() != Some(&entry.config) || !self.prior.iter().any(cited) {
            return None;
        }
        let outcome = Outcome::Skipped { reason: "done before the interruption".to_owned() };
        let mut report = KeyReport::new(survey.clone(), outcome);
        report.winner = Some(entry.config.clone());
        report.expected_ns = Some(entry.expected_ns);
        report.evidence.clone_from(&entry.evidence);
        // It is part of the budget all the same.
        let spent = self.prior.iter().filter_map(|r| match &r.body {
            Body::Trial(trial) if trial.key == self.item.key => Some(lab::spent_of(trial)),
            _ => None,
        });
        report.spent_s = spent.sum::<Duration>().as_secs_f64();
        Some(report)
    }

    fn reason_to_skip(&self, survey: &Survey) -> Option<String> {
        if self.plan.only_missing && survey.incumbent.is_some() {
            return Some("has a valid entry".to_owned());
        }
        (self.budget.is_zero()).then(|| "the budget is spent".to_owned())
    }
}

#[cfg(test)]
mod sim;
#[cfg(test)]
mod tests;
