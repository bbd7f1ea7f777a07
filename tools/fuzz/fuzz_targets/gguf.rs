//! One GGUF file: read, summed up, and its needs reckoned.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_formats::{Checkpoint, Gguf, SharedBytes};
use memra_fuzz::{bounded, use_figures, use_gguf};

fuzz_target!(|input: &[u8]| {
    let bytes = SharedBytes::from(input);
    if let Ok(gguf) = bounded(input.len(), || Gguf::parse(bytes).map_err(|error| error.to_string())) {
        use_gguf(&gguf);
        use_figures(&Checkpoint::Gguf(gguf));
    }
});
