//! Tokenizers of real model files, as llama.cpp has them (fixtures of engine/text, see tools/text/tokenizer_fixtures.py).
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_engine::tokenizer;
use memra_formats::{Gguf, GgufWriter, ToValue};
use memra_text::{EncodeOptions, Specials, Tokenizer};
use serde_json::Value;
use std::path::Path;

/// The tokenizer of a file in the checkout's `models` folder, if it is there.
fn model(test: &str, file: &str) -> Option<Tokenizer> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(file);
    if !path.exists() {
        eprintln!("NOT RUN: {test} needs {}; fetch it with tools/fetch-models", path.display());
        return None;
    }
    Some(tokenizer::from_metadata(Gguf::open(&path).unwrap().metadata()).unwrap())
}

fn ids(case: &Value, key: &str) -> Vec<u32> {
    case[key].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

fn check(tokenizer: &Tokenizer, fixture: &str) {
    let fixture: Value = serde_json::from_str(fixture).unwrap();
    let cases = fixture["cases"].as_array().unwrap();
    assert!(cases.len() > 100);
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let encode =
            |parse_special| tokenizer.encode(text, EncodeOptions { add_special: true, parse_special });
        assert_eq!(encode(true), ids(case, "ids"), "ids of {text:?}");
        assert_eq!(encode(false), ids(case, "ids_noparse"), "ids with specials unparsed of {text:?}");
        assert_eq!(tokenizer.decode(&ids(case, "ids"), Specials::Show), case["detok"].as_str().unwrap());
        assert_eq!(tokenizer.decode(&ids(case, "ids"), Specials::Skip), case["detok_skip"].as_str().unwrap());
    }
}

#[test]
fn smollm2() {
    let Some(tokenizer) = model("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    assert_eq!(tokenizer.vocab_size(), 49152);
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.pad()), (Some(1), Some(2), Some(2)));
    assert_eq!(tokenizer.end_of_generation(), [0, 2]);
    assert_eq!(tokenizer.token_id("<|im_start|>"), Some(1));
    assert_eq!(tokenizer.token_id("Ġlighthouse"), Some(33059));
    check(&tokenizer, include_str!("../../text/tests/fixtures/smollm2.json"));
}

#[test]
fn gemma3() {
    let Some(tokenizer) = model("gemma3", "gemma-3-270m-q4_k_m.gguf") else { return };
    assert_eq!(tokenizer.vocab_size(), 262_144);
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.pad()), (Some(2), Some(1), Some(0)));
    assert_eq!(tokenizer.end_of_generation(), [1, 106, 212]);
    check(&tokenizer, include_str!("../../text/tests/fixtures/gemma3.json"));
}

/// What is said of a file with these metadata.
fn refused(write: impl FnOnce(&mut GgufWriter)) -> String {
    let mut writer = GgufWriter::new();
    write(&mut writer);
    let gguf = Gguf::parse(writer.begin(Vec::new()).unwrap().finish().unwrap()).unwrap();
    tokenizer::from_metadata(gguf.metadata()).expect_err("a broken tokenizer was accepted").to_string()
}

#[test]
fn metadata_of_the_wrong_type_are_named() {
    assert!(refused(|_| {}).contains("tokenizer.ggml.model"));
    fn check_type<V: ToValue>(key: &str, value: V) {
        let said = refused(|writer| {
            writer.metadata("tokenizer.ggml.model", "gpt2").unwrap();
            writer.metadata(key, &value).unwrap();
        });
        assert!(said.contains(key), "{said}");
    }
    for key in ["tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.scores"] {
        check_type(key, "text");
    }
    check_type("tokenizer.ggml.tokens", &[1_u32, 2][..]);
    check_type("tokenizer.ggml.token_type", &["a"][..]);
    check_type("tokenizer.ggml.bos_token_id", -1_i32);
    check_type("tokenizer.ggml.add_bos_token", 7_u32);
    check_type("tokenizer.ggml.pre", 7_u32);
}

#[test]
fn a_sentencepiece_file_need_not_name_its_special_tokens() {
    let mut writer = GgufWriter::new();
    writer.metadata("tokenizer.ggml.model", "llama").unwrap();
    writer.metadata("tokenizer.ggml.tokens", &["<unk>", "<s>", "</s>", "▁a"][..]).unwrap();
    writer.metadata("tokenizer.ggml.scores", &[0_f32, 0.0, 0.0, -1.0][..]).unwrap();
    writer.metadata("tokenizer.ggml.token_type", &[2_i32, 3, 3, 1][..]).unwrap();
    let gguf = Gguf::parse(writer.begin(Vec::new()).unwrap().finish().unwrap()).unwrap();
    let tokenizer = tokenizer::from_metadata(gguf.metadata()).unwrap();
    let encode = |text| tokenizer.encode(text, EncodeOptions { add_special: true, parse_special: true });
    // The characters of `▁a` are no tokens, but merge into it.
    assert_eq!((encode("a"), encode("b")), (vec![1, 3], vec![1, 0, 0]));
}

#[test]
fn a_folder_says_which_tokens_end_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    assert!(tokenizer::open(folder.path()).unwrap_err().to_string().contains("tokenizer.json"));
    write("tokenizer.json", "{}");
    assert!(tokenizer::open(folder.path()).unwrap_err().to_string().contains("missing field `model`"));
    let document = r#"{"added_tokens":[{"id":3,"content":"<s>","special":true},{"id":4,"content":"<e>","special":true}],
        "decoder":{"type":"ByteLevel"},"pre_tokenizer":{"type":"ByteLevel"},
        "model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}"#;
    write("tokenizer.json", document);
    write("tokenizer_config.json", r#"{"bos_token":"<s>","eos_token":{"content":"<e>"},"pad_token":null}"#);
    write("generation_config.json", r#"{"eos_token_id":[3,4]}"#);
    for path in [folder.path().to_owned(), folder.path().join("tokenizer.json")] {
        let tokenizer = tokenizer::open(&path).unwrap();
        assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.pad()), (Some(3), Some(4), None));
        assert_eq!(tokenizer.end_of_generation(), [3, 4]);
        let ids = tokenizer.encode("abb<e>", EncodeOptions { add_special: true, parse_special: true });
        assert_eq!(ids, [2, 1, 4]);
    }
}
