//! Plain Rust: arrays of sixteen, for the compiler to vectorise as it can. Little-endian machines only.

#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "the only unsafe operations are reads that the trait's contract covers"
)]

use super::Simd;
use crate::quant::e4m3;
use half::{bf16, f16};

/// Any machine.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// `[f(0), f(1), …]`. A plain loop: `array::from_fn` and `map` are not always inlined.
#[inline(always)]
fn lanes<T: Copy + Default, const N: usize>(f: impl Fn(usize) -> T) -> [T; N] {
    let mut out = [T::default(); N];
    for (i, out) in out.iter_mut().enumerate() {
        *out = f(i);
    }
    out
}

impl Simd for Portable {
    type Floats = [f32; 16];
    type Doubles = [f64; 16];
    type Ints = [i32; 16];
    type Bytes = [u8; 64];

    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; 16] {
        [value; 16]
    }

    #[inline(always)]
    unsafe fn splat_f64(value: f64) -> [f64; 16] {
        [value; 16]
    }

    #[inline(always)]
    unsafe fn widen(value: [f32; 16]) -> [f64; 16] {
        lanes(|i| f64::from(value[i]))
    }

    #[inline(always)]
    unsafe fn narrow(value: [f64; 16]) -> [f32; 16] {
        lanes(|i| value[i] as f32)
    }

    #[inline(always)]
    unsafe fn fma_f64(a: [f64; 16], b: [f64; 16], c: [f64; 16]) -> [f64; 16] {
        lanes(|i| a[i].mul_add(b[i], c[i]))
    }

    #[inline(always)]
    unsafe fn zero() -> [i32; 16] {
        [0; 16]
    }

    #[inline(always)]
    unsafe fn load_f32(from: *const u8) -> [f32; 16] {
        lanes(|i| from.cast::<f32>().add(i).read_unaligned())
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u8) -> [f32; 16] {
        lanes(|i| from.cast::<f16>().add(i).read_unaligned().to_f32())
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> [f32; 16] {
        lanes(|i| from.cast::<bf16>().add(i).read_unaligned().to_f32())
    }

    #[inline(always)]
    unsafe fn load_f8_e4m3(from: *const u8) -> [f32; 16] {
        lanes(|i| e4m3::to_f32(*from.add(i)))
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const u8) -> [f32; 16] {
        lanes(|i| f32::from(*from.cast::<i8>().add(i)))
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: [f32; 16]) {
        to.cast::<[f32; 16]>().write(value);
    }

    #[inline(always)]
    unsafe fn mul(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        lanes(|i| a[i] * b[i])
    }

    #[inline(always)]
    unsafe fn div(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        lanes(|i| a[i] / b[i])
    }

    #[inline(always)]
    unsafe fn add(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        lanes(|i| a[i] + b[i])
    }

    #[inline(always)]
    unsafe fn fma(a: [f32; 16], b: [f32; 16], c: [f32; 16]) -> [f32; 16] {
        lanes(|i| a[i].mul_add(b[i], c[i]))
    }

    #[inline(always)]
    unsafe fn to_floats(value: [i32; 16]) -> [f32; 16] {
        lanes(|i| value[i] as f32)
    }

    #[inline(always)]
    unsafe fn max_magnitude(acc: [i32; 16], value: [f32; 16]) -> [i32; 16] {
        lanes(|i| acc[i].max((value[i].to_bits() & 0x7fff_ffff) as i32))
    }

    #[inline(always)]
    unsafe fn greatest(value: [i32; 16]) -> i32 {
        value.into_iter().fold(0, i32::max)
    }

    #[inline(always)]
    unsafe fn store_codes(to: *mut i8, value: [f32; 16]) -> i32 {
        // Adding 1.5 * 2^23 rounds to an integer, halves to even, and leaves it in the low bits.
        const SHIFT: f32 = 12_582_912.0;
        let codes: [i32; 16] = lanes(|i| (value[i] + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()) as i32);
        to.cast::<[i8; 16]>().write(lanes(|i| codes[i] as i8));
        codes.into_iter().sum()
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> [u8; 64] {
        from.cast::<[u8; 64]>().read()
    }

    #[inline(always)]
    unsafe fn bits(value: [u8; 64], from: u32, mask: u8) -> [u8; 64] {
        lanes(|i| value[i] >> from & mask)
    }

    #[inline(always)]
    unsafe fn with_bits(a: [u8; 64], b: [u8; 64], from: u32, to: u32, mask: u8) -> [u8; 64] {
        lanes(|i| a[i] | (b[i] >> from & mask) << to)
    }

    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], value: [u8; 64]) -> [u8; 64] {
        lanes(|i| table[usize::from(value[i] & 15)])
    }

    #[inline(always)]
    unsafe fn byte<const J: u32>(value: [u8; 64]) -> [i32; 16] {
        lanes(|lane| i32::from(value[4 * lane + J as usize]))
    }

    #[inline(always)]
    unsafe fn dot(acc: [i32; 16], w: [u8; 64], x: *const i8) -> [i32; 16] {
        let x = x.cast::<[i8; 4]>().read();
        lanes(|lane| (0..4).fold(acc[lane], |sum, j| sum + i32::from(w[4 * lane + j]) * i32::from(x[j])))
    }

    #[inline(always)]
    unsafe fn dot_offset(acc: [i32; 16], w: [u8; 64], x: *const i8) -> [i32; 16] {
        Self::dot(acc, w, x)
    }

    #[inline(always)]
    unsafe fn finish_offset(acc: [i32; 16], x_sum: f32) -> [f32; 16] {
        let offset = 128 * x_sum as i32;
        lanes(|i| (acc[i] - offset) as f32)
    }
}
