//! A/B: two subjects, fresh processes, interleaved pairs, one verdict a cell.
//!
//! A cell is a model and a test. Each cell first runs one pair that only warms the machine, then arm A against itself for
//! the noise floor, then A against B in ABBA or BAAB blocks (two pairs each, the start drawn from the recorded seed),
//! until a look decides it. Cells take turns block by block, so that all of them see the same hour of the machine.
//! Every launch is a record before the next one starts.

mod cell;
mod lab;
mod order;
mod plan;

pub use lab::{Context, Event, Events};
pub use plan::Plan;
pub(crate) use plan::competitor;

use crate::exit::Code;
use crate::record::{Judgement, Log, LogError, Verdict};
use crate::{provenance, subject::Finder};
use cell::Cell;
use lab::Lab;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A comparison that could not be made or logged. What the engines do wrong is in the verdicts instead.
#[derive(Debug, thiserror::Error)]
pub enum AbError {
    /// The log could not be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The model or this binary cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The plan asks for nothing, or for what cannot be.
    #[error("{0}")]
    Plan(String),
}

impl AbError {
    /// The exit code it means.
    pub fn code(&self) -> Code {
        match self {
            AbError::Log(e) => e.code(),
            AbError::Io { .. } | AbError::Plan(_) => Code::Usage,
        }
    }
}

/// What came of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// One a cell, as recorded.
    pub verdicts: Vec<Verdict>,
    /// Whether the user stopped it; verdicts are then from whole blocks.
    pub interrupted: bool,
}

impl Outcome {
    /// The exit code: that of the worst cell.
    pub fn code(&self) -> Code {
        let cells = self.verdicts.iter().map(|v| code_of(v.verdict));
        Code::worst(cells.chain(self.interrupted.then_some(Code::Interrupted)))
    }
}

/// The exit code a judgement means.
pub fn code_of(judgement: Judgement) -> Code {
    match judgement {
        Judgement::Pass => Code::Pass,
        Judgement::Regressed => Code::Regressed,
        Judgement::Inconclusive => Code::Inconclusive,
        Judgement::Incorrect => Code::Incorrect,
        Judgement::Unfit => Code::Unfit,
        Judgement::CompetitorFailed => Code::CompetitorFailed,
    }
}

/// Makes a comparison in a session of its own: writes the session record, then runs, then verdicts.
///
/// # Errors
/// See [`AbError`].
pub fn run(
    plan: &Plan,
    finder: &Finder,
    log: &mut Log,
    context: &mut Context<'_>,
) -> Result<Outcome, AbError> {
    plan.validate().map_err(AbError::Plan)?;
    let session = provenance::session("ab", finder, Some(plan.design()), plan.competitors());
    log.append(session.map_err(|source| AbError::Io { path: finder.self_exe.clone(), source })?)?;
    compare(plan, log, context)
}

/// Makes a comparison within a session that is already open.
pub(crate) fn compare(plan: &Plan, log: &mut Log, context: &mut Context<'_>) -> Result<Outcome, AbError> {
    plan.validate().map_err(AbError::Plan)?;
    let model =
        provenance::model(&plan.model).map_err(|source| AbError::Io { path: plan.model.clone(), source })?;
    let mut cells: Vec<Cell> =
        plan.tests.iter().map(|test| Cell::new(&model.name, *test, plan.reps)).collect();
    let mut lab = Lab { plan, model, log, context };
    lab.announce(&cells);
    warm_up(&mut lab, &mut cells)?;
    measure_floors(&mut lab, &mut cells)?;
    measure_pairs(&mut lab, &mut cells)?;
    let interrupted = lab.context.stop.requested();
    cell::check_prefill(plan, &mut cells);
    let mut outcome = Outcome { verdicts: Vec::new(), interrupted };
    for cell in &cells {
        let verdict = cell.verdict(plan, interrupted);
        lab.log.append(verdict.clone())?;
        lab.context.events.event(&Event::Verdict(&verdict));
        outcome.verdicts.push(verdict);
    }
    Ok(outcome)
}

/// One pair a cell, not judged: caches, page cache and clocks settle, and a broken engine is found at once.
fn warm_up(lab: &mut Lab<'_, '_>, cells: &mut [Cell]) -> Result<(), AbError> {
    let mut per_pair = Vec::new();
    for cell in cells.iter_mut() {
        per_pair.push(lab.warm_pair(cell)?);
    }
    let total: Duration = per_pair.iter().sum();
    let pairs = |pairs: u32| total * (pairs + lab.plan.floor_pairs);
    let (first, last) = (lab.plan.looks.first(), lab.plan.looks.last());
    if let (Some(first), Some(last)) = (first, last) {
        let estimate = Event::Estimate { shortest: pairs(first.pairs), longest: pairs(last.pairs) };
        lab.context.events.event(&estimate);
    }
    Ok(())
}

fn measure_floors(lab: &mut Lab<'_, '_>, cells: &mut [Cell]) -> Result<(), AbError> {
    for block in 0..lab.plan.floor_pairs.div_ceil(2) {
        for cell in cells.iter_mut().filter(|cell| cell.is_open()) {
            if lab.context.stop.requested() {
                return Ok(());
            }
            lab.floor_block(cell, block)?;
        }
    }
    for cell in cells.iter_mut().filter(|cell| cell.is_open()) {
        lab.settle_floor(cell)?;
    }
    Ok(())
}

fn measure_pairs(lab: &mut Lab<'_, '_>, cells: &mut [Cell]) -> Result<(), AbError> {
    let last = lab.plan.looks.last().map_or(0, |look| look.pairs);
    for block in 0..last.div_ceil(2) {
        for (index, cell) in cells.iter_mut().enumerate().filter(|(_, cell)| cell.is_open()) {
            if lab.context.stop.requested() {
                return Ok(());
            }
            lab.pair_block(cell, index, block)?;
            cell.look(lab.plan);
        }
    }
    Ok(())
}
