//! The board from made-up logs: what it says, that it says it twice alike, and that what is wrong changes nothing.

#![allow(clippy::unwrap_used, reason = "a fixture that cannot be made fails its test")]

mod common;

use common::{Compared, Fixture, llama_cpp, memra, whole};
use memra_board::{Error, Inputs, check, render};
use memra_harness::record::{Arm, ArmId, Judgement, Label, LogError, Supersede};
use std::{collections::BTreeMap, fs, path::Path};
use tempfile::TempDir;

const README: &str = "# project\n\n<!-- BOARD:main:START -->\n<!-- BOARD:main:END -->\n\nafter\n";

fn folder() -> (TempDir, Inputs) {
    let dir = tempfile::tempdir().unwrap();
    let inputs = Inputs {
        data_dir: dir.path().join("tune-data"),
        boards_dir: dir.path().join("boards"),
        readme: Some(dir.path().join("README.md")),
    };
    fs::write(dir.path().join("README.md"), README).unwrap();
    (dir, inputs)
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .filter(|e| e.file_type().unwrap().is_file())
        .map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap()))
        .collect()
}

/// Compares with a file under `tests/golden`; what was made instead is left in the target folder.
fn golden(name: &str, made: &str) {
    // The hash changes with every key that the record schema gains.
    let (before, after) = made.split_once("log ").unwrap();
    let made = format!("{before}log ************{}", &after[12..]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if made != expected {
        let left = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&left, &made).unwrap();
        let line = made.lines().zip(expected.lines()).position(|(a, b)| a != b);
        panic!("{name} differs from line {:?} (0-based); what was made: {}", line, left.display());
    }
}

#[test]
fn the_whole_board() {
    let (dir, inputs) = folder();
    whole(&inputs.data_dir);
    let report = render(&inputs).unwrap();
    assert_eq!((report.comparisons, report.written.len()), (8, 18), "{report:?}");
    assert!(report.warnings.is_empty() && report.removed.is_empty() && report.unchanged.is_empty());
    let first = contents(&inputs.boards_dir);
    let pictures = ["ratio", "throughput", "wall", "sweep"];
    for stem in pictures {
        for file in ["", "-dark"].iter().flat_map(|t| [format!("{stem}{t}.svg"), format!("{stem}{t}.png")]) {
            let bytes = first.get(&file).unwrap_or_else(|| panic!("{file} is missing"));
            let magic: &[u8] = if file.ends_with("png") { b"\x89PNG" } else { b"<svg " };
            assert!(bytes.starts_with(magic), "{file}");
        }
    }
    golden("boards-README.md", std::str::from_utf8(&first["README.md"]).unwrap());
    golden("README.md", &fs::read_to_string(dir.path().join("README.md")).unwrap());

    // Again: the same bytes, and nothing written; from scratch elsewhere: the same bytes too.
    let again = render(&inputs).unwrap();
    assert_eq!((again.written.len(), again.unchanged.len()), (0, 18));
    let (_other, elsewhere) = folder();
    whole(&elsewhere.data_dir);
    render(&elsewhere).unwrap();
    assert_eq!(contents(&elsewhere.boards_dir), first);
    assert!(check(&inputs).unwrap().differing.is_empty());
}

#[test]
fn check_names_what_differs_and_writes_nothing() {
    let (_dir, inputs) = folder();
    whole(&inputs.data_dir);
    assert_eq!(check(&inputs).unwrap().differing.len(), 18, "nothing is rendered yet");
    assert!(!inputs.boards_dir.exists());
    render(&inputs).unwrap();
    let edited = inputs.boards_dir.join("README.md");
    fs::write(&edited, "by hand").unwrap();
    fs::remove_file(inputs.boards_dir.join("wall.png")).unwrap();
    assert_eq!(check(&inputs).unwrap().differing, [edited.clone(), inputs.boards_dir.join("wall.png")]);
    assert_eq!(fs::read_to_string(&edited).unwrap(), "by hand");
}

#[test]
fn what_others_wrote_is_not_overwritten() {
    let (_dir, inputs) = folder();
    whole(&inputs.data_dir);
    fs::create_dir(&inputs.boards_dir).unwrap();
    for name in ["README.md", "ratio.png"] {
        let path = inputs.boards_dir.join(name);
        fs::write(&path, "by hand").unwrap();
        let error = render(&inputs).unwrap_err();
        assert!(matches!(&error, Error::Foreign(foreign) if *foreign == path), "{error}");
        assert_eq!((error.code().number(), contents(&inputs.boards_dir).len()), (2, 1));
        fs::remove_file(&path).unwrap();
    }
    let readme = inputs.readme.as_ref().unwrap();
    assert_eq!(fs::read_to_string(readme).unwrap(), README);
    let here = Inputs { boards_dir: readme.parent().unwrap().to_owned(), ..inputs.clone() };
    assert!(matches!(render(&here), Err(Error::Foreign(_))));
    render(&inputs).unwrap();
}

