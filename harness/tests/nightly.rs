//! The night with a fake memra.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;

use common::Bed;
use memra_harness::exit::Code;
use memra_harness::nightly::{
    self, ModelSource, NightlyError, NightlyEvents, NightlyPlan, Stage, StageResult, Summary,
};
use std::ffi::OsString;

#[derive(Default)]
struct Tape(Vec<String>);

impl NightlyEvents for Tape {
    fn started(&mut self, stage: &Stage, _args: &[String]) {
        self.0.push(format!("start {}", stage.name));
    }
    fn finished(&mut self, result: &StageResult) {
        self.0.push(format!("{} {}", result.name, result.outcome));
    }
}

fn plan(bed: &Bed, modes: &[&str]) -> NightlyPlan {
    NightlyPlan {
        exe: bed.path("memra"),
        args: modes
            .iter()
            .flat_map(|mode| ["--set".into(), OsString::from(format!("mode={mode}"))])
            .collect(),
        env: bed.finder.env.clone(),
        data_dir: bed.path("data"),
        model: ModelSource::Pull("pypi:x".into()),
        rivals: vec!["llama.cpp".into()],
        left_out: vec!["vllm: not found".into()],
        quick: true,
    }
}

fn run(bed: &Bed, plan: &NightlyPlan) -> Summary {
    nightly::run(plan, &mut Tape::default(), &bed.stop).unwrap()
}

fn names(summary: &Summary) -> Vec<&str> {
    let ran = summary.stages.iter().filter(|stage| stage.skipped.is_none());
    ran.map(|stage| stage.name.as_str()).collect()
}

#[test]
fn a_night_runs_all_stages_and_keeps_what_they_print() {
    let bed = Bed::new();
    let summary = run(&bed, &plan(&bed, &[]));
    assert_eq!(summary.code, Code::Pass);
    assert_eq!(
        names(&summary),
        ["doctor", "pull", "check", "probe", "sweep", "ab-untuned", "ab-llama.cpp", "board"]
    );
    assert_eq!(summary.model, Some(bed.path("model.gguf")));
    let check = summary.stages.iter().find(|stage| stage.name == "check").unwrap();
    assert_eq!(check.args, ["check", "--json", "--model", bed.path("model.gguf").to_str().unwrap()]);
    let out = std::fs::read_to_string(format!("{}.out", check.log.as_ref().unwrap().display())).unwrap();
    assert!(out.contains("kernels"), "{out}");
    let saved = std::fs::read_to_string(summary.log_dir.join("summary.json")).unwrap();
    assert!(saved.contains("\"code\": \"pass\""), "{saved}");
    let text = summary.text();
    assert!(text.contains("left out: vllm") && text.ends_with("verdict: pass (exit 0)\n"), "{text}");
}

#[test]
fn without_a_network_a_model_is_made_and_that_is_no_failure() {
    let bed = Bed::new();
    let summary = run(&bed, &plan(&bed, &["offline"]));
    assert_eq!((summary.code, summary.model.clone()), (Code::Pass, Some(bed.path("tiny.gguf"))));
    assert!(names(&summary).contains(&"synth"));
    assert!(summary.text().contains("no network (does not count)"), "{}", summary.text());
}

#[test]
fn a_stage_that_fails_does_not_stop_the_others() {
    let bed = Bed::new();
    let summary = run(&bed, &plan(&bed, &["sweepfails"]));
    assert_eq!(summary.code, Code::Incorrect);
    assert_eq!(names(&summary).last(), Some(&"board"));
    let panics = run(&bed, &plan(&bed, &["panics"]));
    assert_eq!(panics.code, Code::Unfit, "an undocumented exit code is not a pass");
}

#[test]
fn output_that_cannot_be_kept_does_not_end_the_night() {
    let bed = Bed::new();
    let summary = run(&bed, &plan(&bed, &["nolog"]));
    assert_eq!((names(&summary).last(), summary.code), (Some(&"board"), Code::Unfit));
    let text = summary.text();
    assert!(text.contains("not kept: ") && text.contains("01-doctor.out: No such file"), "{text}");
    assert!(
        text.contains("summary.json: No such file") && text.ends_with("verdict: unfit (exit 5)\n"),
        "{text}"
    );
}

#[test]
fn slower_than_untuned_counts_and_slower_than_a_rival_does_not() {
    let bed = Bed::new();
    let summary = run(&bed, &plan(&bed, &["behind"]));
    assert_eq!(summary.code, Code::Regressed);
    let counts = |name: &str| summary.stages.iter().find(|s| s.name == name).unwrap().counts;
    assert!(counts("ab-untuned") && !counts("ab-llama.cpp"));
}

#[test]
fn a_given_model_is_not_fetched_and_a_missing_one_skips_what_needs_it() {
    let bed = Bed::new();
    let given = NightlyPlan { model: ModelSource::File(bed.path("model.gguf")), ..plan(&bed, &[]) };
    assert!(!names(&run(&bed, &given)).contains(&"pull"));
    std::fs::remove_file(bed.path("model.gguf")).unwrap();
    std::fs::create_dir(bed.path("tiny.gguf")).unwrap();
    let summary = run(&bed, &plan(&bed, &[]));
    assert_eq!(names(&summary), ["doctor", "pull", "synth", "probe", "board"]);
    assert_ne!(summary.code, Code::Pass);
}

#[test]
fn one_night_at_a_time_and_a_dead_one_does_not_block() {
    let bed = Bed::new();
    let plan = plan(&bed, &[]);
    let stuck = NightlyPlan { args: vec!["--set".into(), "mode=sweephangs".into()], ..plan.clone() };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| run(&bed, &stuck));
        let started = std::time::Instant::now();
        while !std::fs::read_to_string(bed.path("data/nightly.lock")).is_ok_and(|pid| !pid.is_empty()) {
            assert!(started.elapsed().as_secs() < 20, "the first night does not start");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let second = nightly::run(&plan, &mut Tape::default(), &bed.stop);
        let error = second.unwrap_err();
        assert!(matches!(error, NightlyError::Running { .. }), "{error}");
        assert!(error.to_string().contains(&std::process::id().to_string()));
        bed.stop.request();
        bed.stop.request();
        let interrupted = first.join().unwrap();
        assert!(interrupted.interrupted && interrupted.code == Code::Interrupted);
        assert_eq!(interrupted.stages.last().unwrap().skipped.as_deref(), Some("interrupted"));
    });
    let fresh = memra_harness::Stop::new();
    assert_eq!(nightly::run(&plan, &mut Tape::default(), &fresh).unwrap().code, Code::Pass);
}
