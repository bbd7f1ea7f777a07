//! A cell: what was measured in it, and what that says.

use super::plan::Plan;
use crate::provenance;
use crate::record::{Aa, Arm, ArmId, Judgement, Run, RunStatus, TestShape, Verdict};
use crate::stats::{self, Decision, Noise};
use serde_json::{Map, Value};

/// Runs an arm needs for its published figure: the median of this many.
const PUBLISHED: usize = 5;

/// A cell that cannot be judged.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The arm at fault; the machine's, where none.
    pub(super) arm: Option<ArmId>,
    pub(super) reason: String,
}

/// Two adjacent runs, one of each arm.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// Rates of A and B.
    pub(super) rates: [f64; 2],
    /// Records of the first and the second run.
    pub(super) ids: [String; 2],
}

/// One model and test.
pub(super) struct Cell {
    pub(super) id: String,
    pub(super) test: TestShape,
    /// Timed repetitions a launch, both arms alike; fixed by the warm pair.
    pub(super) reps: u32,
    /// Log-ratios of arm A against itself.
    pub(super) floor_ratios: Vec<f64>,
    pub(super) noise: Option<Noise>,
    pub(super) margin: f64,
    pub(super) floor: f64,
    pub(super) mde: Option<f64>,
    /// Why only a difference far beyond the noise will be judged, where that is so.
    pub(super) too_noisy: Option<String>,
    /// Records behind `floor_ratios`.
    pub(super) floor_ids: Vec<String>,
    /// Whole blocks of A against B.
    pub(super) pairs: Vec<Pair>,
    /// Bytes that a token must read, as either arm told.
    pub(super) bytes_per_token: Option<u64>,
    n_invalid: u32,
    flags: [Map<String, Value>; 2],
    looks_done: usize,
    decision: Option<Decision>,
    failure: Option<Failure>,
}

impl Cell {
    pub(super) fn new(model: &str, test: TestShape, reps: u32) -> Cell {
        Cell {
            id: format!("{model}/{test}"),
            test,
            reps,
            floor_ratios: Vec::new(),
            noise: None,
            margin: stats::MIN_MARGIN,
            floor: stats::MIN_FLOOR,
            mde: None,
            too_noisy: None,
            floor_ids: Vec::new(),
            pairs: Vec::new(),
            bytes_per_token: None,
            n_invalid: 0,
            flags: Default::default(),
            looks_done: 0,
            decision: None,
            failure: None,
        }
    }

    /// Whether it is neither decided nor failed.
    pub(super) fn is_open(&self) -> bool {
        self.failure.is_none()
            && self.decision.as_ref().is_none_or(|d| d.judgement == Judgement::Inconclusive)
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
    }

    pub(super) fn note_run(&mut self, arm: ArmId, run: &Run) {
        if run.status == RunStatus::Ok {
            self.bytes_per_token = self.bytes_per_token.or(run.bytes_per_token);
            self.flags[arm as usize] = run.flags.clone();
        } else {
            self.n_invalid += 1;
        }
    }

    /// Judges it, if the pairs for the next look are there.
    pub(super) fn look(&mut self, plan: &Plan) {
        let Some(look) = plan.looks.get(self.looks_done) else { return };
        if self.failure.is_some() || self.pairs.len() < look.pairs as usize {
            return;
        }
        self.looks_done += 1;
        let decision = stats::judge(&self.slowdowns(plan), look.conf, self.margin, self.floor);
        // Noise makes the margin wide, and a wide margin lets a slower candidate pass: what it cannot hide still counts.
        let clear = |d: &Decision| {
            let margin = self.margin.ln_1p();
            d.estimate.lo > margin || d.estimate.hi < -margin
        };
        match (decision, &self.too_noisy) {
            (Some(decision), Some(reason)) if !clear(&decision) => {
                let reason = reason.clone();
                self.fail(Failure { arm: None, reason });
            }
            (Some(decision), _) => self.decision = Some(decision),
            (None, _) => {
                let reason =
                    format!("{} pairs cannot give the confidence of {}", self.pairs.len(), look.conf);
                self.fail(Failure { arm: None, reason });
            }
        }
    }

    /// The pairs judged so far.
    fn judged(&self, plan: &Plan) -> &[Pair] {
        let looked =
            self.looks_done.checked_sub(1).and_then(|i| plan.looks.get(i)).map_or(0, |l| l.pairs as usize);
        &self.pairs[..looked.min(self.pairs.len())]
    }

    /// Slowdowns of the candidate over them.
    fn slowdowns(&self, plan: &Plan) -> Vec<f64> {
        let slowdown = |pair: &Pair| match (plan.candidate(), pair.rates) {
            (ArmId::A, [a, b]) => stats::slowdown(a, b),
            (ArmId::B, [a, b]) => stats::slowdown(b, a),
        };
        self.judged(plan).iter().filter_map(slowdown).collect()
    }

    /// Median of the first runs' medians.
    fn published(&self, arm: ArmId) -> Option<f64> {
        let rates: Vec<f64> =
            self.pairs.iter().take(PUBLISHED).map(|pair| pair.rates[arm as usize]).collect();
        if rates.len() < PUBLISHED { None } else { stats::median(&rates) }
    }

    fn arm(&self, plan: &Plan, arm: ArmId) -> Arm {
        let subject = plan.subject(arm);
        Arm {
            subject: subject.spec.clone(),
            engine: subject.manifest.name.clone(),
            version: subject.version.clone(),
            flags: self.flags[arm as usize].clone(),
        }
    }

