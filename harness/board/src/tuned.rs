//! Tuned kernels: the dispatch table's winners, and the course of the search that found them.

use crate::{
    Error,
    frames::{Frames, Tried},
    rows::day,
};
use memra_harness::sweep::load_table;
use std::{collections::BTreeSet, path::Path};

/// One entry of a dispatch table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tuned {
    pub(crate) device_class: String,
    /// Kernel family, class and path, such as `matmul, q8, decode`.
    pub(crate) family: String,
    /// Data type and shape, such as `Q4_1 n=576 k=1536 m=1`.
    pub(crate) shape: String,
    /// Both.
    pub(crate) key: String,
    /// The configuration that rules.
    pub(crate) winner: String,
    /// Time of the default over the winner's, head to head; 1 where the default rules.
    pub(crate) speedup: f64,
    pub(crate) date: String,
    /// IDs of the trials of that comparison.
    pub(crate) evidence: Vec<String>,
    /// Time of the default over that of the best so far, after each configuration of the latest search; empty where the
    /// log of the search is not here.
    pub(crate) best_so_far: Vec<f64>,
}

impl Tuned {
    /// Whether nothing was found that is faster than the default.
    pub(crate) fn is_default(&self) -> bool {
        self.speedup == 1.0
    }
}

/// Reads the dispatch tables of `classes` below `data_dir`.
///
/// # Errors
/// A table that cannot be read.
pub(crate) fn read(frames: &Frames, classes: &BTreeSet<&str>, data_dir: &Path) -> Result<Vec<Tuned>, Error> {
    let tried = frames.tried()?;
    let mut kernels = Vec::new();
    for class in classes {
        let table = load_table(data_dir, class)?;
        for entry in &table.entries {
            let key = entry.key.to_string();
            let parts = &entry.key;
            let speedup = entry.speedup_over_default;
            if !(1e-6..=1e6).contains(&speedup) {
                return Err(Error::Speedup { device_class: (*class).to_owned(), key, speedup });
            }
            kernels.push(Tuned {
                device_class: (*class).to_owned(),
                family: format!("{}, {}, {}", parts.family, parts.class, parts.path.name()),
                shape: format!("{} n={} k={} m={}", parts.dtype, parts.n, parts.k, parts.m),
                winner: entry.config.to_string(),
                speedup,
                date: day(&entry.date).to_owned(),
                evidence: entry.evidence.clone(),
                best_so_far: best_so_far(&tried, class, &key),
                key,
            });
        }
    }
    kernels.sort_by(|a, b| (&a.device_class, &a.family).cmp(&(&b.device_class, &b.family)));
    Ok(kernels)
}

/// Of the first machine of the class that has searched for the key.
fn best_so_far(tried: &[Tried], class: &str, key: &str) -> Vec<f64> {
    let is_ours = |t: &&Tried| t.key == key && t.device.split_once('@').is_some_and(|(c, _)| c == class);
    let Some(device) = tried.iter().find(is_ours).map(|t| &t.device) else { return Vec::new() };
    let search: Vec<&Tried> = tried.iter().filter(|t| t.device == *device && t.key == key).collect();
    let Some(default) = search.iter().find(|t| t.default) else { return Vec::new() };
    let mut best = f64::INFINITY;
    let so_far = |t: &&Tried| {
        best = best.min(t.ns);
        default.ns / best
    };
    search.iter().map(so_far).collect()
}
