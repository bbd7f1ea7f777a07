use super::*;
use memra_text::{EncodeOptions, Specials, Tokenizer, TokenizerSpec};
use std::collections::HashSet;

#[test]
fn sizes_and_special_ids_are_the_real_ones() {
    let expected = [
        (
            qwen3(),
            151_936,
            vec![(198, "Ċ"), (151_643, "<|endoftext|>"), (151_645, "<|im_end|>"), (151_668, "</think>")],
        ),
        (
            llama3(),
            128_256,
            vec![
                (128_000, "<|begin_of_text|>"),
                (128_009, "<|eot_id|>"),
                (128_010, "<|reserved_special_token_5|>"),
                (128_255, "<|reserved_special_token_250|>"),
            ],
        ),
        (
            gemma3(),
            262_144,
            vec![(0, "<pad>"), (1, "<eos>"), (2, "<bos>"), (105, "<start_of_turn>"), (107, "\n")],
        ),
    ];
    for (vocabulary, count, names) in expected {
        assert_eq!((vocabulary.tokens.len(), vocabulary.types.len()), (count, count));
        let different: HashSet<&String> = vocabulary.tokens.iter().collect();
        assert_eq!(different.len(), count);
        for (id, name) in names {
            assert_eq!(vocabulary.tokens[id], name);
        }
        assert!(vocabulary.tokens.iter().all(|token| !token.is_empty() && token.chars().count() <= 40));
    }
}

#[test]
fn words_are_reached_by_merging_and_look_like_words() {
    for vocabulary in [qwen3(), llama3(), gemma3()] {
        let normal = vocabulary.types.iter().enumerate().filter(|(_, kind)| **kind == NORMAL);
        // The letters come first.
        let words: Vec<u32> = normal.skip(256).map(|(id, _)| id as u32).step_by(23).collect();
        let name = vocabulary.chat_template;
        let tokenizer = Tokenizer::from_spec(TokenizerSpec {
            model: vocabulary.model.into(),
            pre: vocabulary.pre.into(),
            tokens: vocabulary.tokens,
            scores: vocabulary.scores,
            token_types: vocabulary.types,
            merges: vocabulary.merges,
            unk: vocabulary.unk,
            add_space_prefix: vocabulary.add_space_prefix,
            ..TokenizerSpec::default()
        })
        .unwrap();
        let options = EncodeOptions { add_special: false, parse_special: false };
        let mut wordlike = 0;
        for &id in &words {
            let text = tokenizer.decode(&[id], Specials::Show);
            assert_eq!(tokenizer.encode(&text, options), [id], "{text:?} of {name}");
            wordlike += usize::from(text.trim_start().bytes().all(|b| b.is_ascii_lowercase()));
        }
        assert_eq!(wordlike, words.len());
        let english = tokenizer.encode("The quick brown fox and all the people", options);
        assert!(english.len() < 16, "{english:?}");
    }
}

#[test]
fn scores_of_pieces_fall_and_bytes_are_covered() {
    let vocabulary = gemma3();
    assert_eq!(vocabulary.scores.len(), vocabulary.tokens.len());
    let bytes: Vec<&String> = vocabulary
        .tokens
        .iter()
        .zip(&vocabulary.types)
        .filter(|(_, kind)| **kind == BYTE)
        .map(|(t, _)| t)
        .collect();
    assert_eq!((bytes.len(), bytes[10].as_str(), bytes[255].as_str()), (256, "<0x0A>", "<0xFF>"));
    let pieces: Vec<(&String, f32)> = vocabulary
        .tokens
        .iter()
        .zip(&vocabulary.types)
        .zip(&vocabulary.scores)
        .filter(|((_, kind), _)| **kind == NORMAL)
        .map(|((token, _), score)| (token, *score))
        .collect();
    assert!(pieces.windows(2).all(|pair| pair[0].1 > pair[1].1));
    assert_eq!((pieces[0].0.as_str(), pieces[0].1), ("▁", 0.0));
    assert!(pieces.iter().any(|(piece, _)| *piece == "▁the"));
}

#[test]
fn templates_speak_of_tokens_that_exist() {
    for (vocabulary, names) in [
        (qwen3(), ["<|im_start|>", "<|im_end|>"]),
        (llama3(), ["<|start_header_id|>", "<|eot_id|>"]),
        (gemma3(), ["<start_of_turn>", "<end_of_turn>"]),
    ] {
        let template = vocabulary.chat_template;
        assert!(template.contains("add_generation_prompt"), "{template}");
        for name in names {
            let id = vocabulary.tokens.iter().position(|token| token == name).unwrap();
            assert!(template.contains(name) && vocabulary.types[id] == CONTROL, "{name}");
        }
    }
}
