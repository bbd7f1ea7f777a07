//! What share of the machine's measured read wall a decode uses.

use crate::{
    board::{Cell, WallShare},
    frames::{CellCost, Frames},
    rows::is_decode,
};
use polars::error::PolarsResult;
use std::collections::BTreeMap;

/// Bytes a token and the wall, by device and cell, as the runs say.
pub(crate) struct Walls(BTreeMap<(String, String), CellCost>);

impl Walls {
    /// Of all runs.
    ///
    /// # Errors
    /// As [`Frames::new`].
    pub(crate) fn new(frames: &Frames) -> PolarsResult<Walls> {
        let costs = frames.cell_costs()?.into_iter();
        Ok(Walls(costs.map(|cost| ((cost.device.clone(), cost.cell.clone()), cost)).collect()))
    }

    /// The share that `tps` tokens per second use in a decode cell of a device; `None` where bytes or wall are unknown.
    pub(crate) fn share(&self, device: &str, cell: &Cell, tps: f64) -> Option<WallShare> {
        if !is_decode(&cell.test) {
            return None;
        }
        let cost = self.0.get(&(device.to_owned(), format!("{}/{}", cell.model, cell.test)))?;
        let wall = cost.wall_gbps.filter(|wall| *wall > 0.0)?;
        let gbps = cost.bytes_per_token * tps / 1e9;
        Some(WallShare { gbps, percent: gbps / wall * 100.0 }).filter(|share| share.percent.is_finite())
    }
}
