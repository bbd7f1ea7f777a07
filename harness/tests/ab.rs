//! Comparisons of a fake engine with itself, with slowed and broken forms of itself, and with a fake rival.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{Bed, Tape, with_context};
use memra_harness::ab::{self, Outcome, Plan};
use memra_harness::exit::Code;
use memra_harness::record::{ArmId, Body, Judgement, Label, Phase, Regime, RunStatus, Verdict};
use memra_harness::stats::{LOOKS, QUICK};
use std::time::{Duration, Instant};

fn compare(bed: &Bed, plan: &Plan, tape: &mut Tape<'_>, regimes: Vec<Regime>) -> Outcome {
    let mut log = bed.log();
    with_context(&bed.stop, regimes, tape, |context| ab::run(plan, &bed.finder, &mut log, context)).unwrap()
}

fn outcome(bed: &Bed, plan: &Plan) -> Outcome {
    compare(bed, plan, &mut Tape::default(), Vec::new())
}

/// A short comparison of one decode cell.
fn short(bed: &Bed, a: &str, b: &str) -> Plan {
    let mut plan = bed.plan(a, b).quick();
    plan.tests = vec!["tg64".parse().unwrap()];
    plan
}

fn only(outcome: &Outcome) -> &Verdict {
    assert_eq!(outcome.verdicts.len(), 1);
    &outcome.verdicts[0]
}

