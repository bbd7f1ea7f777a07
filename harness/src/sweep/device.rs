//! What a sweep measures on.

use crate::record::CacheState;
use crate::telemetry::Snapshot;
use memra_kernels::{KernelKey, family::Family, space::Config};
use std::time::Duration;

/// One launch that is to be tried with many configurations.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Kernel and shape.
    pub key: KernelKey,
    /// Bytes that the rest of the step moves between two launches of this kernel, this launch's own included: operands
    /// are rotated over so much memory, so that a launch finds the caches as it will in the engine.
    pub working_set_bytes: u64,
    /// Seed of the made-up inputs: the same seed gives the same bits.
    pub seed: u64,
}

/// What a prepared load is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prepared {
    /// Whether operands are rotated.
    pub cache_state: CacheState,
    /// Bytes they are rotated over.
    pub working_set_bytes: u64,
}

/// Outcome of running one configuration against the reference.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// Right, whatever the output held before.
    Passed {
        /// Hash of the output's bits: equal for equal order keys.
        output_hash: String,
        /// Largest absolute difference from the reference.
        max_err: f64,
    },
    /// Wrong.
    Wrong {
        /// What was wrong.
        reason: String,
        /// Largest absolute difference from the reference, where finite.
        max_err: Option<f64>,
    },
    /// Two launches gave different results.
    Unstable {
        /// How they differed.
        reason: String,
    },
    /// It did not run.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A machine that runs kernels, or something that stands in for one.
pub trait Device {
    /// Name under which its measurements are kept.
    fn class(&self) -> &str;

    /// Threads of its pool; a configuration may use fewer.
    fn threads(&self) -> usize;

    /// The kernel family of this name, if the device has it.
    fn family(&self, name: &str) -> Option<&'static dyn Family>;

    /// Makes the operands of `load` and drops those of the load before.
    ///
    /// # Errors
    /// Why this launch cannot be made here.
    fn prepare(&mut self, load: &Load) -> Result<Prepared, String>;

    /// Runs the prepared load once to see whether its result is right.
    fn check(&mut self, config: &Config) -> Check;

    /// Times `launches` launches of the prepared load, after one that is not timed. Nanoseconds.
    ///
    /// # Errors
    /// Why it did not run.
    fn time(&mut self, config: &Config, launches: usize) -> Result<Vec<u64>, String>;

    /// Time since a fixed moment: the clock of budgets.
    fn now(&self) -> Duration;

    /// What the machine is doing, to tell afterwards whether other processes were at work.
    fn machine(&self) -> Snapshot {
        Snapshot::default()
    }
}
