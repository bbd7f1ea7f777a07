//! One key on the bench: every measurement is a trial that is in the log before the next one starts.
//!
//! A trial is a *visit*: a check if the configuration had none yet, then a few timed launches. It is named by stage and
//! round, and a resumed sweep takes it from the log instead of measuring it again. Decisions depend on trials alone, on
//! their samples and on the time they say they took, so a resumed sweep decides as the interrupted one did.

use super::device::{Check, Device, Load, Prepared};
use super::{Events, SweepError};
use crate::Stop;
use crate::record::{Body, Extra, Log, LogError, Record, Trial, TrialStatus, Verify, VerifyStatus};
use crate::stats;
use crate::telemetry::{Snapshot, foreign_fraction};
use memra_kernels::{KernelKey, family::Family, space::Config};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashMap;
use std::time::Duration;

/// A visit lasts about so long, within the bounds on launches: short against the milliseconds for which another process
/// takes a core, so that few visits are spoilt.
const VISIT_NS: f64 = 1e6;
const MIN_LAUNCHES: usize = 3;
const MAX_LAUNCHES: usize = 9;
/// A configuration so many times slower than the best is dropped after its first launches.
const HOPELESS: f64 = 2.0;
/// Launches before that is decided.
const FIRST_LAUNCHES: usize = 2;

/// Name of the stage of a comparison head to head.
pub(super) const CONFIRM: &str = "confirm";

/// Why a key, or the sweep, ended early.
pub(super) enum Halt {
    /// Asked to stop.
    Stopped,
    /// This key cannot be measured here.
    Unmeasurable(String),
    /// Nothing can be measured or logged any more.
    Error(SweepError),
}

impl From<LogError> for Halt {
    fn from(error: LogError) -> Halt {
        Halt::Error(error.into())
    }
}

/// What names a trial within a session.
#[derive(PartialEq, Eq, Hash)]
struct Slot {
    key: KernelKey,
    source_hash: String,
    config: Config,
    stage: String,
    round: u32,
}

/// The session's log: what is written, and what an interrupted sweep wrote.
pub(super) struct Journal<'a> {
    log: &'a mut Log,
    prior: HashMap<Slot, Record>,
    pub(super) events: &'a mut dyn Events,
    stop: &'a Stop,
    /// Trials measured now.
    pub(super) written: usize,
    /// Trials taken from the log.
    pub(super) reused: usize,
}

impl<'a> Journal<'a> {
    pub(super) fn new(
        log: &'a mut Log,
        prior: &[Record],
        events: &'a mut dyn Events,
        stop: &'a Stop,
    ) -> Journal<'a> {
        let mut slots = HashMap::new();
        for record in prior.iter() {
            if let Body::Trial(t) = &record.body {
                // A comparison that was cut short is made again as a whole: the later record counts.
                slots.insert(Slot::of(t), record.clone());
            }
        }
        Journal { log, prior: slots, events, stop, written: 0, reused: 0 }
    }

    pub(super) fn session_id(&self) -> &str {
        self.log.session_id()
    }

    /// Writes trials that an entry cites to the committed part of the log.
    pub(super) fn keep(&mut self, records: &[Record]) -> Result<(), SweepError> {
        records.iter().try_for_each(|record| self.log.keep(record)).map_err(SweepError::from)
    }
}

impl Slot {
    fn of(trial: &Trial) -> Slot {
        Slot {
            key: trial.key.clone(),
            source_hash: trial.source_hash.clone(),
            config: trial.config.clone(),
            stage: trial.strategy.clone(),
            round: trial.round,
        }
    }
}

/// What a visit gave.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Visit {
    /// Median time of a launch, in nanoseconds.
    Timed(f64),
    /// Too far behind the best to go on.
    Hopeless,
    /// Wrong, or did not run.
    Rejected,
}

/// A configuration that was tried and cannot be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// The configuration.
    pub config: Config,
    /// In which way.
    pub status: TrialStatus,
    /// Why.
    pub reason: String,
}

