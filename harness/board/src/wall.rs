//! The machine's measured read wall, and what share of it a decode uses.

use crate::{
    Error,
    board::{Cell, WallShare},
    files,
    frames::{CellCost, Frames},
    rows::is_decode,
};
use serde::Deserialize;
use std::{collections::BTreeMap, fs, path::Path};

/// Walls and costs by device and cell.
pub(crate) struct Walls {
    costs: BTreeMap<(String, String), CellCost>,
    ledgers: BTreeMap<String, Ledger>,
}

/// What the board reads of a device ledger (`DATA/devices/<device-class>.json`, written by `memra probe`).
#[derive(Clone, Debug, Deserialize)]
struct Ledger {
    device_class: String,
    read: Vec<Point>,
}

/// Read bandwidth at one working-set size.
#[derive(Clone, Debug, Deserialize)]
struct Point {
    bytes: u64,
    best_gbps: f64,
}

impl Ledger {
    /// The best read bandwidth at the smallest measured size that holds `bytes`, or at the largest size of all.
    fn wall_gbps(&self, bytes: f64) -> Option<f64> {
        let sizes = || self.read.iter().map(|point| point.bytes);
        let size = sizes().filter(|size| *size as f64 >= bytes).min().or_else(|| sizes().max())?;
        self.read.iter().filter(|point| point.bytes == size).map(|point| point.best_gbps).reduce(f64::max)
    }
}

impl Walls {
    /// Reads the ledgers below `data_dir`; none at all is no error.
    ///
    /// # Errors
    /// A ledger that cannot be read, with the way out.
    pub(crate) fn new(frames: &Frames, data_dir: &Path) -> Result<Walls, Error> {
        let costs = frames.cell_costs()?;
        let costs = costs.into_iter().map(|cost| ((cost.device.clone(), cost.cell.clone()), cost)).collect();
        Ok(Walls { costs, ledgers: ledgers(&data_dir.join("devices"))? })
    }

    /// The share that `tps` tokens per second use in a decode cell of a device; `None` where bytes or wall are unknown.
    pub(crate) fn share(&self, device: &str, cell: &Cell, tps: f64) -> Option<WallShare> {
        if !is_decode(&cell.test) {
            return None;
        }
        let cost = self.costs.get(&(device.to_owned(), format!("{}/{}", cell.model, cell.test)))?;
        let class = device.split_once('@').map_or(device, |(class, _)| class);
        let ledger = || self.ledgers.get(class)?.wall_gbps(cost.bytes_per_token);
        let wall = cost.wall_gbps.or_else(ledger).filter(|wall| *wall > 0.0)?;
        let gbps = cost.bytes_per_token * tps / 1e9;
        Some(WallShare { gbps, percent: gbps / wall * 100.0 })
    }
}

fn ledgers(dir: &Path) -> Result<BTreeMap<String, Ledger>, Error> {
    let mut found = BTreeMap::new();
    for path in files::entries(dir)? {
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
            let ledger: Ledger = serde_json::from_str(&text)
                .map_err(|e| Error::Ledger { path: path.clone(), problem: e.to_string() })?;
            found.insert(ledger.device_class.clone(), ledger);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_is_that_of_the_next_larger_working_set() {
        let point = |bytes, best_gbps| Point { bytes, best_gbps };
        let read = vec![point(10, 90.0), point(100, 20.0), point(100, 30.0), point(1000, 12.0)];
        let ledger = Ledger { device_class: "x".into(), read };
        assert_eq!(ledger.wall_gbps(10.0), Some(90.0));
        assert_eq!(ledger.wall_gbps(11.0), Some(30.0));
        assert_eq!(ledger.wall_gbps(5000.0), Some(12.0));
        assert_eq!(Ledger { device_class: "x".into(), read: vec![] }.wall_gbps(1.0), None);
    }
}
