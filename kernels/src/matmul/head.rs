//! Heads of packed tiles: the scales and minimums of 16 rows, one head for each 32 or 256 columns.
//!
//! | rule | head, for each | of |
//! |---|---|---|
//! | plain | 32 columns | 16 `d`: f16 |
//! | plain with minimum | 32 columns | 16 `d`, 16 `m`: f16 |
//! | bf16 | 32 columns | 16 `d`: bf16, once or for each half |
//! | nested | 256 columns | 16 `d`: f16; for each 32 (or 16) columns 16 `sc`: i8 |
//! | nested with minimum | 256 columns | 16 `d`, 16 `m`: f16; for each 32 (or 16) columns 16 `sc`, 16 `mn`: i8 |

#![allow(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    reason = "pointers into packed tiles; the trait states what callers owe"
)]

use super::packed::TILE;
use crate::cpu::simd::Simd;
use crate::quant::{GROUP, Rule, Scales, rule_factor, u16_at};

/// Columns of a block whose scales are nested.
const NEST: usize = 256;

/// `(columns, bytes)` of a head.
pub(super) const fn head_size(rule: Rule) -> (usize, usize) {
    let sixteens = if rule.halved() { 2 } else { 1 };
    match rule {
        Rule::Plain => (GROUP, 2 * TILE),
        Rule::PlainMin => (GROUP, 4 * TILE),
        Rule::Bf16 { .. } => (GROUP, 2 * TILE * sixteens),
        Rule::Nested { .. } => (NEST, 2 * TILE + NEST / GROUP * sixteens * TILE),
        Rule::NestedMin { .. } => (NEST, 4 * TILE + NEST / GROUP * sixteens * 2 * TILE),
    }
}

/// Which of the rows of factors covers half `half` of part `part`.
const fn factor_row(rule: Rule, part: usize, half: usize) -> usize {
    if rule.halved() { 2 * part + half } else { part }
}

/// Writes the scales of part `part` of row `lane`.
pub(super) fn put(rule: Rule, head: &mut [u8], part: usize, lane: usize, scales: &Scales) {
    let mut word = |at: usize, bits: u16| head[at + 2 * lane..][..2].copy_from_slice(&bits.to_le_bytes());
    word(0, scales.d[0]);
    match rule {
        Rule::Plain | Rule::Nested { .. } | Rule::Bf16 { halved: false } => {}
        Rule::PlainMin | Rule::NestedMin { .. } => word(2 * TILE, scales.m),
        Rule::Bf16 { halved: true } => word(2 * TILE, scales.d[1]),
    }
    for half in 0..2 {
        let row = factor_row(rule, part, half);
        match rule {
            Rule::Nested { .. } => head[TILE * (2 + row) + lane] = scales.sc[half] as u8,
            Rule::NestedMin { .. } => {
                head[TILE * (4 + 2 * row) + lane] = scales.sc[half] as u8;
                head[TILE * (5 + 2 * row) + lane] = scales.mn[half] as u8;
            }
            _ => {}
        }
    }
}

/// The inverse of [`put`], written apart from the SIMD code to check it.
pub(super) fn get(rule: Rule, head: &[u8], part: usize, lane: usize) -> Scales {
    let word = |row: usize| u16_at(head, 2 * (TILE * row + lane));
    let factor = |half: usize, rows: usize, offset: usize| {
        head[TILE * (offset + rows * factor_row(rule, part, half)) + lane] as i8
    };
    let mut scales = Scales { d: [word(0); 2], ..Scales::default() };
    match rule {
        Rule::Plain | Rule::Bf16 { halved: false } => {}
        Rule::PlainMin => scales.m = word(1),
        Rule::Bf16 { halved: true } => scales.d[1] = word(1),
        Rule::Nested { .. } => scales.sc = [0, 1].map(|half| factor(half, 1, 2)),
        Rule::NestedMin { .. } => {
            scales.m = word(1);
            scales.sc = [0, 1].map(|half| factor(half, 2, 4));
            scales.mn = [0, 1].map(|half| factor(half, 2, 5));
        }
    }
    scales
}

/// A rule in vector operations: lanes are rows.
///
/// # Safety
/// The functions may be called on a machine with `S`'s instruction set, with `head` pointing to a head of this rule.
pub(super) trait Head {
    /// The rule.
    const RULE: Rule;

    /// Scales of half `half` (0 where they cover 32 columns) of part `part`.
    unsafe fn scale<S: Simd>(head: *const u8, part: usize, half: usize) -> S::Floats;
    /// Minimums, for rules that have some.
    unsafe fn min<S: Simd>(_head: *const u8, _part: usize, _half: usize) -> Option<S::Floats> {
        None
    }
}

/// [`Rule::Plain`].
pub(super) struct Plain;
/// [`Rule::PlainMin`].
pub(super) struct PlainMin;
/// [`Rule::Nested`].
pub(super) struct Nested<const HALVED: bool, const SHIFT: u32>;
/// [`Rule::NestedMin`].
pub(super) struct NestedMin<const HALVED: bool>;
/// [`Rule::Bf16`].
pub(super) struct Bf16<const HALVED: bool>;

impl Head for Plain {
    const RULE: Rule = Rule::Plain;

    #[inline(always)]
    unsafe fn scale<S: Simd>(head: *const u8, _part: usize, _half: usize) -> S::Floats {
        S::load_f16(head)
    }
}

impl Head for PlainMin {
    const RULE: Rule = Rule::PlainMin;

    #[inline(always)]
    unsafe fn scale<S: Simd>(head: *const u8, _part: usize, _half: usize) -> S::Floats {
        S::load_f16(head)
    }

    #[inline(always)]
    unsafe fn min<S: Simd>(head: *const u8, _part: usize, _half: usize) -> Option<S::Floats> {
        Some(S::load_f16(head.add(2 * TILE)))
    }
}

impl<const HALVED: bool, const SHIFT: u32> Head for Nested<HALVED, SHIFT> {
    const RULE: Rule = Rule::Nested { halved: HALVED, shift: SHIFT };

    #[inline(always)]
    unsafe fn scale<S: Simd>(head: *const u8, part: usize, half: usize) -> S::Floats {
        let factor = S::load_i8(head.add(TILE * (2 + factor_row(Self::RULE, part, half))));
        let scale = S::mul(S::load_f16(head), factor);
        if SHIFT == 0 { scale } else { S::mul(scale, S::splat(rule_factor(SHIFT))) }
    }
}

impl<const HALVED: bool> Head for NestedMin<HALVED> {
    const RULE: Rule = Rule::NestedMin { halved: HALVED };

    #[inline(always)]
    unsafe fn scale<S: Simd>(head: *const u8, part: usize, half: usize) -> S::Floats {
        let row = 4 + 2 * factor_row(Self::RULE, part, half);
        S::mul(S::load_f16(head), S::load_i8(head.add(TILE * row)))
    }

    #[inline(always)]
    unsafe fn min<S: Simd>(head: *const u8, part: usize, half: usize) -> Option<S::Floats> {
        let row = 5 + 2 * factor_row(Self::RULE, part, half);
        let min = S::mul(S::load_f16(head.add(2 * TILE)), S::load_i8(head.add(TILE * row)));
        Some(S::mul(min, S::splat(-1.0)))
    }
}

impl<const HALVED: bool> Head for Bf16<HALVED> {
    const RULE: Rule = Rule::Bf16 { halved: HALVED };

    #[inline(always)]
    unsafe fn scale<S: Simd>(head: *const u8, _part: usize, half: usize) -> S::Floats {
        S::load_bf16(head.add(2 * TILE * half))
    }
}
