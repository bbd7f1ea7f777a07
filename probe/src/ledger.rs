//! The device ledger: what was measured on one machine, kept in `DATA/devices/<device-class>.json`.

use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Version of the file format.
pub const FORMAT: u32 = 1;

/// The measured walls of one device class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// File format version, [`FORMAT`].
    pub format: u32,
    /// Device class, as dispatch tables name it.
    pub device_class: String,
    /// The CPU as its vendor names it.
    pub cpu: String,
    /// Instruction set of the read loop.
    pub isa: String,
    /// Physical cores that were used at most.
    pub cores: usize,
    /// Day of the measurement, `YYYY-MM-DD`, UTC.
    pub date: String,
    /// Reading, by working-set size, then thread count.
    pub read: Vec<Bandwidth>,
    /// Copying from one half of the working set to the other, by size; bytes read and bytes written both count.
    pub copy: Vec<Bandwidth>,
    /// An empty parallel region of the thread pool, by thread count.
    pub handoff: Vec<Handoff>,
}

/// Bandwidth at one working-set size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bandwidth {
    /// Working set, all threads together.
    pub bytes: u64,
    /// Threads; each owns an equal share of the working set.
    pub threads: usize,
    /// Bytes moved in one sample (the working set, as many times over as a sample needs).
    pub bytes_per_sample: u64,
    /// Every sample, in the order taken.
    pub samples_ns: Vec<u64>,
    /// Fastest sample: the wall. Nothing makes memory look faster than it is; much makes it look slower.
    pub best_gbps: f64,
    /// Median sample: beside the best it shows how quiet the machine was.
    pub median_gbps: f64,
}

/// Cost of handing an empty region to the pool and getting it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handoff {
    /// Threads in the region.
    pub threads: usize,
    /// Regions a sample.
    pub regions_per_sample: u64,
    /// Every sample, in the order taken.
    pub samples_ns: Vec<u64>,
    /// Median cost of one region.
    pub median_ns: f64,
}

/// A ledger that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file system refused.
    #[error("device ledger {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a ledger of this format.
    #[error("device ledger {path}: {problem}; delete it and run `memra probe`")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl Bandwidth {
    /// A point from its samples; zero-length samples (a clock too coarse) count as one nanosecond.
    pub(crate) fn new(bytes: u64, threads: usize, bytes_per_sample: u64, samples_ns: Vec<u64>) -> Bandwidth {
        let gbps = |ns: f64| bytes_per_sample as f64 / ns.max(1.0);
        let best = samples_ns.iter().copied().min().unwrap_or(u64::MAX) as f64;
        let (best_gbps, median_gbps) = (gbps(best), gbps(median(&samples_ns)));
        Bandwidth { bytes, threads, bytes_per_sample, samples_ns, best_gbps, median_gbps }
    }
}

impl Handoff {
    pub(crate) fn new(threads: usize, regions_per_sample: u64, samples_ns: Vec<u64>) -> Handoff {
        let median_ns = median(&samples_ns) / regions_per_sample as f64;
        Handoff { threads, regions_per_sample, samples_ns, median_ns }
    }
}

