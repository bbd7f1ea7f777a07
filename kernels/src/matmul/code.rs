//! Bodies of packed tiles: 32 columns of 16 rows of a block format, as small integers.
//!
//! A *quad* is four consecutive columns of the sixteen rows: 64 bytes, row `r` in bytes `4r..4r+4`, which is one operand
//! of a four-way integer dot product whose lanes are the rows. A body is cut into one or two *planes*, low bits first.
//! A plane of `b` bits is `b` lines of 64 bytes; quad `i` of its eight has its bits in line `i % b`, from bit
//! `b * (i / b)` of each byte up.

#![allow(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    reason = "pointers into packed tiles; the trait states what callers owe"
)]

use crate::cpu::simd::Simd;
use crate::quant::{E2M1_DOUBLED, GROUP, IQ4_LEVELS, grid};

/// What the bits of a body stand for.
///
/// # Safety
/// The unsafe functions may be called on a machine with `S`'s instruction set; `body` points to a body, `x` to four bytes.
pub(super) trait Code {
    /// Bits of a code in each plane.
    const PLANES: [usize; 2];
    /// The integer that each code stands for; as many count as [`Code::PLANES`] has codes.
    const VALUES: [i8; 256];
    /// A byte of [`Code::quad`] stands for `byte - OFFSET`.
    const OFFSET: f32;

    /// Quad `i`, a byte a value.
    unsafe fn quad<S: Simd>(body: *const u8, i: usize) -> S::Bytes;
    /// Adds a quad's products with four activations; the sum is complete after [`Code::finish`].
    unsafe fn dot<S: Simd>(acc: S::Ints, quad: S::Bytes, x: *const i8) -> S::Ints;
    /// The exact sum of the products, over activations whose sum is `x_sum`.
    unsafe fn finish<S: Simd>(acc: S::Ints, x_sum: f32) -> S::Floats;

    /// Writes the integers of row `lane` to a zeroed body.
    fn put(body: &mut [u8], lane: usize, q: &[i8; GROUP]) {
        let codes = const { &inverse(&Self::VALUES, Self::PLANES) };
        for (column, q) in q.iter().enumerate() {
            let (quad, byte) = (column / 4, 4 * lane + column % 4);
            let (mut code, mut lines) = (u32::from(codes[usize::from(*q as u8)]), 0);
            for bits in Self::PLANES {
                if bits > 0 {
                    let part = code & ((1 << bits) - 1);
                    body[64 * (lines + quad % bits) + byte] |= (part << (bits * (quad / bits))) as u8;
                    code >>= bits;
                    lines += bits;
                }
            }
        }
    }

    /// The inverse of [`Code::put`], written apart from the SIMD code to check it.
    fn get(body: &[u8], lane: usize) -> [i8; GROUP] {
        std::array::from_fn(|column| {
            let (quad, byte) = (column / 4, 4 * lane + column % 4);
            let (mut code, mut lines) = (0, 0);
            for bits in Self::PLANES {
                if bits > 0 {
                    let stored = u32::from(body[64 * (lines + quad % bits) + byte]);
                    code |= (stored >> (bits * (quad / bits)) & ((1 << bits) - 1)) << lines;
                    lines += bits;
                }
            }
            Self::VALUES[code as usize]
        })
    }
}

/// Bytes of a body.
pub(super) const fn body_bytes(planes: [usize; 2]) -> usize {
    64 * (planes[0] + planes[1])
}

/// The first code of each integer, by the integer's byte.
const fn inverse(values: &[i8; 256], planes: [usize; 2]) -> [u8; 256] {
    let mut codes = [0; 256];
    let mut code = 1 << (planes[0] + planes[1]);
    while code > 0 {
        code -= 1;
        codes[values[code] as u8 as usize] = code as u8;
    }
    codes
}

/// `code - offset`.
const fn shifted(offset: i32) -> [i8; 256] {
    let mut values = [0; 256];
    let mut code = 0;
    while code < 256 {
        values[code] = (code as i32 - offset) as i8;
        code += 1;
    }
    values
}

/// Codes of `LOW` and `HIGH` bits, six at most, that stand for `code - OFFSET`.
pub(super) struct Small<const LOW: usize, const HIGH: usize, const OFFSET: i32>;

impl<const LOW: usize, const HIGH: usize, const OFFSET: i32> Code for Small<LOW, HIGH, OFFSET> {
    const PLANES: [usize; 2] = [LOW, HIGH];
    const VALUES: [i8; 256] = shifted(OFFSET);
    const OFFSET: f32 = OFFSET as f32;

