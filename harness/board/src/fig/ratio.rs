//! Ratio of memra's throughput to each rival's and baseline's: dot and interval on a log axis.

use crate::{
    axis::{Axis, TICK_ROW},
    font,
    layout::{Columns, Frame, LABEL_SIZE, Mark, RIGHT, ROW, legend, mark, reference_line},
    rows::{Interval, Standing},
    scene::{Anchor, Ink, Scene, Shape, fit},
};

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Heading it stands under: the model, and the device where there are several.
    pub(crate) group: String,
    /// Test and rival.
    pub(crate) label: String,
    /// The ratio, or why there is none: `n/m`, `inv: …`.
    pub(crate) ratio: Result<Interval, String>,
    /// Practical floor, as a ratio (0.01 = 1 %).
    pub(crate) floor: f64,
    /// Pairs behind the ratio.
    pub(crate) n_pairs: u32,
}

/// Draws the comparisons, in the order given; rows of a group stand together.
pub(crate) fn scene(rows: &[Row], frame: &Frame) -> Scene {
    let values: Vec<String> = rows.iter().map(value).collect();
    let columns =
        Columns::for_texts(rows.iter().map(|r| r.label.as_str()), values.iter().map(String::as_str));
    let axis = axis(rows, columns.plot);
    let mut scene = Scene::default();
    let y = frame.open(&mut scene);
    let entries = [
        (Mark::Dot, Ink::Win, "faster"),
        (Mark::Ring, Ink::Even, "not told apart from the noise floor"),
        (Mark::Diamond, Ink::Loss, "slower"),
        (Mark::Band, Ink::Band, "noise floor"),
    ];
    let mut y = legend(&mut scene, y, &entries);
    for members in rows.chunk_by(|a, b| a.group == b.group) {
        y = columns.heading(&mut scene, y, &members[0].group);
        let bottom = y + ROW * members.len() as f64;
        for (i, row) in members.iter().enumerate() {
            let top = y + ROW * i as f64;
            if row.ratio.is_ok() {
                let (left, right) = (axis.at(1.0 / (1.0 + row.floor)), axis.at(1.0 + row.floor));
                scene.rect((left, top), (right, top + ROW), Ink::Band, 1.0);
            }
        }
        if members.iter().any(|row| row.ratio.is_ok()) {
            axis.grid(&mut scene, y, bottom);
            axis.labels(&mut scene, bottom);
            reference_line(&mut scene, &axis, 1.0, y, bottom);
        }
        for row in members {
            draw_row(&mut scene, &columns, &axis, y + ROW / 2.0, row);
            y += ROW;
        }
        y += TICK_ROW;
    }
    frame.close(&mut scene, y);
    scene
}

fn value(row: &Row) -> String {
    row.ratio.as_ref().map_or_else(|_| String::new(), |ratio| format!("{ratio}   {}", pairs(row)))
}

fn pairs(row: &Row) -> String {
    format!("n={}", row.n_pairs)
}

fn axis(rows: &[Row], plot: (f64, f64)) -> Axis {
    let mut span = (1.0f64, 1.0f64);
    for row in rows {
        if let Ok(Interval { ratio, lo, hi }) = row.ratio {
            // A very wide floor may leave the axis: it must not press the intervals together.
            let edge = 1.0 + 1.5 * row.floor.clamp(0.005, 0.1);
            span.0 = span.0.min(lo).min(ratio).min(1.0 / edge);
            span.1 = span.1.max(hi).max(ratio).max(edge);
        }
    }
    Axis::log(span.0, span.1, plot, "x")
}

fn draw_row(scene: &mut Scene, columns: &Columns, axis: &Axis, y: f64, row: &Row) {
    let ratio = match &row.ratio {
        Ok(ratio) => ratio,
        Err(why) => {
            columns.row(scene, y, &row.label, "", Ink::Muted);
            let (left, right) = columns.plot;
            let why = fit(why, 11.5, right - left - 8.0);
            let end = left + 8.0 + font::width(&why, 11.5);
            scene.rect((left, y - 9.0), (end, y + 9.0), Ink::Page, 1.0);
            scene.text((left + 4.0, y), why, 11.5, Anchor::Start, Ink::Muted);
            return;
        }
    };
    let (what, ink) = match ratio.standing(row.floor) {
        Standing::Faster => (Mark::Dot, Ink::Win),
        Standing::Slower => (Mark::Diamond, Ink::Loss),
        Standing::Even => (Mark::Ring, Ink::Even),
    };
    let (left, right) = (axis.at(ratio.lo), axis.at(ratio.hi));
    scene.shapes.push(Shape::Line { from: (left, y), to: (right, y), width: 2.0, ink });
    for x in [left, right] {
        scene.line((x, y - 4.5), (x, y + 4.5), 1.5, ink);
    }
    mark(scene, what, (axis.at(ratio.ratio), y), ink);
    columns.row(scene, y, &row.label, &ratio.to_string(), Ink::Text);
    scene.text((RIGHT, y), pairs(row), LABEL_SIZE, Anchor::End, Ink::Muted);
}
