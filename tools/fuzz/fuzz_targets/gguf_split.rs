//! The parts of a split GGUF model.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_formats::{Gguf, SharedBytes};
use memra_fuzz::{bounded, unpack, use_gguf};

fuzz_target!(|input: &[u8]| {
    let parts: Vec<SharedBytes> = unpack(input, 8).into_iter().map(SharedBytes::from).collect();
    let read = || Gguf::parse_parts(&parts).map_err(|error| error.to_string());
    if let Ok(gguf) = bounded(input.len(), read) {
        use_gguf(&gguf);
    }
});
