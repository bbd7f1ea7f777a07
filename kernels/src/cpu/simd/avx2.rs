//! AVX2 with FMA and F16C: a lane set is two registers.

#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each body is one intrinsic expression; the trait states what callers owe"
)]

use super::Simd;
use std::arch::x86_64::*;

/// AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

#[inline(always)]
unsafe fn dot_half(acc: __m256i, w: __m256i, x: __m256i) -> __m256i {
    // Pairs of products are at most 2 * 128 * 127 in magnitude: they fit in i16.
    let pairs = _mm256_maddubs_epi16(w, x);
    _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

#[inline(always)]
unsafe fn dot_half_offset(acc: __m256i, w: __m256i, x: __m256i) -> __m256i {
    // |w| * (x with the sign of w) = w * x; |-128| is 128 as an unsigned byte.
    let w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
    dot_half(acc, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
}

#[inline(always)]
unsafe fn splat4(x: *const i8) -> __m256i {
    _mm256_set1_epi32(x.cast::<i32>().read_unaligned())
}

/// Sixteen FP8 E4M3, divided by 256, as f16: exponent and mantissa take the same places, and f16's bias is 8 larger.
#[inline(always)]
pub(super) unsafe fn e4m3_halves(from: *const u8) -> __m256i {
    let words = _mm256_cvtepu8_epi16(_mm_loadu_si128(from.cast()));
    let magnitude = _mm256_and_si256(words, _mm256_set1_epi16(0x7f));
    // A NaN has all ones here, and so in f16.
    let nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(0x7f));
    let sign = _mm256_and_si256(_mm256_slli_epi16::<8>(words), _mm256_set1_epi16(i16::MIN));
    let bits = _mm256_or_si256(_mm256_slli_epi16::<7>(magnitude), sign);
    _mm256_or_si256(bits, nan)
}

impl Simd for Avx2 {
    type Floats = [__m256; 2];
    type Doubles = [__m256d; 4];
    type Ints = [__m256i; 2];
    type Bytes = [__m256i; 2];

    #[inline(always)]
    unsafe fn splat(value: f32) -> [__m256; 2] {
        [_mm256_set1_ps(value); 2]
    }

    #[inline(always)]
    unsafe fn splat_f64(value: f64) -> [__m256d; 4] {
        [_mm256_set1_pd(value); 4]
    }

    #[inline(always)]
    unsafe fn widen(value: [__m256; 2]) -> [__m256d; 4] {
        let low = |v: __m256| _mm256_cvtps_pd(_mm256_castps256_ps128(v));
        let high = |v: __m256| _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(v));
        [low(value[0]), high(value[0]), low(value[1]), high(value[1])]
    }

    #[inline(always)]
    unsafe fn narrow(value: [__m256d; 4]) -> [__m256; 2] {
        let join = |low: __m256d, high: __m256d| _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
        [join(value[0], value[1]), join(value[2], value[3])]
    }

    #[inline(always)]
    unsafe fn fma_f64(a: [__m256d; 4], b: [__m256d; 4], c: [__m256d; 4]) -> [__m256d; 4] {
        [
            _mm256_fmadd_pd(a[0], b[0], c[0]),
            _mm256_fmadd_pd(a[1], b[1], c[1]),
            _mm256_fmadd_pd(a[2], b[2], c[2]),
            _mm256_fmadd_pd(a[3], b[3], c[3]),
        ]
    }

    #[inline(always)]
    unsafe fn zero() -> [__m256i; 2] {
        [_mm256_setzero_si256(); 2]
    }

    #[inline(always)]
    unsafe fn load_f32(from: *const u8) -> [__m256; 2] {
        [_mm256_loadu_ps(from.cast()), _mm256_loadu_ps(from.add(32).cast())]
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u8) -> [__m256; 2] {
        let half = |at: usize| _mm256_cvtph_ps(_mm_loadu_si128(from.add(at).cast()));
        [half(0), half(16)]
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> [__m256; 2] {
        let half = |at: usize| {
            let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.add(at).cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
        };
        [half(0), half(16)]
    }

    #[inline(always)]
    unsafe fn load_f8_e4m3(from: *const u8) -> [__m256; 2] {
        let halves = e4m3_halves(from);
        let value = |half: __m128i| _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0));
        [value(_mm256_castsi256_si128(halves)), value(_mm256_extracti128_si256::<1>(halves))]
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const u8) -> [__m256; 2] {
        let half = |at: usize| _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.add(at).cast())));
        [half(0), half(8)]
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: [__m256; 2]) {
        _mm256_storeu_ps(to, value[0]);
        _mm256_storeu_ps(to.add(8), value[1]);
    }

    #[inline(always)]
    unsafe fn mul(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])]
    }

    #[inline(always)]
    unsafe fn div(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        [_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])]
    }

    #[inline(always)]
    unsafe fn add(a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
        [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])]
    }

    #[inline(always)]
    unsafe fn fma(a: [__m256; 2], b: [__m256; 2], c: [__m256; 2]) -> [__m256; 2] {
        [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])]
    }

    #[inline(always)]
    unsafe fn to_floats(value: [__m256i; 2]) -> [__m256; 2] {
        [_mm256_cvtepi32_ps(value[0]), _mm256_cvtepi32_ps(value[1])]
    }

    #[inline(always)]
    unsafe fn max_magnitude(acc: [__m256i; 2], value: [__m256; 2]) -> [__m256i; 2] {
        let half = |acc: __m256i, value: __m256| {
            let mask = _mm256_set1_epi32(0x7fff_ffff);
            _mm256_max_epi32(acc, _mm256_and_si256(_mm256_castps_si256(value), mask))
        };
        [half(acc[0], value[0]), half(acc[1], value[1])]
    }

    #[inline(always)]
    unsafe fn greatest(value: [__m256i; 2]) -> i32 {
        let eight = _mm256_max_epi32(value[0], value[1]);
        let four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
        let two = _mm_max_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
        _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
    }

    #[inline(always)]
    unsafe fn store_codes(to: *mut i8, value: [__m256; 2]) -> i32 {
        let (a, b) = (_mm256_cvtps_epi32(value[0]), _mm256_cvtps_epi32(value[1]));
        // Packing works within halves of 128 bits; the permutation puts the quarters back in order.
        let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(a, b));
        let bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
        _mm_storeu_si128(to.cast(), bytes);
        let eight = _mm256_add_epi32(a, b);
        let four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
        _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> [__m256i; 2] {
        [_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast())]
    }

    #[inline(always)]
    unsafe fn bits(value: [__m256i; 2], from: u32, mask: u8) -> [__m256i; 2] {
        let half = |value: __m256i| {
            let moved = _mm256_srl_epi16(value, _mm_cvtsi32_si128(from as i32));
            _mm256_and_si256(moved, _mm256_set1_epi8(mask as i8))
        };
        [half(value[0]), half(value[1])]
    }

    #[inline(always)]
    unsafe fn with_bits(a: [__m256i; 2], b: [__m256i; 2], from: u32, to: u32, mask: u8) -> [__m256i; 2] {
        let half = |a: __m256i, b: __m256i| {
            let moved = if from < to {
                _mm256_sll_epi16(b, _mm_cvtsi32_si128((to - from) as i32))
            } else {
                _mm256_srl_epi16(b, _mm_cvtsi32_si128((from - to) as i32))
            };
            _mm256_or_si256(a, _mm256_and_si256(moved, _mm256_set1_epi8((mask << to) as i8)))
        };
        [half(a[0], b[0]), half(a[1], b[1])]
    }

    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], value: [__m256i; 2]) -> [__m256i; 2] {
        let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
        [_mm256_shuffle_epi8(table, value[0]), _mm256_shuffle_epi8(table, value[1])]
    }

    #[inline(always)]
    unsafe fn byte<const J: u32>(value: [__m256i; 2]) -> [__m256i; 2] {
        let half = |value: __m256i| {
            let moved = match J {
                0 => value,
                1 => _mm256_srli_epi32::<8>(value),
                2 => _mm256_srli_epi32::<16>(value),
                _ => _mm256_srli_epi32::<24>(value),
            };
            _mm256_and_si256(moved, _mm256_set1_epi32(255))
        };
        [half(value[0]), half(value[1])]
    }

    #[inline(always)]
    unsafe fn dot(acc: [__m256i; 2], w: [__m256i; 2], x: *const i8) -> [__m256i; 2] {
        let x = splat4(x);
        [dot_half(acc[0], w[0], x), dot_half(acc[1], w[1], x)]
    }

    #[inline(always)]
    unsafe fn dot_offset(acc: [__m256i; 2], w: [__m256i; 2], x: *const i8) -> [__m256i; 2] {
        let x = splat4(x);
        [dot_half_offset(acc[0], w[0], x), dot_half_offset(acc[1], w[1], x)]
    }

    #[inline(always)]
    unsafe fn finish_offset(acc: [__m256i; 2], _x_sum: f32) -> [__m256; 2] {
        Self::to_floats(acc)
    }
}
