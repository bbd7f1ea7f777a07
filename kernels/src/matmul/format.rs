//! How each type's packed tiles become sums (class `q8`) or values (class `f32`), in vector operations.

#![allow(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    reason = "pointers into packed tiles; each trait states what callers owe"
)]

use super::Q8Block;
use super::packed::TILE;
use crate::DType;
use crate::cpu::simd::Simd;

/// A type that can be decoded from a packed tile.
///
/// # Safety
/// `head` and `body` point to a head and a body of this type's layout, `out` to 32 × 16 writable f32, and the machine
/// has `S`'s instruction set.
pub(super) trait Format {
    /// The type.
    const DTYPE: DType;

    /// Writes 32 columns of 16 rows, column after column: bit for bit what `quant::decode` gives.
    unsafe fn decode<S: Simd>(head: *const u8, part: usize, body: *const u8, out: *mut f32);
}

/// A block format: its products with quantised activations are sums of integers.
///
/// # Safety
/// As for [`Format`]; every `x` points to a block.
pub(super) trait BlockFormat: Format {
    /// Folds 32 columns of 16 rows into `acc`, one accumulator an activation row, as the module's documentation says.
    unsafe fn fold<S: Simd, const T: usize>(
        head: *const u8,
        part: usize,
        body: *const u8,
        x: &[*const Q8Block; T],
        acc: &mut [S::Floats; T],
    );
}

pub(super) struct Q8_0;
pub(super) struct Q4_1;
pub(super) struct Q4K;
pub(super) struct Q6K;
pub(super) struct F32;
pub(super) struct F16;
pub(super) struct BF16;

/// `acc = fma(d_x, term, acc)`.
#[inline(always)]
unsafe fn accumulate<S: Simd>(x: *const Q8Block, term: S::Floats, acc: &mut S::Floats) {
    *acc = S::fma(S::splat((*x).scale), term, *acc);
}

#[inline(always)]
unsafe fn codes(x: *const Q8Block) -> *const i8 {
    (&raw const (*x).codes).cast()
}

/// Writes the values of quad `quad`, `scale * (byte + offset) (+ min)`, for its four columns.
#[inline(always)]
unsafe fn decode_quad<S: Simd>(
    bytes: S::Bytes,
    offset: f32,
    scale: S::Floats,
    min: Option<S::Floats>,
    out: *mut f32,
) {
    let value = |byte: S::Ints| {
        let product = S::mul(scale, S::add(S::to_floats(byte), S::splat(offset)));
        match min {
            Some(min) => S::add(product, min),
            None => product,
        }
    };
    S::store(out, value(S::byte::<0>(bytes)));
    S::store(out.add(TILE), value(S::byte::<1>(bytes)));
    S::store(out.add(2 * TILE), value(S::byte::<2>(bytes)));
    S::store(out.add(3 * TILE), value(S::byte::<3>(bytes)));
}

impl Format for Q8_0 {
    const DTYPE: DType = DType::Q8_0;

    #[inline(always)]
    unsafe fn decode<S: Simd>(head: *const u8, _part: usize, body: *const u8, out: *mut f32) {
        let d = S::load_f16(head);
        for quad in 0..8 {
            let bytes = S::load_bytes(body.add(64 * quad));
            decode_quad::<S>(bytes, -128.0, d, None, out.add(4 * TILE * quad));
        }
    }
}

impl BlockFormat for Q8_0 {
    #[inline(always)]
    unsafe fn fold<S: Simd, const T: usize>(
        head: *const u8,
        _part: usize,
        body: *const u8,
        x: &[*const Q8Block; T],
        acc: &mut [S::Floats; T],
    ) {
        let mut sums = [S::zero(); T];
        for quad in 0..8 {
            let w = S::load_bytes(body.add(64 * quad));
            for t in 0..T {
                sums[t] = S::dot_offset(sums[t], w, codes(x[t]).add(4 * quad));
            }
        }
        let d = S::load_f16(head);
        for t in 0..T {
            let sum = S::finish_offset(sums[t], (*x[t]).sum);
            accumulate::<S>(x[t], S::mul(d, sum), &mut acc[t]);
        }
    }
}

/// The eight quads of a body of 4-bit codes, times the activations.
#[inline(always)]
unsafe fn nibble_sums<S: Simd, const T: usize>(body: *const u8, x: &[*const Q8Block; T]) -> [S::Ints; T] {
    let mut sums = [S::zero(); T];
    for line in 0..4 {
        let bytes = S::load_bytes(body.add(64 * line));
        let (low, high) = (S::low(bytes), S::high(bytes));
        for t in 0..T {
            sums[t] = S::dot(sums[t], low, codes(x[t]).add(4 * line));
            sums[t] = S::dot(sums[t], high, codes(x[t]).add(16 + 4 * line));
        }
    }
    sums
}

#[inline(always)]
unsafe fn decode_nibbles<S: Simd>(body: *const u8, scale: S::Floats, min: S::Floats, out: *mut f32) {
    for line in 0..4 {
        let bytes = S::load_bytes(body.add(64 * line));
        decode_quad::<S>(S::low(bytes), 0.0, scale, Some(min), out.add(4 * TILE * line));
        decode_quad::<S>(S::high(bytes), 0.0, scale, Some(min), out.add(4 * TILE * (4 + line)));
    }
}

impl Format for Q4_1 {
    const DTYPE: DType = DType::Q4_1;

    #[inline(always)]
    unsafe fn decode<S: Simd>(head: *const u8, _part: usize, body: *const u8, out: *mut f32) {
        decode_nibbles::<S>(body, S::load_f16(head), S::load_f16(head.add(32)), out);
    }
}

