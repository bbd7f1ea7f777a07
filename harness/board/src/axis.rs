//! Axes: a map from values to pixels, and round ticks that leave room for their labels.

use crate::{
    font,
    scene::{Anchor, Ink, Scene},
};

/// Em of tick labels, in pixels.
pub(crate) const TICK_SIZE: f64 = 11.0;
/// Height of a row of tick labels.
pub(crate) const TICK_ROW: f64 = 20.0;

/// What lies beyond this, or below its inverse, is drawn at the axis's end.
const EXTREME: f64 = 1e15;

/// A horizontal axis over `lo..=hi`, drawn from pixel `left` to pixel `right`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    lo: f64,
    hi: f64,
    left: f64,
    right: f64,
    log: bool,
    unit: &'static str,
    /// Where there is a grid line and a label.
    ticks: Vec<f64>,
    /// Distance of the ticks, where it is even.
    step: Option<f64>,
}

impl Axis {
    /// A linear axis from zero to a little above `hi`; labels end in `unit`.
    pub(crate) fn linear(hi: f64, (left, right): (f64, f64), unit: &'static str) -> Axis {
        let hi = if hi > 0.0 { hi.clamp(1.0 / EXTREME, EXTREME) * 1.04 } else { 1.0 };
        let axis = Axis { lo: 0.0, hi, left, right, log: false, unit, ticks: Vec::new(), step: None };
        let decade = 10f64.powf(hi.log10().floor());
        let steps = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0].map(|step| step * decade);
        axis.with_ticks(steps.map(|step| (multiples(step, 0.0, hi), Some(step))), 7)
    }

    /// A logarithmic axis that holds `lo..=hi` with a little air; labels end in `unit`.
    pub(crate) fn log(lo: f64, hi: f64, (left, right): (f64, f64), unit: &'static str) -> Axis {
        let lo = lo.clamp(1.0 / EXTREME, EXTREME);
        let hi = hi.clamp(lo, EXTREME);
        let air = (hi / lo).powf(0.04).max(1.002);
        let (lo, hi) = (lo / air, hi * air);
        let axis = Axis { lo, hi, left, right, log: true, unit, ticks: Vec::new(), step: None };
        axis.with_ticks(log_tick_sets(lo, hi), 9)
    }

    /// Takes the first of the tick sets that has at most `most` ticks and room for their labels.
    fn with_ticks(mut self, sets: impl IntoIterator<Item = (Vec<f64>, Option<f64>)>, most: usize) -> Axis {
        for (ticks, step) in sets {
            self.step = step;
            if ticks.len() <= most && self.has_room_for(&ticks) {
                self.ticks = ticks;
                break;
            }
        }
        self
    }

    /// Pixel of a value; values off the axis land on its ends.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let (value, lo, hi) = match self.log {
            true => (value.max(f64::MIN_POSITIVE).ln(), self.lo.ln(), self.hi.ln()),
            false => (value, self.lo, self.hi),
        };
        self.left + (self.right - self.left) * ((value - lo) / (hi - lo)).clamp(0.0, 1.0)
    }

    /// Grid lines from `top` to `bottom`.
    pub(crate) fn grid(&self, scene: &mut Scene, top: f64, bottom: f64) {
        for &tick in &self.ticks {
            let x = self.at(tick);
            scene.line((x, top), (x, bottom), 1.0, Ink::Grid);
        }
    }

    /// A row of labels below `bottom`.
    pub(crate) fn labels(&self, scene: &mut Scene, bottom: f64) {
        for &tick in &self.ticks {
            let x = self.at(tick);
            scene.text((x, bottom + TICK_ROW / 2.0), self.label(tick), TICK_SIZE, Anchor::Middle, Ink::Muted);
        }
    }

    /// A tick's text: evenly spaced ticks all with the same digits after the point, decades as short as can be.
    fn label(&self, tick: f64) -> String {
        let text = match self.step {
            Some(step) if (1e-4..1e6).contains(&step) => {
                let digits = (0..4).find(|d| (step * 10f64.powi(*d)).fract().abs() < 1e-6).unwrap_or(4);
                format!("{tick:.*}", digits as usize)
            }
            None if (1e-3..1e6).contains(&tick) => {
                format!("{tick:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            _ => format!("{tick:.1e}").replace(".0e", "e"),
        };
        format!("{text}{}", self.unit)
    }

    fn has_room_for(&self, ticks: &[f64]) -> bool {
        let spans: Vec<(f64, f64)> = ticks
            .iter()
            .map(|&tick| {
                let half = font::width(&self.label(tick), TICK_SIZE) / 2.0;
                (self.at(tick) - half, self.at(tick) + half)
            })
            .collect();
        spans.windows(2).all(|pair| pair[0].1 + 10.0 <= pair[1].0)
    }
}

/// Multiples of `step` within `lo..=hi`.
fn multiples(step: f64, lo: f64, hi: f64) -> Vec<f64> {
    let (first, last) = ((lo / step - 1e-9).ceil() as i64, (hi / step + 1e-9).floor() as i64);
    (first..=last).take(1000).map(|i| i as f64 * step).collect()
}

/// Sets of round ticks for a logarithmic axis, densest first, with their step where it is even.
fn log_tick_sets(lo: f64, hi: f64) -> Vec<(Vec<f64>, Option<f64>)> {
    let mut sets: Vec<(Vec<f64>, Option<f64>)> = Vec::new();
    if hi / lo < 5.0 {
        let steps = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
        sets.extend(steps.map(|step| (multiples(step, lo, hi), Some(step))));
    }
    let decades = lo.log10().floor() as i32..=hi.log10().ceil() as i32;
    let in_decades = |mantissas: &[f64], every: i32| {
        let tens = decades.clone().filter(|d| d.rem_euclid(every) == 0);
        let values = tens.flat_map(|d| mantissas.iter().map(move |m| m * 10f64.powi(d)));
        (values.filter(|v| (lo..=hi).contains(v)).collect(), None)
    };
    sets.push(in_decades(&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], 1));
    sets.push(in_decades(&[1.0, 2.0, 5.0], 1));
    sets.extend([1, 2, 3, 5, 10].map(|every| in_decades(&[1.0], every)));
    sets.retain(|(ticks, _)| ticks.len() >= 2);
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: (f64, f64) = (250.0, 650.0);

    #[test]
    fn axes_have_ticks_at_any_range() {
        for (lo, hi) in [(0.99, 1.01), (0.8, 1.3), (0.5, 3.0), (0.004, 250.0), (1e-12, 1e12)] {
            let axis = Axis::log(lo, hi, SPAN, "x");
            assert!(axis.ticks.len() >= 2, "{lo}..{hi}: {:?}", axis.ticks);
            assert!(axis.ticks.iter().any(|t| (t - 1.0).abs() < 1e-9), "{lo}..{hi}: {:?}", axis.ticks);
            assert!(axis.at(lo) > SPAN.0 && axis.at(hi) < SPAN.1 && axis.has_room_for(&axis.ticks));
        }
        for (lo, hi) in [(1e-300, 1e308), (5e-324, 1.0), (1.0, f64::INFINITY), (-1.0, 0.0)] {
            let axis = Axis::log(lo, hi, SPAN, "x");
            assert!(axis.ticks.len() <= 9 && axis.at(lo) >= SPAN.0 && axis.at(hi) <= SPAN.1, "{axis:?}");
        }
        for hi in [1e308, f64::INFINITY, 5e-324] {
            let axis = Axis::linear(hi, SPAN, "");
            assert!(axis.ticks.len() >= 2 && (axis.at(hi) == SPAN.1 || hi < 1.0), "{hi}: {:?}", axis.ticks);
        }
        for hi in [0.0, 3e-7, 0.9, 88.0, 100.0, 4321.0, 7.7e9] {
            let axis = Axis::linear(hi, SPAN, "");
            assert!(axis.ticks.len() >= 2 && axis.at(hi) < SPAN.1, "{hi}: {:?}", axis.ticks);
            assert_eq!(axis.ticks[0], 0.0);
        }
    }

    #[test]
    fn log_axis_is_even_in_ratios() {
        let axis = Axis::log(0.5, 2.0, SPAN, "x");
        assert!((axis.at(1.0) - 450.0).abs() < 1e-9);
        assert!((axis.at(2.0) - axis.at(1.0) - (axis.at(1.0) - axis.at(0.5))).abs() < 1e-9);
    }
}
