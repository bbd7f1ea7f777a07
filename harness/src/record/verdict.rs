//! What was concluded: verdicts, noise floors, and remarks about records.

use super::{Extra, MAX_RATIO, MAX_TPS, within};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The comparison of two arms in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Cell: model and test, such as `SmolLM2-135M-Instruct.Q4_1/tg128`.
    pub cell_id: String,
    /// Arm A.
    pub a: Arm,
    /// Arm B.
    pub b: Arm,
    /// The arm that `verdict` and `label` speak of: B, or A where B is a rival.
    pub candidate: ArmId,
    /// Valid pairs judged.
    pub n_pairs: u32,
    /// Runs that failed or were invalid, retried ones included.
    pub n_invalid: u32,
    /// Throughput of B over A (Hodges–Lehmann over pairs): above 1, B is faster. `null` when not computable.
    pub ratio: Option<f64>,
    /// Lower end of the interval of `ratio`.
    pub ci_lo: Option<f64>,
    /// Upper end of the interval of `ratio`.
    pub ci_hi: Option<f64>,
    /// Exact confidence of the interval.
    pub conf: Option<f64>,
    /// Pairs whose sign agrees with `ratio`.
    pub pairs_agree: u32,
    /// Median of arm A's first five run medians, the published figure.
    pub median_a_tps: Option<f64>,
    /// Median of arm B's first five run medians, the published figure.
    pub median_b_tps: Option<f64>,
    /// Smallest difference seen with 80 % power at the last look, as a ratio (0.01 = 1 %).
    pub mde_ratio: Option<f64>,
    /// Practical floor: differences below it are not called.
    pub floor_ratio: f64,
    /// Whether the floor comes from an A/A in this session instead of a stored one.
    pub floor_provisional: bool,
    /// Margin used: the larger of the one asked for and twice the cell's run-to-run CV.
    pub margin: f64,
    /// Which look decided, from 1.
    pub look: u32,
    /// The judgement of the candidate.
    pub verdict: Judgement,
    /// How fast it passed; `null` unless it did, and for a check that times nothing.
    pub label: Option<Label>,
    /// Why, in words.
    pub reasons: Vec<String>,
    /// Whether both arms are the same binary with the same flags (then this is one more A/A).
    pub identical_binaries: bool,
    /// The runs judged.
    pub run_ids: Vec<String>,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One arm of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Subject as given.
    pub subject: String,
    /// Engine: the manifest's name.
    pub engine: String,
    /// Version the engine reports.
    pub version: String,
    /// Flags as resolved by the engine, overlays included.
    pub flags: Map<String, Value>,
}

/// Which arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArmId {
    /// The first.
    A,
    /// The second.
    B,
}

/// What was concluded of the candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Not slower by the margin or more.
    Pass,
    /// Slower.
    Regressed,
    /// Not decided by the last look.
    Inconclusive,
    /// It computes wrong results.
    Incorrect,
    /// The machine or the harness could not measure.
    Unfit,
    /// The rival failed, or its runs are absurd.
    CompetitorFailed,
}

/// How a candidate passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// Faster beyond the floor.
    Improved,
    /// No difference of the margin's size either way.
    Equivalent,
    /// Slower, by less than the margin.
    SlowerWithinMargin,
    /// Not slower by the margin; more is not known.
    NotSlower,
}

impl Judgement {
    /// Words for people.
    pub fn words(self) -> &'static str {
        match self {
            Judgement::Pass => "pass",
            Judgement::Regressed => "regressed",
            Judgement::Inconclusive => "inconclusive",
            Judgement::Incorrect => "incorrect",
            Judgement::Unfit => "unfit",
            Judgement::CompetitorFailed => "competitor failed",
        }
    }
}

impl Label {
    /// Words for people.
    pub fn words(self) -> &'static str {
        match self {
            Label::Improved => "improved",
            Label::Equivalent => "equivalent",
            Label::SlowerWithinMargin => "slower within margin",
            Label::NotSlower => "not slower",
        }
    }
}

