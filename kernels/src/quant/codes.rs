//! The one view of all block formats: 32 values as small integers, and what scales them.

/// Values in a [`Codes`]: the unit in which activations are quantised and sums are folded.
pub const GROUP: usize = 32;

/// 32 consecutive values of a block format: `value[i] = scale[i / 16] * q[i] + min[i / 16]`.
///
/// The product and the sum are rounded to f32 once each; without a minimum there is no sum (so that the sign of a
/// zero is kept). Scales are exact in f32: each is an f16 or bf16, or an f16 times an integer of at most 8 bits and a
/// power of two. So it does not matter in which order a format's definition multiplies them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codes {
    /// The stored integers: their offset already taken off, or what they stand for in the format's table.
    pub q: [i8; GROUP],
    /// Scale of each half. The halves are equal in formats whose scales cover 32 values.
    pub scale: [f32; 2],
    /// The value of a zero code in each half, in formats that have one.
    pub min: Option<[f32; 2]>,
}

impl Codes {
    pub(crate) fn new(rule: Rule, scales: &Scales, q: [i8; GROUP]) -> Codes {
        let &Scales { d, m, sc, mn } = scales;
        let f16 = |bits| half::f16::from_bits(bits).to_f32();
        let nested = |shift: u32| sc.map(|sc| f16(d[0]) * f32::from(sc) * rule_factor(shift));
        let (scale, min) = match rule {
            Rule::Plain => (d.map(f16), None),
            Rule::PlainMin => (d.map(f16), Some([f16(m); 2])),
            Rule::Nested { shift, .. } => (nested(shift), None),
            Rule::NestedMin { .. } => (nested(0), Some(mn.map(|mn| -(f16(m) * f32::from(mn))))),
            Rule::Bf16 { .. } => (d.map(|bits| f32::from_bits(u32::from(bits) << 16)), None),
        };
        Codes { q, scale, min }
    }

    /// The 32 values.
    pub fn decode(&self) -> [f32; GROUP] {
        let Codes { q, scale, min } = self;
        std::array::from_fn(|i| {
            let product = scale[i / 16] * f32::from(q[i]);
            min.map_or(product, |min| product + min[i / 16])
        })
    }
}

/// How a format's scales and minimums are made of what its blocks store, see [`Scales`]. `halved` says that they cover
/// 16 values, not 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// `scale = d`.
    Plain,
    /// `scale = d`, `min = m`.
    PlainMin,
    /// `scale = d * sc / 2^shift`; `d` covers 256 values.
    Nested { halved: bool, shift: u32 },
    /// `scale = d * sc`, `min = -(m * mn)`; `d` and `m` cover 256 values.
    NestedMin { halved: bool },
    /// `scale = d`, as a bf16.
    Bf16 { halved: bool },
}

impl Rule {
    /// Whether scales cover 16 values.
    pub(crate) const fn halved(self) -> bool {
        match self {
            Rule::Plain | Rule::PlainMin => false,
            Rule::Nested { halved, .. } | Rule::NestedMin { halved } | Rule::Bf16 { halved } => halved,
        }
    }
}

/// `1 / 2^shift`.
pub(crate) const fn rule_factor(shift: u32) -> f32 {
    1.0 / (1u32 << shift) as f32
}

/// What scales 32 values, as stored: two of each where scales cover 16 values, else the same twice. A format's
/// [`Rule`] says which fields count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scales {
    /// Bits of an f16, or of a bf16.
    pub(crate) d: [u16; 2],
    /// Bits of an f16.
    pub(crate) m: u16,
    /// Factors of `d`.
    pub(crate) sc: [i8; 2],
    /// Factors of `m`.
    pub(crate) mn: [i8; 2],
}

impl Scales {
    /// `d` at the beginning of `field`.
    pub(super) fn d(field: &[u8]) -> Scales {
        Scales { d: [u16_at(field, 0); 2], ..Scales::default() }
    }
}

/// The 16 bits at `at`.
pub(crate) fn u16_at(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

/// The 32 bits at `at`.
pub(super) fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from(u16_at(block, at)) | u32::from(u16_at(block, at + 2)) << 16
}

/// Stores `value`, rounded to f16, at `at`, and returns the stored value.
pub(super) fn put_f16(block: &mut [u8], at: usize, value: f32) -> f32 {
    let rounded = half::f16::from_f32(value);
    block[at..at + 2].copy_from_slice(&rounded.to_le_bytes());
    rounded.to_f32()
}

/// Value `i` of 32 in 16 bytes: the low four bits of the bytes, then the high ones.
pub(super) fn nibble(run: &[u8], i: usize) -> u8 {
    run[i % 16] >> (4 * (i / 16)) & 15
}

/// The inverse of [`nibble`]: packs 32 values below 16.
pub(super) fn put_nibbles(q: &[u8; GROUP], run: &mut [u8]) {
    for (i, byte) in run.iter_mut().enumerate() {
        *byte = q[i] & 15 | q[16 + i] << 4;
    }
}
