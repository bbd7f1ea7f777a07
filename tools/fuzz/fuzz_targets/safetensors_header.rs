//! The header of a safetensors file: the length before it is right, so that all of the input is read as JSON. Its first
//! byte is how many bytes of data follow.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_fuzz::compare_safetensors;

fuzz_target!(|input: &[u8]| {
    let Some((&n_data, header)) = input.split_first() else { return };
    let length = (header.len() as u64).to_le_bytes();
    compare_safetensors(&[&length, header, &vec![7; n_data.into()]].concat());
});
