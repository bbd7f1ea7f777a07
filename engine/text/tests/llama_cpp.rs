//! Token ids and text as llama.cpp gives them, on fixtures (see tools/text/tokenizer_fixtures.py and preset_fixtures.py).
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_text::{EncodeOptions, Specials, Tokenizer, TokenizerSpec};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Fixture {
    tokens: Vec<String>,
    token_types: Vec<i32>,
    #[serde(default)]
    scores: Vec<f32>,
    merges: Vec<String>,
    bos: u32,
    eos: u32,
    #[serde(default)]
    end_of_generation: Vec<u32>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    /// Which pre-tokenizer, or which use of the vocabulary.
    #[serde(alias = "pre")]
    variant: String,
    text: String,
    ids: Vec<u32>,
    ids_noparse: Vec<u32>,
    detok: String,
    detok_skip: String,
}

impl Case {
    fn check(&self, tokenizer: &Tokenizer) {
        let encode =
            |parse_special| tokenizer.encode(&self.text, EncodeOptions { add_special: true, parse_special });
        let what = format!("{} {:?}", self.variant, self.text);
        assert_eq!(encode(true), self.ids, "ids of {what}");
        assert_eq!(encode(false), self.ids_noparse, "ids with specials unparsed of {what}");
        // llama.cpp's pieces, one after another, as of a text that goes on.
        let decode = |specials| {
            let mut detokenizer = tokenizer.detokenizer(specials);
            let text: String = self.ids.iter().map(|&id| detokenizer.push(id).to_owned()).collect();
            text + detokenizer.finish()
        };
        assert_eq!(decode(Specials::Show), self.detok, "text of the ids of {what}");
        assert_eq!(decode(Specials::Skip), self.detok_skip, "text without specials of {what}");
    }
}

/// Checks every case of a fixture; `variants` makes the tokenizer of each kind of case from what all share.
fn check(fixture: &str, variants: &[(&str, Change)]) -> (Fixture, Vec<Tokenizer>) {
    let fixture: Fixture = serde_json::from_str(fixture).unwrap();
    let mut tokenizers = Vec::new();
    for (name, change) in variants {
        let spec = TokenizerSpec {
            tokens: fixture.tokens.clone(),
            token_types: fixture.token_types.clone(),
            bos: Some(fixture.bos),
            eos: Some(fixture.eos),
            merges: fixture.merges.clone(),
            scores: fixture.scores.clone(),
            ..TokenizerSpec::default()
        };
        let tokenizer = Tokenizer::from_spec(change(spec)).unwrap();
        let cases: Vec<&Case> = fixture.cases.iter().filter(|case| case.variant == *name).collect();
        assert!(cases.len() > 50, "{} cases of {name}", cases.len());
        cases.iter().for_each(|case| case.check(&tokenizer));
        tokenizers.push(tokenizer);
    }
    (fixture, tokenizers)
}

type Change = fn(TokenizerSpec) -> TokenizerSpec;

#[test]
fn small_vocabulary() {
    fn byte_level(pre: &str, given: TokenizerSpec) -> TokenizerSpec {
        TokenizerSpec { model: "gpt2".into(), pre: pre.into(), add_bos: Some(true), ..given }
    }
    let variants: [(&str, Change); 2] =
        [("gpt-2", |given| byte_level("gpt-2", given)), ("smollm", |given| byte_level("smollm", given))];
    let (fixture, tokenizers) = check(include_str!("fixtures/small.json"), &variants);
    for tokenizer in tokenizers {
        assert_eq!(tokenizer.end_of_generation(), fixture.end_of_generation);
    }
}

#[test]
fn characters() {
    fn scored(given: TokenizerSpec) -> TokenizerSpec {
        TokenizerSpec { model: "llama".into(), unk: Some(0), ..given }
    }
    let variants: [(&str, Change); 3] = [
        ("llama", scored),
        ("llama-plain", |given| TokenizerSpec {
            add_space_prefix: Some(false),
            add_eos: Some(true),
            ..scored(given)
        }),
        // Files of this family say wrongly that bos is not added.
        ("gemma4", |given| TokenizerSpec { model: "gemma4".into(), add_bos: Some(false), ..given }),
    ];
    check(include_str!("fixtures/characters.json"), &variants);
}

#[derive(Deserialize)]
struct Presets {
    bytes: Vec<usize>,
    names: Vec<String>,
    cases: Vec<PresetCase>,
}

#[derive(Deserialize)]
struct PresetCase {
    text: String,
    results: Vec<PresetResult>,
}

#[derive(Deserialize)]
struct PresetResult {
    ids: Vec<u32>,
    /// Indices of the presets that give these.
    names: Vec<usize>,
}

/// Every byte, then every pair of `used` bytes, as in tools/text/preset_fixtures.py.
fn pairs(used: &[usize], pre: &str) -> TokenizerSpec {
    let printable = |byte: &u32| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut others = 0x100..;
    let character = |byte: u32| if printable(&byte) { Some(byte) } else { others.next() };
    let mut tokens: Vec<String> =
        (0..256).filter_map(character).filter_map(char::from_u32).map(String::from).collect();
    let count = used.len().pow(2);
    let mut merges = Vec::new();
    for i in 0..count {
        let pair = i * 7919 % count;
        let [left, right] = [pair / used.len(), pair % used.len()].map(|at| tokens[used[at]].clone());
        merges.push(format!("{left} {right}"));
        tokens.push(left + &right);
    }
    TokenizerSpec {
        model: "gpt2".into(),
        pre: pre.into(),
        tokens,
        merges,
        add_bos: Some(false),
        ..TokenizerSpec::default()
    }
}

#[test]
fn presets() {
    // Other texts than the fixture's, see tools/text/preset_fixtures.py.
    let text = match std::env::var_os("MEMRA_PRESETS") {
        Some(path) => std::fs::read_to_string(path).unwrap(),
        None => include_str!("fixtures/presets.json").to_owned(),
    };
    let fixture: Presets = serde_json::from_str(&text).unwrap();
    assert!(fixture.names.len() > 80 && fixture.cases.len() >= 100);
    let tokenizers: Vec<Tokenizer> =
        fixture.names.iter().map(|name| Tokenizer::from_spec(pairs(&fixture.bytes, name)).unwrap()).collect();
    let (mut wrong, mut graded) = (BTreeMap::new(), 0);
    for case in &fixture.cases {
        for result in &case.results {
            for &name in &result.names {
                let options = EncodeOptions { add_special: true, parse_special: false };
                graded += 1;
                if tokenizers[name].encode(&case.text, options) != result.ids {
                    wrong.entry(&fixture.names[name]).or_insert_with(Vec::new).push(&case.text);
                }
            }
        }
    }
    assert_eq!(graded, fixture.names.len() * fixture.cases.len());
    let few: Vec<_> =
        wrong.iter().map(|(name, texts)| (name, texts.len(), &texts[..texts.len().min(3)])).collect();
    assert!(wrong.is_empty(), "other tokens than llama.cpp's, of {graded} graded: {few:#?}");
}
