//! Quantised blocks: any bytes decode, and any numbers encode. The first byte chooses the type.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_kernels::{DType, quant};
use std::hint::black_box;

fuzz_target!(|input: &[u8]| {
    let Some((&which, bytes)) = input.split_first() else { return };
    let types: Vec<DType> = DType::all().collect();
    let dtype = types[usize::from(which) % types.len()];
    let (n, size) = (dtype.block_len(), dtype.block_bytes());
    let n_blocks = bytes.len() / size;
    let mut values = vec![0.0; n_blocks * n];
    quant::decode(dtype, &bytes[..n_blocks * size], &mut values).expect("whole blocks are decoded");
    // Some types search for the nearest of many grids; a few blocks of them do.
    check_encoding(dtype, &values[..values.len().min(4 * n)]);
    let numbers: Vec<f32> = bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
    check_encoding(dtype, &numbers[..(numbers.len() / n).min(4) * n]);
    for wrong in [&bytes[..bytes.len().min(1)], &[bytes, &[0; 1000]].concat()] {
        if wrong.len() != n_blocks * size {
            assert!(quant::decode(dtype, wrong, &mut values).is_err());
        }
    }
});

/// Encodes numbers, be they infinite or none, where the type can be encoded; the blocks decode.
fn check_encoding(dtype: DType, values: &[f32]) {
    let Ok(blocks) = quant::encode(dtype, values) else { return };
    let mut again = vec![0.0; values.len()];
    quant::decode(dtype, &blocks, &mut again).expect("what was encoded is decoded");
    black_box(again);
}