#[test]
fn an_engine_against_itself_is_equivalent_and_everything_is_recorded() {
    let bed = Bed::new();
    let plan = bed.plan("self", "self");
    let mut tape = Tape::default();
    let outcome = compare(&bed, &plan, &mut tape, Vec::new());
    assert_eq!(outcome.code(), Code::Pass);
    assert_eq!(outcome.verdicts.len(), 2);
    for verdict in &outcome.verdicts {
        assert_eq!((verdict.verdict, verdict.look, verdict.n_pairs), (Judgement::Pass, 1, 6), "{verdict:?}");
        assert!(verdict.identical_binaries && verdict.floor_provisional);
        assert!(verdict.reasons.iter().any(|r| r.contains("provisional floor")), "{:?}", verdict.reasons);
        assert_eq!(verdict.run_ids.len(), 12);
        let expected = if verdict.cell_id == "model/pp512" { 1e8 } else { 1e7 };
        assert!((verdict.median_a_tps.unwrap() / expected - 1.0).abs() < 0.01);
    }
    let records = bed.records();
    let Body::Session(session) = &records[0].body else { panic!("the session comes first") };
    assert_eq!((session.command.as_str(), session.design.as_ref().unwrap().order.as_str()), ("ab", "abba"));
    assert!(records.iter().all(|r| r.session_id == records[0].session_id));
    let runs = bed.runs();
    let of = |phase| runs.iter().filter(|run| run.phase == phase).count();
    assert_eq!((of(Phase::Warm), of(Phase::Floor), of(Phase::Pair)), (4, 24, 24));
    assert!(runs.iter().all(|run| run.samples_ns.len() == 5 && run.model.name == "model"));
    assert_eq!(runs[0].flags["backends"], "CPU");
    let ids: Vec<&str> = records.iter().map(|r| r.id.as_str()).collect();
    assert!(outcome.verdicts.iter().flat_map(|v| &v.run_ids).all(|id| ids.contains(&id.as_str())));
    assert_eq!(tape.lines[0], r#"planned ["model/pp512", "model/tg128"] (52, 108)"#);
    let place = |what: &str| tape.lines.iter().position(|line| line.starts_with(what)).unwrap();
    assert!(place("estimate") < place("floor") && place("floor") < place("launching model/pp512 self Pair"));
}

#[test]
fn pairs_run_in_abba_blocks_and_cells_take_turns() {
    let bed = Bed::new();
    let plan = bed.plan("self", "config:slow=0.5%");
    outcome(&bed, &plan);
    let runs = bed.runs();
    let pairs: Vec<_> = runs.iter().filter(|run| run.phase == Phase::Pair).collect();
    let mut starts = Vec::new();
    for block in pairs.chunks(4) {
        let arms: Vec<ArmId> = block.iter().map(|run| run.arm.unwrap()).collect();
        assert!(arms[0] == arms[3] && arms[1] == arms[2] && arms[0] != arms[1], "{arms:?}");
        assert!(block.iter().all(|run| run.cell_id == block[0].cell_id));
        starts.push(arms[0]);
    }
    assert!(starts.contains(&ArmId::A) && starts.contains(&ArmId::B), "{starts:?}");
    assert_ne!(pairs[0].cell_id, pairs[4].cell_id);
}

#[test]
fn a_planted_slowdown_regresses_and_the_overlay_is_recorded() {
    let bed = Bed::new();
    let outcome = outcome(&bed, &short(&bed, "self", "config:slow=3%"));
    let verdict = only(&outcome);
    assert_eq!(
        (outcome.code(), verdict.verdict, verdict.label),
        (Code::Regressed, Judgement::Regressed, None)
    );
    assert!((verdict.ratio.unwrap() - 1.0 / 1.03).abs() < 0.002, "{verdict:?}");
    assert_eq!((verdict.pairs_agree, verdict.identical_binaries), (6, false));
    assert_eq!(verdict.b.flags["overlay.fault.slow"], "3%");
    assert!(verdict.reasons.iter().any(|r| r.contains("quick design")));
    let runs = bed.runs();
    let slowed = runs.iter().filter(|run| run.flags.contains_key("overlay.fault.slow"));
    assert!(slowed.clone().count() > 0 && slowed.clone().all(|run| run.arm == Some(ArmId::B)));
}

#[test]
fn a_faster_candidate_improves_whichever_arm_is_called_base() {
    let bed = Bed::new();
    let outcome = outcome(&bed, &short(&bed, "config:slow=10%", "self"));
    let verdict = only(&outcome);
    assert_eq!((outcome.code(), verdict.label), (Code::Pass, Some(Label::Improved)));
    assert!(verdict.ratio.unwrap() > 1.09 && verdict.ci_lo.unwrap() > 1.0);
}

#[test]
fn against_a_rival_the_judged_arm_is_ours() {
    let bed = Bed::new();
    let plan = short(&bed, "config:slow=5%", "llama.cpp");
    assert_eq!(plan.candidate(), ArmId::A);
    let outcome = outcome(&bed, &plan);
    let verdict = only(&outcome);
    assert_eq!((outcome.code(), verdict.candidate), (Code::Regressed, ArmId::A));
    assert!(verdict.ratio.unwrap() > 1.04, "the ratio stays B over A");
    assert!(verdict.candidate_ratio().unwrap().2 < 1.0);
    let records = bed.records();
    let Body::Session(session) = &records[0].body else { panic!("no session") };
    assert_eq!(
        (session.competitors[0].name.as_str(), session.competitors[0].version.as_str()),
        ("llama.cpp", "fake 1.0")
    );
}

#[test]
fn a_machine_that_gets_slower_all_the_time_does_not_fool_it() {
    let bed = Bed::new();
    bed.steer("drift", "0.05");
    let outcome = outcome(&bed, &short(&bed, "self", "self"));
    let verdict = only(&outcome);
    assert_eq!(verdict.verdict, Judgement::Pass, "{verdict:?}");
    assert!((verdict.ratio.unwrap() - 1.0).abs() < 0.003);
}

#[test]
fn a_doubtful_cell_is_looked_at_again_and_a_clear_one_is_left_alone() {
    let bed = Bed::new();
    bed.steer("noise", "2");
    let mut plan = short(&bed, "self", "config:slow=1.5%");
    (plan.looks, plan.floor_pairs) = (LOOKS.to_vec(), 6);
    let outcome = outcome(&bed, &plan);
    let verdict = only(&outcome);
    assert!(verdict.look > 1, "{verdict:?}");
    assert_eq!(verdict.n_pairs, LOOKS[verdict.look as usize - 1].pairs);
    assert_eq!(verdict.run_ids.len() as u32, 2 * verdict.n_pairs);
    let launched = bed.runs().iter().filter(|run| run.phase == Phase::Pair).count() as u32;
    assert_eq!(launched, 2 * verdict.n_pairs, "no pair beyond the look that decided");
    assert!((verdict.conf.unwrap() - LOOKS[verdict.look as usize - 1].conf).abs() < 0.002);
}

#[test]
fn noise_widens_the_margin_and_says_so() {
    let bed = Bed::new();
    bed.steer("noise", "5");
    let mut plan = short(&bed, "self", "self");
    plan.floor_pairs = 6;
    let outcome = outcome(&bed, &plan);
    let verdict = only(&outcome);
    assert!(verdict.margin > 0.02, "{verdict:?}");
    assert!(verdict.reasons.iter().any(|r| r.contains("run-to-run variation")), "{:?}", verdict.reasons);
    assert!(verdict.mde_ratio.unwrap() > 0.02);
}

#[test]
fn short_repetitions_are_repeated_more_often_in_both_arms() {
    let bed = Bed::new();
    let mut plan = short(&bed, "self", "llama.cpp");
    plan.tests = vec!["tg4".parse().unwrap()];
    assert_eq!(outcome(&bed, &plan).code(), Code::Pass);
    let counts: Vec<usize> = bed.runs().iter().map(|run| run.samples_ns.len()).collect();
    // The fake engine says 400 ns for four tokens; 25 of them make 10 µs.
    assert_eq!(counts[..2], [3, 3]);
    assert!(counts[2..].iter().all(|n| (25..=26).contains(n) && *n == counts[2]), "{counts:?}");
}

#[test]
fn a_machine_too_noisy_to_judge_is_unfit_not_lenient() {
    let bed = Bed::new();
    bed.steer("noise", "60");
    let outcome = outcome(&bed, &short(&bed, "self", "config:slow=10%"));
    assert_eq!(outcome.code(), Code::Unfit);
    assert!(only(&outcome).reasons[0].contains("too noisy"), "{:?}", only(&outcome).reasons);
}

#[test]
fn noise_does_not_hide_a_difference_far_beyond_it() {
    let bed = Bed::new();
    bed.steer("noise", "12");
    let outcome = outcome(&bed, &short(&bed, "self", "config:slow=200%"));
    let reasons = &only(&outcome).reasons;
    assert_eq!(outcome.code(), Code::Regressed, "{reasons:?}");
    assert!(only(&outcome).margin > 0.1, "the fake engine was not noisy: {reasons:?}");
}

#[test]
fn engines_that_fail_or_lie_are_failed_records_with_a_reason_and_never_timed() {
    for (mode, status, expect) in [
        ("die", RunStatus::Failed, "exit code 1; it said: something is broken"),
        ("crash", RunStatus::Failed, "signal 11"),
        ("empty", RunStatus::Failed, "no result"),
        ("garbage", RunStatus::Failed, "not a JSON object"),
        ("bytes", RunStatus::Failed, "not a JSON object"),
        ("flood", RunStatus::Failed, "bytes too many"),
        ("tokens", RunStatus::Invalid, "asked for"),
        ("backend", RunStatus::Invalid, "`backends` is CUDA, must be CPU"),
        ("threads", RunStatus::Invalid, "`n_threads` is 99, must be 2"),
        ("flags", RunStatus::Invalid, "`flash_attn` is 1, must be 0"),
        ("escape", RunStatus::Invalid, "left its group"),
        ("slow", RunStatus::Invalid, "but its process ran for"),
    ] {
        let bed = Bed::new();
        bed.steer("rival/mode", mode);
        let outcome = outcome(&bed, &short(&bed, "self", "llama.cpp"));
        let verdict = only(&outcome);
        assert_eq!(
            (outcome.code(), verdict.verdict),
            (Code::CompetitorFailed, Judgement::CompetitorFailed),
            "{mode}"
        );
        assert!(verdict.reasons[0].contains(expect), "{mode}: {:?}", verdict.reasons);
        assert_eq!((verdict.ratio, verdict.n_pairs), (None, 0));
        let runs = bed.runs();
        assert_eq!(runs.len(), 2, "{mode}: it went on after the warm pair");
        assert_eq!(runs[1].status, status, "{mode}");
        assert!(runs[1].invalid_reason.as_ref().unwrap().contains(expect), "{mode}");
    }
}

#[test]
fn our_own_failure_is_unfit_and_a_failure_in_the_middle_is_not_averaged_away() {
    let bed = Bed::new();
    let outcome = outcome(&bed, &short(&bed, "self", "config:mode=later"));
    let verdict = only(&outcome);
    assert_eq!((outcome.code(), verdict.n_invalid), (Code::Unfit, 1));
    assert!(verdict.reasons[0].contains("config:mode=later: exit code 1"), "{:?}", verdict.reasons);
}

#[test]
fn a_hang_is_ended_at_its_limit() {
    let bed = Bed::new();
    bed.steer("rival/mode", "hang");
    let mut plan = short(&bed, "self", "llama.cpp");
    plan.run_limit = Duration::from_millis(700);
    let started = Instant::now();
    let outcome = outcome(&bed, &plan);
    assert!(started.elapsed() < Duration::from_secs(300), "it was waited for");
    assert_eq!(outcome.code(), Code::CompetitorFailed);
    let run = &bed.runs()[1];
    assert!(run.status == RunStatus::Timeout && run.exit.timeout, "{run:?}");
}

#[test]
fn a_rival_whose_prefill_fell_back_is_no_rival() {
    let bed = Bed::new();
    bed.steer("rival/mode", "fallback");
    let outcome = outcome(&bed, &bed.plan("self", "llama.cpp").quick());
    let [prefill, decode] = outcome.verdicts.as_slice() else { panic!("two cells") };
    assert_eq!(prefill.verdict, Judgement::CompetitorFailed);
    assert!(prefill.reasons[0].contains("below 1 x its decode"), "{:?}", prefill.reasons);
    assert_eq!(decode.verdict, Judgement::Pass);
    assert_eq!(outcome.code(), Code::CompetitorFailed);
}

#[test]
fn faster_than_memory_is_invalid() {
    let bed = Bed::new();
    let mut plan = short(&bed, "self", "llama.cpp");
    // 1 MB a token at 10 million tok/s is 10 TB/s.
    plan.wall_gbps = Some(20e3);
    let fine = outcome(&bed, &plan);
    assert_eq!(fine.code(), Code::Pass);
    let percent = bed.runs()[0].wall_percent.unwrap();
    assert!((percent - 50.0).abs() < 1.0, "{percent}");
    plan.wall_gbps = Some(5e3);
    let outcome = outcome(&bed, &plan);
    assert_eq!(outcome.code(), Code::Unfit);
    assert!(only(&outcome).reasons[0].contains("above the wall"), "{:?}", only(&outcome).reasons);
}

fn busy(share: f64) -> Regime {
    Regime { foreign_cpu_frac: Some(share), ..Regime::default() }
}

#[test]
fn a_disturbed_run_is_redone_and_kept_as_invalid() {
    let bed = Bed::new();
    let regimes = vec![busy(0.01), busy(0.5), busy(0.01)];
    let outcome = compare(&bed, &short(&bed, "self", "self"), &mut Tape::default(), regimes);
    let verdict = only(&outcome);
    assert_eq!((verdict.verdict, verdict.n_invalid), (Judgement::Pass, 1));
    let runs = bed.runs();
    assert_eq!(runs[1].status, RunStatus::Invalid);
    assert!(runs[1].invalid_reason.as_ref().unwrap().contains("others took 50 %"));
    assert_eq!((runs[2].status, runs[2].arm, runs[2].phase), (RunStatus::Ok, runs[1].arm, runs[1].phase));
    assert_eq!(runs.len(), 2 + 8 + 12 + 1);
}

#[test]
fn a_machine_that_stays_busy_is_unfit_after_three_tries() {
    let bed = Bed::new();
    let outcome = compare(&bed, &short(&bed, "self", "llama.cpp"), &mut Tape::default(), vec![busy(0.9)]);
    assert_eq!(outcome.code(), Code::Unfit);
    assert!(only(&outcome).reasons[0].contains("not quiet"), "{:?}", only(&outcome).reasons);
    assert_eq!(bed.runs().len(), 3);
}

#[test]
fn one_stop_request_finishes_the_run_and_judges_whole_blocks() {
    let bed = Bed::new();
    bed.steer("noise", "2");
    let mut plan = short(&bed, "self", "self");
    plan.looks = LOOKS.to_vec();
    plan.margin = 0.01;
    // Two warm runs, eight for the floor, then one pair and a half.
    let mut tape = Tape { stop_after: Some((13, &bed.stop)), ..Tape::default() };
    let outcome = compare(&bed, &plan, &mut tape, Vec::new());
    assert_eq!((outcome.code(), outcome.interrupted), (Code::Interrupted, true));
    let verdict = only(&outcome);
    assert_eq!((verdict.verdict, verdict.n_pairs), (Judgement::Inconclusive, 0));
    assert!(verdict.reasons.iter().any(|r| r == "interrupted after 0 whole pairs"), "{:?}", verdict.reasons);
    assert_eq!(bed.runs().len(), 13);
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let bed = Bed::new();
    for spoil in [
        (|plan| plan.tests.clear()) as fn(&mut Plan),
        |plan| plan.looks.clear(),
        |plan| plan.looks[0].pairs = 5,
        |plan| plan.floor_pairs = 0,
        |plan| plan.reps = 0,
        |plan| plan.margin = f64::NAN,
        |plan| plan.model = "nowhere.gguf".into(),
    ] {
        let mut plan = bed.plan("self", "self");
        spoil(&mut plan);
        let mut log = bed.log();
        let mut tape = Tape::default();
        let result = with_context(&bed.stop, vec![], &mut tape, |c| ab::run(&plan, &bed.finder, &mut log, c));
        assert_eq!(result.unwrap_err().code(), Code::Usage);
        assert_eq!(tape.ran, 0);
    }
    assert_eq!(bed.plan("self", "self").quick().looks, QUICK);
}