#[test]
fn check_needs_no_search_log() {
    let (_dir, inputs) = folder();
    whole(&inputs.data_dir);
    render(&inputs).unwrap();
    // As in a fresh clone: trial logs are not committed.
    let trials = inputs.data_dir.join("2026-11/01KA0003SESSION00000000.trials.jsonl");
    fs::remove_file(trials).unwrap();
    let found = check(&inputs).unwrap();
    assert!(found.differing.is_empty(), "{:?}", found.differing);
    assert!(found.warnings.iter().any(|w| w.contains("trial logs")), "{:?}", found.warnings);
}

#[test]
fn wrong_markers_leave_every_file_as_it_was() {
    let (dir, inputs) = folder();
    whole(&inputs.data_dir);
    let path = dir.path().join("README.md");
    for text in [
        README.replace("<!-- BOARD:main:END -->", ""),
        README.replace("START", "X"),
        README.replace("START", "E").replace("END", "START").replace("main:E ", "main:END "),
        format!("{README}{README}"),
        README.replace("<!-- BOARD:main:END -->", "<!-- BOARD:main:END -->\n<!-- BOARD:main:END -->"),
        format!("```\n{README}```\n"),
    ] {
        fs::write(&path, &text).unwrap();
        let error = render(&inputs).unwrap_err();
        assert!(matches!(error, Error::Markers { .. }), "{error}");
        assert!(error.to_string().contains("README.md: "), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert!(!inputs.boards_dir.exists());
    }
}

#[test]
fn the_readme_keeps_its_line_endings_and_its_rest() {
    let (dir, inputs) = folder();
    whole(&inputs.data_dir);
    let path = dir.path().join("README.md");
    fs::write(&path, README.replace('\n', "\r\n")).unwrap();
    render(&inputs).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.lines().count() > 12 && text.matches('\n').count() == text.matches("\r\n").count());
    assert!(text.starts_with("# project\r\n\r\n") && text.ends_with("\r\n\r\nafter\r\n"));
    assert_eq!(render(&inputs).unwrap().written.len(), 0);
}

#[test]
fn no_measurements_is_said_and_nothing_is_written() {
    let (dir, inputs) = folder();
    let error = render(&inputs).unwrap_err();
    assert!(matches!(error, Error::Empty(_)) && error.to_string().contains("no measurements in"), "{error}");
    // A session alone measured nothing.
    Fixture::new(1, 1, "ab").write(&inputs.data_dir);
    assert!(matches!(render(&inputs), Err(Error::Empty(_))));
    assert!(!inputs.boards_dir.exists());
    assert_eq!(fs::read_to_string(dir.path().join("README.md")).unwrap(), README);
}

#[test]
fn a_corrupt_line_is_named() {
    let (_dir, inputs) = folder();
    whole(&inputs.data_dir);
    let log = inputs.data_dir.join("2026-11/01KA0001SESSION00000000.jsonl");
    let text = fs::read_to_string(&log).unwrap().replacen("\"n_cores\":2", "\"n_cores\":3", 1);
    fs::write(&log, text).unwrap();
    let error = render(&inputs).unwrap_err();
    assert!(matches!(error, Error::Log(LogError::Corrupt { .. })), "{error}");
    assert!(error.to_string().contains("01KA0001SESSION00000000.jsonl:1: "), "{error}");
    assert_eq!(error.code().number(), 7);
}

