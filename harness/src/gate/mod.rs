//! The gate: is a candidate correct, and not slower than its base?
//!
//! Correctness first. Both subjects check themselves, as processes; a candidate whose kernels are wrong, whose results
//! depend on how a prompt is grouped, or that strays too far from f32, is not timed. Against the base, differing bits
//! fail only when the reduction orders did not differ: then something changed that should not have. After that the
//! candidate is compared with the base, and with rivals for information: losing to a rival is an open gap that the
//! board shows, not a reason to refuse a change; a rival that cannot be measured is reported.

mod check;

pub use check::{CheckReport, KernelRow, MAX_DLOGPROB, ModelCheck, compare_bits, judge_check};

use crate::ab::{self, AbError, Context, Event, Outcome, Plan};
use crate::child::ChildError;
use crate::exit::Code;
use crate::provenance;
use crate::record::{Arm, ArmId, Judgement, Log, Verdict};
use crate::subject::{Finder, Subject, describe, told};
use serde_json::{Map, Value};
use std::time::Duration;

/// What the gate is to do.
#[derive(Clone, Debug)]
pub struct GatePlan {
    /// The comparison: arm A is the base, arm B the candidate.
    pub ab: Plan,
    /// Rivals that the candidate is compared with afterwards.
    pub rivals: Vec<Subject>,
    /// Whether bits may differ from the base's although reduction orders do not.
    pub allow_new_bits: bool,
    /// A check that takes longer is ended.
    pub check_limit: Duration,
}

impl GatePlan {
    /// A gate over a comparison: no rivals, no new bits, ten minutes for a check.
    pub fn new(ab: Plan) -> GatePlan {
        GatePlan { ab, rivals: Vec::new(), allow_new_bits: false, check_limit: Duration::from_secs(600) }
    }
}

