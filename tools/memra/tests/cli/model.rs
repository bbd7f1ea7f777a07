//! Commands over a model file.

use super::{Place, Ran, tiny};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

#[test]
fn files_that_are_no_models_are_told_apart() {
    let place = Place::new();
    let whole = std::fs::read(tiny()).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for command in ["inspect", "plan", "bench"] {
        place.memra(&[command, "absent.gguf"]).expect(2, "absent.gguf");
        place.memra(&[command, "."]).expect(2, "give the");
        place
            .memra(&[command, &file("zip.gguf", b"PK\x03\x04 and more than four bytes")])
            .expect(7, "not a GGUF file");
        for length in [3, 20, 500, whole.len() / 2, whole.len() - 1] {
            place.memra(&[command, &file("cut.gguf", &whole[..length])]).expect(7, "cut.gguf");
        }
    }
}

#[test]
fn a_model_is_found_by_name_in_the_cache() {
    let place = Place::new();
    let made = place.memra(&["synth"]);
    assert!(made.stdout.trim().ends_with(".cache/memra/models/memra-tiny.gguf"), "{}", made.stdout);
    assert_eq!(place.memra(&["inspect", "memra-tiny", "--json"]).json()["architecture"], "llama");
    place.memra(&["inspect", "memra-huge"]).expect(2, "memra pull");
}

#[test]
fn inspect_and_plan_describe_it() {
    let place = Place::new();
    let inspected = place.memra(&["inspect", tiny(), "--tensors", "--json"]).json();
    assert_eq!(inspected["n_layers"], 4);
    assert!(inspected["tensors"].as_array().unwrap().len() > 30);
    let plan = place.memra(&["plan", tiny(), "--json"]);
    assert_eq!(plan.json()["work"][0]["key"]["family"], "matmul");
    assert!(place.memra(&["plan", tiny(), "--dispatch"]).stdout.contains("default (no entry)"));

    std::fs::write(place.path().join("plan.json"), &plan.stdout).unwrap();
    let survey = place.memra(&["sweep", "--work", "plan.json", "--dry-run", "--json"]).json();
    assert!(survey[0]["feasible"].as_u64().unwrap() > 1);
}

#[test]
fn text_goes_to_stdout_and_figures_to_stderr() {
    let place = Place::new();
    let run = || place.memra(&["run", tiny(), "-p", "the and", "-n", "8", "--ignore-eos"]);
    let first = run();
    first.expect(0, "decode: 8 tokens");
    assert!(first.stdout.ends_with('\n') && !first.stdout.contains("tok/s"));
    assert_eq!(first.stdout, run().stdout, "greedy text depends on more than the model");

    let json = place.memra(&["run", tiny(), "-p", "the and", "-n", "8", "--ignore-eos", "--json"]).json();
    assert_eq!(json["text"].as_str().unwrap(), first.stdout.strip_suffix('\n').unwrap());
    assert_eq!((json["tokens"].as_array().unwrap().len(), json["finish"].as_str()), (8, Some("max-tokens")));

    let sampled = |seed: &str| {
        let args = ["run", tiny(), "-p", "the", "-n", "24", "--ignore-eos", "--temp", "1", "--seed", seed];
        place.memra(&args).stdout
    };
    assert_eq!(sampled("7"), sampled("7"));
    assert_ne!(sampled("7"), sampled("8"));
    place.memra(&["run", tiny(), "-p", "the", "--temp=-1"]).expect(2, "temperature");
    place.memra(&["run", tiny(), "-f", "absent.txt"]).expect(2, "absent.txt");
    place.memra(&["run", tiny(), "-f", "."]).expect(2, "prompt file .");
    place.memra(&["run", tiny(), "-p", "x", "-t", "1025"]).expect(2, "at most 1024");
    place.memra(&["run", tiny(), "-p", "x", "--stop-token", "99999"]).expect(2, "vocabulary");
    place.memra(&["bench", tiny(), "-p", "0", "-n", "0"]).expect(2, "nothing to time");
    let over = place.memra(&["bench", tiny(), "-p", "18446744073709551600", "-n", "0", "-d", "32"]);
    over.expect(2, "context");
    place.memra(&["bench", tiny(), "-p", "16,2000", "-n", "0"]).expect(2, "context");
}

