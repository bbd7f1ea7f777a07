//! Every configuration key, its type, its meaning and its default.

use super::Percent;
use memra_kernels::NumericClass;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The whole configuration, every value present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Where things lie.
    pub(crate) paths: Paths,
    /// How models run.
    pub(crate) engine: Engine,
    /// Faults planted on purpose, with which the gate proves itself.
    pub(crate) fault: Fault,
    /// How comparisons and sweeps are made.
    pub(crate) harness: Harness,
    /// Where rival engines are described.
    pub(crate) competitors: Competitors,
    /// Where models are fetched from.
    pub(crate) hub: Hub,
}

/// Folders. In a configuration file a relative path starts from the file's folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paths {
    /// Logs, device ledgers and dispatch tables. Default: `tune-data` of the memra checkout around the current
    /// folder, else `memra/tune-data` in the user's data folder.
    pub(crate) data: PathBuf,
    /// Models and rival engines that were fetched.
    pub(crate) cache: PathBuf,
    /// Generated pictures and tables. Default: `boards` of the checkout; with `paths.data` given, `boards` in it.
    pub(crate) boards: PathBuf,
}

/// How models run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Engine {
    /// Type of the activations: `q8` or `f32`.
    pub(crate) class: NumericClass,
    /// Threads; 0 takes every physical core.
    pub(crate) threads: Threads,
    /// Type of the KV cache: `f16` or `f32`.
    pub(crate) kv: KvType,
    /// Longest context, in tokens; 0 takes what the model was trained for, at most 4096.
    pub(crate) context: usize,
    /// Repacks weights for SIMD at load, with the same values; without it they are read from the file, more slowly.
    pub(crate) pack: bool,
    /// Kernel configurations: `auto` (the tuned table), `default` (each family's default), or a table's file.
    pub(crate) dispatch: String,
}

/// A number of threads, at most [`Threads::MOST`]; 0 takes every physical core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "usize", into = "usize")]
pub(crate) struct Threads(usize);

impl Threads {
    /// More than any machine's cores; each takes memory.
    const MOST: usize = 1024;

    pub(crate) fn get(self) -> usize {
        self.0
    }
}

impl TryFrom<usize> for Threads {
    type Error = String;

    fn try_from(threads: usize) -> Result<Threads, String> {
        if threads <= Threads::MOST {
            return Ok(Threads(threads));
        }
        Err(format!("{threads} threads; at most {}, and 0 takes every physical core", Threads::MOST))
    }
}

impl From<Threads> for usize {
    fn from(threads: Threads) -> usize {
        threads.0
    }
}

/// Element type of the KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KvType {
    /// IEEE binary16.
    F16,
    /// IEEE binary32.
    F32,
}

/// Planted faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    /// Makes every step this much slower: `3%`, or 0.03. `0%` is off.
    pub(crate) slow: Percent,
    /// Kernel family whose results are made wrong; empty is off.
    pub(crate) wrong: String,
}

/// How comparisons are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Harness {
    /// Smallest difference that counts; the margin is the larger of this and twice the cell's own spread.
    pub(crate) margin: Percent,
    /// Seed of the order of runs and trials.
    pub(crate) seed: u64,
    /// A run during which other processes took more of the machine's CPU time than this is redone.
    pub(crate) max_foreign_cpu: Percent,
    /// A benchmark process that takes longer, in seconds, is ended.
    pub(crate) run_limit_s: u64,
    /// A correctness check that takes longer, in seconds, is ended.
    pub(crate) check_limit_s: u64,
}

/// Rival engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Competitors {
    /// Folders with manifests; they win over the ones that memra carries.
    pub(crate) dirs: Vec<PathBuf>,
    /// Where engines are that are not in `PATH`: `competitors.paths.NAME = PATH`, a program or its folder.
    pub(crate) paths: BTreeMap<String, PathBuf>,
}

/// Where models are fetched from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hub {
    /// Address of a Hugging Face hub, or of a mirror of one. Default: `HF_ENDPOINT`, if that is set.
    pub(crate) endpoint: String,
}

impl Config {
    /// The defaults, around the given folders.
    pub(crate) fn defaults(paths: Paths) -> Config {
        Config {
            paths,
            engine: Engine {
                class: NumericClass::default(),
                threads: Threads::default(),
                kv: KvType::F16,
                context: 0,
                pack: true,
                dispatch: "auto".to_owned(),
            },
            fault: Fault { slow: Percent::default(), wrong: String::new() },
            harness: Harness {
                margin: Percent::new(1.0),
                seed: 1,
                max_foreign_cpu: Percent::new(10.0),
                run_limit_s: 300,
                check_limit_s: 600,
            },
            competitors: Competitors { dirs: Vec::new(), paths: BTreeMap::new() },
            hub: Hub { endpoint: "https://huggingface.co".to_owned() },
        }
    }
}