/// Median of `samples`; infinite when there are none.
fn median(samples: &[u64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    match (sorted.get(sorted.len() / 2), sorted.len() % 2) {
        (None, _) => f64::INFINITY,
        (Some(&upper), 0) => (sorted[sorted.len() / 2 - 1] as f64 + upper as f64) / 2.0,
        (Some(&middle), _) => middle as f64,
    }
}

impl Ledger {
    /// Where the ledger of `device_class` lies under the data directory.
    pub fn path(data: &Path, device_class: &str) -> PathBuf {
        data.join("devices").join(format!("{device_class}.json"))
    }

    /// Reads the ledger of `device_class`; `None` when this machine was never probed.
    ///
    /// # Errors
    /// The file is there but cannot be read, or is not a ledger of this format.
    pub fn load(data: &Path, device_class: &str) -> Result<Option<Ledger>, LedgerError> {
        let path = Ledger::path(data, device_class);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LedgerError::Io { path, source }),
        };
        let ledger: Ledger = serde_json::from_str(&text)
            .map_err(|e| LedgerError::Malformed { path: path.clone(), problem: e.to_string() })?;
        if ledger.format != FORMAT {
            let problem =
                format!("format {} is not readable by this build (it reads {FORMAT})", ledger.format);
            return Err(LedgerError::Malformed { path, problem });
        }
        let sound = |point: &Bandwidth| point.bytes > 0 && (0.001..1e9).contains(&point.best_gbps);
        if ledger.device_class != device_class || !ledger.read.iter().all(sound) {
            let problem =
                format!("it is of `{}`, or holds figures that nothing measures", ledger.device_class);
            return Err(LedgerError::Malformed { path, problem });
        }
        Ok(Some(ledger))
    }

    /// Writes the ledger under the data directory, whole or not at all, and returns its path.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn save(&self, data: &Path) -> Result<PathBuf, LedgerError> {
        let path = Ledger::path(data, &self.device_class);
        let fail = |source| LedgerError::Io { path: path.clone(), source };
        let mut text = serde_json::to_string_pretty(self).map_err(|e| fail(e.into()))?;
        text.push('\n');
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(fail)?;
        }
        let temporary = path.with_extension("json.tmp");
        let mut file = std::fs::File::create(&temporary).map_err(fail)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(fail)?;
        std::fs::rename(&temporary, &path).map_err(fail)?;
        Ok(path)
    }

    /// The read wall for a working set of `bytes`, in GB/s (10⁹ bytes a second): the best over thread counts and samples,
    /// on a line in log(size) between the measured sizes around it, since a cache's edge is gradual. Beyond the
    /// measured sizes the nearest counts. `None` in an empty ledger.
    pub fn wall_gbps(&self, bytes: u64) -> Option<f64> {
        let sizes = || self.read.iter().map(|point| point.bytes);
        let best = |size| {
            let points = self.read.iter().filter(|point| point.bytes == size);
            points.map(|point| point.best_gbps).reduce(f64::max)
        };
        let below = sizes().filter(|&size| size <= bytes).max();
        let above = sizes().filter(|&size| size >= bytes).min();
        match (below, above) {
            (Some(low), Some(high)) if low < high => {
                let log = |bytes: u64| (bytes as f64).ln();
                let part = (log(bytes) - log(low)) / (log(high) - log(low));
                Some(best(low)? * (1.0 - part) + best(high)? * part)
            }
            (low, high) => best(high.or(low)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Ledger {
        let point = |bytes, threads, ns: [u64; 3]| Bandwidth::new(bytes, threads, 1000, ns.to_vec());
        Ledger {
            format: FORMAT,
            device_class: "test-2c".into(),
            cpu: "Test".into(),
            isa: "avx2".into(),
            cores: 2,
            date: "2026-01-31".into(),
            read: vec![
                point(10, 1, [50, 20, 25]),
                point(10, 2, [10, 40, 20]),
                point(100, 2, [200, 500, 250]),
            ],
            copy: vec![],
            handoff: vec![Handoff::new(2, 10, vec![10, 30])],
        }
    }

    #[test]
    fn wall_is_the_best_at_a_size_and_between_sizes_on_a_line_in_their_logarithm() {
        let ledger = sample();
        assert_eq!(ledger.wall_gbps(1), Some(100.0));
        assert_eq!(ledger.wall_gbps(10), Some(100.0));
        assert!((ledger.wall_gbps(50).unwrap() - 33.6).abs() < 0.1);
        assert_eq!(ledger.wall_gbps(100), Some(5.0));
        assert_eq!(ledger.wall_gbps(1_000_000), Some(5.0));
        assert_eq!(Ledger { read: vec![], ..ledger.clone() }.wall_gbps(1), None);
        assert_eq!(ledger.read[0].median_gbps, 40.0);
        assert_eq!(ledger.handoff[0].median_ns, 2.0);
    }

    #[test]
    fn a_ledger_survives_the_disk_and_a_damaged_one_is_named() {
        let data = tempfile::tempdir().unwrap();
        assert!(Ledger::load(data.path(), "test-2c").unwrap().is_none());
        let path = sample().save(data.path()).unwrap();
        assert_eq!(Ledger::load(data.path(), "test-2c").unwrap(), Some(sample()));
        std::fs::write(&path, "{\"format\": 1}").unwrap();
        let error = Ledger::load(data.path(), "test-2c").unwrap_err().to_string();
        assert!(error.contains("test-2c.json") && error.contains("memra probe"), "{error}");
        let mut broken = sample();
        broken.read[0].best_gbps = -5.0;
        broken.save(data.path()).unwrap();
        assert!(Ledger::load(data.path(), "test-2c").unwrap_err().to_string().contains("nothing measures"));
        Ledger { format: 9, ..sample() }.save(data.path()).unwrap();
        assert!(Ledger::load(data.path(), "test-2c").unwrap_err().to_string().contains("format 9"));
    }
}