/// The bench of one key.
pub(super) struct Lab<'a, 'j> {
    device: &'a mut dyn Device,
    pub(super) journal: &'a mut Journal<'j>,
    family: &'static dyn Family,
    load: Load,
    prepared: Option<Prepared>,
    /// Configurations that were right.
    passed: HashMap<Config, Verify>,
    /// For each order key the first configuration that was right, and the hash of its output.
    orders: HashMap<String, (Config, String)>,
    pub(super) rejected: Vec<Rejected>,
    launches: usize,
    /// About what a visit takes, its check apart.
    visit_cost: Duration,
    spent: Duration,
    mark: Duration,
    machine_before: Snapshot,
}

impl<'a, 'j> Lab<'a, 'j> {
    pub(super) fn new(
        device: &'a mut dyn Device,
        journal: &'a mut Journal<'j>,
        family: &'static dyn Family,
        load: Load,
    ) -> Lab<'a, 'j> {
        let (mark, machine_before) = (device.now(), device.machine());
        Lab {
            device,
            journal,
            family,
            load,
            prepared: None,
            passed: HashMap::new(),
            orders: HashMap::new(),
            rejected: Vec::new(),
            launches: MIN_LAUNCHES,
            visit_cost: Duration::ZERO,
            spent: Duration::ZERO,
            mark,
            machine_before,
        }
    }

    /// Share of the machine's CPU time that other processes took since this key was begun, 0 to 1.
    pub(super) fn foreign_cpu(&self) -> Option<f64> {
        foreign_fraction(&self.machine_before, &self.device.machine())
    }

    /// Time that this key's trials took, those of the interrupted sweep included.
    pub(super) fn spent(&self) -> Duration {
        self.spent
    }

    /// Sets how many launches a visit has from the time of one.
    pub(super) fn pace(&mut self, launch_ns: f64) {
        self.launches = ((VISIT_NS / launch_ns.max(1.0)) as usize).clamp(MIN_LAUNCHES, MAX_LAUNCHES);
        self.visit_cost = Duration::from_nanos((launch_ns * (self.launches + 1) as f64) as u64);
    }

    /// About what a visit takes, its check apart.
    pub(super) fn visit_cost(&self) -> Duration {
        self.visit_cost
    }

    pub(super) fn order_key(&self, config: &Config) -> String {
        self.family.order_key(&self.load.key, config)
    }

