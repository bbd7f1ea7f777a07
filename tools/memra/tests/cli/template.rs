//! Chats by a model's template.

use super::{Place, Ran, tiny};
use std::io::Write;
use std::process::Stdio;

fn file(place: &Place, name: &str, text: &str) -> String {
    std::fs::write(place.path().join(name), text).unwrap();
    name.to_owned()
}

#[test]
fn a_chat_is_shown_as_the_model_reads_it() {
    let place = Place::new();
    let chat = file(
        &place,
        "chat.json",
        r#"[{"role":"system","content":"S"},{"role":"user","content":"the <|end|>"}]"#,
    );
    let shown = |args: &[&str]| place.memra(&[&["template", tiny(), &chat], args].concat());
    let text = "<|begin|>system: S<|end|><|begin|>user: the <|end|><|end|>";
    assert_eq!(shown(&["--no-generation-prompt"]).stdout, text);
    assert_eq!(shown(&[]).stdout, format!("{text}<|begin|>assistant: "));
    assert_eq!(shown(&["--continue-final"]).stdout, "<|begin|>system: S<|end|><|begin|>user: the <|end|>");

    let report = shown(&["--json", "--ids", "--no-generation-prompt"]).json();
    assert_eq!(report["text"], text);
    let ranges = report["template_ranges"].as_array().unwrap();
    let last: Vec<u64> =
        ranges.last().unwrap().as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert_eq!(
        last,
        [text.len() as u64 - 7, text.len() as u64],
        "the user's <|end|> counts as the template's"
    );
    let ids = report["ids"].as_array().unwrap();
    // The last two ids of the vocabulary are the control tokens: two of each are the template's.
    let most = ids.iter().map(|id| id.as_u64().unwrap()).max().unwrap();
    let count = |wanted: u64| ids.iter().filter(|id| id.as_u64() == Some(wanted)).count();
    assert_eq!((count(most), count(most - 1)), (2, 2));
    let plain = shown(&["--ids", "--no-generation-prompt"]).stdout;
    assert_eq!(plain.trim().split(',').count(), ids.len());
}

#[test]
fn messages_come_from_stdin_and_objects_too() {
    let place = Place::new();
    let mut child = place
        .command(&["template", tiny(), "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let request = br#"{"model":"m","messages":[{"role":"user","content":"Hi"}],"tools":[]}"#;
    child.stdin.take().unwrap().write_all(request).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    ran.expect(0, "");
    assert_eq!(ran.stdout, "<|begin|>user: Hi<|end|><|begin|>assistant: ");

    let parts = r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]"#;
    let parts = file(&place, "parts.json", parts);
    let shown = place.memra(&["template", tiny(), &parts, "--openai"]).stdout;
    assert_eq!(shown, "<|begin|>user: ab<|end|><|begin|>assistant: ");
}

#[test]
fn what_is_no_chat_is_refused_by_name() {
    let place = Place::new();
    let good = file(&place, "good.json", r#"[{"role":"user","content":"Hi"}]"#);
    let empty = file(&place, "empty.json", "[]");
    let broken = file(&place, "broken.json", r#"[{"role":"user",]"#);
    let other = file(&place, "other.json", r#"{"prompt":"Hi"}"#);
    for (args, why) in [
        (vec!["absent.json"], "absent.json"),
        (vec![&*empty], "no messages"),
        (vec![&*broken], "broken.json"),
        (vec![&*other], "messages"),
        (vec![&*good, "--var", "x"], "KEY=JSON"),
        (vec![&*good, "--var", "x=y"], "needs quotes"),
        (vec![&*good, "--var", "messages=1"], "part of the chat"),
        (vec![&*good, "--tools", "absent.json"], "absent.json"),
        (vec![&*good, "--template", "rag"], "it has: default"),
    ] {
        place.memra(&[&["template", tiny()], &args[..]].concat()).expect(2, why);
    }
    place.memra(&["template", "absent.gguf", &good]).expect(2, "absent.gguf");
}

#[test]
fn a_turn_goes_through_the_template() {
    let place = Place::new();
    let run = |args: &[&str]| {
        place.memra(&[&["run", tiny(), "-n", "4", "--ignore-eos", "--json", "-p", "the"], args].concat())
    };
    let chat =
        file(&place, "chat.json", r#"[{"role":"system","content":"S"},{"role":"user","content":"the"}]"#);
    let ids = place.memra(&["template", tiny(), &chat, "--json", "--ids"]).json();
    let answer = run(&["--chat", "--system", "S"]).json();
    assert_eq!(answer["prompt_tokens"].as_u64(), Some(ids["ids"].as_array().unwrap().len() as u64));
    assert_ne!(answer["prompt_tokens"], run(&["--chat"]).json()["prompt_tokens"]);
    run(&["--system", "S"]).expect(2, "--chat");
    run(&["--chat", "--no-parse-special"]).expect(2, "--no-parse-special");
}
