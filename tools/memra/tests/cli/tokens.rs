//! Text to tokens and back.

use super::{Place, Ran, tiny};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Runs memra with `input` on standard input.
fn fed(place: &Place, args: &[&str], input: &[u8]) -> Ran {
    let mut command = place.command(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn tokens_of_a_text_give_the_text_again() {
    let place = Place::new();
    let text = "the hat — é\u{1f600}";
    let line = place.memra(&["tokenize", tiny(), text]);
    line.expect(0, "");
    assert!(line.stdout.split_whitespace().all(|id| id.parse::<u32>().is_ok()), "{}", line.stdout);
    for ran in [
        fed(&place, &["tokenize", tiny()], text.as_bytes()),
        fed(&place, &["tokenize", tiny(), "-"], text.as_bytes()),
    ] {
        assert_eq!(ran.stdout, line.stdout);
    }
    std::fs::write(place.path().join("text"), text).unwrap();
    assert_eq!(place.memra(&["tokenize", tiny(), "-f", "text"]).stdout, line.stdout);

    let back = fed(&place, &["detokenize", tiny(), "-"], line.stdout.as_bytes());
    assert_eq!(back.stdout, format!("{text}\n"), "{}", back.stderr);
    let ids = line.stdout.trim().replace(' ', ",");
    assert_eq!(place.memra(&["detokenize", tiny(), &ids, "--json"]).json()["text"], text);
    let words: Vec<&str> = ["detokenize", tiny()].into_iter().chain(line.stdout.split_whitespace()).collect();
    assert_eq!(place.memra(&words).stdout, back.stdout);
}

#[test]
fn json_has_ids_and_pieces() {
    let place = Place::new();
    let json = place.memra(&["tokenize", tiny(), "thé", "--json"]).json();
    let (ids, pieces) = (json["ids"].as_array().unwrap(), json["pieces"].as_array().unwrap());
    assert_eq!(ids.len(), pieces.len());
    // Text where a token is whole characters, bytes where it is a part of one.
    let bytes = |piece: &serde_json::Value| match piece.as_array() {
        Some(bytes) => bytes.iter().map(|byte| byte.as_u64().unwrap() as u8).collect(),
        None => piece.as_str().unwrap().as_bytes().to_vec(),
    };
    assert_eq!(pieces.iter().flat_map(bytes).collect::<Vec<u8>>(), "thé".as_bytes());
    assert!(pieces.iter().any(serde_json::Value::is_array));
    assert_eq!(place.memra(&["tokenize", tiny(), "", "--json"]).json()["ids"], serde_json::json!([]));
}

/// A folder with a tokenizer and nothing else: bos, `a`, `b`, `ab`.
fn folder(place: &Place) -> &Path {
    let document = r#"{"added_tokens":[{"id":3,"content":"<s>","special":true}],"decoder":{"type":"ByteLevel"},
        "pre_tokenizer":{"type":"ByteLevel"},
        "post_processor":{"type":"BertProcessing","cls":["<s>",3],"sep":["<s>",3]},
        "model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}"#;
    std::fs::write(place.path().join("tokenizer.json"), document).unwrap();
    place.path()
}

#[test]
fn a_tokenizer_needs_no_model() {
    let place = Place::new();
    for model in [folder(&place), &place.path().join("tokenizer.json")] {
        let model = model.to_str().unwrap();
        assert_eq!(place.memra(&["tokenize", model, "ab<s>"]).stdout, "3 2 3 3\n");
        assert_eq!(place.memra(&["tokenize", model, "ab<s>", "--no-specials"]).stdout, "2\n");
        assert_eq!(place.memra(&["detokenize", model, "3", "2"]).stdout, "<s>ab\n");
    }
}

#[test]
fn mistakes_are_named() {
    let place = Place::new();
    place.memra(&["detokenize", tiny(), "99999999"]).expect(2, "token 99999999 is outside the vocabulary");
    place.memra(&["detokenize", tiny(), "1", "x"]).expect(2, "`x` is not a token id");
    place.memra(&["detokenize", tiny()]).expect(2, "--help");
    place.memra(&["tokenize", "absent.gguf", "x"]).expect(2, "absent.gguf");
    place.memra(&["tokenize", tiny(), "-f", "absent.txt"]).expect(2, "absent.txt");
    fed(&place, &["tokenize", tiny()], b"\xff").expect(2, "standard input: not UTF-8");
    place.memra(&["tokenize", ".", "x"]).expect(2, "tokenizer.json");
    std::fs::write(place.path().join("tokenizer.json"), r#"{"model":{"type":"WordPiece","vocab":{}}}"#)
        .unwrap();
    place.memra(&["tokenize", ".", "x"]).expect(2, "tokenizer model `WordPiece` is not supported");
}