    pub(super) fn source_hash(&self) -> &'static str {
        self.family.source_hash()
    }

    /// Visits `config`; `best` is the best median so far, where a hopeless configuration may be dropped early.
    pub(super) fn visit(
        &mut self,
        stage: &str,
        round: u32,
        config: &Config,
        best: Option<f64>,
    ) -> Result<Visit, Halt> {
        self.go_on()?;
        let slot = self.slot(stage, round, config);
        if let Some(record) = self.journal.prior.remove(&slot)
            && let Body::Trial(trial) = record.body
        {
            return Ok(self.reuse(trial));
        }
        let prepared = self.prepared()?;
        let mut trial = self.blank(slot, prepared);
        let verify = match self.passed.get(config) {
            Some(verify) => Ok(verify.clone()),
            None => self.check(config, &mut trial.extra),
        };
        match verify {
            Ok(verify) => {
                trial.verify = verify;
                self.fill(&mut trial, best);
            }
            Err((status, reason, max_err)) => {
                let failed = if status == TrialStatus::LaunchError {
                    VerifyStatus::Skipped
                } else {
                    VerifyStatus::Failed
                };
                trial.verify = Verify { status: failed, max_err, reason: Some(reason.clone()) };
                (trial.status, trial.reason) = (status, Some(reason));
            }
        }
        let record = self.append(trial)?;
        match record.body {
            Body::Trial(trial) => Ok(self.take(&trial)),
            _ => Ok(Visit::Rejected),
        }
    }

    /// `Err` when a stop was asked for.
    fn go_on(&self) -> Result<(), Halt> {
        if self.journal.stop.requested() { Err(Halt::Stopped) } else { Ok(()) }
    }

    fn slot(&self, stage: &str, round: u32, config: &Config) -> Slot {
        Slot {
            key: self.load.key.clone(),
            source_hash: self.source_hash().to_owned(),
            config: config.clone(),
            stage: stage.to_owned(),
            round,
        }
    }

    /// Operands are made when the first trial needs them: a key found whole in the log needs none.
    fn prepared(&mut self) -> Result<Prepared, Halt> {
        if let Some(prepared) = self.prepared {
            return Ok(prepared);
        }
        let prepared = self.device.prepare(&self.load).map_err(Halt::Unmeasurable)?;
        self.prepared = Some(prepared);
        Ok(prepared)
    }

    fn blank(&self, slot: Slot, prepared: Prepared) -> Trial {
        let mut extra = Extra::new();
        extra.insert("order".to_owned(), json!(self.order_key(&slot.config)));
        extra.insert("working_set_bytes".to_owned(), json!(prepared.working_set_bytes));
        Trial {
            config_id: slot.config.to_string(),
            key: slot.key,
            source_hash: slot.source_hash,
            config: slot.config,
            strategy: slot.stage,
            round: slot.round,
            verify: Verify { status: VerifyStatus::Skipped, max_err: None, reason: None },
            samples_ns: Vec::new(),
            cache_state: prepared.cache_state,
            status: TrialStatus::Ok,
            reason: None,
            extra,
        }
    }

    /// Runs the check before the first timing, the comparison with order-key peers included.
    fn check(
        &mut self,
        config: &Config,
        extra: &mut Extra,
    ) -> Result<Verify, (TrialStatus, String, Option<f64>)> {
        match self.device.check(config) {
            Check::Passed { output_hash, max_err } => {
                extra.insert("output_hash".to_owned(), json!(output_hash));
                match self.orders.get(&self.order_key(config)) {
                    Some((peer, hash)) if *hash != output_hash => {
                        let reason =
                            format!("its bits differ from those of {peer}, which has the same order key");
                        Err((TrialStatus::Incorrect, reason, Some(max_err)))
                    }
                    _ => Ok(Verify { status: VerifyStatus::Passed, max_err: Some(max_err), reason: None }),
                }
            }
            Check::Wrong { reason, max_err } => Err((TrialStatus::Incorrect, reason, max_err)),
            Check::Unstable { reason } => Err((TrialStatus::Nondeterministic, reason, None)),
            Check::Failed { reason } => Err((TrialStatus::LaunchError, reason, None)),
        }
    }

    /// Times a checked configuration into `trial`.
    fn fill(&mut self, trial: &mut Trial, best: Option<f64>) {
        let first = if best.is_some() { FIRST_LAUNCHES } else { self.launches };
        let timed = self.device.time(&trial.config, first).and_then(|mut samples| {
            let fastest = samples.iter().copied().min().unwrap_or(0);
            if let Some(best) = best.filter(|best| fastest as f64 > HOPELESS * best) {
                trial.status = TrialStatus::Dominated;
                trial.reason = Some(format!("{:.2} times the best so far", fastest as f64 / best));
            } else if first < self.launches {
                samples.extend(self.device.time(&trial.config, self.launches - first)?);
            }
            Ok(samples)
        });
        match timed {
            Ok(samples) => {
                if samples.contains(&0) {
                    trial.status = TrialStatus::Implausible;
                    trial.reason = Some("a launch took no time".to_owned());
                }
                trial.samples_ns = samples;
            }
            Err(reason) => (trial.status, trial.reason) = (TrialStatus::LaunchError, Some(reason)),
        }
    }

    fn append(&mut self, mut trial: Trial) -> Result<Record, Halt> {
        let now = self.device.now();
        let took = now.saturating_sub(self.mark);
        self.mark = now;
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        trial.extra.insert("spent_ns".to_owned(), json!(took_ns));
        let record = self.journal.log.append(trial)?;
        self.spent += Duration::from_nanos(took_ns);
        self.journal.written += 1;
        if let Body::Trial(trial) = &record.body {
            self.journal.events.trial(trial, false);
        }
        Ok(record)
    }

    fn reuse(&mut self, trial: Trial) -> Visit {
        self.spent += spent_of(&trial);
        self.journal.reused += 1;
        self.journal.events.trial(&trial, true);
        self.take(&trial)
    }

    /// Learns from a trial, just measured or found in the log.
    fn take(&mut self, trial: &Trial) -> Visit {
        if trial.verify.status == VerifyStatus::Passed {
            self.passed.entry(trial.config.clone()).or_insert_with(|| trial.verify.clone());
            if let Some(hash) = trial.extra.get("output_hash").and_then(|h| h.as_str()) {
                let first = || (trial.config.clone(), hash.to_owned());
                self.orders.entry(self.family.order_key(&trial.key, &trial.config)).or_insert_with(first);
            }
        }
        match trial.status {
            TrialStatus::Ok => Visit::Timed(median_ns(&trial.samples_ns)),
            TrialStatus::Dominated => Visit::Hopeless,
            status => {
                let reason = trial.reason.clone().unwrap_or_default();
                self.rejected.push(Rejected { config: trial.config.clone(), status, reason });
                Visit::Rejected
            }
        }
    }

    /// Times `arms` in mirrored blocks (two arms: ABBA or BAAB, at random) for `pairs` slots each. The whole comparison
    /// is one trial of each arm, in the order of `arms`; one that was cut short is made again.
    ///
    /// # Errors
    /// [`Halt::Unmeasurable`] when an arm does not run.
    pub(super) fn compare(
        &mut self,
        arms: &[Config],
        orders: &[Vec<usize>],
    ) -> Result<Vec<(Record, Vec<f64>)>, Halt> {
        self.go_on()?;
        let names: Vec<String> = arms.iter().map(Config::to_string).collect();
        if let Some(found) = self.compared(arms, &names) {
            return Ok(found);
        }
        let prepared = self.prepared()?;
        let mut samples = vec![Vec::new(); arms.len()];
        for order in orders {
            self.go_on()?;
            for &arm in order {
                let timed = self.device.time(&arms[arm], self.launches);
                samples[arm].extend(timed.map_err(|e| Halt::Unmeasurable(format!("{}: {e}", arms[arm])))?);
            }
        }
        let foreign = self.foreign_cpu();
        let mut records = Vec::new();
        for (arm, samples_ns) in arms.iter().zip(samples) {
            let mut trial = self.blank(self.slot(CONFIRM, 0, arm), prepared);
            trial.verify = self.passed.get(arm).cloned().unwrap_or(trial.verify);
            trial.samples_ns = samples_ns;
            trial.extra.insert("arms".to_owned(), json!(names));
            trial.extra.insert("launches_per_slot".to_owned(), json!(self.launches));
            trial.extra.insert("foreign_cpu_frac".to_owned(), json!(foreign));
            let record = self.append(trial)?;
            let slots = slots_of(&record);
            records.push((record, slots));
        }
        Ok(records)
    }

    /// The comparison of exactly these arms, where the log has it whole.
    fn compared(&mut self, arms: &[Config], names: &[String]) -> Option<Vec<(Record, Vec<f64>)>> {
        let slots: Vec<Slot> = arms.iter().map(|arm| self.slot(CONFIRM, 0, arm)).collect();
        let mut found = Vec::new();
        for slot in &slots {
            let record = self.journal.prior.get(slot)?;
            let Body::Trial(trial) = &record.body else { return None };
            if trial.extra.get("arms") != Some(&json!(names)) {
                return None;
            }
            found.push((record.clone(), slots_of(record)));
        }
        for (record, _) in &found {
            if let Body::Trial(trial) = &record.body {
                self.spent += spent_of(trial);
                self.journal.reused += 1;
                self.journal.events.trial(trial, true);
            }
        }
        Some(found)
    }

    /// Whether `config` is still right after it was timed. Where nothing was measured now, nothing is checked again.
    pub(super) fn still_right(&mut self, config: &Config) -> Result<(), String> {
        if self.prepared.is_none() {
            return Ok(());
        }
        match self.check(config, &mut Extra::new()) {
            Ok(_) => Ok(()),
            Err((_, reason, _)) => Err(reason),
        }
    }
}

/// What a trial says it took.
pub(super) fn spent_of(trial: &Trial) -> Duration {
    Duration::from_nanos(trial.extra.get("spent_ns").and_then(|v| v.as_u64()).unwrap_or(0))
}

/// Medians of the slots of one arm of a comparison, in order.
fn slots_of(record: &Record) -> Vec<f64> {
    let Body::Trial(trial) = &record.body else { return Vec::new() };
    let launches = trial.extra.get("launches_per_slot").and_then(|v| v.as_u64()).unwrap_or(1).max(1);
    trial.samples_ns.chunks(launches as usize).map(median_ns).collect()
}

/// Median of times.
fn median_ns(samples: &[u64]) -> f64 {
    let samples: Vec<f64> = samples.iter().map(|ns| *ns as f64).collect();
    stats::median(&samples).unwrap_or(f64::INFINITY)
}
