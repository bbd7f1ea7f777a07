//! What every figure shares: title, legend, rows of label, plot and value, and the caption.

use crate::{
    axis::Axis,
    font,
    scene::{Anchor, Ink, Scene, WIDTH, fit, wrap},
};

/// Empty border of the page.
pub(crate) const MARGIN: f64 = 20.0;
/// Right edge of the drawing.
pub(crate) const RIGHT: f64 = WIDTH - MARGIN;
/// Em of row labels and values.
pub(crate) const LABEL_SIZE: f64 = 12.5;
/// Height of a row.
pub(crate) const ROW: f64 = 24.0;
/// Height of a section's heading.
pub(crate) const HEADING: f64 = 30.0;
const GAP: f64 = 14.0;
const MAX_LABEL: f64 = 310.0;
const MIN_PLOT: f64 = 220.0;

/// What stands around a figure's plot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame<'a> {
    /// What is shown.
    pub(crate) title: &'a str,
    /// How to read it.
    pub(crate) subtitle: &'a str,
    /// Device, dates, counts, hash of the logs.
    pub(crate) caption: &'a str,
}

/// Marks that a legend explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Dot,
    Ring,
    Diamond,
    Band,
}

impl Frame<'_> {
    /// Starts a scene with the title block; returns the pixel below it.
    pub(crate) fn open(&self, scene: &mut Scene) -> f64 {
        scene.text((MARGIN, 28.0), self.title, 17.0, Anchor::Start, Ink::Text);
        let mut y = 51.0;
        for line in wrap(self.subtitle, LABEL_SIZE, RIGHT - MARGIN) {
            scene.text((MARGIN, y), line, LABEL_SIZE, Anchor::Start, Ink::Muted);
            y += 18.0;
        }
        y
    }

    /// Writes the caption from `y` down and sets the scene's height.
    pub(crate) fn close(&self, scene: &mut Scene, y: f64) {
        let mut y = y + 18.0;
        // Lines break between facts, and a separator stays with what it follows.
        let caption = self.caption.replace(' ', "\u{a0}");
        let caption = caption.replace("\u{a0}·\u{a0}", "\u{a0}· ").replace(";\u{a0}", "; ");
        for line in wrap(&caption, 10.5, RIGHT - MARGIN) {
            scene.text((MARGIN, y), line, 10.5, Anchor::Start, Ink::Muted);
            y += 15.0;
        }
        scene.height = y + 6.0;
    }
}

/// One row of marks and words; returns the pixel below it.
pub(crate) fn legend(scene: &mut Scene, y: f64, entries: &[(Mark, Ink, &str)]) -> f64 {
    let y = y + 8.0;
    let mut x = MARGIN;
    for (what, ink, label) in entries {
        mark(scene, *what, (x + 6.0, y), *ink);
        scene.text((x + 18.0, y), *label, 11.5, Anchor::Start, Ink::Muted);
        x += 18.0 + font::width(label, 11.5) + 22.0;
    }
    y + 16.0
}

/// Draws one mark.
pub(crate) fn mark(scene: &mut Scene, what: Mark, at: (f64, f64), ink: Ink) {
    use crate::scene::Shape;
    match what {
        Mark::Dot => scene.dot(at, 5.0, ink),
        Mark::Ring => scene.shapes.push(Shape::Dot { at, radius: 5.0, ink, alpha: 1.0, hollow: true }),
        Mark::Diamond => scene.shapes.push(Shape::Diamond { at, radius: 6.0, ink }),
        Mark::Band => scene.rect((at.0 - 7.0, at.1 - 7.0), (at.0 + 7.0, at.1 + 7.0), ink, 1.0),
    }
}

/// The columns of a chart of rows: labels at the left, the plot, values at the right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Columns {
    /// Pixels between which labels stand.
    pub(crate) label: (f64, f64),
    /// Pixels between which the plot stands.
    pub(crate) plot: (f64, f64),
    /// Pixel at which values start.
    pub(crate) value: f64,
}

impl Columns {
    /// Columns as wide as their texts need, the plot taking the rest.
    pub(crate) fn for_texts<'a>(
        labels: impl IntoIterator<Item = &'a str>,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Columns {
        Columns::new(widest(labels, LABEL_SIZE), widest(values, LABEL_SIZE))
    }

    /// Columns for labels and values of these widths, as far as they leave the plot its room.
    pub(crate) fn new(label: f64, value: f64) -> Columns {
        let left = MARGIN + 12.0;
        let label = (left, left + label.clamp(60.0, MAX_LABEL));
        let value = value.clamp(40.0, RIGHT - label.1 - 2.0 * GAP - MIN_PLOT);
        Columns { label, plot: (label.1 + GAP, RIGHT - value - GAP), value: RIGHT - value }
    }

    /// A section's heading, from `y` down; returns the pixel below it.
    pub(crate) fn heading(&self, scene: &mut Scene, y: f64, text: &str) -> f64 {
        let text = fit(text, 13.5, RIGHT - MARGIN);
        scene.text((MARGIN, y + HEADING / 2.0 + 3.0), text, 13.5, Anchor::Start, Ink::Text);
        y + HEADING
    }

    /// A row's label and value around the pixel `y`; what is too long loses its middle.
    pub(crate) fn row(&self, scene: &mut Scene, y: f64, label: &str, value: &str, value_ink: Ink) {
        let label = fit(label, LABEL_SIZE, self.label.1 - self.label.0);
        scene.text((self.label.0, y), label, LABEL_SIZE, Anchor::Start, Ink::Text);
        let value = fit(value, LABEL_SIZE, RIGHT - self.value);
        scene.text((self.value, y), value, LABEL_SIZE, Anchor::Start, value_ink);
    }
}

/// Width of the widest of `texts`.
pub(crate) fn widest<'a>(texts: impl IntoIterator<Item = &'a str>, size: f64) -> f64 {
    texts.into_iter().map(|text| font::width(text, size)).fold(0.0, f64::max)
}

/// A vertical line at a value that rows are read against.
pub(crate) fn reference_line(scene: &mut Scene, axis: &Axis, value: f64, top: f64, bottom: f64) {
    let x = axis.at(value);
    scene.line((x, top), (x, bottom), 1.5, Ink::Axis);
}
