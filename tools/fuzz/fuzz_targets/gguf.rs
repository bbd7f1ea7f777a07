//! One GGUF file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_formats::{Gguf, SharedBytes};
use memra_fuzz::{bounded, use_gguf};

fuzz_target!(|input: &[u8]| {
    let bytes = SharedBytes::from(input);
    if let Ok(gguf) = bounded(input.len(), || Gguf::parse(bytes).map_err(|error| error.to_string())) {
        use_gguf(&gguf);
    }
});