impl Verdict {
    /// `(ratio, lo, hi)` of the candidate's throughput over the other arm's: above 1, the candidate is faster.
    pub fn candidate_ratio(&self) -> Option<(f64, f64, f64)> {
        let (ratio, lo, hi) = (self.ratio?, self.ci_lo?, self.ci_hi?);
        Some(match self.candidate {
            ArmId::B => (ratio, lo, hi),
            ArmId::A => (1.0 / ratio, 1.0 / hi, 1.0 / lo),
        })
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        match (self.ratio, self.ci_lo, self.ci_hi) {
            (Some(ratio), Some(lo), Some(hi)) if !(lo <= ratio && ratio <= hi) => {
                return Err(format!("ratio {ratio} outside its interval [{lo}, {hi}]"));
            }
            (Some(_), Some(_), Some(_)) | (None, None, None) => {}
            _ => return Err("ratio, ci_lo and ci_hi stand together or not at all".into()),
        }
        within("ci_lo", self.ci_lo, 1.0 / MAX_RATIO, MAX_RATIO)?;
        within("ci_hi", self.ci_hi, 1.0 / MAX_RATIO, MAX_RATIO)?;
        within("conf", self.conf, 0.0, 1.0)?;
        within("median_a_tps", self.median_a_tps, f64::MIN_POSITIVE, MAX_TPS)?;
        within("median_b_tps", self.median_b_tps, f64::MIN_POSITIVE, MAX_TPS)?;
        for (key, ratio) in [
            ("mde_ratio", self.mde_ratio),
            ("floor_ratio", Some(self.floor_ratio)),
            ("margin", Some(self.margin)),
        ] {
            within(key, ratio, 0.0, f64::MAX)?;
        }
        if self.pairs_agree > self.n_pairs || self.run_ids.len() < 2 * self.n_pairs as usize {
            let (agree, pairs, runs) = (self.pairs_agree, self.n_pairs, self.run_ids.len());
            return Err(format!("{pairs} n_pairs, of which {agree} pairs_agree, from {runs} run_ids"));
        }
        let judged = self.label.is_some() || self.verdict == Judgement::Regressed;
        if judged && (self.ratio.is_none() || self.run_ids.is_empty()) {
            return Err("a judgement of speed needs a ratio and run_ids".into());
        }
        if self.label.is_some() && self.verdict != Judgement::Pass {
            return Err("only a pass has a label".into());
        }
        Ok(())
    }
}

/// A noise floor: an arm compared with itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aa {
    /// Cell.
    pub cell_id: String,
    /// The arm.
    pub arm: Arm,
    /// Device class it holds for.
    pub device_class: String,
    /// Machine it holds for.
    pub host_id_hash: String,
    /// Valid pairs.
    pub n_pairs: u32,
    /// Runs that failed or were invalid.
    pub n_invalid: u32,
    /// Run-to-run coefficient of variation.
    pub run_cv_ratio: f64,
    /// Standard deviation of the pairs' log-ratios.
    pub pair_sd_ratio: f64,
    /// 95 % quantile of the absolute log-ratio that pure noise gives for a comparison of this size.
    pub q95_ratio: f64,
    /// Whether it serves one session only.
    pub provisional: bool,
    /// When it expires, RFC 3339; `null` where it serves its session only.
    pub expires_at: Option<String>,
    /// The runs behind it.
    pub run_ids: Vec<String>,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Aa {
    pub(super) fn validate(&self) -> Result<(), String> {
        within("run_cv_ratio", self.run_cv_ratio, 0.0, f64::MAX)?;
        within("pair_sd_ratio", self.pair_sd_ratio, 0.0, f64::MAX)?;
        within("q95_ratio", self.q95_ratio, 0.0, f64::MAX)
    }
}

/// Something that went wrong around the measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// Where: a command or stage.
    pub stage: String,
    /// What happened, and what was done about it.
    pub text: String,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A remark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The remark.
    pub text: String,
    /// Records it is about.
    pub about_ids: Vec<String>,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Withdraws earlier records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Supersede {
    /// Records that no longer count.
    pub old_ids: Vec<String>,
    /// The record that takes their place, if any.
    pub new_id: Option<String>,
    /// Why.
    pub reason: String,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Extra,
}