    #[inline(always)]
    unsafe fn quad<S: Simd>(body: *const u8, i: usize) -> S::Bytes {
        let line = |line: usize| S::load_bytes(body.add(64 * line));
        let low = S::bits(line(i % LOW), (LOW * (i / LOW)) as u32, (1 << LOW) - 1);
        if HIGH == 0 {
            return low;
        }
        let high = HIGH.max(1);
        S::with_bits(low, line(LOW + i % high), (high * (i / high)) as u32, LOW as u32, (1 << HIGH) - 1)
    }

    #[inline(always)]
    unsafe fn dot<S: Simd>(acc: S::Ints, quad: S::Bytes, x: *const i8) -> S::Ints {
        S::dot(acc, quad, x)
    }

    #[inline(always)]
    unsafe fn finish<S: Simd>(acc: S::Ints, x_sum: f32) -> S::Floats {
        if OFFSET == 0 {
            return S::to_floats(acc);
        }
        // Σ (q - OFFSET) x, exact: all terms are integers below 2^24.
        S::fma(S::splat(x_sum), S::splat(-Self::OFFSET), S::to_floats(acc))
    }
}

/// Codes of eight bits that stand for `code - 128`.
pub(super) struct Whole;

impl Code for Whole {
    const PLANES: [usize; 2] = [8, 0];
    const VALUES: [i8; 256] = shifted(128);
    const OFFSET: f32 = 128.0;

    #[inline(always)]
    unsafe fn quad<S: Simd>(body: *const u8, i: usize) -> S::Bytes {
        S::load_bytes(body.add(64 * i))
    }

    #[inline(always)]
    unsafe fn dot<S: Simd>(acc: S::Ints, quad: S::Bytes, x: *const i8) -> S::Ints {
        S::dot_offset(acc, quad, x)
    }

    #[inline(always)]
    unsafe fn finish<S: Simd>(acc: S::Ints, x_sum: f32) -> S::Floats {
        S::finish_offset(acc, x_sum)
    }
}

/// A table of what codes of four bits stand for.
pub(super) trait Table {
    const LEVELS: [i8; 16];
}

/// Codes of four bits that index a table. Formats that look up more than four bits at once land here too, value by value.
pub(super) struct Listed<T>(std::marker::PhantomData<T>);

impl<T: Table> Listed<T> {
    /// The levels with 128 added, as bytes of a dot product with an offset.
    const RAISED: [u8; 16] = {
        let mut raised = [0; 16];
        let mut code = 0;
        while code < 16 {
            raised[code] = (T::LEVELS[code] as i32 + 128) as u8;
            code += 1;
        }
        raised
    };
}

impl<T: Table> Code for Listed<T> {
    const PLANES: [usize; 2] = [4, 0];
    const VALUES: [i8; 256] = {
        let mut values = [0; 256];
        let mut code = 0;
        while code < 16 {
            values[code] = T::LEVELS[code];
            code += 1;
        }
        values
    };
    const OFFSET: f32 = 128.0;

    #[inline(always)]
    unsafe fn quad<S: Simd>(body: *const u8, i: usize) -> S::Bytes {
        let index = S::bits(S::load_bytes(body.add(64 * (i % 4))), 4 * (i / 4) as u32, 15);
        S::lookup(const { &Self::RAISED }, index)
    }

    #[inline(always)]
    unsafe fn dot<S: Simd>(acc: S::Ints, quad: S::Bytes, x: *const i8) -> S::Ints {
        S::dot_offset(acc, quad, x)
    }

    #[inline(always)]
    unsafe fn finish<S: Simd>(acc: S::Ints, x_sum: f32) -> S::Floats {
        S::finish_offset(acc, x_sum)
    }
}

/// IQ4_NL and IQ4_XS.
pub(super) struct Uneven;
/// MXFP4 and NVFP4.
pub(super) struct E2M1;
/// IQ3_S: eight magnitudes with a sign.
pub(super) struct Odd;
/// IQ3_XXS: eight magnitudes with a sign.
pub(super) struct Coarse;
/// The IQ2 formats: three magnitudes with a sign.
pub(super) struct Three;

impl Table for Uneven {
    const LEVELS: [i8; 16] = IQ4_LEVELS;
}

impl Table for E2M1 {
    const LEVELS: [i8; 16] = E2M1_DOUBLED;
}

impl Table for Odd {
    const LEVELS: [i8; 16] = with_signs(&grid::IQ3_S_LEVELS);
}

impl Table for Coarse {
    const LEVELS: [i8; 16] = with_signs(&grid::IQ3_XXS_LEVELS);
}

impl Table for Three {
    const LEVELS: [i8; 16] = with_signs(&grid::IQ2_LEVELS);
}

/// The magnitudes, then their negatives; zeros fill both.
const fn with_signs(magnitudes: &[i8]) -> [i8; 16] {
    let mut levels = [0; 16];
    let mut i = 0;
    while i < magnitudes.len() {
        levels[i] = magnitudes[i];
        levels[8 + i] = -magnitudes[i];
        i += 1;
    }
    levels
}
