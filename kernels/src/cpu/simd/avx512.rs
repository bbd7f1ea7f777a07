//! AVX-512 with VNNI: a lane set is one register.

#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each body is one intrinsic expression; the trait states what callers owe"
)]

use super::Simd;
use super::avx2::e4m3_halves;
use std::arch::x86_64::*;

/// AVX-512 F, BW, VL, DQ and VNNI.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

impl Simd for Avx512 {
    type Floats = __m512;
    type Doubles = [__m512d; 2];
    type Ints = __m512i;
    type Bytes = __m512i;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        _mm512_set1_ps(value)
    }

    #[inline(always)]
    unsafe fn splat_f64(value: f64) -> [__m512d; 2] {
        [_mm512_set1_pd(value); 2]
    }

    #[inline(always)]
    unsafe fn widen(value: __m512) -> [__m512d; 2] {
        let halves = [_mm512_castps512_ps256(value), _mm512_extractf32x8_ps::<1>(value)];
        [_mm512_cvtps_pd(halves[0]), _mm512_cvtps_pd(halves[1])]
    }

    #[inline(always)]
    unsafe fn narrow(value: [__m512d; 2]) -> __m512 {
        let low = _mm512_castps256_ps512(_mm512_cvtpd_ps(value[0]));
        _mm512_insertf32x8::<1>(low, _mm512_cvtpd_ps(value[1]))
    }

    #[inline(always)]
    unsafe fn fma_f64(a: [__m512d; 2], b: [__m512d; 2], c: [__m512d; 2]) -> [__m512d; 2] {
        [_mm512_fmadd_pd(a[0], b[0], c[0]), _mm512_fmadd_pd(a[1], b[1], c[1])]
    }

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        _mm512_setzero_si512()
    }

    #[inline(always)]
    unsafe fn load_f32(from: *const u8) -> __m512 {
        _mm512_loadu_ps(from.cast())
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u8) -> __m512 {
        _mm512_cvtph_ps(_mm256_loadu_si256(from.cast()))
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> __m512 {
        let bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits))
    }

    #[inline(always)]
    unsafe fn load_f8_e4m3(from: *const u8) -> __m512 {
        _mm512_mul_ps(_mm512_cvtph_ps(e4m3_halves(from)), _mm512_set1_ps(256.0))
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const u8) -> __m512 {
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast())))
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m512) {
        _mm512_storeu_ps(to, value);
    }

    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        _mm512_mul_ps(a, b)
    }

    #[inline(always)]
    unsafe fn div(a: __m512, b: __m512) -> __m512 {
        _mm512_div_ps(a, b)
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        _mm512_add_ps(a, b)
    }

    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        _mm512_fmadd_ps(a, b, c)
    }

    #[inline(always)]
    unsafe fn to_floats(value: __m512i) -> __m512 {
        _mm512_cvtepi32_ps(value)
    }

    #[inline(always)]
    unsafe fn max_magnitude(acc: __m512i, value: __m512) -> __m512i {
        let magnitude = _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(0x7fff_ffff));
        _mm512_max_epi32(acc, magnitude)
    }

    #[inline(always)]
    unsafe fn greatest(value: __m512i) -> i32 {
        _mm512_reduce_max_epi32(value)
    }

    #[inline(always)]
    unsafe fn store_codes(to: *mut i8, value: __m512) -> i32 {
        let codes = _mm512_cvtps_epi32(value);
        _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(codes));
        _mm512_reduce_add_epi32(codes)
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> __m512i {
        _mm512_loadu_si512(from.cast())
    }

    #[inline(always)]
    unsafe fn bits(value: __m512i, from: u32, mask: u8) -> __m512i {
        let moved = _mm512_srl_epi16(value, _mm_cvtsi32_si128(from as i32));
        _mm512_and_si512(moved, _mm512_set1_epi8(mask as i8))
    }

    #[inline(always)]
    unsafe fn with_bits(a: __m512i, b: __m512i, from: u32, to: u32, mask: u8) -> __m512i {
        let moved = if from < to {
            _mm512_sll_epi16(b, _mm_cvtsi32_si128((to - from) as i32))
        } else {
            _mm512_srl_epi16(b, _mm_cvtsi32_si128((from - to) as i32))
        };
        // a | (moved & mask) in one step: 0xf8 is the truth table of x | (y & z).
        _mm512_ternarylogic_epi32::<0xf8>(a, moved, _mm512_set1_epi8((mask << to) as i8))
    }

    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], value: __m512i) -> __m512i {
        let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
        _mm512_shuffle_epi8(table, value)
    }

    #[inline(always)]
    unsafe fn byte<const J: u32>(value: __m512i) -> __m512i {
        let moved = match J {
            0 => value,
            1 => _mm512_srli_epi32::<8>(value),
            2 => _mm512_srli_epi32::<16>(value),
            _ => return _mm512_srli_epi32::<24>(value),
        };
        _mm512_and_si512(moved, _mm512_set1_epi32(255))
    }

    #[inline(always)]
    unsafe fn dot(acc: __m512i, w: __m512i, x: *const i8) -> __m512i {
        _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(x.cast::<i32>().read_unaligned()))
    }

    #[inline(always)]
    unsafe fn dot_offset(acc: __m512i, w: __m512i, x: *const i8) -> __m512i {
        Self::dot(acc, w, x)
    }

    #[inline(always)]
    unsafe fn finish_offset(acc: __m512i, x_sum: f32) -> __m512 {
        // Σ (w - 128) x = Σ w x - 128 Σ x; all three are integers below 2^24, so this is exact.
        Self::fma(Self::splat(x_sum), Self::splat(-128.0), Self::to_floats(acc))
    }
}
