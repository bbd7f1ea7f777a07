//! Arguments, configuration, and output that nobody reads.

use super::{Place, Ran, tiny};
use std::process::Stdio;

#[test]
fn usage_errors_exit_2_and_help_is_no_error() {
    let place = Place::new();
    for args in
        [&["no-such-command"][..], &["run", "m"], &["bench", "m", "-r", "0"], &["run", "m", "-n", "x"]]
    {
        let ran = place.memra(args);
        ran.expect(2, "--help");
    }
    for args in [&["--help"][..], &["run", "--help"], &["--version"]] {
        let ran = place.memra(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(ran.stdout.contains("memra"));
    }
}

#[test]
fn help_is_plain_text_when_it_is_not_for_a_terminal() {
    assert!(!Place::new().memra(&["--help"]).stdout.contains('\u{1b}'));
}

#[test]
fn every_value_says_where_it_came_from() {
    let place = Place::new();
    std::fs::write(place.path().join("c.toml"), "[engine]\nthreads = 1\n").unwrap();
    let ran =
        place.memra(&["config", "--json", "--config", "c.toml", "--set", "engine.class=f32", "--data", "d"]);
    let entries = ran.json();
    let find = |key: &str| entries.as_array().unwrap().iter().find(|e| e["key"] == key).unwrap().clone();
    assert_eq!(
        (find("engine.threads")["value"].as_i64(), find("engine.threads")["source"].as_str()),
        (Some(1), Some("c.toml"))
    );
    assert_eq!(find("engine.class")["source"], "--set");
    assert_eq!(
        (find("paths.data")["value"].as_str(), find("paths.data")["source"].as_str()),
        (Some("d"), Some("--data"))
    );
    assert_eq!(find("engine.kv")["source"], "default");
}

#[test]
fn the_environment_may_name_the_configuration() {
    let place = Place::new();
    std::fs::write(place.path().join("c.toml"), "[engine]\nthreads = 7\n").unwrap();
    let ran = Ran::from(place.command(&["config"]).env("MEMRA_CONFIG", "c.toml").output().unwrap());
    assert!(
        ran.stdout.lines().any(|line| line.starts_with("engine.threads") && line.contains('7')),
        "{}",
        ran.stdout
    );
}

#[test]
fn configuration_mistakes_are_refused_by_name() {
    let place = Place::new();
    std::fs::write(place.path().join("unknown.toml"), "[engine]\nthread = 1\n").unwrap();
    std::fs::write(place.path().join("type.toml"), "[engine]\nthreads = \"many\"\n").unwrap();
    std::fs::write(place.path().join("broken.toml"), "[engine\n").unwrap();
    for (args, why) in [
        (["--config", "unknown.toml"], "engine.threads"),
        (["--config", "type.toml"], "engine.threads"),
        (["--config", "broken.toml"], "broken.toml"),
        (["--config", "absent.toml"], "absent.toml"),
        (["--set", "colour=red"], "colour"),
        (["--set", "fault.slow=3"], "percent"),
    ] {
        place.memra(&[&["config"][..], &args].concat()).expect(2, why);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let mut child = place
        .command(&["plan", tiny(), "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn damaged_logs_exit_7_and_absent_ones_2() {
    let place = Place::new();
    place.memra(&["log", "check", "--json", "--data", "d"]).expect(2, "no such folder");
    std::fs::create_dir_all(place.path().join("d/2026-01")).unwrap();
    std::fs::write(place.path().join("d/2026-01/x.jsonl"), "{\"schema\":\"memra/1\"}\n").unwrap();
    place.memra(&["log", "check", "--data", "d"]).expect(7, "x.jsonl");
}
