//! What a sweep found.

use super::decide::Speedup;
use super::lab::Rejected;
use super::{Strategy, Survey};
use crate::exit::Code;
use memra_kernels::space::Config;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What came of a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The table has a new winner that is faster than what ruled before, beyond noise.
    Improved,
    /// What ruled before, by an entry, rules on.
    Kept,
    /// The default is as good as any; the table says so now.
    Default,
    /// Not tuned.
    Skipped {
        /// Why.
        reason: String,
    },
    /// The default, or every configuration, computes wrong results.
    Incorrect {
        /// What was wrong.
        reason: String,
    },
    /// Others took too much of the machine meanwhile: the table is as it was.
    Disturbed {
        /// How much.
        reason: String,
    },
    /// It could not be measured here.
    Unmeasurable {
        /// Why.
        reason: String,
    },
}

/// What a sweep did for one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyReport {
    /// The key, its space and what ruled before.
    pub survey: Survey,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The configuration that rules now, where one was chosen.
    pub winner: Option<Config>,
    /// Its median launch time.
    pub expected_ns: Option<u64>,
    /// The winner against the default.
    pub over_default: Option<Speedup>,
    /// The challenger against what ruled before, in the comparison head to head.
    pub over_ruling: Option<Speedup>,
    /// Configurations that could not be told from the fastest.
    pub equals: Vec<Config>,
    /// Configurations tried.
    pub tried: usize,
    /// Configurations drawn but never reached in the budget.
    pub untried: usize,
    /// Wrong configurations planted on purpose.
    pub planted: Vec<Config>,
    /// Configurations that were wrong or did not run.
    pub rejected: Vec<Rejected>,
    /// IDs of the records behind the entry.
    pub evidence: Vec<String>,
    /// Time its trials took, those of the interrupted sweep included.
    pub spent_s: f64,
    /// Share of the machine's CPU time that other processes took meanwhile, 0 to 1.
    pub foreign_cpu_frac: Option<f64>,
}

impl KeyReport {
    pub(super) fn new(survey: Survey, outcome: Outcome) -> KeyReport {
        KeyReport {
            survey,
            outcome,
            winner: None,
            expected_ns: None,
            over_default: None,
            over_ruling: None,
            equals: Vec::new(),
            tried: 0,
            untried: 0,
            planted: Vec::new(),
            rejected: Vec::new(),
            evidence: Vec::new(),
            spent_s: 0.0,
            foreign_cpu_frac: None,
        }
    }

    /// Whether a configuration that was planted wrong got through.
    pub fn planted_got_through(&self) -> bool {
        self.planted.iter().any(|p| self.equals.contains(p) || self.winner.as_ref() == Some(p))
    }
}

/// What a sweep did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepReport {
    /// Device class.
    pub device_class: String,
    /// Threads of the pool.
    pub threads: usize,
    /// Session of its trials.
    pub session_id: String,
    /// The dispatch table.
    pub table: PathBuf,
    /// Strategy asked for.
    pub strategy: Strategy,
    /// Seed of draws and orders.
    pub seed: u64,
    /// The keys, in order of their share.
    pub keys: Vec<KeyReport>,
    /// Trials measured.
    pub trials: usize,
    /// Trials taken from the log of an interrupted sweep.
    pub reused: usize,
    /// Whether it was asked to stop before it was through.
    pub stopped: bool,
}

impl SweepReport {
    /// The exit code: 130 when stopped, 4 when a kernel's default or all its configurations are wrong or a planted one
    /// got through, 5 when nothing could be measured or the machine was busy, else 0.
    pub fn code(&self) -> Code {
        let unmeasurable = |key: &&KeyReport| matches!(key.outcome, Outcome::Unmeasurable { .. });
        let mut codes = Vec::new();
        if self.stopped {
            codes.push(Code::Interrupted);
        }
        if self.keys.iter().any(|k| matches!(k.outcome, Outcome::Incorrect { .. }) || k.planted_got_through())
        {
            codes.push(Code::Incorrect);
        }
        if self.keys.iter().any(|k| matches!(k.outcome, Outcome::Disturbed { .. })) {
            codes.push(Code::Unfit);
        }
        if !self.keys.is_empty() && self.keys.iter().filter(unmeasurable).count() == self.keys.len() {
            codes.push(Code::Unfit);
        }
        Code::worst(codes)
    }
}
