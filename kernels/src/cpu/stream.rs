//! Reading memory as fast as the machine can: the wall that decode is measured against.

#![allow(
    unsafe_code,
    reason = "wide loads are pointer intrinsics, and their instruction set is checked at run time"
)]

use super::Isa;

/// 64-bit words a step of the loop reads: four AVX-512 registers.
const STEP: usize = 32;
/// How far ahead of the loads to prefetch, in words (4 KiB: past the page the hardware prefetcher stops at).
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 512;

/// Reads every word of `data` once, with the widest loads `isa` has, and returns their exclusive or: the cheapest
/// result that depends on all of them. Falls back to narrower loads where the machine has not got `isa`.
pub fn read(data: &[u64], isa: Isa) -> u64 {
    let (blocks, rest) = data.as_chunks::<STEP>();
    let blocks = match isa.min(Isa::detect()) {
        // SAFETY: `Isa::detect` found the instruction set on this machine.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { read_avx512(blocks) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { read_avx2(blocks) },
        _ => read_portable(blocks),
    };
    rest.iter().fold(blocks, |sum, word| sum ^ word)
}

fn read_portable(blocks: &[[u64; STEP]]) -> u64 {
    // Independent sums, so that the compiler may keep as many loads in flight as it has registers.
    let mut sums = [0; STEP];
    for block in blocks {
        for (sum, word) in sums.iter_mut().zip(block) {
            *sum ^= word;
        }
    }
    sums.iter().fold(0, |all, sum| all ^ sum)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn read_avx2(blocks: &[[u64; STEP]]) -> u64 {
    use std::arch::x86_64::{
        _MM_HINT_T0, _mm_prefetch, _mm256_loadu_si256, _mm256_setzero_si256, _mm256_xor_si256,
    };
    let mut sums = [_mm256_setzero_si256(); 8];
    for block in blocks {
        let words = block.as_ptr();
        for (i, sum) in sums.iter_mut().enumerate() {
            if i % 2 == 0 {
                _mm_prefetch::<_MM_HINT_T0>(words.wrapping_add(AHEAD + i * 4).cast());
            }
            // SAFETY: words 4i..4i+4 lie within the block of 32, and the load needs no alignment.
            *sum = _mm256_xor_si256(*sum, unsafe { _mm256_loadu_si256(words.add(i * 4).cast()) });
        }
    }
    let mut all = [[0u64; 4]; 8];
    for (out, sum) in all.iter_mut().zip(sums) {
        // SAFETY: `out` holds exactly the register's 256 bits, and the store needs no alignment.
        unsafe { std::arch::x86_64::_mm256_storeu_si256(out.as_mut_ptr().cast(), sum) };
    }
    all.as_flattened().iter().fold(0, |all, word| all ^ word)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn read_avx512(blocks: &[[u64; STEP]]) -> u64 {
    use std::arch::x86_64::{
        _MM_HINT_T0, _mm_prefetch, _mm512_loadu_si512, _mm512_setzero_si512, _mm512_xor_si512,
    };
    let mut sums = [_mm512_setzero_si512(); 4];
    for block in blocks {
        let words = block.as_ptr();
        for (i, sum) in sums.iter_mut().enumerate() {
            _mm_prefetch::<_MM_HINT_T0>(words.wrapping_add(AHEAD + i * 8).cast());
            // SAFETY: words 8i..8i+8 lie within the block of 32, and the load needs no alignment.
            *sum = _mm512_xor_si512(*sum, unsafe { _mm512_loadu_si512(words.add(i * 8).cast()) });
        }
    }
    let mut all = [[0u64; 8]; 4];
    for (out, sum) in all.iter_mut().zip(sums) {
        // SAFETY: `out` holds exactly the register's 512 bits, and the store needs no alignment.
        unsafe { std::arch::x86_64::_mm512_storeu_si512(out.as_mut_ptr().cast(), sum) };
    }
    all.as_flattened().iter().fold(0, |all, word| all ^ word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_reads_every_word_once() {
        let data: Vec<u64> = (1..200u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        for len in [0, 1, 31, 32, 33, 64, 65, 199] {
            let expected = data[..len].iter().fold(0, |all, word| all ^ word);
            for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
                assert_eq!(read(&data[..len], isa), expected, "{isa} over {len} words");
            }
        }
    }
}
