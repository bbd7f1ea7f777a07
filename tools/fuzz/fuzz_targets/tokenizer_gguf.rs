//! The tokenizer of a GGUF file's metadata: keys of any type.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_engine::tokenizer::from_metadata;
use memra_formats::Gguf;
use memra_fuzz::use_tokenizer;

fuzz_target!(|input: &[u8]| {
    let Ok(gguf) = Gguf::parse(input) else { return };
    match from_metadata(gguf.metadata()) {
        Ok(tokenizer) => use_tokenizer(&tokenizer, "Hello  there,\n the 123 world's <s> 日本é\t", false),
        Err(error) => drop(error.to_string()),
    }
});
