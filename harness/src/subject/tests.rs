use super::*;
use crate::record::TestShape;

const LLAMA: &str = r#"{"build_commit": "pypi-sdist", "build_number": 11434, "backends": "CPU", "model_filename": "/m/\ufffff.gguf", "n_threads": 2, "type_k": "f16", "type_v": "f16", "flash_attn": 1, "repack": true, "n_prompt": 64, "n_gen": 0, "n_depth": 0, "test_time": "2026-11-30T10:02:00Z", "avg_ns": 226312689, "stddev_ns": 646715, "avg_ts": 282.79, "stddev_ts": 0.8, "samples_ns": [ 225855392, 226769986 ],"samples_ts": [ 283.367, 282.224 ]}"#;

fn ask() -> Ask {
    let test = TestShape { n_prompt: 64, n_gen: 0, n_depth: 0 };
    Ask { model: PathBuf::from("/m/x.gguf"), test, reps: 2, threads: 2 }
}

fn judge(text: &str, ask: &Ask) -> Result<(), String> {
    judge_within(text, ask, Duration::from_millis(453))
}

/// Judges what a process that ran for `duration` printed.
fn judge_within(text: &str, ask: &Ask, duration: Duration) -> Result<(), String> {
    let registry = Registry::builtin().unwrap();
    let manifest = registry.get("llama.cpp").unwrap();
    let result = read_output(OutputKind::LlamaBench, text.as_bytes())?;
    sanity(
        &result,
        &SanityContext { manifest, ask, wall_gbps: Some(10.0), bytes_per_token: Some(90_000_000), duration },
    )
}

#[test]
fn a_real_line_of_llama_bench_is_read_and_believed() {
    judge(LLAMA, &ask()).unwrap();
    let result = read_output(OutputKind::LlamaBench, format!("{LLAMA}\n\n").as_bytes()).unwrap();
    assert_eq!(result.samples_ns, [225_855_392, 226_769_986]);
    assert!((result.rates()[0] - 283.367).abs() < 0.001);
    assert_eq!(result.flags["flash_attn"], 1);
    assert!(!result.flags.contains_key("samples_ns") && !result.flags.contains_key("model_filename"));
}

#[test]
fn every_lie_is_found() {
    for (from, to, expect) in [
        ("\"n_prompt\": 64", "\"n_prompt\": 63", "asked for"),
        ("\"n_depth\": 0", "\"n_depth\": 4096", "asked for"),
        ("[ 225855392, 226769986 ]", "[ 225855392 ]", "1 times and 2 rates"),
        ("[ 225855392, 226769986 ]", "[ 0, 226769986 ]", "no time"),
        ("283.367", "4008080.0", "do not follow"),
        ("\"backends\": \"CPU\"", "\"backends\": \"CUDA\"", "`backends` is CUDA, must be CPU"),
        ("\"n_threads\": 2", "\"n_threads\": 1", "`n_threads` is 1, must be 2"),
        ("\"flash_attn\": 1,", "", "does not state `flash_attn`"),
        ("\"samples_ts\"", "\"samples_tps\"", "samples_ts"),
        ("282.224", "nan", "not a JSON object"),
        ("282.224", "inf", "not a JSON object"),
        ("226769986 ]", "2.5 ]", "samples_ns"),
    ] {
        let bad = LLAMA.replacen(from, to, 1);
        assert_ne!(bad, LLAMA, "{from}");
        let problem = judge(&bad, &ask()).unwrap_err();
        assert!(problem.contains(expect), "{from} -> {to}: {problem}");
    }
    assert!(judge("", &ask()).unwrap_err().contains("no result"));
    assert!(judge(&format!("{LLAMA}\n{LLAMA}"), &ask()).unwrap_err().contains("more than the one"));
    assert!(judge("Illegal instruction", &ask()).unwrap_err().contains("line 1"));
}

#[test]
fn a_decode_rate_above_the_wall_is_not_believed() {
    let decode = LLAMA.replacen("\"n_prompt\": 64, \"n_gen\": 0", "\"n_prompt\": 0, \"n_gen\": 64", 1);
    let decode = decode.replacen("\"flash_attn\": 1", "\"flash_attn\": 0", 1);
    let mut ask = ask();
    ask.test = TestShape { n_prompt: 0, n_gen: 64, n_depth: 0 };
    let problem = judge(&decode, &ask).unwrap_err();
    assert!(problem.contains("above the wall"), "{problem}");
}

