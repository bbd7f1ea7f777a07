//! Properties that hold for any text and any ids.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_text::{EncodeOptions, Specials, Tokenizer, TokenizerFiles, TokenizerSpec};
use proptest::prelude::*;
use std::sync::LazyLock;

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };
const MERGES: [&str; 12] =
    ["a a", "aa aa", "b a", "c d", "b c", "ba aa", "cd cd", "Ġ a", "Ġ Ġ", "ĠĠ ĠĠ", "Ã ©", "ð Ł"];

/// Every byte, some merges, one control token (the last).
fn spec(pre: &str) -> TokenizerSpec {
    let printable = |b: &u32| matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let alphabet =
        (0..256).filter(printable).chain(0x100..0x144).filter_map(char::from_u32).map(String::from);
    let merged = MERGES.iter().map(|merge| merge.replace(' ', ""));
    let tokens: Vec<String> = alphabet.chain(merged).chain(["<|end|>".to_owned()]).collect();
    let mut token_types = vec![1; tokens.len()];
    token_types[tokens.len() - 1] = 3;
    TokenizerSpec {
        model: "gpt2".into(),
        pre: pre.into(),
        merges: MERGES.map(str::to_owned).to_vec(),
        eos: Some(tokens.len() as u32 - 1),
        tokens,
        token_types,
        ..TokenizerSpec::default()
    }
}

/// Text tokens of [`scored_spec`] and their scores.
const SCORED: [(&str, f32); 14] = [
    ("▁", -3.0),
    ("a", -4.0),
    ("b", -4.0),
    ("d", -4.5),
    ("▁a", -2.0),
    ("▁▁", -1.5),
    ("aa", -2.0),
    ("ab", -1.0),
    ("bc", -1.0),
    ("cd", -0.5),
    ("abcd", -0.25),
    ("aaaa", -2.5),
    ("a▁b", -6.0),
    ("é", -1.0),
];

/// Bytes, then the tokens above (`c` is none), then one control token.
fn scored_spec() -> TokenizerSpec {
    let bytes = (0..256).map(|byte| (format!("<0x{byte:02X}>"), 0.0, 6));
    let texts = SCORED.iter().map(|(token, score)| ((*token).to_owned(), *score, 1));
    let rows: Vec<(String, f32, i32)> = bytes.chain(texts).chain([("<|end|>".to_owned(), 0.0, 3)]).collect();
    TokenizerSpec {
        model: "llama".into(),
        tokens: rows.iter().map(|row| row.0.clone()).collect(),
        scores: rows.iter().map(|row| row.1).collect(),
        token_types: rows.iter().map(|row| row.2).collect(),
        add_bos: Some(false),
        ..TokenizerSpec::default()
    }
}

static LLAMA: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::from_spec(scored_spec()).unwrap());
static GPT2: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::from_spec(spec("gpt-2")).unwrap());
static SMOLLM: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::from_spec(spec("smollm")).unwrap());

/// Text with much of what merges and splits.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[abcd]{1,12}",
        2 => "[ \n\t\u{a0}]{1,6}",
        1 => "'(s|t|re|ve|m|ll|d|x)",
        1 => "[0-9½٣]{1,4}",
        1 => "<\\|end\\|>|<\\|en",
        2 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Merging done the slow way: the best pair anywhere, the leftmost of equals, until there is none.
fn merge_slowly(word: &str) -> Vec<String> {
    let mut pieces: Vec<String> = word.chars().map(String::from).collect();
    loop {
        let rank = |i: usize| MERGES.iter().position(|m| *m == format!("{} {}", pieces[i], pieces[i + 1]));
        let best = (0..pieces.len().saturating_sub(1)).filter_map(|i| Some((rank(i)?, i))).min();
        let Some((_, at)) = best else { return pieces };
        let right = pieces.remove(at + 1);
        pieces[at].push_str(&right);
    }
}

