//! How each type's packed tiles become sums (class `q8`) or values (class `f32`), in vector operations.

#![allow(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    reason = "pointers into packed tiles; each function states what callers owe"
)]

use super::Q8Block;
use super::code::{Coarse, Code, E2M1, Listed, Odd, Small, Three, Uneven, Whole};
use super::head::{Bf16, Head, Nested, NestedMin, Plain, PlainMin};
use super::packed::TILE;
use crate::DType;
use crate::cpu::simd::Simd;
use std::marker::PhantomData;

/// A type that can be decoded from a packed tile.
pub(super) trait Format {
    /// Writes 32 columns of 16 rows, column after column: bit for bit what `quant::decode` gives.
    ///
    /// # Safety
    /// `head` and `body` point to a head and a body of this type's layout, `out` to 32 × 16 writable f32, and the machine
    /// has `S`'s instruction set.
    unsafe fn decode<S: Simd>(head: *const u8, part: usize, body: *const u8, out: *mut f32);
}

/// Something to do with the code and the head of a block format.
pub(super) trait Visitor {
    type Output;
    fn visit<C: Code, H: Head>(self) -> Self::Output;
}

/// Shows the code and the head of `dtype` to `visitor`; float types have none.
pub(super) fn visit<V: Visitor>(dtype: DType, visitor: V) -> Option<V::Output> {
    Some(match dtype {
        DType::F32 | DType::F16 | DType::BF16 | DType::F8_E4M3 => return None,
        DType::Q4_0 => visitor.visit::<Small<4, 0, 8>, Plain>(),
        DType::Q4_1 => visitor.visit::<Small<4, 0, 0>, PlainMin>(),
        DType::Q5_0 => visitor.visit::<Small<4, 1, 16>, Plain>(),
        DType::Q5_1 => visitor.visit::<Small<4, 1, 0>, PlainMin>(),
        DType::Q8_0 => visitor.visit::<Whole, Plain>(),
        DType::Q2_K => visitor.visit::<Small<2, 0, 0>, NestedMin<true>>(),
        DType::Q3_K => visitor.visit::<Small<2, 1, 4>, Nested<true, 0>>(),
        DType::Q4_K => visitor.visit::<Small<4, 0, 0>, NestedMin<false>>(),
        DType::Q5_K => visitor.visit::<Small<4, 1, 0>, NestedMin<false>>(),
        DType::Q6_K => visitor.visit::<Small<4, 2, 32>, Nested<true, 0>>(),
        DType::IQ4_NL => visitor.visit::<Listed<Uneven>, Plain>(),
        DType::IQ4_XS => visitor.visit::<Listed<Uneven>, Nested<false, 0>>(),
        DType::IQ3_S => visitor.visit::<Listed<Odd>, Nested<false, 0>>(),
        DType::IQ3_XXS => visitor.visit::<Listed<Coarse>, Nested<false, 2>>(),
        DType::IQ2_S | DType::IQ2_XS => visitor.visit::<Listed<Three>, Nested<true, 3>>(),
        DType::IQ2_XXS => visitor.visit::<Listed<Three>, Nested<false, 3>>(),
        DType::MXFP4 => visitor.visit::<Listed<E2M1>, Bf16<false>>(),
        DType::NVFP4 => visitor.visit::<Listed<E2M1>, Bf16<true>>(),
    })
}

#[inline(always)]
unsafe fn codes(x: *const Q8Block) -> *const i8 {
    (&raw const (*x).codes).cast()
}

/// Folds 32 columns of 16 rows into `acc`, one accumulator an activation row, as the module's documentation says.
///
/// # Safety
/// As [`Format::decode`]; every `x` points to a block.
#[inline(always)]
pub(super) unsafe fn fold<S: Simd, C: Code, H: Head, const T: usize>(
    head: *const u8,
    part: usize,
    body: *const u8,
    x: &[*const Q8Block; T],
    acc: &mut [S::Floats; T],
) {
    let halved = const { H::RULE.halved() };
    for half in 0..if halved { 2 } else { 1 } {
        let mut sums = [S::zero(); T];
        for i in 0..if halved { 4 } else { 8 } {
            // Quads that share lines of four bits follow each other: 0, 4, 1, 5, …
            let quad = if halved { 4 * half + i } else { i % 2 * 4 + i / 2 };
            let bytes = C::quad::<S>(body, quad);
            for t in 0..T {
                sums[t] = C::dot::<S>(sums[t], bytes, codes(x[t]).add(4 * quad));
            }
        }
        let (scale, min) = (H::scale::<S>(head, part, half), H::min::<S>(head, part, half));
        for t in 0..T {
            let x_sum = if halved { (*x[t]).halves[half] } else { (*x[t]).sum };
            let sum = C::finish::<S>(sums[t], x_sum);
            let term = match min {
                Some(min) => S::fma(scale, sum, S::mul(min, S::splat(x_sum))),
                None => S::mul(scale, sum),
            };
            acc[t] = S::fma(S::splat((*x[t]).scale), term, acc[t]);
        }
    }
}

/// A block format, by its code and head.
pub(super) struct Blocks<C, H>(PhantomData<(C, H)>);

impl<C: Code, H: Head> Format for Blocks<C, H> {
    #[inline(always)]
    unsafe fn decode<S: Simd>(head: *const u8, part: usize, body: *const u8, out: *mut f32) {
        for quad in 0..8 {
            let half = if const { H::RULE.halved() } { quad / 4 } else { 0 };
            let (scale, min) = (H::scale::<S>(head, part, half), H::min::<S>(head, part, half));
            let bytes = C::quad::<S>(body, quad);
            let value = |byte: S::Ints| {
                let product = S::mul(scale, S::add(S::to_floats(byte), S::splat(-C::OFFSET)));
                match min {
                    Some(min) => S::add(product, min),
                    None => product,
                }
            };
            let out = out.add(4 * TILE * quad);
            S::store(out, value(S::byte::<0>(bytes)));
            S::store(out.add(TILE), value(S::byte::<1>(bytes)));
            S::store(out.add(2 * TILE), value(S::byte::<2>(bytes)));
            S::store(out.add(3 * TILE), value(S::byte::<3>(bytes)));
        }
    }
}

macro_rules! float_format {
    ($name:ident, $load:ident, $bytes:literal) => {
        pub(super) struct $name;

        impl Format for $name {
            #[inline(always)]
            unsafe fn decode<S: Simd>(_head: *const u8, _part: usize, body: *const u8, out: *mut f32) {
                for column in 0..32 {
                    S::store(out.add(TILE * column), S::$load(body.add($bytes * TILE * column)));
                }
            }
        }
    };
}

float_format!(F32, load_f32, 4);
float_format!(F16, load_f16, 2);
float_format!(BF16, load_bf16, 2);
float_format!(F8E4M3, load_f8_e4m3, 1);
