//! A tokenizer of any tables in the sense of GGUF's metadata, and any text through it.
//!
//! An input is parts that end in the byte FF: options, tokens, merges, the text; tokens and merges end in FE.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_fuzz::{byte_alphabet, parts, use_tokenizer};
use memra_text::{Tokenizer, TokenizerSpec};

const MODELS: [&str; 4] = ["gpt2", "llama", "gemma4", "bert"];
const PRES: [&str; 8] =
    ["smollm", "default", "qwen2", "llama-bpe", "gpt-4o", "deepseek-v3", "tekken", "no such"];

fuzz_target!(|input: &[u8]| {
    let [options, tokens, merges, text] = parts(input);
    let option = |i: usize| usize::from(options.get(i).copied().unwrap_or_default());
    let list = |bytes: &[u8]| -> Vec<String> {
        let items = bytes.split(|&byte| byte == 0xFE).filter(|item| !item.is_empty());
        items.map(|item| String::from_utf8_lossy(item).into_owned()).collect()
    };
    // With the whole alphabet every text has tokens; without it, the tables are as strange as they come.
    let is_whole = option(0) & 1 == 0;
    let model = MODELS[option(0) / 2 % MODELS.len()];
    let mut all = match model {
        "gpt2" if is_whole => byte_alphabet(),
        "llama" | "gemma4" if is_whole => (0..=u8::MAX).map(|byte| format!("<0x{byte:02X}>")).collect(),
        _ => Vec::new(),
    };
    let n_bytes = all.len();
    all.extend(list(tokens));
    let n = all.len();
    let token = |i: usize| (option(i) & 1 == 1).then(|| option(i) as u32 >> 1);
    let flag = |i: usize| [None, Some(false), Some(true)][option(i) % 3];
    let kind =
        |i: usize| if i < n_bytes { if model == "gpt2" { 1 } else { 6 } } else { (i * option(1)) as i32 % 7 };
    let spec = TokenizerSpec {
        model: model.to_owned(),
        pre: PRES[option(2) % PRES.len()].to_owned(),
        tokens: all,
        scores: if option(3) == 0 { Vec::new() } else { (0..n).map(|i| -((i * option(3)) as f32)).collect() },
        token_types: if option(1) == 0 && model == "gpt2" { Vec::new() } else { (0..n).map(kind).collect() },
        merges: list(merges),
        bos: token(4),
        eos: token(5),
        unk: token(6),
        pad: token(7),
        ends: token(8).into_iter().collect(),
        add_bos: flag(9),
        add_eos: flag(10),
        add_space_prefix: flag(11),
        name: if option(12) & 1 == 0 { "" } else { "Phi-3" }.to_owned(),
    };
    // Byte-level BPE gives back every text that it was given, where all tokens are ordinary.
    let is_lossless = is_whole && model == "gpt2" && option(1) == 0;
    match Tokenizer::from_spec(spec) {
        Ok(tokenizer) => use_tokenizer(&tokenizer, &String::from_utf8_lossy(text), is_lossless),
        Err(error) => drop(error.to_string()),
    }
});