#[test]
fn times_longer_than_the_process_are_not_believed() {
    let problem = judge_within(LLAMA, &ask(), Duration::from_millis(452)).unwrap_err();
    assert!(problem.contains("add up to 0.453 s") && problem.contains("ran for 0.452 s"), "{problem}");
    let warm = LLAMA.replacen("\"samples_ns\"", "\"memra_warmup_ns\": [ 1000000 ], \"samples_ns\"", 1);
    assert!(judge(&warm, &ask()).unwrap_err().contains("add up"), "untimed repetitions take time too");
}

#[test]
fn a_prompt_faster_than_one_pass_over_the_weights_is_not_believed() {
    // 90 MB in 7 ms are 12.9 GB/s against a wall of 10.
    let fast = LLAMA.replacen("225855392", "7000000", 1).replacen("283.367", "9142.857", 1);
    let problem = judge(&fast, &ask()).unwrap_err();
    assert!(problem.contains("pp64 in 7.000 ms") && problem.contains("above the wall"), "{problem}");
    judge(&fast.replacen("7000000", "7500000", 1).replacen("9142.857", "8533.333", 1), &ask()).unwrap();
}

#[test]
fn overlays_parse_with_their_short_forms() {
    let set = |key: &str, value: &str| OverlayValue::Set { key: key.to_owned(), value: value.to_owned() };
    assert_eq!(parse_overlay("slow=3%").unwrap(), set("fault.slow", "3%"));
    assert_eq!(parse_overlay("slow=0.05").unwrap(), set("fault.slow", "0.05"));
    assert_eq!(parse_overlay("wrong=matmul").unwrap(), set("fault.wrong", "matmul"));
    assert_eq!(parse_overlay("dispatch=default").unwrap(), set("engine.dispatch", "default"));
    assert_eq!(parse_overlay("engine.threads=1").unwrap(), set("engine.threads", "1"));
    for bad in ["slow=", "=3", "nowhere.toml"] {
        assert!(parse_overlay(bad).is_err(), "{bad}");
    }
}

/// A finder whose `self` and `llama-bench` are the given scripts.
fn finder(dir: &Path, scripts: &[(&str, &str)]) -> Finder {
    for (name, text) in scripts {
        crate::testing::script(&dir.join(name), text);
    }
    Finder {
        self_exe: dir.join("memra"),
        memra_args: vec!["--data".into(), "D".into()],
        env: [("HOME".into(), "/h".into()), ("SECRET".into(), "x".into())].into(),
        path: vec![dir.join("bin")],
        explicit: BTreeMap::new(),
        install_dirs: vec![dir.join("installed")],
        manifests: Registry::builtin().unwrap(),
    }
}

#[test]
fn subjects_resolve_to_launches() {
    let dir = tempfile::tempdir().unwrap();
    let finder = finder(dir.path(), &[("memra", "echo; echo memra 9.9"), ("bin/llama-bench", "echo v1 >&2")]);
    let stop = Stop::new();
    let me = finder.resolve("self", &stop).unwrap();
    assert_eq!((me.version.as_str(), me.is_rival()), ("memra 9.9", false));
    assert_eq!(me.env, [("HOME".into(), "/h".into())].into());
    let slow = finder.resolve("config:slow=3%", &stop).unwrap();
    let argv = slow.bench(&ask(), Duration::from_secs(1)).argv();
    assert_eq!(argv[1..3], ["bench", "/m/x.gguf"]);
    assert_eq!(argv[argv.len() - 4..], ["--data", "D", "--set", "fault.slow=3%"]);
    assert_eq!(slow.overlay_flag(), Some(("overlay.fault.slow".into(), "3%".into())));
    let argv = slow.check(Some(Path::new("m.gguf")), Duration::from_secs(1)).unwrap().argv();
    assert_eq!(argv[1..], ["check", "--json", "--model", "m.gguf", "--data", "D", "--set", "fault.slow=3%"]);
    let other = finder.resolve(dir.path().join("memra").to_str().unwrap(), &stop).unwrap();
    assert!(me.is_identical_to(&other) && !me.is_identical_to(&slow));
    assert_eq!(other.spec, format!("memra@{}", &other.binary_hash[..8]));
    let config = dir.path().join("c.toml");
    std::fs::write(&config, "").unwrap();
    let overlaid = finder.resolve(&format!("config:{}", config.display()), &stop).unwrap();
    assert_eq!(
        (overlaid.spec.as_str(), overlaid.overlay_flag().unwrap().1.as_str()),
        ("config:c.toml", "c.toml")
    );
    let argv = portable_argv(&overlaid.bench(&ask(), Duration::from_secs(1)));
    assert!(argv[0] == "memra" && argv[2] == "x.gguf" && argv.last().unwrap() == "c.toml", "{argv:?}");
    assert!(me.is_unchanged());
    crate::testing::script(&dir.path().join("memra"), "echo another memra");
    assert!(!me.is_unchanged());
    let rival = finder.resolve("llama.cpp", &stop).unwrap();
    assert!(
        rival.base_args.is_empty()
            && rival.is_rival()
            && rival.version == "v1"
            && rival.check(None, Duration::ZERO).is_none()
    );
}

