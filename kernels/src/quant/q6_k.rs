//! Q6_K: 256 values in 210 bytes, sixteen scales of 16 values. `value = (d * sc[i / 16]) * (q - 32)`.
//!
//! | bytes | what |
//! |---|---|
//! | 0..128 | low four bits: two runs of 64 bytes, one for each 128 values; in a run, byte `i` holds value `i` in its low half and value `64 + i` in its high half |
//! | 128..192 | high two bits: two runs of 32 bytes; byte `i` holds values `i`, `32 + i`, `64 + i`, `96 + i`, from the low bits up |
//! | 192..208 | `sc[0..16]`: i8 |
//! | 208..210 | `d`: f16 |

use super::{Codes, f16_at, inverse, put_f16};

/// Where value `i` of part `part` keeps its bits: (low byte, low shift, high byte, high shift).
fn place(part: usize, i: usize) -> (usize, usize, usize, usize) {
    let (half, quarter) = (part / 4, part % 4);
    (64 * half + 32 * (quarter % 2) + i, 4 * (quarter / 2), 128 + 32 * half + i, 2 * quarter)
}

pub(super) fn codes(block: &[u8], part: usize) -> Codes {
    let q = std::array::from_fn(|i| {
        let (low, low_shift, high, high_shift) = place(part, i);
        let bits = block[low] >> low_shift & 15 | (block[high] >> high_shift & 3) << 4;
        bits as i8 - 32
    });
    let d = f16_at(block, 208);
    let scale = std::array::from_fn(|h| d * f32::from(block[192 + 2 * part + h] as i8));
    Codes { q, scale, min: None }
}

pub(super) fn encode_block(values: &[f32], block: &mut [u8]) {
    let mut scales = [0f32; 16];
    for (scale, part) in scales.iter_mut().zip(values.chunks_exact(16)) {
        *scale = fit_scale(part);
    }
    // The scale of the largest magnitude maps to -128, the one code without a counterpart.
    let extreme = scales.iter().copied().fold(0f32, |a, s| if s.abs() > a.abs() { s } else { a });
    block.fill(0);
    let d = put_f16(block, 208, extreme / -128.0);
    for (s, scale) in scales.iter().enumerate() {
        let sc = (scale * inverse(d)).round().clamp(-128.0, 127.0);
        block[192 + s] = sc as i8 as u8;
        let step = inverse(d * sc);
        for i in 0..16 {
            let q = ((values[16 * s + i] * step).round().clamp(-32.0, 31.0) + 32.0) as u8;
            let (low, low_shift, high, high_shift) = place(s / 2, 16 * (s % 2) + i);
            block[low] |= (q & 15) << low_shift;
            block[high] |= (q >> 4) << high_shift;
        }
    }
}

/// Scale (of either sign) such that `scale * q` with `q` in -32..=31 is near the values: the extreme value goes to
/// about -32, a few choices around it are refined by least squares, and the one that explains most wins.
fn fit_scale(values: &[f32]) -> f32 {
    let extreme = values.iter().copied().fold(0f32, |a, v| if v.abs() > a.abs() { v } else { a });
    if extreme == 0.0 {
        return 0.0;
    }
    let (mut best, mut most) = (extreme / -32.0, 0f32);
    for step in -8i8..=8 {
        let inverse_scale = -(32.0 + 0.125 * f32::from(step)) / extreme;
        let (mut vq, mut q2) = (0f32, 0f32);
        for v in values {
            let q = (v * inverse_scale).round().clamp(-32.0, 31.0);
            vq += v * q;
            q2 += q * q;
        }
        // What least squares leaves is Σv² - (Σvq)²/Σq².
        if q2 > 0.0 && vq * vq > most * q2 {
            (best, most) = (vq / q2, vq * vq / q2);
        }
    }
    best
}
