//! Tokenizers from `tokenizer.json` as the PyPI package tokenizers has them, on a fixture (see tools/text/json_fixtures.py).
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_text::{EncodeOptions, Specials, Tokenizer, TokenizerError, TokenizerFiles};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Fixture {
    vocabularies: BTreeMap<String, Value>,
    tokenizers: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    /// Whether merges are written as pairs.
    #[serde(default)]
    pairs: bool,
    /// Which vocabulary it has; a document without one is whole.
    #[serde(default)]
    vocabulary: Option<String>,
    document: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    text: String,
    /// With all special tokens.
    ids: Vec<u32>,
    /// As text that a user wrote, where that differs.
    plain: Option<Vec<u32>>,
    /// Text of `ids` with special tokens, where that differs from `text`.
    shown: Option<String>,
    /// Text without special tokens, where that differs from the one with them.
    skipped: Option<String>,
}

fn build(document: &Value) -> Result<Tokenizer, TokenizerError> {
    let tokenizer = document.to_string();
    let files =
        TokenizerFiles { tokenizer: tokenizer.as_bytes(), tokenizer_config: None, generation_config: None };
    Tokenizer::from_json(&files)
}

impl Fixture {
    fn load() -> Fixture {
        // Other texts than the fixture's, see tools/text/json_fixtures.py.
        let text = match std::env::var_os("MEMRA_TOKENIZERS") {
            Some(path) => std::fs::read_to_string(path).unwrap(),
            None => include_str!("fixtures/tokenizers.json").to_owned(),
        };
        serde_json::from_str(&text).unwrap()
    }

    /// The whole document of a row.
    fn document(&self, row: &Row) -> Value {
        let mut document = row.document.clone();
        let Some(vocabulary) = &row.vocabulary else { return document };
        let vocabulary = &self.vocabularies[vocabulary];
        let merges = vocabulary["merges"].as_array().unwrap();
        let pair = |merge: &Value| json!(merge.as_str().unwrap().split(' ').collect::<Vec<_>>());
        document["model"]["type"] = json!("BPE");
        document["model"]["vocab"] = vocabulary["vocab"].clone();
        document["model"]["merges"] =
            merges.iter().map(|merge| if row.pairs { pair(merge) } else { merge.clone() }).collect();
        document
    }
}

#[test]
fn every_kind() {
    let fixture = Fixture::load();
    assert!(fixture.tokenizers.len() > 25);
    let mut wrong = Vec::new();
    let mut graded = 0;
    for row in &fixture.tokenizers {
        let tokenizer = build(&fixture.document(row)).unwrap_or_else(|error| panic!("{}: {error}", row.name));
        let mut check = |what, case: &Case, found: String, expected: String| {
            graded += 1;
            if found != expected {
                wrong.push(format!("{} {what} of {:?}:\n   {found}\nnot {expected}", row.name, case.text));
            }
        };
        for case in &row.cases {
            let encode = |all| {
                let options = EncodeOptions { add_special: all, parse_special: all };
                format!("{:?}", tokenizer.encode(&case.text, options))
            };
            let decode = |specials| tokenizer.decode(&case.ids, specials);
            check("ids", case, encode(true), format!("{:?}", case.ids));
            check(
                "plain ids",
                case,
                encode(false),
                format!("{:?}", case.plain.as_ref().unwrap_or(&case.ids)),
            );
            let shown = case.shown.as_ref().unwrap_or(&case.text);
            check("text", case, decode(Specials::Show), shown.clone());
            let skipped = case.skipped.as_ref().unwrap_or(shown);
            check("text without specials", case, decode(Specials::Skip), skipped.clone());
        }
    }
    assert!(graded > 1000);
    let shown = wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {graded} differ:\n{shown}", wrong.len());
}
