//! `memra synth`: presets, types, and disks that are too small.

use super::Place;

#[test]
fn a_preset_is_written_as_asked_and_described_as_json() {
    let place = Place::new();
    let made = |args: &[&str]| place.memra(&[&["synth"], args].concat());
    let report = made(&["tiny", "a.gguf", "--seed", "3", "--json"]).json();
    assert_eq!((report["path"].as_str(), report["preset"].as_str()), (Some("a.gguf"), Some("tiny")));
    let bytes = std::fs::read(place.path().join("a.gguf")).unwrap();
    assert_eq!(report["bytes"].as_u64(), Some(bytes.len() as u64));
    assert!(report["n_params"].as_u64().unwrap() > 1_000_000 && report["quant"].is_null());
    made(&["tiny", "b.gguf", "--seed", "3"]).expect(0, "");
    made(&["tiny", "c.gguf", "--seed", "4"]).expect(0, "");
    assert!(bytes == std::fs::read(place.path().join("b.gguf")).unwrap());
    assert!(bytes != std::fs::read(place.path().join("c.gguf")).unwrap());
}

#[test]
fn a_real_shape_says_what_it_is() {
    let place = Place::new();
    // One layer of the smallest: the embedding is most of it.
    let made = place.memra(&["synth", "gemma-3-270m", "--layers", "1", "--quant", "Q4_0"]);
    assert!(made.stdout.trim().ends_with("models/memra-gemma-3-270m-Q4_0.gguf"), "{}", made.stderr);
    let inspected = place.memra(&["inspect", "memra-gemma", "--tensors", "--json"]).json();
    assert_eq!(inspected["architecture"], "gemma3");
    let tensors = inspected["tensors"].as_array().unwrap();
    let dtype = |name: &str| tensors.iter().find(|t| t["name"] == name).unwrap()["dtype"].clone();
    assert_eq!(dtype("token_embd.weight"), "Q8_0");
    assert_eq!(dtype("blk.0.attn_q.weight"), "Q4_0");
    assert_eq!(dtype("blk.0.post_ffw_norm.weight"), "F32");
}

#[test]
fn mistakes_are_refused_and_a_full_disk_leaves_nothing() {
    let place = Place::new();
    place.memra(&["synth", "huge"]).expect(2, "qwen3-8b");
    place.memra(&["synth", "qwen3-8b", "--quant", "Q3_K"]).expect(2, "Q4_K_M");
    place.memra(&["synth", "tiny", "--quant", "Q8_0"]).expect(2, "one mix of types");
    place.memra(&["synth", "tiny", "no/such/folder/m.gguf"]).expect(2, "no/such/folder");
    place.memra(&["synth", "tiny", "."]).expect(2, "not a regular file");
    place.memra_on_a_full_disk(100, &["synth", "tiny", "m.gguf"]).expect(5, "m.gguf: cannot write");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "something was left behind");
}
