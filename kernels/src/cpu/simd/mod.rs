//! The few vector operations that microkernels are written in, for each instruction set.
//!
//! A microkernel is generic code over [`Simd`], inlined into a function compiled for the instruction set. One source for
//! all of them is what makes their bits equal: every operation here is exact or rounds once.

#![allow(unsafe_code, reason = "vector intrinsics and pointers into packed weights")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use portable::Portable;

/// Sixteen lanes.
///
/// # Safety
/// Every method may be called only on a machine that has the implementing type's instruction set. Pointers must be
/// readable (or writable) for as many bytes as the method says.
pub(crate) trait Simd: Copy {
    /// 16 × f32.
    type Floats: Copy;
    /// 16 × f64.
    type Doubles: Copy;
    /// 16 × i32.
    type Ints: Copy;
    /// 64 bytes: 16 lanes of 4.
    type Bytes: Copy;

    /// All lanes `value`.
    unsafe fn splat(value: f32) -> Self::Floats;
    /// All lanes zero.
    unsafe fn zero() -> Self::Ints;
    /// Loads 16 f32.
    unsafe fn load_f32(from: *const u8) -> Self::Floats;
    /// Loads 16 f16.
    unsafe fn load_f16(from: *const u8) -> Self::Floats;
    /// Loads 16 bf16.
    unsafe fn load_bf16(from: *const u8) -> Self::Floats;
    /// Loads 16 FP8 E4M3 (see `quant`).
    unsafe fn load_f8_e4m3(from: *const u8) -> Self::Floats;
    /// Loads 16 i8.
    unsafe fn load_i8(from: *const u8) -> Self::Floats;
    /// Stores 16 f32.
    unsafe fn store(to: *mut f32, value: Self::Floats);

    /// `a * b`, rounded.
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a / b`, rounded.
    unsafe fn div(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a + b`, rounded.
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`, rounded once.
    unsafe fn fma(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// All lanes `value`.
    unsafe fn splat_f64(value: f64) -> Self::Doubles;
    /// Lanes as f64, exact.
    unsafe fn widen(value: Self::Floats) -> Self::Doubles;
    /// Lanes as f32, rounded.
    unsafe fn narrow(value: Self::Doubles) -> Self::Floats;
    /// `a * b + c`, rounded once.
    unsafe fn fma_f64(a: Self::Doubles, b: Self::Doubles, c: Self::Doubles) -> Self::Doubles;
    /// Lanes as f32: exact below 2^24.
    unsafe fn to_floats(value: Self::Ints) -> Self::Floats;

    /// The greatest of each lane of `acc` and the bits of `value` without its sign: magnitudes, as integers, order like
    /// values, with infinity and NaN on top.
    unsafe fn max_magnitude(acc: Self::Ints, value: Self::Floats) -> Self::Ints;
    /// The greatest lane; none is negative.
    unsafe fn greatest(value: Self::Ints) -> i32;
    /// Rounds to nearest, halves to even, values in -127.5..127.5, stores them as 16 i8 and returns their sum.
    unsafe fn store_codes(to: *mut i8, value: Self::Floats) -> i32;

    /// Loads 64 bytes.
    unsafe fn load_bytes(from: *const u8) -> Self::Bytes;
    /// `byte >> from & mask` of each byte; `from` is below 8 and known when compiling, as are the next one's numbers.
    unsafe fn bits(value: Self::Bytes, from: u32, mask: u8) -> Self::Bytes;
    /// `a | (b >> from & mask) << to` of each byte; what is moved stays within the byte.
    unsafe fn with_bits(a: Self::Bytes, b: Self::Bytes, from: u32, to: u32, mask: u8) -> Self::Bytes;
    /// `table[byte]` of each byte, which are below 16.
    unsafe fn lookup(table: &[u8; 16], value: Self::Bytes) -> Self::Bytes;
    /// Byte `4 * lane + J` of each lane, as an integer.
    unsafe fn byte<const J: u32>(value: Self::Bytes) -> Self::Ints;

    /// Adds to each lane the product of its four unsigned bytes, below 64 each, with the four signed bytes at `x`.
    unsafe fn dot(acc: Self::Ints, w: Self::Bytes, x: *const i8) -> Self::Ints;
    /// As [`Simd::dot`] for bytes that stand for `byte - 128`; the sum is complete after [`Simd::finish_offset`].
    unsafe fn dot_offset(acc: Self::Ints, w: Self::Bytes, x: *const i8) -> Self::Ints;
    /// The sum of [`Simd::dot_offset`] over bytes of `x` whose sum is `x_sum`.
    unsafe fn finish_offset(acc: Self::Ints, x_sum: f32) -> Self::Floats;
}

/// Asks for the cache line at `at`, which need not be readable.
#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch neither faults nor changes memory; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