#[test]
fn records_without_their_session_are_told_of() {
    let (_dir, inputs) = folder();
    whole(&inputs.data_dir);
    let log = inputs.data_dir.join("2026-11/01KA0002SESSION00000000.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.split_once('\n').unwrap().1).unwrap();
    let report = render(&inputs).unwrap();
    assert_eq!(report.comparisons, 5);
    assert!(report.warnings.iter().any(|w| w.contains("01KA0002SESSION")), "{:?}", report.warnings);
}

#[test]
fn a_torn_last_line_is_a_warning() {
    let (_dir, inputs) = folder();
    whole(&inputs.data_dir);
    let log = inputs.data_dir.join("2026-11/01KA0001SESSION00000000.jsonl");
    fs::write(&log, fs::read_to_string(&log).unwrap() + "{\"schema\":").unwrap();
    assert!(render(&inputs).unwrap().warnings.iter().any(|w| w.contains("torn")));
}

#[test]
fn whatever_a_rival_prints_the_board_is_drawn_and_well_formed() {
    let (dir, inputs) = folder();
    let evil = "\u{1b}[31m<b>&\u{7}\0]]>|`\n<!-- BOARD:main:END -->\u{ffff}\u{202e}";
    let (version, engine) = ("v".repeat(60_000), format!("evil{evil}"));
    for (session, ratio) in [(1, 1e15), (2, 1e-15), (3, 1.0)] {
        let mut fixture = Fixture::on(session, 1, "ab", evil, "0123456789abcdef");
        fixture.compare(Compared {
            cell: &format!("m{evil}{}/tg{session}", "m".repeat(60_000)),
            a: memra("self"),
            b: Arm { engine: engine.clone(), version: version.clone(), ..llama_cpp() },
            candidate: ArmId::A,
            ratio: Some((ratio, ratio, ratio)),
            tps_a: if ratio > 1.0 { 1e-7 } else { 1e8 },
            verdict: Judgement::Pass,
            label: Some(Label::Improved),
            reasons: &[evil, &version],
        });
        fixture.write(&inputs.data_dir);
    }
    let report = render(&inputs).unwrap();
    assert_eq!(report.comparisons, 3);
    let readme = fs::read_to_string(dir.path().join("README.md")).unwrap();
    assert_eq!(readme.matches("<!-- BOARD:main:END -->").count(), 1, "{readme}");
    let mut texts = vec![("README.md".to_owned(), readme.into_bytes())];
    texts.extend(contents(&inputs.boards_dir).into_iter().filter(|(name, _)| !name.ends_with("png")));
    for (name, bytes) in texts {
        let text = String::from_utf8(bytes).unwrap();
        let bad = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{ffff}');
        assert!(bad.is_none() && text.len() < 300_000, "{name} holds {bad:?} in {} bytes", text.len());
        assert!(!name.ends_with("svg") || (!text.contains("<b>") && !text.contains("<!--")), "{name}");
    }
}

#[test]
fn the_latest_verdict_counts_and_withdrawn_ones_do_not() {
    let (_dir, inputs) = folder();
    let compared = |ratio, verdict, label| Compared {
        cell: "m/tg128",
        a: llama_cpp(),
        b: memra("self"),
        candidate: ArmId::B,
        ratio: Some(ratio),
        tps_a: 50.0,
        verdict,
        label,
        reasons: &[],
    };
    let page = || fs::read_to_string(inputs.boards_dir.join("README.md")).unwrap();
    let mut first = Fixture::new(1, 1, "ab");
    first.compare(compared((1.2, 1.19, 1.21), Judgement::Pass, Some(Label::Improved)));
    first.write(&inputs.data_dir);
    let mut second = Fixture::new(2, 2, "ab");
    let old = second.compare(compared((0.5, 0.49, 0.51), Judgement::Regressed, None));
    second.write(&inputs.data_dir);
    render(&inputs).unwrap();
    assert!(page().contains("**0.500x [0.490, 0.510]**") && !page().contains("1.20"), "{}", page());
    // What was cut short takes nobody's place.
    let cut = Compared { ratio: None, ..compared((1.0, 1.0, 1.0), Judgement::Inconclusive, None) };
    second.compare(cut);
    second.write(&inputs.data_dir);
    render(&inputs).unwrap();
    assert!(page().contains("**0.500x [0.490, 0.510]**") && !page().contains("inv:"), "{}", page());
    second.push(Supersede {
        old_ids: vec![old],
        reason: "the fan had stopped".into(),
        ..Supersede::default()
    });
    second.write(&inputs.data_dir);
    render(&inputs).unwrap();
    assert!(page().contains("**1.200x [1.190, 1.210]**") && !page().contains("0.500x"), "{}", page());
}

#[test]
fn two_machines_stay_apart() {
    let (_dir, inputs) = folder();
    for (session, host, tps) in [(1, "aaaaaaaaaaaaaaaa", 50.0), (2, "bbbbbbbbbbbbbbbb", 70.0)] {
        let mut fixture = Fixture::on(session, session, "ab", "Xeon", host);
        fixture.wall_gbps = None;
        fixture.compare(Compared {
            cell: "m/tg128",
            a: memra("self"),
            b: llama_cpp(),
            candidate: ArmId::A,
            ratio: Some((0.8, 0.79, 0.81)),
            tps_a: tps,
            verdict: Judgement::Pass,
            label: Some(Label::Improved),
            reasons: &[],
        });
        fixture.write(&inputs.data_dir);
    }
    let report = render(&inputs).unwrap();
    assert_eq!(report.comparisons, 2);
    let page = fs::read_to_string(inputs.boards_dir.join("README.md")).unwrap();
    assert!(page.contains("host aaaaaa") && page.contains("host bbbbbb"), "{page}");
    assert!(page.contains("No share of the read wall is given"), "{page}");
    assert!(!inputs.boards_dir.join("wall.svg").exists());
}

#[test]
fn a_picture_without_data_goes_away() {
    let (_dir, inputs) = folder();
    whole(&inputs.data_dir);
    render(&inputs).unwrap();
    fs::remove_dir_all(inputs.data_dir.join("dispatch")).unwrap();
    assert_eq!(check(&inputs).unwrap().differing.len(), 4 + 1, "four pictures and their page");
    let report = render(&inputs).unwrap();
    assert_eq!(report.removed.len(), 4, "{report:?}");
    assert!(!inputs.boards_dir.join("sweep-dark.png").exists());
}