/// What came of the gate.
#[derive(Clone, Debug)]
pub struct GateOutcome {
    /// Correctness of the candidate, as recorded.
    pub check: Verdict,
    /// The comparison with the base; `None` when the candidate was not fit for it.
    pub base: Option<Outcome>,
    /// The comparisons with rivals, by their names.
    pub rivals: Vec<(String, Outcome)>,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

impl GateOutcome {
    /// The exit code: of correctness and the base, the worst; then whether a rival could not be measured.
    pub fn code(&self) -> Code {
        let rival = |outcome: &Outcome| match outcome.code() {
            Code::Regressed | Code::Inconclusive => Code::Pass,
            other => other,
        };
        let own = std::iter::once(ab::code_of(self.check.verdict)).chain(self.base.iter().map(Outcome::code));
        let rivals = self.rivals.iter().map(|(_, outcome)| rival(outcome));
        Code::worst(own.chain(rivals).chain(self.interrupted.then_some(Code::Interrupted)))
    }
}

/// Checks, compares, and records all of it in one session.
///
/// # Errors
/// See [`AbError`]; what the subjects do wrong is in the outcome instead.
pub fn run(
    plan: &GatePlan,
    finder: &Finder,
    log: &mut Log,
    context: &mut Context<'_>,
) -> Result<GateOutcome, AbError> {
    let competitors = plan.rivals.iter().map(crate::ab::competitor).collect();
    let session = provenance::session("gate", finder, Some(plan.ab.design()), competitors);
    log.append(session.map_err(|source| AbError::Io { path: finder.self_exe.clone(), source })?)?;
    let mut check = check(plan, context)?;
    if context.stop.now() {
        // What ended the check was the user, so it says nothing of the candidate.
        check.verdict = Judgement::Inconclusive;
        check.reasons = vec!["interrupted while results were checked".to_owned()];
    }
    log.append(check.clone())?;
    context.events.event(&Event::Verdict(&check));
    let mut outcome = GateOutcome { check, base: None, rivals: Vec::new(), interrupted: false };
    if outcome.check.verdict == Judgement::Pass && !context.stop.requested() {
        outcome.base = Some(ab::compare(&plan.ab, log, context)?);
        for rival in &plan.rivals {
            if context.stop.requested() {
                break;
            }
            let against = Plan { a: plan.ab.b.clone(), b: rival.clone(), ..plan.ab.clone() };
            outcome.rivals.push((rival.manifest.name.clone(), ab::compare(&against, log, context)?));
        }
    }
    outcome.interrupted = context.stop.requested();
    Ok(outcome)
}

/// The verdict on correctness.
fn check(plan: &GatePlan, context: &mut Context<'_>) -> Result<Verdict, AbError> {
    let model = provenance::model(&plan.ab.model);
    let model = model.map_err(|source| AbError::Io { path: plan.ab.model.clone(), source })?;
    let mut verdict = blank_verdict(plan, format!("{}/check", model.name));
    let candidate = match self_check(&plan.ab.b, plan, context) {
        Ok(report) => report,
        Err(problem) => {
            verdict.verdict = Judgement::Unfit;
            verdict.reasons.push(format!("candidate: {problem}"));
            return Ok(verdict);
        }
    };
    verdict.reasons = judge_check(&candidate);
    if !plan.ab.b.is_identical_to(&plan.ab.a) {
        match self_check(&plan.ab.a, plan, context) {
            Ok(base) => {
                let wrong = judge_check(&base);
                let (fails, remarks) = compare_bits(&base, &candidate, plan.allow_new_bits);
                verdict.reasons.extend(fails);
                verdict.extra.insert("base_problems".into(), wrong.into());
                verdict.extra.insert("remarks".into(), remarks.into());
                verdict.extra.insert("base".into(), base.to_value());
            }
            Err(problem) => {
                let remark =
                    format!("bits were not compared with the base, which cannot check itself: {problem}");
                verdict.extra.insert("remarks".into(), vec![remark].into());
            }
        }
    }
    verdict.extra.insert("candidate_check".into(), candidate.to_value());
    verdict.verdict = if verdict.reasons.is_empty() { Judgement::Pass } else { Judgement::Incorrect };
    Ok(verdict)
}

/// Runs a subject's check and reads its report.
fn self_check(subject: &Subject, plan: &GatePlan, context: &mut Context<'_>) -> Result<CheckReport, String> {
    let spec = &subject.spec;
    let launch = subject.check(Some(&plan.ab.model), plan.check_limit);
    let launch = launch.ok_or_else(|| format!("`{spec}` has no check"))?;
    let done = launch.run(context.stop).map_err(|e: ChildError| e.to_string())?;
    let told = || format!("`{spec}` check: {}{}", describe(&done.exit), told(&done.stderr, 3));
    // 4 says that something is wrong, and then the report says what.
    if !matches!(done.exit.code, Some(0 | 4)) {
        return Err(told());
    }
    let report =
        CheckReport::parse(&done.stdout.bytes).map_err(|problem| format!("{}; {problem}", told()))?;
    if done.exit.code == Some(4) && judge_check(&report).is_empty() {
        return Err(format!("`{spec}` check: exit code 4, but its report shows nothing wrong"));
    }
    Ok(report)
}

fn blank_verdict(plan: &GatePlan, cell_id: String) -> Verdict {
    let arm = |arm: ArmId| {
        let subject = plan.ab.subject(arm);
        Arm {
            subject: subject.spec.clone(),
            engine: subject.manifest.name.clone(),
            version: subject.version.clone(),
            flags: subject
                .overlay_flag()
                .map(|(k, v)| (k, Value::from(v)))
                .into_iter()
                .collect::<Map<_, _>>(),
        }
    };
    Verdict {
        cell_id,
        a: arm(ArmId::A),
        b: arm(ArmId::B),
        candidate: ArmId::B,
        n_pairs: 0,
        n_invalid: 0,
        ratio: None,
        ci_lo: None,
        ci_hi: None,
        conf: None,
        pairs_agree: 0,
        median_a_tps: None,
        median_b_tps: None,
        mde_ratio: None,
        floor_ratio: 0.0,
        floor_provisional: true,
        margin: plan.ab.margin,
        look: 0,
        verdict: Judgement::Unfit,
        label: None,
        reasons: Vec::new(),
        identical_binaries: plan.ab.a.is_identical_to(&plan.ab.b),
        run_ids: Vec::new(),
        extra: Map::new(),
    }
}
