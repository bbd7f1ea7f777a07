//! Scales that lose little: the `gguf` package's rules for the simple formats, short searches for the others.

use super::codes::GROUP;

/// `1 / x`, or zero for zero.
pub(super) fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

/// The nearest integer in `low..=high`, halves to even: without a library call, so that loops are vectorised.
pub(super) fn nearest(value: f32, low: f32, high: f32) -> f32 {
    // Adding 1.5 * 2^23 leaves no room for a fraction.
    const SHIFT: f32 = 12_582_912.0;
    value.clamp(low, high) + SHIFT - SHIFT
}

/// The first value of the largest magnitude; zero where there is none.
pub(super) fn extreme(values: &[f32]) -> f32 {
    values.iter().copied().fold(0f32, |a, v| if v.abs() > a.abs() { v } else { a })
}

/// `(d, q)` with `value ≈ d * (q - half)` and `q` in `0..2 * half`: the extreme value becomes `-half`.
///
/// The `gguf` package rounds `v / d + half + 1/2` from f64 to f32 and then down; `q` is chosen with the scale before
/// its own rounding to f16.
pub(super) fn centred(values: &[f32], half: u8) -> (f32, [u8; GROUP]) {
    let d = extreme(values) / -f32::from(half);
    let scale = f64::from(inverse(d));
    let offset = f64::from(half) + 0.5;
    let q = |i: usize| ((f64::from(values[i]) * scale + offset) as f32 as u8).min(2 * half - 1);
    (d, std::array::from_fn(q))
}

/// `(d, m, q)` with `value ≈ d * q + m` and `q` in `0..=top`: the smallest value becomes 0 and the largest `top`.
///
/// `q` is chosen with scale and minimum before their own rounding to f16, as the `gguf` package does.
pub(super) fn spread(values: &[f32], top: u8) -> (f32, f32, [u8; GROUP]) {
    let min = values.iter().copied().fold(f32::INFINITY, f32::min);
    let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let d = (max - min) / f32::from(top);
    let scale = inverse(d);
    let q = |i: usize| (((values[i] - min) * scale + 0.5) as u8).min(top);
    (d, min, std::array::from_fn(q))
}

/// Scale (of either sign) such that `scale * round(v / scale)` is near the values; `round` gives the nearest code, and
/// `end` is the code of the largest magnitude.
///
/// The extreme value goes to about `end`; a few choices within one code of it are refined by least squares, and the
/// one that explains most wins.
pub(super) fn scale(values: &[f32], end: f32, round: impl Fn(f32) -> f32) -> f32 {
    let steps = (-8i8..=8).map(|step| end + 0.125 * f32::from(step));
    search(values, end, steps, round)
}

/// As [`scale`], for levels that lie apart: `ends` are the outermost two, and the extreme value may go to either.
pub(super) fn uneven_scale(values: &[f32], ends: [f32; 2], round: impl Fn(f32) -> f32) -> f32 {
    let steps =
        ends.into_iter().flat_map(|end| (-9i8..=9).map(move |step| end * (1.0 + 0.02 * f32::from(step))));
    search(values, ends[0], steps, round)
}

/// `f` of each value, of which there are 32 at most: a loop of its own is vectorised, which one that sums is not.
#[inline(always)]
fn map(values: &[f32], f: impl Fn(f32) -> f32) -> [f32; GROUP] {
    let mut results = [0f32; GROUP];
    for (result, value) in results.iter_mut().zip(values) {
        *result = f(*value);
    }
    results
}

/// The best of the scales that map the extreme value to each of `targets`, refined; `end` is the fallback.
fn search(values: &[f32], end: f32, targets: impl Iterator<Item = f32>, round: impl Fn(f32) -> f32) -> f32 {
    let extreme = extreme(values);
    if extreme == 0.0 {
        return 0.0;
    }
    let (mut best, mut most) = (extreme / end, 0f32);
    for target in targets {
        let inverse_scale = target / extreme;
        let (mut vq, mut q2) = (0f32, 0f32);
        for (v, q) in values.iter().zip(map(values, |v| round(v * inverse_scale))) {
            vq += v * q;
            q2 += q * q;
        }
        // What least squares leaves is Σv² - (Σvq)²/Σq².
        if q2 > 0.0 && vq * vq > most * q2 {
            (best, most) = (vq / q2, vq * vq / q2);
        }
    }
    best
}

/// `(scale, min)`, both at least zero, such that `scale * q - min` with `q` in `0..=top` is near the values: from the
/// full range, then a few narrower ones, each refined by least squares; the least squared error wins.
pub(super) fn scale_min(values: &[f32], top: f32) -> (f32, f32) {
    let low = values.iter().copied().fold(0f32, f32::min);
    let high = values.iter().copied().fold(low, f32::max);
    if high <= low {
        return (0.0, -low);
    }
    let mut best = ((high - low) / top, -low);
    let mut least = squared_error(values, top, best);
    for step in 0..12 {
        let levels = top - 1.0 + 0.25 * step as f32;
        let candidate = least_squares(values, top, levels / (high - low), low);
        let error = squared_error(values, top, candidate);
        if error < least {
            (best, least) = (candidate, error);
        }
    }
    best
}

/// Best `(scale, min)` for the codes that `inverse_scale` and `low` give; the minimum is kept at zero or more.
fn least_squares(values: &[f32], top: f32, inverse_scale: f32, low: f32) -> (f32, f32) {
    let (mut q1, mut q2, mut v1, mut vq) = (0f32, 0f32, 0f32, 0f32);
    for (v, q) in values.iter().zip(map(values, |v| nearest((v - low) * inverse_scale, 0.0, top))) {
        q1 += q;
        q2 += q * q;
        v1 += v;
        vq += v * q;
    }
    let n = values.len() as f32;
    let det = n * q2 - q1 * q1;
    if det <= 0.0 {
        return (0.0, -low);
    }
    let (scale, offset) = ((n * vq - q1 * v1) / det, (q2 * v1 - q1 * vq) / det);
    if offset > 0.0 { ((vq / q2).max(0.0), 0.0) } else { (scale.max(0.0), -offset) }
}

fn squared_error(values: &[f32], top: f32, (scale, min): (f32, f32)) -> f32 {
    let step = inverse(scale);
    let error = |v: f32| (scale * nearest((v + min) * step, 0.0, top) - min - v).powi(2);
    map(values, error).iter().take(values.len()).sum()
}
