//! The gate on a fake memra that is wrong, slow, neither or both.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::{Bed, Tape, with_context};
use memra_harness::exit::Code;
use memra_harness::gate::{self, GateOutcome, GatePlan};
use memra_harness::record::{Body, Judgement};

fn plan(bed: &Bed, candidate: &str) -> GatePlan {
    let mut ab = bed.plan("self", candidate).quick();
    ab.tests = vec!["tg64".parse().unwrap()];
    GatePlan::new(ab)
}

fn run(bed: &Bed, plan: &GatePlan) -> GateOutcome {
    let mut log = bed.log();
    let mut tape = Tape::default();
    with_context(&bed.stop, vec![], &mut tape, |context| gate::run(plan, &bed.finder, &mut log, context))
        .unwrap()
}

#[test]
fn an_unchanged_candidate_passes() {
    let bed = Bed::new();
    let outcome = run(&bed, &plan(&bed, "self"));
    assert_eq!(outcome.code(), Code::Pass);
    assert_eq!((outcome.check.cell_id.as_str(), outcome.check.label), ("model/check", None));
    let kinds: Vec<&str> = bed.records().iter().map(|record| record.body.kind()).collect();
    assert_eq!((kinds[0], kinds[1], kinds[kinds.len() - 1]), ("session", "verdict", "verdict"));
    assert_eq!(kinds.iter().filter(|kind| **kind == "session").count(), 1);
}

#[test]
fn a_wrong_kernel_is_incorrect_and_is_not_timed() {
    let bed = Bed::new();
    let outcome = run(&bed, &plan(&bed, "config:wrong=matmul"));
    assert_eq!(outcome.code(), Code::Incorrect);
    assert!(outcome.base.is_none() && bed.runs().is_empty());
    assert!(outcome.check.reasons[0].contains("matmul/Q4_1"), "{:?}", outcome.check.reasons);
    assert_eq!(outcome.check.b.flags["overlay.fault.wrong"], "matmul");
}

#[test]
fn a_slower_candidate_regresses_and_a_faster_one_passes() {
    let bed = Bed::new();
    assert_eq!(run(&bed, &plan(&bed, "config:slow=5%")).code(), Code::Regressed);
    let mut swapped = plan(&bed, "self");
    swapped.ab.a = bed.finder.resolve("config:slow=5%", &bed.stop).unwrap();
    assert_eq!(run(&bed, &swapped).code(), Code::Pass);
}

#[test]
fn every_other_fault_of_correctness_fails_too() {
    let bed = Bed::new();
    for (mode, expect) in [("grouping", "grouped"), ("far", "the bound is"), ("newbits", "bits differ")] {
        let outcome = run(&bed, &plan(&bed, &format!("config:mode={mode}")));
        assert_eq!(
            (outcome.code(), outcome.check.verdict),
            (Code::Incorrect, Judgement::Incorrect),
            "{mode}"
        );
        assert!(outcome.check.reasons[0].contains(expect), "{:?}", outcome.check.reasons);
    }
    let mut allowed = plan(&bed, "config:mode=newbits");
    allowed.allow_new_bits = true;
    let outcome = run(&bed, &allowed);
    assert_eq!(outcome.code(), Code::Pass);
    assert!(outcome.check.extra["remarks"][0].as_str().unwrap().contains("as allowed"));
}

#[test]
fn a_check_that_dies_is_unfit_not_a_pass() {
    let bed = Bed::new();
    let outcome = run(&bed, &plan(&bed, "config:mode=checkdies"));
    assert_eq!(outcome.code(), Code::Unfit);
    assert!(outcome.check.reasons[0].contains("signal 6"), "{:?}", outcome.check.reasons);
    // A base that cannot check itself leaves the bits uncompared, and says so.
    let mut odd = plan(&bed, "self");
    odd.ab.a = bed.finder.resolve("config:mode=checkdies", &bed.stop).unwrap();
    let outcome = run(&bed, &odd);
    assert_eq!(outcome.code(), Code::Pass);
    assert!(outcome.check.extra["remarks"][0].as_str().unwrap().contains("not compared"));
}

#[test]
fn an_interrupted_gate_is_no_pass() {
    let bed = Bed::new();
    let plan = plan(&bed, "self");
    bed.stop.request();
    let outcome = run(&bed, &plan);
    assert_eq!((outcome.check.verdict, outcome.base.is_none()), (Judgement::Pass, true));
    assert_eq!(outcome.code(), Code::Interrupted);
}

#[test]
fn a_check_that_the_user_ends_says_nothing_of_the_candidate() {
    let bed = Bed::new();
    let plan = plan(&bed, "config:mode=hangs");
    bed.stop.request();
    bed.stop.request();
    let outcome = run(&bed, &plan);
    assert_eq!((outcome.code(), outcome.check.verdict), (Code::Interrupted, Judgement::Inconclusive));
    assert_eq!(outcome.check.reasons, ["interrupted while results were checked"]);
}

#[test]
fn losing_to_a_rival_passes_and_a_rival_that_fails_is_told() {
    let bed = Bed::new();
    let mut with_rival = plan(&bed, "self");
    with_rival.rivals = vec![bed.finder.resolve("llama.cpp", &bed.stop).unwrap()];
    let outcome = run(&bed, &with_rival);
    assert_eq!((outcome.code(), outcome.rivals[0].0.as_str()), (Code::Pass, "llama.cpp"));
    let behind = GatePlan { ab: plan(&bed, "config:slow=5%").ab, ..with_rival.clone() };
    let behind = GatePlan { ab: memra_harness::ab::Plan { a: behind.ab.b.clone(), ..behind.ab }, ..behind };
    let outcome = run(&bed, &behind);
    assert_eq!(outcome.rivals[0].1.verdicts[0].verdict, Judgement::Regressed);
    assert_eq!(outcome.code(), Code::Pass, "behind a rival is an open gap");
    bed.steer("rival/mode", "die");
    let outcome = run(&bed, &with_rival);
    assert_eq!(outcome.code(), Code::CompetitorFailed);
    let sessions = bed.records().into_iter().filter(|r| matches!(r.body, Body::Session(_)));
    assert!(sessions.count() == 3);
}
