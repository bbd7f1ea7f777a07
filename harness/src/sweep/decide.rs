//! From the finalists to a winner: the set that cannot be told from the best, a tie-break, and a fresh comparison head
//! to head with what rules now.

use super::race::Runner;
use crate::stats;
use memra_kernels::space::Config;
use serde::{Deserialize, Serialize};

/// Finalists at most.
pub const FINALISTS: usize = 8;
/// Rounds of the final: the evidence of each finalist. Of the 210 Walsh averages of twenty rounds, 52 are left out at
/// each end of the interval, so two rounds that something disturbed (39 averages) move neither end; of twelve rounds,
/// one.
pub const FINAL_ROUNDS: u32 = 20;
/// Pairs of the comparison head to head; as many for the same reason.
pub const CONFIRM_PAIRS: u32 = 20;
/// Confidence asked of intervals; the exact level above it that the number of pairs allows is used.
pub const CONFIDENCE: f64 = 0.95;
/// Differences below this are not acted upon, however sure.
pub const FLOOR: f64 = stats::MIN_FLOOR;

/// How many times faster one configuration is than another, from times measured side by side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speedup {
    /// Hodges–Lehmann estimate over pairs; above 1, the first is faster.
    pub ratio: f64,
    /// Lower end of its interval.
    pub lo: f64,
    /// Upper end of its interval.
    pub hi: f64,
    /// Exact confidence of the interval.
    pub conf: f64,
    /// Pairs.
    pub pairs: usize,
}

impl Speedup {
    /// Of times `fast` over times `slow`, paired by position; `None` of no pairs.
    pub(super) fn of(fast: &[f64], slow: &[f64]) -> Option<Speedup> {
        let logs: Vec<f64> = fast.iter().zip(slow).map(|(f, s)| (s / f).ln()).collect();
        let estimate = stats::estimate(&logs, CONFIDENCE)?;
        Some(Speedup {
            ratio: estimate.centre.exp(),
            lo: estimate.lo.exp(),
            hi: estimate.hi.exp(),
            conf: estimate.conf,
            pairs: logs.len(),
        })
    }

    /// Whether it is real: the whole interval lies above the floor.
    pub fn is_real(&self) -> bool {
        self.lo > 1.0 + FLOOR
    }
}

/// The finalists that cannot be told from the fastest: those whose interval against it reaches 1.
pub(super) fn indifferent(finalists: &[Runner]) -> Vec<&Runner> {
    let Some(best) = finalists.iter().min_by(|a, b| a.score().total_cmp(&b.score())) else {
        return Vec::new();
    };
    let same = |runner: &&Runner| {
        runner.config == best.config || Speedup::of(&best.rounds, &runner.rounds).is_none_or(|s| s.lo <= 1.0)
    };
    finalists.iter().filter(same).collect()
}

/// Picks from equals: what rules now, then the default, then the most frugal.
pub(super) fn pick<'a>(
    equals: &[&'a Runner],
    ruling: &Config,
    default: &Config,
    frugality: impl Fn(&Config) -> Vec<i64>,
) -> Option<&'a Runner> {
    equals
        .iter()
        .copied()
        .min_by_key(|r| (r.config != *ruling, r.config != *default, frugality(&r.config), r.config.clone()))
}

/// The expected time of a launch from the slots of a comparison, in whole nanoseconds.
pub(super) fn expected_ns(slots: &[f64]) -> u64 {
    stats::median(slots).unwrap_or(0.0).round() as u64
}
