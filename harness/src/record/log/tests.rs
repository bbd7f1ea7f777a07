use super::*;
use crate::record::{Note, Supersede, Verdict};

fn note(text: &str) -> Note {
    Note { text: text.to_owned(), ..Note::default() }
}

fn texts(reading: &Reading) -> Vec<&str> {
    let text = |r: &'_ Record| match &r.body {
        Body::Note(_) => true,
        other => panic!("unexpected {}", other.kind()),
    };
    assert!(reading.records.iter().all(text));
    reading
        .records
        .iter()
        .filter_map(|r| if let Body::Note(n) = &r.body { Some(n.text.as_str()) } else { None })
        .collect()
}

#[test]
fn records_read_back_with_unknown_keys_and_odd_characters() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(dir.path()).unwrap();
    let mut odd = note("line\u{2028}sep \u{85} nl\n quote\" \u{1f600}");
    odd.extra.insert("from_the_future".into(), serde_json::json!({"deep": [1, 2.5, null]}));
    let written = log.append(odd).unwrap();
    let reading = read_dir(dir.path()).unwrap();
    assert_eq!(reading, Reading { records: vec![written], warnings: vec![] });
    assert_eq!(reading, read(log.path()).unwrap());
}

#[test]
fn every_number_survives() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(dir.path()).unwrap();
    let mut n = note("numbers");
    for (i, x) in [0.1, 1.0 / 3.0, 1e-300, f64::MAX, 88.263_411_827_364_51].into_iter().enumerate() {
        n.extra.insert(format!("x{i}"), serde_json::json!(x));
    }
    n.extra.insert("big_ns".into(), serde_json::json!(u64::MAX));
    let written = log.append(n).unwrap();
    assert_eq!(read(log.path()).unwrap().records, [written]);
}

#[test]
fn nan_and_infinity_are_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(dir.path()).unwrap();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for field in 0..2 {
            let mut verdict = Verdict { floor_ratio: 0.005, ..example_verdict() };
            if field == 0 {
                verdict.floor_ratio = bad
            } else {
                verdict.mde_ratio = Some(bad)
            }
            let error = log.append(verdict).unwrap_err();
            assert!(matches!(error, LogError::Invalid { kind: "verdict", .. }), "{error}");
        }
    }
    assert_eq!(fs::metadata(log.path()).unwrap().len(), 0);
}

fn example_verdict() -> Verdict {
    serde_json::from_value(serde_json::json!({
        "cell_id": "m/tg128", "a": {"subject": "self", "engine": "memra", "version": "0", "flags": {}},
        "b": {"subject": "self", "engine": "memra", "version": "0", "flags": {}}, "candidate": "b",
        "n_pairs": 6, "n_invalid": 0, "ratio": 1.0, "ci_lo": 0.99, "ci_hi": 1.01, "conf": 0.96, "pairs_agree": 3,
        "median_a_tps": 1.0, "median_b_tps": 1.0, "mde_ratio": 0.01, "floor_ratio": 0.005,
        "floor_provisional": true, "margin": 0.01, "look": 1, "verdict": "inconclusive", "label": null,
        "reasons": [], "identical_binaries": false, "run_ids": vec!["x"; 12]
    }))
    .unwrap()
}

#[test]
fn an_inconsistent_verdict_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(dir.path()).unwrap();
    let outside = Verdict { ratio: Some(1.5), ..example_verdict() };
    assert!(log.append(outside).unwrap_err().to_string().contains("outside its interval"));
    log.append(example_verdict()).unwrap();
}

/// A line whose checksum is right, whatever it says.
fn line(record: &serde_json::Value) -> String {
    let json = record.to_string();
    format!("{}{CRC_KEY}{:08x}\"}}\n", &json[..json.len() - 1], crc32c::crc32c(json.as_bytes()))
}

