//! Absolute throughput: each engine's median per test, with the raw samples behind it.

use crate::{
    axis::{Axis, TICK_ROW},
    layout::{Columns, Frame, LABEL_SIZE, RIGHT, ROW},
    rows::tokens_per_second,
    scene::{Anchor, Ink, Scene, Shape, fit},
};

/// Above this ratio of the largest to the smallest median of a test, its axis is logarithmic.
const LOG_ABOVE: f64 = 12.0;

/// One engine in one cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Test, and device where there are several: rows of a panel share an axis.
    pub(crate) panel: String,
    /// Model: rows of a model stand together.
    pub(crate) model: String,
    /// Engine, with its version or overlay.
    pub(crate) engine: String,
    /// Which colour: 0 is memra.
    pub(crate) color: usize,
    /// The published median, tokens per second.
    pub(crate) median: f64,
    /// Raw samples, tokens per second.
    pub(crate) samples: Vec<f64>,
}

/// Draws the rows in the order given.
pub(crate) fn scene(rows: &[Row], frame: &Frame) -> Scene {
    let values: Vec<String> = rows.iter().map(|row| tokens_per_second(row.median)).collect();
    let columns =
        Columns::for_texts(rows.iter().map(|r| r.engine.as_str()), values.iter().map(String::as_str));
    let mut scene = Scene::default();
    let mut y = frame.open(&mut scene) + 4.0;
    for panel in rows.chunk_by(|a, b| a.panel == b.panel) {
        let (axis, log) = axis(panel, columns.plot);
        let note = if log { "tok/s, log axis" } else { "tok/s" };
        y = columns.heading(&mut scene, y, &format!("{}, {note}", panel[0].panel));
        for cell in panel.chunk_by(|a, b| a.model == b.model) {
            let model = fit(&cell[0].model, LABEL_SIZE, RIGHT - columns.label.0);
            scene.text((columns.label.0, y + 10.0), model, LABEL_SIZE, Anchor::Start, Ink::Muted);
            y += ROW;
            axis.grid(&mut scene, y, y + ROW * cell.len() as f64);
            for row in cell {
                draw_row(&mut scene, &columns, &axis, y + ROW / 2.0, row, log);
                y += ROW;
            }
        }
        axis.labels(&mut scene, y);
        y += TICK_ROW + 4.0;
    }
    frame.close(&mut scene, y);
    scene
}

fn axis(panel: &[Row], plot: (f64, f64)) -> (Axis, bool) {
    let all = || panel.iter().flat_map(|row| row.samples.iter().copied().chain([row.median]));
    let hi = all().fold(0.0, f64::max);
    let lo = all().filter(|v| *v > 0.0).fold(hi, f64::min);
    let log = lo > 0.0 && hi / lo > LOG_ABOVE;
    (if log { Axis::log(lo, hi, plot, "") } else { Axis::linear(hi, plot, "") }, log)
}

fn draw_row(scene: &mut Scene, columns: &Columns, axis: &Axis, y: f64, row: &Row, log: bool) {
    let ink = Ink::Engine(row.color);
    let x = axis.at(row.median);
    // A bar's length means something only on an axis that starts at zero.
    if !log {
        scene.rect((columns.plot.0, y - 9.0), (x, y + 9.0), ink, 0.18);
    }
    for (i, sample) in row.samples.iter().enumerate() {
        // Spread evenly over the row's height, so that near-equal samples do not hide one another.
        let spread = (i as f64 * 0.618_034).fract() - 0.5;
        scene.shapes.push(Shape::Dot {
            at: (axis.at(*sample), y + 13.0 * spread),
            radius: 2.0,
            ink,
            alpha: 0.45,
            hollow: false,
        });
    }
    scene.line((x, y - 9.0), (x, y + 9.0), 2.0, ink);
    columns.row(scene, y, &row.engine, &tokens_per_second(row.median), Ink::Text);
}
