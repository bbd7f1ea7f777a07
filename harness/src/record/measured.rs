//! What was measured: runs of engines and trials of kernels.

use super::{ArmId, Extra, MAX_TPS, within};
use memra_kernels::{KernelKey, space::Config};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

/// One process launch of an engine on one test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Cell: model and test, such as `SmolLM2-135M-Instruct.Q4_1/tg128`.
    pub cell_id: String,
    /// The test's shape.
    pub test: TestShape,
    /// What it was for.
    #[serde(default)]
    pub phase: Phase,
    /// Which arm of the comparison it served; `null` outside one.
    pub arm: Option<ArmId>,
    /// Subject as given: `self`, a path, `config:slow=3%`, a manifest's name.
    pub subject: String,
    /// Engine: the manifest's name.
    pub engine: String,
    /// Version the engine reports.
    pub engine_version: String,
    /// SHA-256 of the engine's program, hex.
    #[serde(default)]
    pub binary_hash: String,
    /// Pair number in its phase and cell, from 0; `null` outside a comparison.
    pub pair: Option<u32>,
    /// Position in the pair, 0 or 1.
    pub pos: Option<u8>,
    /// Program and arguments; of absolute paths the last part, non-UTF-8 bytes replaced.
    pub argv: Vec<String>,
    /// How the process ended.
    pub exit: Exit,
    /// The model.
    pub model: Model,
    /// Flags the engine says it ran with, by its own names, and `overlay.*` for a planted slowdown or fault.
    pub flags: Map<String, Value>,
    /// Time of each timed repetition.
    pub samples_ns: Vec<u64>,
    /// Tokens per second of each timed repetition.
    pub samples_tps: Vec<f64>,
    /// Times of untimed repetitions, where the engine tells them.
    pub warmup_ns: Vec<u64>,
    /// Median of `samples_tps`: the run's value.
    pub median_tps: Option<f64>,
    /// Bytes that one token must read, where known.
    pub bytes_per_token: Option<u64>,
    /// Measured read bandwidth of the machine.
    pub wall_gbps: Option<f64>,
    /// `bytes_per_token` × `median_tps` as a percentage of the wall.
    pub wall_percent: Option<f64>,
    /// Hash of what the engine computed (tokens or logits), where it tells one.
    pub output_hash: Option<String>,
    /// State of the machine around the run.
    pub regime: Regime,
    /// Wall time of the whole process.
    pub duration_ns: u64,
    /// Whether it counts.
    pub status: RunStatus,
    /// Why not, when it does not.
    pub invalid_reason: Option<String>,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a run is for. Only runs of phase `pair` are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// A measurement outside a comparison.
    #[default]
    Single,
    /// The extra pair that starts a comparison.
    Warm,
    /// Arm A against itself, for the noise floor.
    Floor,
    /// Arm A against arm B.
    Pair,
}

/// Shape of a test, in tokens. Its name is `pp512` (prompt), `tg128` (generation), `tg128@d512` (with 512 tokens in the
/// cache).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TestShape {
    /// Prompt tokens processed in the timed part.
    pub n_prompt: u32,
    /// Tokens generated in the timed part.
    pub n_gen: u32,
    /// Tokens already in the cache when the clock starts.
    pub n_depth: u32,
}

impl fmt::Display for TestShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TestShape { n_prompt, n_gen, n_depth } = *self;
        let separator = if n_prompt > 0 && n_gen > 0 { "+" } else { "" };
        if n_prompt > 0 {
            write!(f, "pp{n_prompt}")?;
        }
        if n_gen > 0 || n_prompt == 0 {
            write!(f, "{separator}tg{n_gen}")?;
        }
        if n_depth > 0 { write!(f, "@d{n_depth}") } else { Ok(()) }
    }
}

impl FromStr for TestShape {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let fail = || {
            format!("test `{name}` is not known; tests are named like pp512, tg128, pp512@d1024, tg128@d512")
        };
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(fail);
        let (head, depth) = name.split_once("@d").map_or((name, None), |(head, depth)| (head, Some(depth)));
        let n_depth = depth.map_or(Ok(0), number)?;
        if let Some(n) = head.strip_prefix("pp") {
            Ok(TestShape { n_prompt: number(n)?, n_gen: 0, n_depth })
        } else if let Some(n) = head.strip_prefix("tg") {
            Ok(TestShape { n_prompt: 0, n_gen: number(n)?, n_depth })
        } else {
            Err(fail())
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code, where it exited.
    pub code: Option<i32>,
    /// Signal, where one ended it.
    pub signal: Option<i32>,
    /// Whether it was stopped at its time limit.
    pub timeout: bool,
}

/// The model that was run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// File name without extension, or the folder's name.
    pub name: String,
    /// SHA-256 of the file, hex; of a folder, see [`crate::provenance::model`].
    pub file_hash: String,
    /// Size of the file, or of the folder's files.
    pub size_bytes: u64,
}