impl BlockFormat for Q4_1 {
    #[inline(always)]
    unsafe fn fold<S: Simd, const T: usize>(
        head: *const u8,
        _part: usize,
        body: *const u8,
        x: &[*const Q8Block; T],
        acc: &mut [S::Floats; T],
    ) {
        let sums = nibble_sums::<S, T>(body, x);
        let (d, m) = (S::load_f16(head), S::load_f16(head.add(32)));
        for t in 0..T {
            let min = S::mul(m, S::splat((*x[t]).sum));
            accumulate::<S>(x[t], S::fma(d, S::to_floats(sums[t]), min), &mut acc[t]);
        }
    }
}

/// `(d * sc, dmin * mn)` of a part; the minimum's sign is still to be turned.
#[inline(always)]
unsafe fn q4_k_scales<S: Simd>(head: *const u8, part: usize) -> (S::Floats, S::Floats) {
    let scale = S::mul(S::load_f16(head), S::load_u8(head.add(64 + 32 * part)));
    let min = S::mul(S::load_f16(head.add(32)), S::load_u8(head.add(80 + 32 * part)));
    (scale, min)
}

impl Format for Q4K {
    const DTYPE: DType = DType::Q4_K;

    #[inline(always)]
    unsafe fn decode<S: Simd>(head: *const u8, part: usize, body: *const u8, out: *mut f32) {
        let (scale, min) = q4_k_scales::<S>(head, part);
        decode_nibbles::<S>(body, scale, S::mul(min, S::splat(-1.0)), out);
    }
}

impl BlockFormat for Q4K {
    #[inline(always)]
    unsafe fn fold<S: Simd, const T: usize>(
        head: *const u8,
        part: usize,
        body: *const u8,
        x: &[*const Q8Block; T],
        acc: &mut [S::Floats; T],
    ) {
        let sums = nibble_sums::<S, T>(body, x);
        let (scale, min) = q4_k_scales::<S>(head, part);
        for t in 0..T {
            let min = S::mul(min, S::splat(-(*x[t]).sum));
            accumulate::<S>(x[t], S::fma(scale, S::to_floats(sums[t]), min), &mut acc[t]);
        }
    }
}

/// The eight quads of a Q6_K body, 0..=63 a byte.
#[inline(always)]
unsafe fn six_bits<S: Simd>(body: *const u8) -> [S::Bytes; 8] {
    let line = |i: usize| S::load_bytes(body.add(64 * i));
    let (h0, h1) = (line(4), line(5));
    let [l0, l1, l2, l3] = [line(0), line(1), line(2), line(3)];
    [
        S::with_two_bits::<0>(S::low(l0), h0),
        S::with_two_bits::<0>(S::low(l1), h1),
        S::with_two_bits::<2>(S::low(l2), h0),
        S::with_two_bits::<2>(S::low(l3), h1),
        S::with_two_bits::<4>(S::high(l0), h0),
        S::with_two_bits::<4>(S::high(l1), h1),
        S::with_two_bits::<6>(S::high(l2), h0),
        S::with_two_bits::<6>(S::high(l3), h1),
    ]
}

#[inline(always)]
unsafe fn q6_k_scale<S: Simd>(head: *const u8, part: usize, half: usize) -> S::Floats {
    S::mul(S::load_f16(head), S::load_i8(head.add(32 + 16 * (2 * part + half))))
}

impl Format for Q6K {
    const DTYPE: DType = DType::Q6_K;

    #[inline(always)]
    unsafe fn decode<S: Simd>(head: *const u8, part: usize, body: *const u8, out: *mut f32) {
        for (quad, bytes) in six_bits::<S>(body).into_iter().enumerate() {
            let scale = q6_k_scale::<S>(head, part, quad / 4);
            decode_quad::<S>(bytes, -32.0, scale, None, out.add(4 * TILE * quad));
        }
    }
}

impl BlockFormat for Q6K {
    #[inline(always)]
    unsafe fn fold<S: Simd, const T: usize>(
        head: *const u8,
        part: usize,
        body: *const u8,
        x: &[*const Q8Block; T],
        acc: &mut [S::Floats; T],
    ) {
        let quads = six_bits::<S>(body);
        for half in 0..2 {
            let scale = q6_k_scale::<S>(head, part, half);
            for t in 0..T {
                let mut sum = S::zero();
                for (i, quad) in quads[4 * half..][..4].iter().enumerate() {
                    sum = S::dot(sum, *quad, codes(x[t]).add(16 * half + 4 * i));
                }
                // Σ (q - 32) x, exact: all terms are integers below 2^24.
                let x_sum = S::splat((*x[t]).halves[half]);
                let sum = S::fma(x_sum, S::splat(-32.0), S::to_floats(sum));
                accumulate::<S>(x[t], S::mul(scale, sum), &mut acc[t]);
            }
        }
    }
}

macro_rules! float_format {
    ($name:ident, $load:ident) => {
        impl Format for $name {
            const DTYPE: DType = DType::$name;

            #[inline(always)]
            unsafe fn decode<S: Simd>(_head: *const u8, _part: usize, body: *const u8, out: *mut f32) {
                for column in 0..32 {
                    let bytes =
                        TILE * column * const { crate::matmul::packed::Layout::of(DType::$name).body / 512 };
                    S::store(out.add(TILE * column), S::$load(body.add(bytes)));
                }
            }
        }
    };
}

float_format!(F32, load_f32);
float_format!(F16, load_f16);
float_format!(BF16, load_bf16);
