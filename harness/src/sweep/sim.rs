//! A device that only exists in tests: times from a formula, with noise, on a clock of its own.

use super::device::{Check, Device, Load, Prepared};
use crate::record::CacheState;
use crate::stats::Rng;
use crate::telemetry::{CpuTicks, Snapshot};
use memra_kernels::family::{Case, Family};
use memra_kernels::space::{Config, Param, Space};
use memra_kernels::{Cost, DType, KernelKey, NumericClass, NumericPath, cpu::Pool};
use std::collections::HashMap;
use std::time::Duration;

/// Kernel `sim`: `a` and `b` from 0 to `width`, less the points with `a + b` odd; `threads` 1 or 2.
pub(super) struct SimFamily {
    pub(super) width: i64,
    pub(super) hash: &'static str,
}

impl Family for SimFamily {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn space(&self, _: &KernelKey, threads: usize) -> Space {
        let param = |name, values: Vec<i64>| Param { name, values, doc: "" };
        let side: Vec<i64> = (0..self.width).collect();
        let threads = (1..=threads as i64).collect();
        let constraint = |c: &Config| match c.get("a").unwrap_or(0) + c.get("b").unwrap_or(0) {
            sum if sum % 2 == 1 => Err("a + b is odd".to_owned()),
            _ => Ok(()),
        };
        Space {
            params: vec![param("a", side.clone()), param("b", side), param("threads", threads)],
            constraint,
        }
    }

    fn space_with_planted(&self, key: &KernelKey, threads: usize) -> Space {
        let mut space = self.space(key, threads);
        space.params.push(Param { name: "planted", values: vec![0, 1], doc: "" });
        space
    }

    fn default_config(&self, _: &KernelKey, threads: usize) -> Config {
        Config::new([("a", 0), ("b", 0), ("threads", threads as i64)])
    }

    fn order_key(&self, _: &KernelKey, _: &Config) -> String {
        "sim-order".to_owned()
    }

    fn cost(&self, _: &KernelKey) -> Cost {
        Cost { bytes: 1000, flops: 2000 }
    }

    fn source_hash(&self) -> &'static str {
        self.hash
    }

    fn case(&self, _: &KernelKey, _: u64, _: &Pool) -> Result<Box<dyn Case>, String> {
        Err("a simulation has no operands".to_owned())
    }
}

type Formula = dyn Fn(&Config) -> f64;

/// The device.
pub(super) struct Sim {
    family: &'static SimFamily,
    /// Nanoseconds of a launch.
    formula: Box<Formula>,
    /// Standard deviation of a launch's relative noise. With it come what a busy machine adds: one launch in twenty takes
    /// half as long again, one call in sixty a third longer as a whole, and everything gets 2 % slower a second.
    noise: f64,
    rng: Rng,
    clock: Duration,
    /// Share of the machine's CPU time that others take.
    pub(super) foreign: f64,
    /// What checks give instead of passing.
    pub(super) faults: HashMap<Config, Check>,
    /// Launches timed.
    pub(super) timed: HashMap<Config, usize>,
    /// Checks made.
    pub(super) checked: HashMap<Config, usize>,
}

impl Sim {
    pub(super) fn new(width: i64, noise: f64, seed: u64, formula: impl Fn(&Config) -> f64 + 'static) -> Sim {
        Sim {
            family: Box::leak(Box::new(SimFamily { width, hash: "h1" })),
            formula: Box::new(formula),
            noise,
            rng: Rng::new(seed),
            clock: Duration::ZERO,
            foreign: 0.0,
            faults: HashMap::new(),
            timed: HashMap::new(),
            checked: HashMap::new(),
        }
    }

    pub(super) fn set_source(&mut self, hash: &'static str) {
        self.family = Box::leak(Box::new(SimFamily { width: self.family.width, hash }));
    }
}

pub(super) fn key(n: usize) -> KernelKey {
    let (class, path) = (NumericClass::Q8, NumericPath::Decode);
    KernelKey { family: "sim".to_owned(), dtype: DType::Q4_1, class, path, n, k: 32, m: 1 }
}

impl Device for Sim {
    fn class(&self) -> &str {
        "sim-device"
    }

    fn threads(&self) -> usize {
        2
    }

    fn family(&self, name: &str) -> Option<&'static dyn Family> {
        (name == "sim").then_some(self.family as &dyn Family)
    }

    fn prepare(&mut self, load: &Load) -> Result<Prepared, String> {
        if load.key.n == 13 {
            return Err("no memory".to_owned());
        }
        Ok(Prepared { cache_state: CacheState::Cold, working_set_bytes: load.working_set_bytes })
    }

    fn check(&mut self, config: &Config) -> Check {
        *self.checked.entry(config.clone()).or_default() += 1;
        self.clock += Duration::from_micros(50);
        if config.get("planted") == Some(1) {
            return Check::Wrong { reason: "planted".to_owned(), max_err: Some(1.0) };
        }
        let right = Check::Passed { output_hash: "0123".to_owned(), max_err: 0.0 };
        self.faults.get(config).cloned().unwrap_or(right)
    }

    fn time(&mut self, config: &Config, launches: usize) -> Result<Vec<u64>, String> {
        *self.timed.entry(config.clone()).or_default() += launches;
        let mut samples = Vec::new();
        let noisy = self.noise > 0.0;
        let drift = if noisy { 1.0 + 0.02 * self.clock.as_secs_f64() } else { 1.0 };
        let call = if noisy && self.rng.unit() < 1.0 / 60.0 { 1.3 } else { 1.0 };
        for _ in 0..launches {
            let spike = if noisy && self.rng.unit() < 0.05 { 1.5 } else { 1.0 };
            let noise = (self.noise * self.rng.normal()).exp();
            let ns = (self.formula)(config) * noise * spike * call * drift;
            self.clock += Duration::from_nanos(ns as u64);
            samples.push(ns as u64);
        }
        Ok(samples)
    }

    fn now(&self) -> Duration {
        self.clock
    }

    fn machine(&self) -> Snapshot {
        let total = self.clock.as_micros() as u64;
        let busy = (self.foreign * total as f64) as u64;
        Snapshot { loadavg_1m: None, cpu: Some(CpuTicks { busy, total }), own: Some(0) }
    }
}