#[test]
fn outputs_never_replace_what_is_read_or_a_device_and_come_whole_or_not() {
    let place = Place::new();
    let model = place.path().join("m.gguf");
    std::fs::copy(tiny(), &model).unwrap();
    std::fs::write(place.path().join("keep.npy"), "old").unwrap();
    place.memra(&["logits", "m.gguf", "--ids", "1", "-o", "m.gguf"]).expect(2, "another place");
    place.memra(&["logits", "m.gguf", "--ids", "1", "-o", "/dev/null"]).expect(2, "not a regular file");
    place.memra(&["logits", "m.gguf", "--ids", "99999", "-o", "keep.npy"]).expect(2, "vocabulary");
    assert_eq!(std::fs::read_to_string(place.path().join("keep.npy")).unwrap(), "old");
    assert_eq!(std::fs::read(&model).unwrap(), std::fs::read(tiny()).unwrap());
}

#[test]
fn readers_that_have_gone_change_no_exit_code() {
    let place = Place::new();
    // A pipe whose far end is closed.
    let gone = || Stdio::from(std::io::pipe().unwrap().1);
    let full = || Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let wrong = ["check", "--kernel", "rope*", "--set", "fault.wrong=rope", "--json"];
    let code =
        |out: Stdio, err: Stdio| place.command(&wrong).stdout(out).stderr(err).status().unwrap().code();
    assert_eq!(code(gone(), Stdio::null()), Some(4));
    assert_eq!(code(Stdio::null(), gone()), Some(4));
    assert_eq!(code(Stdio::null(), full()), Some(4));
    // Nobody would read the text: the generation ends at once.
    let mut run = place.command(&["run", tiny(), "-p", "the", "-n", "1000", "--ignore-eos"]);
    assert_eq!(run.stdout(gone()).stderr(Stdio::null()).status().unwrap().code(), Some(0));
}

#[test]
fn stops_penalties_and_log_probabilities() {
    let place = Place::new();
    let run = |more: &[&str]| {
        let args = ["run", tiny(), "-p", "the and", "-n", "12", "--ignore-eos", "--json"];
        place.memra(&[&args[..], more].concat()).json()
    };
    let whole = run(&["--logprobs", "2"]);
    let (text, tokens) = (whole["text"].as_str().unwrap(), whole["tokens"].as_array().unwrap());
    let logprobs = whole["logprobs"].as_array().unwrap();
    assert_eq!((tokens.len(), logprobs.len()), (12, 12));
    assert_eq!(logprobs[0]["top"][0][0], tokens[0]);

    let stop: String = text.chars().skip(text.chars().count() / 2).take(2).collect();
    let stopped = run(&["--stop", &stop]);
    assert_eq!(stopped["finish"], "stop-string");
    assert_eq!(stopped["text"].as_str().unwrap(), &text[..text.find(&stop).unwrap()]);
    let ended = run(&["--stop-token", &tokens[0].to_string()]);
    assert_eq!((ended["finish"].as_str(), ended["text"].as_str()), (Some("stop-token"), Some("")));

    let banned = run(&["--logit-bias", &format!("{}=-inf", tokens[0])]);
    assert!(!banned["tokens"].as_array().unwrap().contains(&tokens[0]));
    let penalised = run(&["--presence-penalty", "1000", "--repeat-last-n", "-1"]);
    let mut seen =
        penalised["tokens"].as_array().unwrap().iter().map(|t| t.as_u64().unwrap()).collect::<Vec<_>>();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 12, "a penalised token came again");
    place.memra(&["run", tiny(), "-p", "x", "--logprobs", "1"]).expect(2, "--json");
    place.memra(&["run", tiny(), "-p", "x", "--logit-bias", "y"]).expect(2, "ID=BIAS");
}

