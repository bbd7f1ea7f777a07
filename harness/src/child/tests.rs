use super::*;
use rustix::process::test_kill_process;
use std::time::SystemTime;

fn shell(script: &str) -> Launch {
    let mut launch = Launch::new("/bin/sh");
    launch.args = vec!["-c".into(), script.into()];
    launch.env.insert("PATH".into(), "/usr/bin:/bin".into());
    launch.time_limit = Duration::from_secs(20);
    launch
}

/// Waits until a process is gone (or a zombie nobody reaps), at most ten seconds.
fn gone(pid: &str) -> bool {
    let pid: i32 = pid.trim().parse().unwrap();
    for _ in 0..200 {
        let dead = test_kill_process(Pid::from_raw(pid).unwrap()).is_err();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if dead || stat.contains(") Z ") {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

#[test]
fn output_exit_code_and_environment_come_through() {
    let mut launch = shell("echo out; echo err >&2; echo \"$SEEN-$HOME\"; exit 3");
    launch.env.insert("SEEN".into(), "yes".into());
    let done = launch.run(&Stop::new()).unwrap();
    assert_eq!(done.exit, Exit { code: Some(3), signal: None, timeout: false });
    assert_eq!((done.stdout.text().as_str(), done.stderr.text().as_str()), ("out\nyes-\n", "err\n"));
    assert!(!done.escaped && !done.stopped);
}

#[test]
fn bytes_that_are_not_text_are_kept_and_a_flood_is_capped() {
    let mut launch = shell("printf '\\377\\376'; head -c 300000 /dev/zero");
    launch.output_cap = 1000;
    let done = launch.run(&Stop::new()).unwrap();
    assert_eq!(done.stdout.bytes[..3], [0xff, 0xfe, 0]);
    assert_eq!((done.stdout.bytes.len(), done.stdout.dropped), (1000, 299_002));
}

#[test]
fn a_death_by_signal_is_told_from_an_exit() {
    let done = shell("kill -SEGV $$").run(&Stop::new()).unwrap();
    assert_eq!(done.exit, Exit { code: None, signal: Some(11), timeout: false });
}

#[test]
fn a_hang_is_ended_with_everything_it_started() {
    let mut launch = shell("trap '' TERM INT; sleep 1000 & echo $!; wait");
    launch.time_limit = Duration::from_millis(400);
    let started = SystemTime::now();
    let done = launch.run(&Stop::new()).unwrap();
    assert!(started.elapsed().unwrap() < Duration::from_secs(120), "it was waited for");
    assert_eq!(done.exit, Exit { code: None, signal: Some(9), timeout: true });
    assert!(gone(&done.stdout.text()), "the grandchild lives");
}

#[test]
fn what_a_finished_child_left_in_its_group_is_ended() {
    let done = shell("sleep 1000 & echo $!").run(&Stop::new()).unwrap();
    assert_eq!(done.exit.code, Some(0));
    assert!(!done.escaped);
    assert!(gone(&done.stdout.text()), "the grandchild lives");
}

#[test]
fn a_descendant_that_left_the_group_is_reported_and_not_waited_for() {
    let done = shell("setsid sleep 30 & sleep 0.2; echo done").run(&Stop::new()).unwrap();
    assert_eq!(done.stdout.text(), "done\n");
    assert!(done.escaped);
    assert!(done.duration < Duration::from_secs(25), "it was waited for");
}

#[test]
fn a_decoy_of_the_same_name_is_left_alone() {
    let mut decoy = Command::new("/bin/sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let mut launch = Launch::new("/bin/sleep");
    launch.args = vec!["1000".into()];
    launch.time_limit = Duration::from_millis(200);
    assert!(launch.run(&Stop::new()).unwrap().exit.timeout);
    assert!(decoy.try_wait().unwrap().is_none(), "the decoy was ended");
    decoy.kill().unwrap();
    decoy.wait().unwrap();
}

#[test]
fn two_stop_requests_end_the_child_and_one_may_be_passed_on() {
    let stop = Stop::new();
    stop.request();
    let mut launch = shell("trap 'echo finishing; exit 130' INT; while :; do sleep 0.05; done");
    launch.pass_interrupt = true;
    // The trap may not be set yet when the signal comes; then the default action ends the shell with it.
    let done = launch.run(&stop).unwrap();
    assert!(done.exit.code == Some(130) || done.exit.signal == Some(2), "{:?}", done.exit);
    stop.request();
    let done = shell("sleep 1000").run(&stop).unwrap();
    assert!(done.stopped && !done.exit.timeout);
    assert_eq!(done.exit.signal, Some(9));
}

#[test]
fn a_harness_in_the_background_can_still_interrupt_its_child() {
    let name = "child::tests::two_stop_requests_end_the_child_and_one_may_be_passed_on";
    let mut deaf = Command::new("/bin/sh");
    deaf.args(["-c", "trap '' INT; exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(name);
    let done = deaf.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"), "the test has another name now");
}

#[test]
fn a_missing_program_is_an_error_that_names_it() {
    let error = Launch::new("/nowhere/engine").run(&Stop::new()).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere/engine: cannot be started"), "{error}");
}

/// Direct children of a process; `None` where the kernel does not tell.
fn children(pid: u32) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let text = std::fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        all.extend(text.split_whitespace().map(str::to_owned));
    }
    Some(all)
}

#[test]
fn a_harness_that_is_killed_takes_its_child_with_it() {
    let name = "child::tests::launches_a_sleeper";
    let mut harness = Command::new(std::env::current_exe().unwrap());
    harness.args(["--ignored", "--exact", name]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut harness = harness.spawn().unwrap();
    let started = Instant::now();
    let sleeper = loop {
        let Some(pids) = children(harness.id()) else {
            eprintln!("not run: this kernel has no /proc/PID/task/TID/children");
            harness.kill().unwrap();
            harness.wait().unwrap();
            return;
        };
        if let [pid] = pids.as_slice()
            && std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n")
        {
            break pid.clone();
        }
        assert!(started.elapsed() < Duration::from_secs(20), "no sleeper");
        std::thread::sleep(Duration::from_millis(10));
    };
    harness.kill().unwrap();
    harness.wait().unwrap();
    assert!(gone(&sleeper), "the sleeper outlived its harness");
}

#[test]
#[ignore = "the process that a_harness_that_is_killed_takes_its_child_with_it kills; alone it only sleeps"]
fn launches_a_sleeper() {
    let mut launch = Launch::new("/bin/sleep");
    launch.args = vec!["30".into()];
    launch.run(&Stop::new()).unwrap();
}
