//! A `tokenizer.json` with the documents beside it, and any text through it; the parts of an input end in the byte FF,
//! which no UTF-8 has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_fuzz::{parts, use_tokenizer};
use memra_text::{Tokenizer, TokenizerFiles};

fuzz_target!(|input: &[u8]| {
    let [tokenizer, config, generation, text] = parts(input);
    let files = TokenizerFiles {
        tokenizer,
        tokenizer_config: Some(config).filter(|config| !config.is_empty()),
        generation_config: Some(generation).filter(|generation| !generation.is_empty()),
    };
    match Tokenizer::from_json(&files) {
        Ok(tokenizer) => use_tokenizer(&tokenizer, &String::from_utf8_lossy(text), false),
        Err(error) => drop(error.to_string()),
    }
});
