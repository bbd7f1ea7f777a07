//! One safetensors file, read by our reader and by the format's own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_fuzz::compare_safetensors;

fuzz_target!(|input: &[u8]| compare_safetensors(input));
