//! Attention of a few query heads that share a key head, for one query row, in vector operations.

#![allow(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    reason = "pointers into KV pages; `Heads` states what callers owe"
)]

use super::store::{KvStore, PAGE, page_len};
use super::{AttentionShape, KvView};
use crate::cpu::Isa;
use crate::cpu::simd::{self, Simd};
use crate::error::{ShapeError, at_least, same};
use crate::math::{exp, tanh};
use half::f16;
use std::ops::Range;

/// Lanes of a vector.
const LANES: usize = 16;

/// What the calls of one launch share; made only when the sizes fit.
pub(super) struct Launch<'a> {
    isa: Isa,
    shape: &'a AttentionShape,
    kv: &'a KvView<'a>,
    positions: usize,
}

impl<'a> Launch<'a> {
    /// A launch for query rows at positions below `positions`.
    ///
    /// # Errors
    /// When query heads are no multiple of key heads, the stores differ in type, the window holds nothing, or the pages do
    /// not hold the positions or lie outside the stores.
    pub(super) fn new(
        isa: Isa,
        shape: &'a AttentionShape,
        kv: &'a KvView<'a>,
        positions: usize,
    ) -> Result<Self, ShapeError> {
        const OP: &str = "attention";
        same(OP, "number of query heads", shape.group() * shape.n_kv_heads, shape.n_heads)?;
        let width = |store: &KvStore| store.dtype().block_bytes();
        same(OP, "bytes of a cached value", width(kv.keys), width(kv.values))?;
        at_least(OP, "keys in the window", 1, shape.window.unwrap_or(1))?;
        at_least(OP, "positions in the cache", positions, kv.pages.len() * PAGE)?;
        let pages = kv.pages.iter().max().map_or(0, |p| *p as usize + 1);
        at_least(OP, "pages in the key store", pages, kv.keys.pages(shape))?;
        at_least(OP, "pages in the value store", pages, kv.values.pages(shape))?;
        Ok(Launch { isa: isa.min(Isa::detect()), shape, kv, positions })
    }

    /// The query heads at `position` that share key head `head`: `q` and `out` are `[group][head_dim]`, `scores` has
    /// room for the group's scores of this launch. Arguments out of range are a mistake in this crate.
    pub(super) fn run(&self, position: usize, head: usize, q: &[f32], scores: &mut [f32], out: &mut [f32]) {
        match (self.kv.keys, self.kv.values) {
            (KvStore::F32(k), KvStore::F32(v)) => self.run_as(position, head, [k, v], q, scores, out),
            (KvStore::F16(k), KvStore::F16(v)) => self.run_as(position, head, [k, v], q, scores, out),
            // Refused by `new`.
            _ => {}
        }
    }

    fn run_as<E: Element>(
        &self,
        position: usize,
        head: usize,
        [keys, values]: [&[E]; 2],
        q: &[f32],
        scores: &mut [f32],
        out: &mut [f32],
    ) {
        let (group, dim) = (self.shape.group(), self.shape.head_dim);
        let stride = (position + 1).next_multiple_of(PAGE);
        assert!(position < self.positions && head < self.shape.n_kv_heads, "no such row or head");
        assert!(
            q.len() == group * dim && out.len() == q.len() && scores.len() >= group * stride,
            "wrong size"
        );
        let paged = |store: &[E]| Paged {
            base: store.as_ptr().wrapping_add(head * PAGE * dim),
            page_len: page_len(self.shape),
            pages: self.kv.pages,
        };
        let mut g = 0;
        while g < group {
            let (count, kernel) = variant::<E>(self.isa, group - g);
            let heads = Heads {
                q: q[g * dim..].as_ptr(),
                out: out[g * dim..].as_mut_ptr(),
                scores: scores[g * stride..].as_mut_ptr(),
                stride,
                dim,
                first: self.shape.first_key(position),
                position,
                scale: self.shape.scale,
                softcap: self.shape.softcap,
                keys: paged(keys),
                values: paged(values),
            };
            // SAFETY: `count <= group - g`, and the sizes were checked above and, for the pages, by `new`; the variant is
            // one of an instruction set that the machine has.
            unsafe { kernel(&heads) };
            g += count;
        }
    }
}

/// Pages of one key head: page `i` of the sequence starts `pages[i] * page_len` values after `base`.
#[derive(Clone, Copy)]
pub(super) struct Paged<'a, E> {
    pub(super) base: *const E,
    pub(super) page_len: usize,
    pub(super) pages: &'a [u32],
}

