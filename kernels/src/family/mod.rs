//! What a tuner, a planner and the kernel check need to know of a kernel family.

pub(crate) mod ops;

use crate::attention::AttentionFamily;
use crate::cpu::Pool;
use crate::delta::family as delta;
use crate::matmul::MatmulFamily;
use crate::matmul::grouped::family::ExpertsFamily;
use crate::moe::family as moe;
use crate::space::{Config, Space};
use crate::{Cost, KernelKey, ShapeError};

/// A kernel family: an operation with its tuning space, cost, and a way to run one launch on made-up inputs.
pub trait Family: Sync {
    /// Name, as in [`KernelKey::family`].
    fn name(&self) -> &'static str;

    /// Tuning space at `key` on a pool of `threads` threads; by default there is nothing to tune.
    fn space(&self, key: &KernelKey, threads: usize) -> Space {
        let _ = (key, threads);
        Space { params: Vec::new(), constraint: |_| Ok(()) }
    }

    /// [`Family::space`] with a wrong kernel planted in it, to prove that a sweep rejects it; the same space where the
    /// family has none.
    fn space_with_planted(&self, key: &KernelKey, threads: usize) -> Space {
        self.space(key, threads)
    }

    /// A configuration that does well without tuning.
    fn default_config(&self, key: &KernelKey, threads: usize) -> Config {
        let _ = (key, threads);
        Config::default()
    }

    /// What decides the bits of the result: equal keys promise equal bits. By default there is one order for each type and
    /// class.
    fn order_key(&self, key: &KernelKey, config: &Config) -> String {
        let _ = config;
        format!("cpu-{}-{}", key.dtype, key.class)
    }

    /// Least bytes moved and operations done by one launch.
    fn cost(&self, key: &KernelKey) -> Cost;

    /// Hash of the sources that decide what the family computes and how fast.
    fn source_hash(&self) -> &'static str;

    /// Launches that the kernel check runs: real shapes, odd tails, few and many rows.
    fn check_keys(&self) -> Vec<KernelKey> {
        Vec::new()
    }

    /// One launch's inputs, made from `seed`: ready to run with any configuration of the space.
    ///
    /// # Errors
    /// Why the family has no such launch (a row that does not fill blocks, for example).
    fn case(&self, key: &KernelKey, seed: u64, pool: &Pool) -> Result<Box<dyn Case>, String>;
}

/// A launch that is ready: it writes the output it is given, all of it.
pub type Launch<'a> = Box<dyn Fn(&Pool, &mut [f32]) -> Result<(), ShapeError> + Sync + 'a>;

/// A launch with its inputs.
pub trait Case: Send + Sync {
    /// Values of the output.
    fn out_len(&self) -> usize;

    /// The launch with `config` made ready: what is left is what an engine does for each launch, so it can be timed.
    ///
    /// # Errors
    /// When `config` is not a configuration of the family.
    fn ready(&self, config: &Config) -> Result<Launch<'_>, String>;

    /// Runs the launch once. `out` is [`Case::out_len`] long and wholly overwritten.
    ///
    /// # Errors
    /// When `config` is not a configuration of the family, or `out` is of the wrong size.
    fn launch(&self, pool: &Pool, config: &Config, out: &mut [f32]) -> Result<(), String> {
        self.ready(config)?(pool, out).map_err(|e| e.to_string())
    }

    /// The same launch with weights in memory of their own, for timing with weights that are not in the caches.
    /// Activations may be shared: an engine has just written them.
    fn copy(&self) -> Box<dyn Case>;

    /// The result in f64 and the error each value may have: `(value, tolerance)`.
    fn reference(&self) -> Vec<(f64, f64)>;

    /// The result in the family's own order of operations, one value at a time, where it has such a reference.
    fn ordered(&self) -> Option<Vec<f32>> {
        None
    }

    /// A hash of the inputs: equal before and after a launch.
    fn inputs_hash(&self) -> u64;
}

/// Every family.
pub fn families() -> &'static [&'static dyn Family] {
    static ALL: [&dyn Family; 20] = [
        &MatmulFamily,
        &ops::QUANTISE,
        &ops::EMBED,
        &ops::RMS_NORM,
        &ops::ROPE,
        &AttentionFamily,
        &ops::SWIGLU,
        &ops::GEGLU,
        &ops::ADD,
        &ops::SCALE,
        &ops::SOFTCAP,
        &moe::ROUTE,
        &moe::GATHER_SLOTS,
        &ExpertsFamily,
        &moe::COMBINE,
        &delta::SHORT_CONV,
        &delta::DELTA_GATES,
        &delta::DELTA_SCAN,
        &delta::GATED_RMS_NORM,
        &delta::SIGMOID_GATE,
    ];
    &ALL
}

/// The family of this name.
pub fn family(name: &str) -> Option<&'static dyn Family> {
    families().iter().copied().find(|f| f.name() == name)
}
