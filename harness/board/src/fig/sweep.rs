//! What the sweep found: each kernel's winner against its default, and how soon the best was known.

use crate::{
    axis::{Axis, TICK_ROW, TICK_SIZE},
    font,
    layout::{Columns, Frame, LABEL_SIZE, MARGIN, Mark, RIGHT, ROW, mark, reference_line, widest},
    scene::{Anchor, Ink, Scene, fit},
};

/// One tuned kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Kernel family, and device where there are several.
    pub(crate) group: String,
    /// Data type and shape.
    pub(crate) key: String,
    /// The winning configuration.
    pub(crate) winner: String,
    /// Time of the default over the winner's.
    pub(crate) speedup: f64,
    /// Time of the default over the best so far, after each configuration tried, in order.
    pub(crate) best_so_far: Vec<f64>,
}

/// Em of configurations.
const WINNER_SIZE: f64 = 10.5;
/// Where they start in their column, after the speed-up.
const WINNER_AT: f64 = 52.0;
const CELLS: usize = 3;
const GUTTER: f64 = 28.0;
const PLOT_HEIGHT: f64 = 84.0;

/// Draws the rows in the order given.
pub(crate) fn scene(rows: &[Row], frame: &Frame) -> Scene {
    let mut scene = Scene::default();
    let mut y = frame.open(&mut scene) + 4.0;
    y = speedups(&mut scene, y, rows);
    let curves: Vec<&Row> = rows.iter().filter(|row| row.best_so_far.len() > 2).collect();
    if !curves.is_empty() {
        let title = "Best so far, by configurations tried (speed-up over the default)";
        scene.text((MARGIN, y + 22.0), title, 13.5, Anchor::Start, Ink::Text);
        y += 40.0;
        for line in curves.chunks(CELLS) {
            for (i, row) in line.iter().enumerate() {
                curve(&mut scene, i, y, row);
            }
            y += 22.0 + PLOT_HEIGHT + TICK_ROW + 8.0;
        }
    }
    frame.close(&mut scene, y);
    scene
}

fn speedups(scene: &mut Scene, mut y: f64, rows: &[Row]) -> f64 {
    let keys = widest(rows.iter().map(|row| row.key.as_str()), LABEL_SIZE);
    let columns = Columns::new(keys, WINNER_AT + widest(rows.iter().map(winner), WINNER_SIZE));
    let span = rows.iter().fold((0.98, 1.05), |(lo, hi), row| (row.speedup.min(lo), row.speedup.max(hi)));
    let axis = Axis::log(span.0, span.1, columns.plot, "x");
    for group in rows.chunk_by(|a, b| a.group == b.group) {
        let title = "Winner against the default";
        let heading = match group[0].group.as_str() {
            "" => title.to_owned(),
            group => format!("{title}: {group}"),
        };
        y = columns.heading(scene, y, &heading);
        let bottom = y + ROW * group.len() as f64;
        axis.grid(scene, y, bottom);
        axis.labels(scene, bottom);
        reference_line(scene, &axis, 1.0, y, bottom);
        for row in group {
            let middle = y + ROW / 2.0;
            let (what, ink) = match row.speedup {
                1.0 => (Mark::Ring, Ink::Even),
                faster if faster > 1.0 => (Mark::Dot, Ink::Win),
                _ => (Mark::Diamond, Ink::Loss),
            };
            scene.line((axis.at(1.0), middle), (axis.at(row.speedup), middle), 2.0, ink);
            mark(scene, what, (axis.at(row.speedup), middle), ink);
            columns.row(scene, middle, &row.key, &format!("{:.2}x", row.speedup), Ink::Text);
            let at = columns.value + WINNER_AT;
            let text = fit(winner(row), WINNER_SIZE, RIGHT - at);
            scene.text((at, middle), text, WINNER_SIZE, Anchor::Start, Ink::Muted);
            y += ROW;
        }
        y += TICK_ROW;
    }
    y
}

fn winner(row: &Row) -> &str {
    if row.speedup == 1.0 { "default" } else { &row.winner }
}

/// One small plot in column `column`, from `top` down.
fn curve(scene: &mut Scene, column: usize, top: f64, row: &Row) {
    let width = (RIGHT - MARGIN - GUTTER * (CELLS - 1) as f64) / CELLS as f64;
    let left = MARGIN + (width + GUTTER) * column as f64;
    let title = fit(&row.key, TICK_SIZE, width);
    scene.text((left, top + 8.0), title, TICK_SIZE, Anchor::Start, Ink::Muted);
    let (lo, hi) = row.best_so_far.iter().fold((1.0f64, 1.0f64), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
    let (lo, hi) = (lo, hi.max(lo + 0.02));
    let label = |value: f64| fit(&format!("{value:.2}x"), TICK_SIZE, width / 3.0);
    let labels = [(lo, label(lo)), (hi, label(hi))];
    let gutter = labels.iter().map(|(_, text)| font::width(text, TICK_SIZE)).fold(0.0, f64::max) + 6.0;
    let (x0, x1) = (left + gutter, left + width - 4.0);
    let (y0, y1) = (top + 22.0, top + 22.0 + PLOT_HEIGHT);
    let n = row.best_so_far.len();
    let x = |i: usize| x0 + (x1 - x0) * i as f64 / (n - 1) as f64;
    let y = |v: f64| y1 - 4.0 - (y1 - y0 - 8.0) * (v - lo) / (hi - lo);
    for (value, text) in labels {
        scene.line((x0, y(value)), (x1, y(value)), 1.0, Ink::Grid);
        scene.text((x0 - 6.0, y(value)), text, TICK_SIZE, Anchor::End, Ink::Muted);
    }
    scene.line((x0, y1), (x1, y1), 1.0, Ink::Axis);
    scene.text((x0, y1 + TICK_ROW / 2.0), "1", TICK_SIZE, Anchor::Start, Ink::Muted);
    scene.text((x1, y1 + TICK_ROW / 2.0), format!("{n}"), TICK_SIZE, Anchor::End, Ink::Muted);
    // A step: the best stays what it was until a better one is found.
    let mut points = vec![(x(0), y(row.best_so_far[0]))];
    for (i, pair) in row.best_so_far.windows(2).enumerate() {
        points.push((x(i + 1), y(pair[0])));
        points.push((x(i + 1), y(pair[1])));
    }
    scene.shapes.push(crate::scene::Shape::Path { points, width: 2.0, ink: Ink::Win });
}
