//! Commands that judge: exit codes follow from what was planted, never from a timing.

use super::{Place, tiny};

/// Never redo a run because other tests keep the machine busy.
const BUSY: [&str; 2] = ["--set", "harness.max_foreign_cpu=100%"];

#[test]
fn a_wrong_kernel_fails_the_check() {
    let place = Place::new();
    let good = place.memra(&["check", "--kernel", "matmul/Q4_1/*", "--model", tiny(), "--json"]).json();
    assert_eq!(good["model"]["identical"], true);
    assert!(good["kernels"].as_array().unwrap().iter().all(|row| row["status"] == "pass"));
    let wrong = place.memra(&["check", "--kernel", "matmul/Q4_1/*", "--set", "fault.wrong=matmul", "--json"]);
    assert_eq!(wrong.code, Some(4), "{}", wrong.stderr);
    let report: serde_json::Value = serde_json::from_str(&wrong.stdout).unwrap();
    assert!(report["kernels"].as_array().unwrap().iter().any(|row| row["status"] == "fail"));
    place.memra(&["check", "--kernel", "no-such-kernel"]).expect(2, "no-such-kernel");
}

#[test]
fn the_gate_refuses_a_wrong_candidate_without_timing_it() {
    let place = Place::new();
    let args = ["gate", "--candidate", "config:wrong=matmul", "--model", tiny(), "--json", "--data", "d"];
    let ran = place.memra(&args);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["verdicts"].as_array().unwrap().len(), 1);
    assert_eq!(report["verdicts"][0]["verdict"], "incorrect");
    let log = place.memra(&["log", "check", "--json", "--data", "d"]).json();
    assert_eq!((log["kinds"]["verdict"].as_u64(), log["kinds"]["run"].as_u64()), (Some(1), None));
}

#[test]
fn a_comparison_logs_every_run_and_gives_a_verdict() {
    let place = Place::new();
    let compare = ["ab", "--a", "self", "--b", "config:slow=3%", "--model", tiny(), "--tests", "tg4"];
    let ran = place.memra(&[&compare[..], &["--quick", "-r", "1", "--json", "--data", "d"], &BUSY].concat());
    // Pass, regressed, inconclusive or too noisy: which of them is a matter of timing.
    assert!(matches!(ran.code, Some(0 | 1 | 3 | 5)), "{:?}: {}", ran.code, ran.stderr);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["verdicts"][0]["b"]["subject"], "config:slow=3%");
    // A warm pair and four pairs for the floor, then six pairs unless that floor is too high.
    let log = place.memra(&["log", "check", "--json", "--data", "d"]).json();
    let pairs = report["verdicts"][0]["n_pairs"].as_u64().unwrap();
    assert!(matches!(pairs, 0 | 6), "{pairs} pairs");
    assert_eq!(log["kinds"]["run"].as_u64(), Some(10 + 2 * pairs));
    place.memra(&["ab", "--a", "self", "--b", "no-such-engine", "--model", tiny()]).expect(2, "llama.cpp");
    place
        .memra(&[
            "ab",
            "--a",
            "self",
            "--b",
            "llama.cpp",
            "--model",
            tiny(),
            "--set",
            "competitors.paths.llama.cpp=/no",
        ])
        .expect(6, "/no");
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is_logged() {
    let place = Place::new();
    std::fs::write(place.path().join("bad.gguf"), "not a model").unwrap();
    let ab = |b: &'static str| vec!["ab", tiny(), "--a", "self", "--b", b];
    for (args, code, why) in [
        (ab("config:nosuch=1"), 2, "`nosuch` is not a configuration key"),
        (ab("config:engine.threads=many"), 2, "engine.threads"),
        (ab("config:slow=500%"), 2, "fault.slow"),
        (ab("config:wrong=nosuch"), 2, "matmul"),
        (ab("/bin/false"), 2, "not a memra binary"),
        (ab("/bin/true"), 2, "not a memra binary"),
        (ab(tiny()), 2, "not a memra binary"),
        ([ab("self"), vec!["--tests", "pp4294967295"]].concat(), 2, "4294967295"),
        (vec!["ab", "bad.gguf", "--a", "self", "--b", "self"], 7, "not a GGUF file"),
        (vec!["gate", "bad.gguf"], 7, "not a GGUF file"),
        (vec!["gate", tiny(), "--rival", "self"], 2, "not a rival's name; there are: llama.cpp"),
        (vec!["check", "--set", "fault.wrong=nosuch"], 2, "matmul"),
    ] {
        place.memra(&[&args[..], &["--data", "d"]].concat()).expect(code, why);
    }
    assert!(!place.path().join("d").exists());
}

#[test]
fn a_sweep_rejects_a_planted_wrong_kernel_and_its_table_rules() {
    let place = Place::new();
    let kernel = ["--kernel", "matmul/Q4_1/q8/decode n=256*"];
    let sweep = ["sweep", tiny(), "--budget", "2s", "--plant-wrong", "--json", "--data", "d"];
    let report = place.memra(&[&sweep[..], &kernel, &BUSY].concat()).json();
    let key = &report["keys"][0];
    assert_eq!(report["keys"].as_array().unwrap().len(), 1);
    assert_eq!(key["planted"].as_array().unwrap().len(), 1);
    let rejected = key["rejected"].as_array().unwrap();
    assert!(rejected.iter().any(|r| r["config"] == key["planted"][0]), "{rejected:?}");
    let plan = place.memra(&["plan", tiny(), "--dispatch", "--data", "d"]).stdout;
    let ruled: Vec<&str> = plan.lines().filter(|line| line.contains("d/dispatch/")).collect();
    assert!(
        ruled.iter().all(|line| line.starts_with("matmul/Q4_1/q8/decode n=256")) && !ruled.is_empty(),
        "{plan}"
    );
    let defaults = place
        .memra(&["plan", tiny(), "--dispatch", "--data", "d", "--set", "engine.dispatch=default"])
        .stdout;
    assert!(!defaults.contains("d/dispatch/"));
}