/// Merging by scores done the slow way: the best pair that is a token anywhere, the leftmost of equals; then bytes.
fn score_slowly(word: &str) -> Vec<String> {
    let mut pieces: Vec<String> = word.replace(' ', "▁").chars().map(String::from).collect();
    let find = |piece: &str| SCORED.iter().find(|(token, _)| *token == piece);
    loop {
        let score = |i: usize| Some((find(&format!("{}{}", pieces[i], pieces[i + 1]))?.1, i));
        let pairs = (0..pieces.len().saturating_sub(1)).filter_map(score);
        let best = pairs.reduce(|best, pair| if pair.0 > best.0 { pair } else { best });
        let Some((_, at)) = best else { break };
        let right = pieces.remove(at + 1);
        pieces[at].push_str(&right);
    }
    let spell = |piece: String| match find(&piece) {
        Some(_) => vec![piece],
        None => piece.bytes().map(|byte| format!("<0x{byte:02X}>")).collect(),
    };
    pieces.into_iter().flat_map(spell).collect()
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(text in text(), parse_special: bool) {
        for tokenizer in [&GPT2, &SMOLLM] {
            let ids = tokenizer.encode(&text, EncodeOptions { add_special: false, parse_special });
            prop_assert_eq!(tokenizer.decode(&ids, Specials::Show), text.clone());
        }
        // The mark of a space is one.
        let text = text.replace('▁', " ");
        prop_assert_eq!(LLAMA.decode(&LLAMA.encode(&text, PLAIN), Specials::Show), text);
    }

    #[test]
    fn user_text_never_becomes_a_control_token(text in text()) {
        for tokenizer in [&GPT2, &LLAMA] {
            prop_assert!(!tokenizer.encode(&text, PLAIN).iter().any(|&id| tokenizer.is_special(id)));
        }
    }

    #[test]
    fn merging_agrees_with_the_slow_way(word in "[abcd]{0,40}") {
        let expected: Vec<u32> = merge_slowly(&word).iter().map(|t| GPT2.token_id(t).unwrap()).collect();
        prop_assert_eq!(GPT2.encode(&word, PLAIN), expected);
    }

    #[test]
    fn scoring_agrees_with_the_slow_way(word in "[abcdé五 ]{0,40}") {
        let pieces = score_slowly(&format!(" {word}"));
        let expected: Vec<u32> = pieces.iter().map(|piece| LLAMA.token_id(piece).unwrap()).collect();
        let ids = LLAMA.encode(&word, PLAIN);
        prop_assert_eq!(ids, if word.is_empty() { vec![] } else { expected });
    }

    #[test]
    fn streaming_emits_each_character_with_the_token_that_completes_it(
        ids in prop::collection::vec(prop_oneof![0u32..300, 0xC0u32..256, any::<u32>()], 0..40),
        skip: bool,
        scored: bool,
    ) {
        let tokenizer = if scored { &LLAMA } else { &GPT2 };
        let specials = if skip { Specials::Skip } else { Specials::Show };
        let mut detokenizer = tokenizer.detokenizer(specials);
        let (mut bytes, mut streamed) = (Vec::new(), String::new());
        for &id in &ids {
            if !(skip && tokenizer.is_special(id)) {
                bytes.extend_from_slice(tokenizer.token_bytes(id));
            }
            streamed.push_str(detokenizer.push(id));
            // What may still become a character is the only thing held back.
            let held = (1..=3.min(bytes.len())).rev().find(|n| {
                let error = std::str::from_utf8(&bytes[bytes.len() - n..]).err();
                error.is_some_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
            });
            let due = String::from_utf8_lossy(&bytes[..bytes.len() - held.unwrap_or(0)]);
            prop_assert_eq!(streamed.as_str(), due);
        }
        streamed.push_str(detokenizer.finish());
        prop_assert_eq!(streamed.as_str(), String::from_utf8_lossy(&bytes));
        prop_assert_eq!(detokenizer.finish(), "");
        // A text by itself loses the space that the tokenizer puts in front.
        let whole = if scored { streamed.strip_prefix(' ').unwrap_or(&streamed) } else { &streamed };
        prop_assert_eq!(tokenizer.decode(&ids, specials), whole);
    }

    #[test]
    fn made_up_specifications_are_refused_or_work(spec in hostile(), text in text(), ids: [u32; 4]) {
        if let Ok(tokenizer) = Tokenizer::from_spec(spec) {
            let encoded = tokenizer.encode(&text, EncodeOptions { add_special: true, parse_special: true });
            prop_assert!(encoded.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
            tokenizer.decode(&encoded, Specials::Show);
            tokenizer.decode(&ids, Specials::Skip);
        }
    }

    #[test]
    fn damaged_documents_are_refused_or_work(at in any::<prop::sample::Index>(), with in "\\PC{0,3}", text in text()) {
        const DOCUMENT: &str = r#"{"added_tokens":[{"id":6,"content":"<s>","special":true,"normalized":true,"lstrip":true}],
            "normalizer":{"type":"Replace","pattern":{"Regex":"a{2,}"},"content":"a"},
            "pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"[^\\s\\p{L}]?\\p{L}+|\\s+(?!\\S)"},
            "behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":true,"use_regex":false}]},
            "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
            {"Sequence":{"id":"A","type_id":0}}],"special_tokens":{"<s>":{"ids":[6]}}},"decoder":{"type":"ByteLevel"},
            "model":{"type":"BPE","unk_token":"a","fuse_unk":true,"byte_fallback":true,"ignore_merges":true,
            "vocab":{"a":0,"b":1,"ab":2,"Ġ":3,"Ġab":4,"<0x41>":5},"merges":["a b",["Ġ","ab"]]}}"#;
        let at = at.index(DOCUMENT.len());
        let document = [&DOCUMENT.as_bytes()[..at], with.as_bytes(), &DOCUMENT.as_bytes()[at + 1..]].concat();
        let files = TokenizerFiles { tokenizer: &document, tokenizer_config: None, generation_config: None };
        if let Ok(tokenizer) = Tokenizer::from_json(&files) {
            let ids = tokenizer.encode(&text, EncodeOptions { add_special: true, parse_special: true });
            prop_assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
            tokenizer.decode(&ids, Specials::Show);
        }
    }
}