/// State of the machine around a run; `null` where not readable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Regime {
    /// One-minute load average before the run.
    pub loadavg_1m_before: Option<f64>,
    /// One-minute load average after the run.
    pub loadavg_1m_after: Option<f64>,
    /// Share of the machine's CPU time that went to processes outside the run's own, 0 to 1.
    pub foreign_cpu_frac: Option<f64>,
    /// Mean current frequency over the cores, after the run.
    pub freq_mhz: Option<f64>,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Whether a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It counts.
    Ok,
    /// The engine died, or printed nothing usable.
    Failed,
    /// It was stopped at its time limit.
    Timeout,
    /// It ran, but a sanity rule or the machine's state forbids using it.
    Invalid,
}

impl Run {
    pub(super) fn validate(&self) -> Result<(), String> {
        if self.samples_ns.len() != self.samples_tps.len() {
            return Err("samples_ns and samples_tps differ in length".into());
        }
        let rates = || self.samples_tps.iter().copied().chain(self.median_tps);
        let highest = if self.status == RunStatus::Ok { MAX_TPS } else { f64::MAX };
        rates().try_for_each(|tps| within("samples_tps or median_tps", tps, f64::MIN_POSITIVE, highest))?;
        within("wall_gbps", self.wall_gbps, 1e-6, 1e9)?;
        within("wall_percent", self.wall_percent, 0.0, f64::MAX)?;
        match self.status {
            RunStatus::Ok if self.samples_ns.is_empty() || self.median_tps.is_none() => {
                Err("status ok without samples_ns and median_tps".into())
            }
            RunStatus::Ok if self.invalid_reason.is_some() => Err("status ok with an invalid_reason".into()),
            RunStatus::Ok => Ok(()),
            _ if self.invalid_reason.is_none() => {
                Err("a status other than ok needs an invalid_reason".into())
            }
            _ => Ok(()),
        }
    }
}

/// One configuration of one kernel, as a sweep tried it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What was tuned.
    pub key: KernelKey,
    /// Hash of the family's sources.
    pub source_hash: String,
    /// The configuration.
    pub config: Config,
    /// Its canonical text, such as `chunk=64,rows=2`.
    pub config_id: String,
    /// Stage of the sweep: `pilot` (the default, first of all), `exhaustive` or `random` (the race), `refine` (its best
    /// and their neighbours), `final`, `confirm` (head to head; what dispatch entries cite).
    pub strategy: String,
    /// Round of the search, from 0.
    pub round: u32,
    /// Result of the correctness check that came before timing.
    pub verify: Verify,
    /// Time of each timed launch.
    pub samples_ns: Vec<u64>,
    /// State of the caches before each sample.
    pub cache_state: CacheState,
    /// What came of it.
    pub status: TrialStatus,
    /// Why, for any status other than `ok`.
    pub reason: Option<String>,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Outcome of a kernel's check against its reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verify {
    /// Whether the result was right.
    pub status: VerifyStatus,
    /// Largest absolute difference from the reference; `null` when not compared or not finite.
    pub max_err: Option<f64>,
    /// What was wrong, or why it was not checked.
    pub reason: Option<String>,
}

/// Whether a kernel's result was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerifyStatus {
    /// Right.
    Passed,
    /// Wrong.
    Failed,
    /// Not checked.
    Skipped,
}

/// State of the caches before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheState {
    /// Operands were evicted or rotated.
    Cold,
    /// Back to back on the same operands.
    Warm,
}

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    /// Checked and timed to the end.
    Ok,
    /// Not feasible on this device or shape.
    Constraint,
    /// The launch failed.
    LaunchError,
    /// It did not return in time.
    Hang,
    /// The result was wrong; it was not timed.
    Incorrect,
    /// Two launches differed.
    Nondeterministic,
    /// Dropped before the end: too far behind the best.
    Dominated,
    /// Faster than the machine allows.
    Implausible,
    /// Not tried: budget, or told so.
    Skipped,
}

impl Trial {
    pub(super) fn validate(&self) -> Result<(), String> {
        use TrialStatus::{Dominated, Implausible, Ok as Fine};
        let timed = matches!(self.status, Fine | Dominated | Implausible);
        if timed == self.samples_ns.is_empty() {
            return Err(format!("status {:?} with {} samples_ns", self.status, self.samples_ns.len()));
        }
        if timed && self.verify.status == VerifyStatus::Failed {
            return Err("timed although its check failed".into());
        }
        if self.status != Fine && self.reason.is_none() {
            return Err("a status other than ok needs a reason".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names_round_trip() {
        for (name, n_prompt, n_gen, n_depth) in
            [("pp512", 512, 0, 0), ("tg128", 0, 128, 0), ("tg1@d6144", 0, 1, 6144)]
        {
            let shape: TestShape = name.parse().unwrap();
            assert_eq!(shape, TestShape { n_prompt, n_gen, n_depth });
            assert_eq!(shape.to_string(), name);
        }
        for bad in ["", "pp", "pp0", "tg-1", "tg128@", "tg128@d", "tg128@d0", "xx5", "512", "pp512+tg128"] {
            assert!(bad.parse::<TestShape>().is_err(), "{bad}");
        }
        assert_eq!(TestShape { n_prompt: 4, n_gen: 2, n_depth: 1 }.to_string(), "pp4+tg2@d1");
    }
}