impl<E> Heads<'_, E> {
    /// Pages that are seen.
    fn pages(&self) -> Range<usize> {
        self.first / PAGE..self.position / PAGE + 1
    }

    /// Slots of a page that are seen.
    fn slots(&self, page: usize) -> Range<usize> {
        let start = page * PAGE;
        self.first.saturating_sub(start)..PAGE.min(self.position + 1 - start)
    }
}

impl<E> Paged<'_, E> {
    #[inline(always)]
    unsafe fn page(&self, i: usize) -> *const E {
        self.base.add(self.pages[i] as usize * self.page_len)
    }
}

/// One call: some query heads of one row.
///
/// # Safety
/// A microkernel for `G` heads may be called when `q` and `out` hold `G` rows of `dim` values, `scores` holds `G` rows of
/// `stride` values with `stride` a multiple of 64 above `position`, `first` is at most `position`, every page from the one
/// of `first` to the one of `position` is in `keys` (`[dim][64]`) and `values` (`[64][dim]`), and the machine has the
/// instruction set.
pub(super) struct Heads<'a, E> {
    pub(super) q: *const f32,
    pub(super) out: *mut f32,
    pub(super) scores: *mut f32,
    pub(super) stride: usize,
    pub(super) dim: usize,
    /// First position that is seen.
    pub(super) first: usize,
    pub(super) position: usize,
    pub(super) scale: f32,
    pub(super) softcap: Option<f32>,
    pub(super) keys: Paged<'a, E>,
    pub(super) values: Paged<'a, E>,
}

/// A stored type.
pub(super) trait Element: Copy {
    unsafe fn load<S: Simd>(from: *const Self) -> S::Floats;
    fn to_f32(self) -> f32;
}