#[test]
fn perplexity_and_divergence() {
    let place = Place::new();
    std::fs::write(
        place.path().join("text.txt"),
        "the and of to in is that it was for on are with as ".repeat(12),
    )
    .unwrap();
    let score = |more: &[&str]| {
        place.memra(&[&["perplexity", tiny(), "text.txt", "-c", "32", "--json"], more].concat())
    };
    let exact = score(&["--save-base", "base.kld"]).json();
    let perplexity = exact["perplexity"].as_f64().unwrap();
    assert!(perplexity > 1.0 && exact["chunks"].as_u64().unwrap() > 2, "{exact}");
    let itself = score(&["--kld", "base.kld"]).json();
    assert!(itself["divergence"]["mean_kld"].as_f64().unwrap() < 1e-12, "{itself}");
    let q8 = score(&["--kld", "base.kld", "--set", "engine.class=q8"]).json();
    let kld = q8["divergence"]["mean_kld"].as_f64().unwrap();
    assert!(kld > 0.0 && kld < 0.1, "{q8}");
    assert!((q8["perplexity"].as_f64().unwrap() / perplexity - 1.0).abs() < 0.1);
    score(&["--kld", "text.txt"]).expect(7, "not a base");
    score(&["--kld", "base.kld", "--chunks", "1"]).expect(2, "another number of chunks");
    place.memra(&["perplexity", tiny(), "text.txt", "-c", "1024"]).expect(2, "longer text");
    place.memra(&["perplexity", tiny(), "text.txt", "-c", "3"]).expect(2, "4 to");
}

#[test]
fn ctrl_c_ends_a_generation_with_its_figures() {
    let place = Place::new();
    let made = place.memra(&["synth", "small"]);
    let args = ["run", made.stdout.trim(), "-p", "the", "-n", "4000", "--ignore-eos"];
    let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut text = child.stdout.take().unwrap();
    text.read_exact(&mut [0]).unwrap();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    let rest: Vec<String> = BufReader::new(text)
        .split(b'\n')
        .map(|line| String::from_utf8_lossy(&line.unwrap()).into_owned())
        .collect();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stderr.contains("tok/s"), "{}; text: {rest:?}", ran.stderr);
}

#[test]
fn bench_speaks_llama_benchs_language() {
    let place = Place::new();
    let ran = place.memra(&[
        "bench",
        tiny(),
        "-p",
        "16",
        "-n",
        "4",
        "-d",
        "0,8",
        "-r",
        "2",
        "-t",
        "1",
        "-o",
        "jsonl",
    ]);
    ran.expect(0, "");
    let rows: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shapes: Vec<_> = rows
        .iter()
        .map(|row| [&row["n_prompt"], &row["n_gen"], &row["n_depth"]].map(|n| n.as_u64().unwrap()))
        .collect();
    assert_eq!(shapes, [[16, 0, 0], [0, 4, 0], [16, 0, 8], [0, 4, 8]]);
    for row in &rows {
        assert_eq!((row["backends"].as_str(), row["n_threads"].as_u64()), (Some("CPU"), Some(1)));
        assert_eq!(
            (row["samples_ns"].as_array().unwrap().len(), row["samples_ts"].as_array().unwrap().len()),
            (2, 2)
        );
        assert_eq!(row["memra_output_hash"].as_str().unwrap().len(), 64);
    }
    let args = ["bench", tiny(), "-p", "0", "-n", "4", "-r", "1"];
    assert_eq!(place.memra(&[&args[..], &["-o", "json"]].concat()).json()[0]["n_gen"], 4);
    let table = place.memra(&args).stdout;
    assert!(table.starts_with("| model") && table.contains("tg4"), "{table}");
    place.memra(&["bench", tiny(), "-p", "100000"]).expect(2, "context");
}

#[test]
fn logits_are_a_numpy_array_of_positions_by_vocabulary() {
    let place = Place::new();
    for (flags, rows) in [(&[][..], 1), (&["--all"][..], 3)] {
        let args = [&["logits", tiny(), "--ids", "1,2,3", "-o", "l.npy"][..], flags].concat();
        place.memra(&args).expect(0, "");
        let bytes = std::fs::read(place.path().join("l.npy")).unwrap();
        let header = String::from_utf8_lossy(&bytes[10..128]);
        assert!(
            bytes.starts_with(b"\x93NUMPY\x01\x00") && header.contains(&format!("({rows}, ")),
            "{header}"
        );
        let columns: usize =
            header.split(", ").filter_map(|part| part.strip_suffix(')')).next().unwrap().parse().unwrap();
        assert_eq!(bytes.len(), 128 + 4 * rows * columns);
    }
    place.memra(&["logits", tiny(), "--ids", "1,99999", "-o", "l.npy"]).expect(2, "99999");
    place.memra(&["logits", tiny(), "--ids", "1", "-o", "no/such/folder/l.npy"]).expect(2, "no/such/folder");
}