#[test]
fn lines_that_cannot_be_true_are_corrupt_although_their_checksum_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    let record = |body: Body| {
        let (id, session_id) = ("01KA0000000000000000000001".to_owned(), "01KA".to_owned());
        let at = "2026-11-30T10:02:00.000Z".to_owned();
        serde_json::to_value(Record { schema: SCHEMA.to_owned(), id, session_id, at, body }).unwrap()
    };
    let problem = |lines: &[serde_json::Value]| {
        fs::write(&path, lines.iter().map(line).collect::<String>()).unwrap();
        match read(&path) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    let verdict = record(example_verdict().into());
    let twin = record(note("another").into());
    assert_eq!(problem(&[verdict.clone(), verdict.clone()]), "");
    assert!(problem(&[verdict.clone(), twin.clone()]).contains("another record has its id"));
    for (key, value, expect) in [
        ("at", serde_json::json!("yesterday"), "at `yesterday`"),
        ("id", serde_json::json!("é"), "not a ULID"),
        ("ratio", serde_json::json!(-1.0), "outside its interval"),
        ("ratio", serde_json::json!(null), "stand together"),
        ("ci_hi", serde_json::json!(1e300), "ci_hi is 1e300"),
        ("ci_lo", serde_json::json!(-1e-300), "ci_lo is -1e-300"),
        ("conf", serde_json::json!(7), "conf is 7"),
        ("margin", serde_json::json!(-0.1), "margin is -0.1"),
        ("median_a_tps", serde_json::json!(1e308), "median_a_tps"),
        ("median_b_tps", serde_json::json!(0.0), "median_b_tps is 0"),
        ("n_pairs", serde_json::json!(u32::MAX), "n_pairs"),
        ("pairs_agree", serde_json::json!(7), "7 pairs_agree"),
    ] {
        let mut bad = verdict.clone();
        bad[key] = value;
        let problem = problem(&[bad]);
        assert!(problem.contains(expect), "{key}: {problem}");
    }
    let old_ids = vec!["01KA0000000000000000000001".to_owned()];
    let itself = record(Supersede { old_ids, ..Supersede::default() }.into());
    assert!(problem(&[itself]).contains("supersedes itself"));
}

#[test]
fn a_torn_tail_is_left_out_by_readers_and_set_aside_by_the_next_writer() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(dir.path()).unwrap();
    log.append(note("one")).unwrap();
    log.append(note("two")).unwrap();
    let path = log.path().to_owned();
    let whole = fs::read(&path).unwrap();
    let first = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    // Whatever byte a crash stops at, the first record is kept and the second is named, never glued to.
    for cut in [first, first + 1, first + 40, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        let reading = read(&path).unwrap();
        assert_eq!(texts(&reading), ["one"]);
        assert_eq!(reading.warnings.len(), usize::from(cut > first));
        let mut again = Log::resume(dir.path(), log.session_id()).unwrap();
        assert_eq!(again.take_warnings().len(), usize::from(cut > first));
        again.append(note("three")).unwrap();
        assert_eq!(texts(&read(&path).unwrap()), ["one", "three"]);
        let torn = PathBuf::from(format!("{}.torn", path.display()));
        if cut > first {
            let kept = fs::read(&torn).unwrap();
            assert_eq!(&kept[..kept.len() - 1], &whole[first..cut]);
            fs::remove_file(&torn).unwrap();
        }
    }
}

#[test]
fn any_changed_byte_of_a_middle_line_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(dir.path()).unwrap();
    log.append(note("one")).unwrap();
    log.append(note("two")).unwrap();
    let whole = fs::read(log.path()).unwrap();
    let first = whole.iter().position(|b| *b == b'\n').unwrap();
    for at in 0..first {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        fs::write(log.path(), &bad).unwrap();
        let LogError::Corrupt { problems } = read(log.path()).unwrap_err() else { panic!("not corrupt") };
        assert!(problems[0].starts_with(&format!("{}:1: ", log.path().display())), "{problems:?}");
    }
}

#[test]
fn a_file_is_continued_before_it_grows_too_big_and_trials_have_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::create(dir.path()).unwrap();
    let long = "x".repeat(400_000);
    for _ in 0..3 {
        log.append(note(&long)).unwrap();
    }
    assert!(log.path().to_string_lossy().ends_with("-2.jsonl"), "{}", log.path().display());
    for entry in sorted_entries(log.path().parent().unwrap()).unwrap() {
        assert!(fs::metadata(entry).unwrap().len() <= MAX_FILE_BYTES);
    }
    assert_eq!(read_dir(dir.path()).unwrap().records.len(), 3);
}

#[test]
fn many_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::create(dir.path()).unwrap();
    let id = log.session_id().to_owned();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (dir, id) = (dir.path(), id.clone());
            scope.spawn(move || {
                let mut log = Log::resume(dir, &id).unwrap();
                for i in 0..25 {
                    log.append(note(&format!("{writer}/{i}"))).unwrap();
                }
            });
        }
    });
    assert_eq!(read_dir(dir.path()).unwrap().records.len(), 100);
}

#[test]
fn a_folder_without_logs_is_empty_not_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(read_dir(&dir.path().join("nowhere")).unwrap(), Reading::default());
    fs::create_dir(dir.path().join("dispatch")).unwrap();
    assert_eq!(read_dir(dir.path()).unwrap(), Reading::default());
}