/// Specifications in which anything may be wrong.
fn hostile() -> impl Strategy<Value = TokenizerSpec> {
    let names = prop::sample::select(vec![
        "a", "b", "ab", "▁", "▁a", "<0x41>", "<0x4", "</s>", "<s>", "é", "Ġ", "\n", "",
    ]);
    let token = prop_oneof![9 => names.prop_map(str::to_owned), 1 => any::<String>()];
    let id = || prop::option::weighted(0.3, prop_oneof![4 => 0u32..8, 1 => any::<u32>()]);
    let score = prop_oneof![8 => -5f32..5.0, 1 => Just(f32::NAN), 1 => Just(f32::INFINITY)];
    let model = prop::sample::select(vec!["gpt2", "llama", "gemma4", "bert", ""]);
    let pre = prop::sample::select(vec!["gpt-2", "llama-bpe", "deepseek-v3", "superbpe", "gemma4", "x"]);
    let tables = (
        prop::collection::vec(token, 0..8),
        prop::collection::vec(score, 0..9),
        prop::collection::vec(prop_oneof![9 => 1i32..7, 1 => any::<i32>()], 0..9),
        prop::collection::vec(prop::sample::select(vec!["a b", "▁ a", "b a", "a", " a", "a  b"]), 0..3),
    );
    let flags = prop::array::uniform3(any::<Option<bool>>());
    (model, pre, tables, prop::array::uniform4(id()), flags).prop_map(|(model, pre, tables, ids, flags)| {
        let (tokens, mut scores, mut token_types, merges) = tables;
        // Mostly as long as they should be.
        if scores.len() < 8 {
            scores.resize(tokens.len(), 0.5);
        }
        if token_types.len() < 8 {
            token_types.resize(tokens.len(), 1);
        }
        let [bos, eos, unk, pad] = ids;
        let [add_bos, add_eos, add_space_prefix] = flags;
        TokenizerSpec {
            model: model.into(),
            pre: pre.into(),
            tokens,
            scores,
            token_types,
            merges: merges.into_iter().map(str::to_owned).collect(),
            bos,
            eos,
            unk,
            pad,
            ends: pad.into_iter().collect(),
            add_bos,
            add_eos,
            add_space_prefix,
            name: "phi-3".into(),
        }
    })
}

/// Runs on which merging by repeated search would take minutes.
#[test]
fn long_runs() {
    for (unit, count, tokens) in
        [("x", 36_000, 36_000), ("a", 131_072, 32_768), (" ", 36_000, 9_000), ("\u{200d}", 20_000, 60_000)]
    {
        let text = unit.repeat(count);
        let ids = SMOLLM.encode(&text, EncodeOptions { add_special: true, parse_special: true });
        assert_eq!((ids.len(), SMOLLM.decode(&ids, Specials::Show) == text), (tokens, true), "{unit:?}");
    }
}