#[test]
fn engines_are_found_where_the_caller_says_and_errors_say_where_they_were_sought() {
    let dir = tempfile::tempdir().unwrap();
    let mut finder = finder(dir.path(), &[("memra", "echo memra"), ("other/llama-bench", "echo explicit")]);
    let stop = Stop::new();
    let error = finder.resolve("llama.cpp", &stop).unwrap_err();
    assert_eq!(error.code(), Code::CompetitorFailed);
    assert!(error.to_string().contains("install folder"), "{error}");
    finder.explicit.insert("llama.cpp".into(), dir.path().join("other"));
    assert_eq!(finder.resolve("llama.cpp", &stop).unwrap().version, "explicit");
    finder.explicit.insert("llama.cpp".into(), dir.path().join("nowhere"));
    assert!(finder.resolve("llama.cpp", &stop).is_err(), "a wrong configured path must not fall back");
    finder.explicit.clear();
    std::fs::rename(dir.path().join("other"), dir.path().join("installed")).unwrap();
    assert_eq!(finder.resolve("llama.cpp", &stop).unwrap().version, "explicit");
    let error = finder.resolve("llama-cpp", &stop).unwrap_err();
    assert_eq!(error.code(), Code::Usage);
    assert!(error.to_string().contains("one of: llama.cpp, memra"), "{error}");
}

#[test]
fn a_path_that_is_no_memra_was_given_wrongly() {
    let dir = tempfile::tempdir().unwrap();
    let finder = finder(dir.path(), &[("no", "exit 1"), ("other", "echo 'true (coreutils)'")]);
    std::fs::write(dir.path().join("text"), "no program").unwrap();
    for (name, expect) in [("no", "exit code 1"), ("other", "true (coreutils)"), ("text", "ermission")] {
        let error = finder.resolve(dir.path().join(name).to_str().unwrap(), &Stop::new()).unwrap_err();
        assert_eq!(error.code(), Code::Usage, "{error}");
        assert!(error.to_string().contains(expect) && error.to_string().contains("not a memra"), "{error}");
    }
}

#[test]
fn what_is_printed_as_a_version_is_clipped_and_cannot_steer_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let long = "head -c 60000 /dev/zero | tr '\\0' v";
    let evil = "printf '\\n \\033[31mv\\001\\377 9\\n'";
    let finder = finder(dir.path(), &[("memra", evil), ("bin/llama-bench", long)]);
    assert_eq!(finder.resolve("self", &Stop::new()).unwrap().version, "[31mv\u{fffd} 9");
    assert_eq!(finder.resolve("llama.cpp", &Stop::new()).unwrap().version.chars().count(), LONGEST_VERSION);
}

#[test]
fn what_a_memra_refuses_is_refused_with_its_code_and_words() {
    let dir = tempfile::tempdir().unwrap();
    let plan = "case $* in --version) echo memra ;; *slow=500*) echo 'memra: too slow' >&2; exit 2 ;; \
                *bad.gguf*) exit 7 ;; *context=99\\ *) exit 5 ;; esac";
    let finder = finder(dir.path(), &[("memra", plan), ("bin/llama-bench", "echo v1")]);
    let stop = Stop::new();
    let ask = |spec: &str, model: &str, context| {
        finder.resolve(spec, &stop).unwrap().preflight(Path::new(model), context, &stop)
    };
    assert!(ask("self", "m.gguf", 1).is_ok() && ask("llama.cpp", "bad.gguf", 1).is_ok());
    let error = ask("config:slow=500%", "m.gguf", 1).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (Code::Usage, "subject `config:slow=500%`: too slow")
    );
    assert_eq!(ask("self", "bad.gguf", 1).unwrap_err().code(), Code::Corrupt);
    assert!(
        ask("self", "m.gguf", 99).is_ok(),
        "what is not the asker's fault is for the measurement to meet"
    );
    stop.request();
    assert_eq!(finder.resolve("self", &stop).unwrap_err().code(), Code::Interrupted);
}

#[test]
fn an_engine_that_dies_on_its_version_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let finder = finder(dir.path(), &[("memra", "kill -ILL $$"), ("bin/llama-bench", "exit 0")]);
    let error = finder.resolve("self", &Stop::new()).unwrap_err().to_string();
    assert!(error.contains("signal 4"), "{error}");
    assert!(finder.resolve("llama.cpp", &Stop::new()).unwrap_err().to_string().contains("printed nothing"));
}
