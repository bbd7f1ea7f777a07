//! Launching one run after another, and recording each.

use super::cell::{Cell, Failure, Pair};
use super::order;
use super::plan::Plan;
use crate::Stop;
use crate::child::Finished;
use crate::record::{ArmId, Exit, Log, LogError, Model, Phase, Run, RunStatus, Verdict};
use crate::stats::{self, Noise};
use crate::subject::{
    BenchResult, SanityContext, Subject, describe, portable_argv, read_output, sanity, told,
};
use crate::telemetry::Telemetry;
use std::path::Path;
use std::time::Duration;

/// What a comparison needs of the outside.
pub struct Context<'a> {
    /// The machine's meter.
    pub telemetry: &'a mut dyn Telemetry,
    /// Who is told.
    pub events: &'a mut dyn Events,
    /// Who may stop it.
    pub stop: &'a Stop,
}

/// Someone who is told what happens, to show it.
pub trait Events {
    /// Something happened.
    fn event(&mut self, event: &Event<'_>);
}

/// What happens in a comparison, in this order.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The plan, before anything runs.
    Planned {
        /// What is compared.
        plan: &'a Plan,
        /// Cell names.
        cells: &'a [&'a str],
        /// Fewest and most launches, redone ones not counted.
        launches: (u32, u32),
        /// Where it is logged.
        log: &'a Path,
    },
    /// A process is about to be launched.
    Launching {
        /// Its cell.
        cell: &'a str,
        /// Its subject, as given.
        subject: &'a str,
        /// What for.
        phase: Phase,
        /// Number of its pair in that phase, from 0.
        pair: u32,
    },
    /// A process has ended and is recorded.
    Ran(&'a Run),
    /// Time left, known after the warm pairs.
    Estimate {
        /// If every cell is decided at the first look.
        shortest: Duration,
        /// If none is before the last.
        longest: Duration,
    },
    /// A cell's noise is known, before its first pair.
    Floor {
        /// The cell.
        cell: &'a str,
        /// Its noise.
        noise: Noise,
        /// Margin that will be used.
        margin: f64,
        /// Floor that will be used.
        floor: f64,
        /// Smallest difference that will be seen with 80 % power.
        mde: Option<f64>,
    },
    /// A cell is decided and recorded.
    Verdict(&'a Verdict),
}

/// A comparison at work.
pub(super) struct Lab<'a, 'c> {
    pub(super) plan: &'a Plan,
    pub(super) model: Model,
    pub(super) log: &'a mut Log,
    pub(super) context: &'a mut Context<'c>,
}

/// A launch's place in the design.
#[derive(Clone, Copy)]
struct Slot {
    arm: ArmId,
    phase: Phase,
    pair: u32,
    pos: u8,
}

/// What a run that counts gave.
struct RunValue {
    /// Its median rate.
    rate: f64,
    /// Its median repetition.
    sample_ns: f64,
    took: Duration,
    /// ID of its record.
    id: String,
}

/// How often a run that the machine disturbed is repeated.
const RETRIES: u32 = 2;

impl Lab<'_, '_> {
    pub(super) fn announce(&mut self, cells: &[Cell]) {
        let names: Vec<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
        let launches =
            |pairs: Option<u32>| 2 * cells.len() as u32 * (1 + self.plan.floor_pairs + pairs.unwrap_or(0));
        let looks = &self.plan.looks;
        let event = Event::Planned {
            plan: self.plan,
            cells: &names,
            launches: (launches(looks.first().map(|l| l.pairs)), launches(looks.last().map(|l| l.pairs))),
            log: self.log.path(),
        };
        self.context.events.event(&event);
    }

    /// The extra pair; returns how long it took.
    pub(super) fn warm_pair(&mut self, cell: &mut Cell) -> Result<Duration, LogError> {
        let (mut took, mut reps) = (Duration::ZERO, self.plan.reps);
        for (pos, arm) in [ArmId::A, ArmId::B].into_iter().enumerate() {
            if !cell.is_open() || self.context.stop.requested() {
                break;
            }
            let slot = Slot { arm, phase: Phase::Warm, pair: 0, pos: pos as u8 };
            let Some(value) = self.value(cell, slot)? else { break };
            took += value.took;
            reps = reps.max(self.plan.reps_for(value.sample_ns));
        }
        // The launches to come take longer, by the repetitions added at most.
        took = took.mul_f64(f64::from(reps) / f64::from(cell.reps));
        cell.reps = reps;
        Ok(took)
    }

    /// Two pairs of arm A against itself.
    pub(super) fn floor_block(&mut self, cell: &mut Cell, block: u32) -> Result<(), LogError> {
        for pair in 2 * block..2 * block + 2 {
            let slot = |pos| Slot { arm: ArmId::A, phase: Phase::Floor, pair, pos };
            let Some(first) = self.value(cell, slot(0))? else { return Ok(()) };
            let Some(second) = self.value(cell, slot(1))? else { return Ok(()) };
            // The first run of one pair and the second of the next stand for the same arm, as in ABBA.
            let ratio = if pair % 2 == 0 { first.rate / second.rate } else { second.rate / first.rate };
            cell.floor_ratios.push(ratio.ln());
            cell.floor_ids.extend([first.id, second.id]);
        }
        Ok(())
    }

    /// Fixes a cell's noise, margin and floor, records and announces them.
    pub(super) fn settle_floor(&mut self, cell: &mut Cell) -> Result<(), LogError> {
        let Some(noise) = Noise::of(&cell.floor_ratios) else {
            if !self.context.stop.requested() {
                cell.fail(Failure { arm: None, reason: "no noise floor: too few runs of arm A".to_owned() });
            }
            return Ok(());
        };
        let plan = self.plan;
        cell.noise = Some(noise);
        cell.margin = stats::margin(plan.margin, &noise);
        cell.floor = stats::floor(&noise);
        cell.mde =
            stats::minimum_detectable_effect(&plan.looks, noise.run_cv).map(|seen| seen.max(cell.floor));
        self.log.append(cell.floor_record(plan, &noise))?;
        if cell.margin > stats::MAX_MARGIN.max(plan.margin) {
            let (cv, most) = (100.0 * noise.run_cv, 50.0 * stats::MAX_MARGIN);
            cell.too_noisy = Some(format!(
                "too noisy to judge: arm A varies by {cv:.1} % from run to run ({most:.0} % at most)"
            ));
        }
        let Cell { id, margin, floor, mde, .. } = &*cell;
        let event = Event::Floor { cell: id, noise, margin: *margin, floor: *floor, mde: *mde };
        self.context.events.event(&event);
        Ok(())
    }

    /// Two pairs of A against B. A block that does not finish leaves no pair behind.
    pub(super) fn pair_block(
        &mut self,
        cell: &mut Cell,
        cell_index: usize,
        block: u32,
    ) -> Result<(), LogError> {
        let mut pairs = Vec::new();
        for (i, arms) in order::block(self.plan.seed, cell_index, block).into_iter().enumerate() {
            let slot =
                |pos| Slot { arm: arms[pos], phase: Phase::Pair, pair: 2 * block + i as u32, pos: pos as u8 };
            let Some(first) = self.value(cell, slot(0))? else { return Ok(()) };
            let Some(second) = self.value(cell, slot(1))? else { return Ok(()) };
            let (a, b) = if arms[0] == ArmId::A { (&first, &second) } else { (&second, &first) };
            pairs.push(Pair { rates: [a.rate, b.rate], ids: [first.id, second.id] });
        }
        cell.pairs.extend(pairs);
        Ok(())
    }

    /// One run that counts. `None` when it failed for good (the cell then knows) or the user stopped.
    fn value(&mut self, cell: &mut Cell, slot: Slot) -> Result<Option<RunValue>, LogError> {
        for attempt in 0..=RETRIES {
            // Whole blocks only: a stop between two runs of a block ends it.
            if self.context.stop.requested() {
                return Ok(None);
            }
            let run = self.launch(cell, slot);
            let record = self.log.append(run.clone())?;
            self.context.events.event(&Event::Ran(&run));
            let subject = self.plan.subject(slot.arm);
            cell.note_run(slot.arm, &run);
            if let (RunStatus::Ok, Some(rate)) = (run.status, run.median_tps) {
                let samples: Vec<f64> = run.samples_ns.iter().map(|ns| *ns as f64).collect();
                let sample_ns = stats::median(&samples).unwrap_or(0.0);
                let took = Duration::from_nanos(run.duration_ns);
                return Ok(Some(RunValue { rate, sample_ns, took, id: record.id }));
            }
            let reason = run.invalid_reason.unwrap_or_default();
            if self.context.stop.now() {
                return Ok(None);
            }
            if run.status != RunStatus::Invalid || !run.extra.contains_key("redo") {
                cell.fail(Failure { arm: Some(slot.arm), reason: format!("{}: {reason}", subject.spec) });
                return Ok(None);
            }
            if attempt == RETRIES {
                cell.fail(Failure { arm: None, reason: format!("the machine is not quiet: {reason}") });
            }
        }
        Ok(None)
    }

    /// Launches one process and says what came of it.
    fn launch(&mut self, cell: &Cell, slot: Slot) -> Run {
        let plan = self.plan;
        let subject = plan.subject(slot.arm);
        let ask = plan.ask(cell.test, cell.reps);
        let launch = subject.bench(&ask, plan.run_limit);
        let event =
            Event::Launching { cell: &cell.id, subject: &subject.spec, phase: slot.phase, pair: slot.pair };
        self.context.events.event(&event);
        let before = self.context.telemetry.start();
        let finished = launch.run(self.context.stop);
        let regime = self.context.telemetry.finish(&before);
        let mut run = blank_run(cell, slot, subject, portable_argv(&launch), self.model.clone());
        run.regime = regime;
        let outcome = match finished {
            _ if !subject.is_unchanged() => {
                Err((RunStatus::Failed, "its program was replaced while it was being measured".to_owned()))
            }
            Ok(done) => {
                run.exit = done.exit;
                run.duration_ns = u64::try_from(done.duration.as_nanos()).unwrap_or(u64::MAX);
                read_finished(&done, subject)
            }
            Err(e) => Err((RunStatus::Failed, e.to_string())),
        };
        let judged = outcome.and_then(|result| {
            let bytes_per_token = result.bytes_per_token.or(cell.bytes_per_token);
            let context = SanityContext {
                manifest: &subject.manifest,
                ask: &ask,
                wall_gbps: plan.wall_gbps,
                bytes_per_token,
                duration: Duration::from_nanos(run.duration_ns),
            };
            let sane = sanity(&result, &context).map_err(|reason| (RunStatus::Invalid, reason));
            fill(&mut run, result, bytes_per_token, plan.wall_gbps);
            sane
        });
        let foreign = run.regime.foreign_cpu_frac.filter(|share| *share > plan.max_foreign_cpu);
        match (judged, foreign) {
            (Err((status, reason)), _) => (run.status, run.invalid_reason) = (status, Some(reason)),
            (Ok(()), Some(share)) => {
                let (took, limit) = (100.0 * share, 100.0 * plan.max_foreign_cpu);
                let reason =
                    format!("others took {took:.0} % of the machine's CPU time (limit {limit:.0} %)");
                (run.status, run.invalid_reason) = (RunStatus::Invalid, Some(reason));
                run.extra.insert("redo".to_owned(), true.into());
            }
            (Ok(()), None) => run.status = RunStatus::Ok,
        }
        run
    }
}

fn read_finished(done: &Finished, subject: &Subject) -> Result<BenchResult, (RunStatus, String)> {
    let told = || told(&done.stderr, 3);
    if done.exit.timeout {
        return Err((RunStatus::Timeout, format!("stopped at its time limit{}", told())));
    }
    if done.stopped {
        return Err((RunStatus::Failed, "stopped by the user".to_owned()));
    }
    if done.exit.code != Some(0) {
        return Err((RunStatus::Failed, format!("{}{}", describe(&done.exit), told())));
    }
    if done.escaped {
        let reason = "a process it started left its group and still runs, so it was not measured alone";
        return Err((RunStatus::Invalid, reason.to_owned()));
    }
    if done.stdout.dropped > 0 {
        return Err((RunStatus::Failed, format!("it printed {} bytes too many", done.stdout.dropped)));
    }
    read_output(subject.manifest.bench.output, &done.stdout.bytes)
        .map_err(|problem| (RunStatus::Failed, format!("{problem}{}", told())))
}

fn blank_run(cell: &Cell, slot: Slot, subject: &Subject, argv: Vec<String>, model: Model) -> Run {
    let overlay = subject.overlay_flag().map(|(key, value)| (key, value.into()));
    Run {
        cell_id: cell.id.clone(),
        test: cell.test,
        phase: slot.phase,
        arm: Some(slot.arm),
        subject: subject.spec.clone(),
        engine: subject.manifest.name.clone(),
        engine_version: subject.version.clone(),
        binary_hash: subject.binary_hash.clone(),
        pair: Some(slot.pair),
        pos: Some(slot.pos),
        argv,
        exit: Exit::default(),
        model,
        flags: overlay.into_iter().collect(),
        samples_ns: Vec::new(),
        samples_tps: Vec::new(),
        warmup_ns: Vec::new(),
        median_tps: None,
        bytes_per_token: None,
        wall_gbps: None,
        wall_percent: None,
        output_hash: None,
        regime: Default::default(),
        duration_ns: 0,
        status: RunStatus::Failed,
        invalid_reason: None,
        extra: Default::default(),
    }
}

fn fill(run: &mut Run, result: BenchResult, bytes_per_token: Option<u64>, wall_gbps: Option<f64>) {
    // A time of zero has no rate; such a result is kept as its times only.
    let rates: Vec<f64> = result.rates();
    if rates.iter().all(|rate| rate.is_finite()) {
        run.median_tps = stats::median(&rates);
        run.samples_tps = rates;
        run.samples_ns = result.samples_ns;
    } else {
        run.extra.insert("unusable_samples_ns".to_owned(), result.samples_ns.into());
    }
    run.warmup_ns = result.warmup_ns;
    run.output_hash = result.output_hash;
    run.flags.extend(result.flags);
    if run.test.n_gen > 0 && run.test.n_prompt == 0 {
        run.bytes_per_token = bytes_per_token;
        run.wall_gbps = wall_gbps;
        let percent = |bytes: u64, wall: f64, rate: f64| 100.0 * rate * bytes as f64 / (wall * 1e9);
        run.wall_percent = bytes_per_token
            .zip(wall_gbps.filter(|wall| *wall > 0.0))
            .zip(run.median_tps)
            .map(|((bytes, wall), rate)| percent(bytes, wall, rate));
    }
}
