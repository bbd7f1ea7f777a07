//! One step of the delta rule for a block of columns, in vector operations.

#![allow(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    reason = "pointers into a block of state; `Columns` checks sizes, and lanes are columns"
)]

use crate::cpu::Isa;
use crate::cpu::simd::{self, Simd};

/// Columns of a block of state.
pub(super) const SLICE: usize = 64;

/// Lanes of a vector.
const LANES: usize = 16;

/// One row and one head, for the columns of one block.
pub(super) struct Columns<'a> {
    /// `[key_dim]`, of length one over `sqrt(key_dim)`.
    pub(super) q: &'a [f32],
    /// `[key_dim]`, of length one.
    pub(super) k: &'a [f32],
    /// Values of these columns.
    pub(super) v: &'a [f32],
    pub(super) decay: f32,
    pub(super) beta: f32,
    /// The block of state before the row, `[key_dim][columns]`, where it is not `state` itself.
    pub(super) old: Option<&'a [f32]>,
    /// Whether the state before the row is zero.
    pub(super) fresh: bool,
    /// The block of state after the row.
    pub(super) state: &'a mut [f32],
    /// Results of these columns.
    pub(super) out: &'a mut [f32],
}

/// What a microkernel sees of [`Columns`].
///
/// # Safety
/// A microkernel may be called for columns `c .. c + 16 L` when these lie within `stride`; `q` and `k` hold `len` values,
/// `old` (unless null) and `state` `len` rows of `stride` values, `v` and `out` one such row; nothing else reads or writes
/// `state` and `out`; and the machine has the instruction set.
struct Raw {
    q: *const f32,
    k: *const f32,
    v: *const f32,
    old: *const f32,
    state: *mut f32,
    out: *mut f32,
    len: usize,
    stride: usize,
    decay: f32,
    beta: f32,
}

/// Advances a block of state by one row. Sizes that do not fit are a mistake in this crate.
pub(super) fn step(isa: Isa, columns: Columns<'_>) {
    let Columns { q, k, v, decay, beta, old, fresh, state, out } = columns;
    let (len, stride) = (q.len(), v.len());
    assert!(k.len() == len && out.len() == stride && state.len() == len * stride, "wrong size");
    assert!(old.is_none_or(|old| old.len() == state.len()), "wrong size");
    let state_ptr = state.as_mut_ptr();
    let old = match old {
        Some(old) => old.as_ptr(),
        None if fresh => std::ptr::null(),
        None => state_ptr.cast_const(),
    };
    let raw = Raw {
        q: q.as_ptr(),
        k: k.as_ptr(),
        v: v.as_ptr(),
        old,
        state: state_ptr,
        out: out.as_mut_ptr(),
        len,
        stride,
        decay,
        beta,
    };
    // SAFETY: the sizes were checked above, and the variant is one of an instruction set that the machine has.
    unsafe { variant(isa)(&raw) }
}

/// All columns: four vectors at a time, then one, then single columns.
#[inline(always)]
unsafe fn all<S: Simd>(r: &Raw) {
    let mut c = 0;
    while c + 4 * LANES <= r.stride {
        vectors::<S, 4>(r, c);
        c += 4 * LANES;
    }
    while c + LANES <= r.stride {
        vectors::<S, 1>(r, c);
        c += LANES;
    }
    for c in c..r.stride {
        one(r, c);
    }
}

/// Columns `c .. c + 16 L`.
#[inline(always)]
unsafe fn vectors<S: Simd, const L: usize>(r: &Raw, c: usize) {
    let mut held = [S::splat_f64(0.0); L];
    for i in 0..r.len {
        let (at, k) = (i * r.stride + c, S::splat_f64(f64::from(*r.k.add(i))));
        for (l, held) in held.iter_mut().enumerate() {
            let mut s = S::splat(0.0);
            if !r.old.is_null() {
                s = S::mul(S::load_f32(r.old.add(at + l * LANES).cast()), S::splat(r.decay));
                *held = S::fma_f64(S::widen(s), k, *held);
            }
            S::store(r.state.add(at + l * LANES), s);
        }
    }
    // `beta * (v - held)`: the difference is one fused operation, exact but for its rounding.
    let mut error = [S::splat(0.0); L];
    for (l, (error, held)) in error.iter_mut().zip(held).enumerate() {
        let difference = S::fma(S::narrow(held), S::splat(-1.0), S::load_f32(r.v.add(c + l * LANES).cast()));
        *error = S::mul(difference, S::splat(r.beta));
    }
    let mut sums = [S::splat_f64(0.0); L];
    for i in 0..r.len {
        let at = i * r.stride + c;
        let (q, k) = (S::splat_f64(f64::from(*r.q.add(i))), S::splat(*r.k.add(i)));
        for l in 0..L {
            let s = S::fma(k, error[l], S::load_f32(r.state.add(at + l * LANES).cast()));
            S::store(r.state.add(at + l * LANES), s);
            sums[l] = S::fma_f64(S::widen(s), q, sums[l]);
        }
    }
    for (l, sum) in sums.into_iter().enumerate() {
        S::store(r.out.add(c + l * LANES), S::narrow(sum));
    }
}

/// Column `c`, with the operations of [`vectors`].
#[inline(always)]
unsafe fn one(r: &Raw, c: usize) {
    let mut held = 0f64;
    for i in 0..r.len {
        let at = i * r.stride + c;
        let mut s = 0f32;
        if !r.old.is_null() {
            s = *r.old.add(at) * r.decay;
            held = f64::from(s).mul_add(f64::from(*r.k.add(i)), held);
        }
        *r.state.add(at) = s;
    }
    let error = (*r.v.add(c) - held as f32) * r.beta;
    let mut sum = 0f64;
    for i in 0..r.len {
        let at = i * r.stride + c;
        let s = (*r.k.add(i)).mul_add(error, *r.state.add(at));
        *r.state.add(at) = s;
        sum = f64::from(s).mul_add(f64::from(*r.q.add(i)), sum);
    }
    *r.out.add(c) = sum as f32;
}

macro_rules! compiled {
    ($name:ident, $simd:ty, [$($feature:literal)?]) => {
        $(#[target_feature(enable = $feature)])?
        unsafe fn $name(r: &Raw) {
            // SAFETY: this function's contract is that of `Raw`, and the features are enabled here.
            unsafe { all::<$simd>(r) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled!(avx512, simd::Avx512, ["avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c"]);
#[cfg(target_arch = "x86_64")]
compiled!(avx2, simd::Avx2, ["avx2,fma,f16c"]);
compiled!(portable, simd::Portable, []);

/// The microkernel for `isa`, or for the widest set the machine has.
fn variant(isa: Isa) -> unsafe fn(&Raw) {
    match isa.min(Isa::detect()) {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2,
        _ => portable,
    }
}