impl Element for f32 {
    #[inline(always)]
    unsafe fn load<S: Simd>(from: *const f32) -> S::Floats {
        S::load_f32(from.cast())
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
}

impl Element for f16 {
    #[inline(always)]
    unsafe fn load<S: Simd>(from: *const f16) -> S::Floats {
        S::load_f16(from.cast())
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        f16::to_f32(self)
    }
}

/// `G` heads; `L` vectors are summed at once.
#[inline(always)]
unsafe fn heads<S: Simd, E: Element, const G: usize, const L: usize>(h: &Heads<'_, E>) {
    for page in h.pages() {
        for block in 0..PAGE / LANES / L {
            scores::<S, E, G, L>(h, page, block * LANES * L);
        }
    }
    let mut totals = [0f32; G];
    for (g, total) in totals.iter_mut().enumerate() {
        let start = h.pages().start * PAGE;
        let row = h.scores.add(g * h.stride + start);
        let row = std::slice::from_raw_parts_mut(row, h.position + 1 - start);
        *total = softmax(row, h.first - start, h.softcap);
    }
    let mut d = 0;
    while d + LANES * L <= h.dim {
        weighted::<S, E, G, L>(h, d, &totals);
        d += LANES * L;
    }
    while d + LANES <= h.dim {
        weighted::<S, E, G, 1>(h, d, &totals);
        d += LANES;
    }
    for d in d..h.dim {
        weighted_one::<E, G>(h, d, &totals);
    }
}

/// Scores of `16 L` keys of a page, from slot `slot` on; lanes are keys.
#[inline(always)]
unsafe fn scores<S: Simd, E: Element, const G: usize, const L: usize>(
    h: &Heads<'_, E>,
    page: usize,
    slot: usize,
) {
    let keys = h.keys.page(page).add(slot);
    let mut sums = [[S::splat(0.0); L]; G];
    for d in 0..h.dim {
        let mut k = [S::splat(0.0); L];
        for (l, k) in k.iter_mut().enumerate() {
            *k = E::load::<S>(keys.add(d * PAGE + l * LANES));
        }
        for (g, sums) in sums.iter_mut().enumerate() {
            let q = S::splat(*h.q.add(g * h.dim + d));
            for (sum, k) in sums.iter_mut().zip(k) {
                *sum = S::fma(q, k, *sum);
            }
        }
    }
    for (g, sums) in sums.iter().enumerate() {
        for (l, sum) in sums.iter().enumerate() {
            let to = h.scores.add(g * h.stride + page * PAGE + slot + l * LANES);
            S::store(to, S::mul(*sum, S::splat(h.scale)));
        }
    }
}

/// Replaces scores by `exp(score - max)`, the first `unseen` by zero, and returns their sum.
#[inline(always)]
fn softmax(scores: &mut [f32], unseen: usize, softcap: Option<f32>) -> f32 {
    if let Some(cap) = softcap {
        scores.iter_mut().for_each(|score| *score = cap * tanh(*score / cap));
    }
    scores[..unseen].fill(f32::NEG_INFINITY);
    let greater = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (blocks, tail) = scores.as_chunks_mut::<LANES>();
    for block in blocks.iter() {
        lanes.iter_mut().zip(block).for_each(|(max, s)| *max = greater(*max, *s));
    }
    lanes.iter_mut().zip(&*tail).for_each(|(max, s)| *max = greater(*max, *s));
    let max = lanes.into_iter().fold(f32::NEG_INFINITY, greater);
    let mut sums = [0f32; LANES];
    let weigh = |(score, sum): (&mut f32, &mut f32)| {
        *score = exp(*score - max);
        *sum += *score;
    };
    for block in blocks {
        block.iter_mut().zip(&mut sums).for_each(weigh);
    }
    tail.iter_mut().zip(&mut sums).for_each(weigh);
    sums.iter().sum()
}

/// Output values `d .. d + 16 L`; lanes are values.
#[inline(always)]
unsafe fn weighted<S: Simd, E: Element, const G: usize, const L: usize>(
    h: &Heads<'_, E>,
    d: usize,
    totals: &[f32; G],
) {
    let mut sums = [[S::splat(0.0); L]; G];
    for page in h.pages() {
        let values = h.values.page(page).add(d);
        let weights = h.scores.add(page * PAGE);
        for slot in h.slots(page) {
            let mut v = [S::splat(0.0); L];
            for (l, v) in v.iter_mut().enumerate() {
                *v = E::load::<S>(values.add(slot * h.dim + l * LANES));
            }
            for (g, sums) in sums.iter_mut().enumerate() {
                let w = S::splat(*weights.add(g * h.stride + slot));
                for (sum, v) in sums.iter_mut().zip(v) {
                    *sum = S::fma(w, v, *sum);
                }
            }
        }
    }
    for (g, sums) in sums.iter().enumerate() {
        for (l, sum) in sums.iter().enumerate() {
            let to = h.out.add(g * h.dim + d + l * LANES);
            S::store(to, S::div(*sum, S::splat(totals[g])));
        }
    }
}

/// Output value `d`, where fewer than sixteen are left.
#[inline(always)]
unsafe fn weighted_one<E: Element, const G: usize>(h: &Heads<'_, E>, d: usize, totals: &[f32; G]) {
    for (g, total) in totals.iter().enumerate() {
        let mut sum = 0f32;
        for j in h.first..=h.position {
            let value = (*h.values.page(j / PAGE).add(j % PAGE * h.dim + d)).to_f32();
            sum = (*h.scores.add(g * h.stride + j)).mul_add(value, sum);
        }
        *h.out.add(g * h.dim + d) = sum / total;
    }
}

/// A microkernel and the heads it takes.
pub(super) type Variant<E> = (usize, unsafe fn(&Heads<'_, E>));

macro_rules! compiled {
    ($name:ident, $simd:ty, [$($feature:literal)?], $vectors:literal, [$($heads:literal),*]) => {
        mod $name {
            use super::*;

            $(#[target_feature(enable = $feature)])?
            unsafe fn compiled<E: Element, const G: usize>(h: &Heads<'_, E>) {
                // SAFETY: this function's contract is that of `Heads`, and the features are enabled here.
                unsafe { heads::<$simd, E, G, $vectors>(h) }
            }

            pub(super) fn variant<E: Element>(heads: usize) -> Variant<E> {
                match heads {
                    $($heads => ($heads, compiled::<E, $heads>),)*
                    _ => (1, compiled::<E, 1>),
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled!(
    avx512,
    simd::Avx512,
    ["avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c"],
    4,
    [2, 3, 4]
);
#[cfg(target_arch = "x86_64")]
compiled!(avx2, simd::Avx2, ["avx2,fma,f16c"], 1, [2, 3]);
compiled!(portable, simd::Portable, [], 1, []);

/// The microkernel for `heads` heads or the most compiled below that.
///
/// `isa` must be one that the machine has.
pub(super) fn variant<E: Element>(isa: Isa, heads: usize) -> Variant<E> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::variant(heads.min(4)),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::variant(heads.min(3)),
        _ => portable::variant(heads.min(1)),
    }
}