    pub(super) fn floor_record(&self, plan: &Plan, noise: &Noise) -> Aa {
        Aa {
            cell_id: self.id.clone(),
            arm: self.arm(plan, ArmId::A),
            device_class: memra_kernels::cpu::device_class(),
            host_id_hash: provenance::host().host_id_hash,
            n_pairs: self.floor_ratios.len() as u32,
            n_invalid: self.n_invalid,
            run_cv_ratio: noise.run_cv,
            pair_sd_ratio: noise.pair_sd,
            q95_ratio: noise.q95.exp_m1(),
            provisional: true,
            expires_at: None,
            run_ids: self.floor_ids.clone(),
            extra: Map::new(),
        }
    }

    /// The verdict on this cell.
    pub(super) fn verdict(&self, plan: &Plan, interrupted: bool) -> Verdict {
        let mut verdict = self.blank_verdict(plan);
        if let Some(decision) = &self.decision {
            let candidate = decision.estimate;
            let (centre, lo, hi) = match plan.candidate() {
                ArmId::A => (candidate.centre, candidate.lo, candidate.hi),
                ArmId::B => (-candidate.centre, -candidate.hi, -candidate.lo),
            };
            verdict.ratio = Some(centre.exp());
            verdict.ci_lo = Some(lo.exp());
            verdict.ci_hi = Some(hi.exp());
            verdict.conf = Some(candidate.conf);
            verdict.pairs_agree = stats::agreeing(&self.slowdowns(plan), candidate.centre) as u32;
            verdict.verdict = decision.judgement;
            verdict.label = decision.label;
            verdict.reasons.push(decision.reason.clone());
        }
        if let Some(failure) = &self.failure {
            let rival = failure.arm.is_some_and(|arm| plan.subject(arm).is_rival());
            verdict.verdict = if rival { Judgement::CompetitorFailed } else { Judgement::Unfit };
            verdict.label = None;
            verdict.reasons.insert(0, failure.reason.clone());
        }
        if interrupted {
            verdict.reasons.push(format!("interrupted after {} whole pairs", self.pairs.len()));
        }
        self.explain(plan, &mut verdict);
        verdict
    }

    fn blank_verdict(&self, plan: &Plan) -> Verdict {
        Verdict {
            cell_id: self.id.clone(),
            a: self.arm(plan, ArmId::A),
            b: self.arm(plan, ArmId::B),
            candidate: plan.candidate(),
            n_pairs: self.slowdowns(plan).len() as u32,
            n_invalid: self.n_invalid,
            ratio: None,
            ci_lo: None,
            ci_hi: None,
            conf: None,
            pairs_agree: 0,
            median_a_tps: self.published(ArmId::A),
            median_b_tps: self.published(ArmId::B),
            mde_ratio: self.mde,
            floor_ratio: self.floor,
            floor_provisional: true,
            margin: self.margin,
            look: self.looks_done as u32,
            verdict: Judgement::Inconclusive,
            label: None,
            reasons: Vec::new(),
            identical_binaries: plan.a.is_identical_to(&plan.b),
            run_ids: self.judged(plan).iter().flat_map(|pair| pair.ids.clone()).collect(),
            extra: Map::new(),
        }
    }

    /// What a reader must know beside the judgement.
    fn explain(&self, plan: &Plan, verdict: &mut Verdict) {
        let reasons = &mut verdict.reasons;
        if let Some(noise) = &self.noise {
            let pairs = self.floor_ratios.len();
            reasons.push(format!("provisional floor: {pairs} pairs of arm A against itself in this session"));
            if self.margin > plan.margin.max(stats::MIN_MARGIN) {
                let (margin, cv) = (100.0 * self.margin, 100.0 * noise.run_cv);
                reasons.push(format!(
                    "margin {margin:.1} %: twice this cell's run-to-run variation of {cv:.2} %"
                ));
            }
        }
        if let ([look], Some(mde)) = (plan.looks.as_slice(), self.mde) {
            let seen = 100.0 * mde;
            reasons.push(format!(
                "quick design: one look at {} pairs sees differences of {seen:.1} % or more; the full one goes on to {} pairs when in doubt",
                look.pairs,
                stats::LOOKS[stats::LOOKS.len() - 1].pairs
            ));
        }
        if verdict.identical_binaries {
            reasons.push("both arms are the same binary with the same flags: this is an A/A".to_owned());
        }
    }
}

/// A prefill cell that is not faster than a decode cell ran on some fallback: its verdict is void.
pub(super) fn check_prefill(plan: &Plan, cells: &mut [Cell]) {
    for arm in [ArmId::A, ArmId::B] {
        let Some(least) = plan.subject(arm).manifest.sanity.min_prefill_over_decode else { continue };
        let decodes: Vec<(u32, f64)> = cells
            .iter()
            .filter(|cell| cell.test.n_prompt == 0)
            .filter_map(|cell| Some((cell.test.n_depth, cell.published(arm)?)))
            .collect();
        for cell in cells.iter_mut().filter(|cell| cell.test.n_gen == 0) {
            let decode =
                decodes.iter().find(|(depth, _)| *depth == cell.test.n_depth).map_or(0.0, |(_, rate)| *rate);
            if let Some(prefill) = cell.published(arm)
                && prefill < least * decode
            {
                let spec = &plan.subject(arm).spec;
                let reason = format!(
                    "{spec}: prefill of {prefill:.1} tok/s is below {least} x its decode of {decode:.1}"
                );
                cell.fail(Failure { arm: Some(arm), reason });
            }
        }
    }
}
