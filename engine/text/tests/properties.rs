//! Properties that hold for any text and any ids.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_text::{EncodeOptions, Specials, Tokenizer, TokenizerSpec};
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

proptest! {
    #[test]
    fn decoding_undoes_encoding(text in text(), parse_special: bool) {
        for tokenizer in [&GPT2, &SMOLLM] {
            let ids = tokenizer.encode(&text, EncodeOptions { add_special: false, parse_special });
            prop_assert_eq!(tokenizer.decode(&ids, Specials::Show), text.clone());
        }
    }

    #[test]
    fn user_text_never_becomes_a_control_token(text in text()) {
        prop_assert!(!GPT2.encode(&text, PLAIN).iter().any(|&id| GPT2.is_special(id)));
    }

    #[test]
    fn merging_agrees_with_the_slow_way(word in "[abcd]{0,40}") {
        let expected: Vec<u32> = merge_slowly(&word).iter().map(|t| GPT2.token_id(t).unwrap()).collect();
        prop_assert_eq!(GPT2.encode(&word, PLAIN), expected);
    }

    #[test]
    fn streaming_emits_each_character_with_the_token_that_completes_it(
        ids in prop::collection::vec(prop_oneof![0u32..300, 0xC0u32..256, any::<u32>()], 0..40),
        skip: bool,
    ) {
        let specials = if skip { Specials::Skip } else { Specials::Show };
        let mut detokenizer = GPT2.detokenizer(specials);
        let (mut bytes, mut streamed) = (Vec::new(), String::new());
        for &id in &ids {
            if !(skip && GPT2.is_special(id)) {
                bytes.extend_from_slice(GPT2.token_bytes(id));
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
        prop_assert_eq!(GPT2.decode(&ids, specials), streamed);
        prop_assert_eq!(detokenizer.finish(), "");
    }
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
