//! Share of the machine's measured read bandwidth that decoding uses.

use crate::{
    axis::{Axis, TICK_ROW},
    layout::{Columns, Frame, ROW, reference_line},
    scene::{Ink, Scene},
};

/// One engine in one decode cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Model and test, and device where there are several.
    pub(crate) group: String,
    /// Engine, with its version or overlay.
    pub(crate) engine: String,
    /// Which colour: 0 is memra.
    pub(crate) color: usize,
    /// Bytes a token × tokens per second, in GB/s.
    pub(crate) gbps: f64,
    /// The same as a percentage of the wall.
    pub(crate) percent: f64,
}

/// Draws the rows in the order given.
pub(crate) fn scene(rows: &[Row], frame: &Frame) -> Scene {
    let values: Vec<String> = rows.iter().map(value).collect();
    let columns =
        Columns::for_texts(rows.iter().map(|r| r.engine.as_str()), values.iter().map(String::as_str));
    let hi = rows.iter().map(|row| row.percent).fold(100.0, f64::max);
    let axis = Axis::linear(hi, columns.plot, " %");
    let mut scene = Scene::default();
    let mut y = frame.open(&mut scene) + 4.0;
    for group in rows.chunk_by(|a, b| a.group == b.group) {
        y = columns.heading(&mut scene, y, &group[0].group);
        let bottom = y + ROW * group.len() as f64;
        axis.grid(&mut scene, y, bottom);
        axis.labels(&mut scene, bottom);
        for row in group {
            let middle = y + ROW / 2.0;
            let end = (axis.at(row.percent), middle + 7.0);
            scene.rect((columns.plot.0, middle - 7.0), end, Ink::Engine(row.color), 1.0);
            columns.row(&mut scene, middle, &row.engine, &value(row), Ink::Text);
            y += ROW;
        }
        reference_line(&mut scene, &axis, 100.0, bottom - ROW * group.len() as f64, bottom);
        y += TICK_ROW;
    }
    frame.close(&mut scene, y);
    scene
}

fn value(row: &Row) -> String {
    format!("{:.0} %  {:.1} GB/s", row.percent, row.gbps)
}
