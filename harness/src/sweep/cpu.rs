//! This machine's CPU as the sweep's device.

use super::device::{Check, Device, Load, Prepared};
use crate::record::CacheState;
use crate::telemetry::{Linux, Snapshot, Telemetry, available_memory};
use memra_kernels::cpu::{Pool, device_class};
use memra_kernels::family::{Case, Family, family};
use memra_kernels::{KernelKey, space::Config, testdata::Hash};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Operands need never be rotated over more than so many times the last-level cache.
const CACHES: u64 = 2;
/// Last-level cache assumed where the system does not tell.
const UNKNOWN_CACHE: u64 = 32 << 20;
/// The scalar reference is computed for so many multiply-adds at most, but for at least [`MIN_ROWS`] rows.
const REFERENCE_WORK: usize = 100_000_000;
/// Rows that reach every path of a kernel: a whole tile of tokens and a rest.
const MIN_ROWS: usize = 9;
/// Values on each side of an output that must stay as they are.
const GUARD: usize = 64;
/// What outputs hold before a checked launch, one after the other: a NaN of our own, and a large number.
const FILLS: [u32; 2] = [0x7fc0_dead, 0x7149_f2ca];

/// The CPU, with a pool of threads and operands of made-up values.
pub struct CpuDevice {
    class: String,
    pool: Pool,
    cache_bytes: u64,
    started: Instant,
    load: Option<Bench>,
}

/// The operands of a prepared load.
struct Bench {
    /// The load, whose output is checked for equal bits among order-key peers.
    whole: Subject,
    /// Copies of it, for timing with operands that are not in the caches.
    copies: Vec<Box<dyn Case>>,
    /// Number of the next launch; launch `i` uses case `i` of the load and its copies, over and over.
    next: usize,
    /// The load with fewer rows, which is compared with the reference where that would take too long for the whole.
    sample: Option<Subject>,
    expected: Expected,
    /// Output with guards around it.
    out: Vec<f32>,
}

/// A case that is checked, and the hash of its inputs as they were made.
struct Subject {
    case: Box<dyn Case>,
    inputs: u64,
}

/// What a result is compared with.
enum Expected {
    /// The bits of the family's own order.
    Exact(Vec<f32>),
    /// Values in f64, each with its tolerance.
    Near(Vec<(f64, f64)>),
}

impl CpuDevice {
    /// The CPU with a pool of `threads` threads, the caller included.
    pub fn new(threads: usize) -> CpuDevice {
        CpuDevice {
            class: device_class(),
            pool: Pool::new(threads),
            cache_bytes: last_level_cache(Path::new("/sys/devices/system/cpu/cpu0/cache"))
                .unwrap_or(UNKNOWN_CACHE),
            started: Instant::now(),
            load: None,
        }
    }
}

impl Device for CpuDevice {
    fn class(&self) -> &str {
        &self.class
    }

    fn threads(&self) -> usize {
        self.pool.threads()
    }

    fn family(&self, name: &str) -> Option<&'static dyn Family> {
        family(name)
    }

    fn prepare(&mut self, load: &Load) -> Result<Prepared, String> {
        // Dropped first: two sets of operands may not fit.
        self.load = None;
        let family =
            self.family(&load.key.family).ok_or_else(|| format!("no family `{}`", load.key.family))?;
        let bytes = family.cost(&load.key).bytes.max(1);
        let enough = CACHES.saturating_mul(self.cache_bytes);
        let n_cases = load.working_set_bytes.min(enough).div_ceil(bytes).max(1);
        fits(&load.key, bytes.saturating_mul(n_cases), available_memory())?;
        let subject = |m| {
            let case = family.case(&KernelKey { m, ..load.key.clone() }, load.seed, &self.pool)?;
            Ok::<_, String>(Subject { inputs: case.inputs_hash(), case })
        };
        let whole = subject(load.key.m)?;
        let rows = reference_rows(&load.key);
        let sample = if rows < load.key.m { Some(subject(rows)?) } else { None };
        let expected = Expected::of(sample.as_ref().unwrap_or(&whole).case.as_ref());
        let out = vec![0.0; whole.case.out_len() + 2 * GUARD];
        let copies = (1..n_cases).map(|_| whole.case.copy()).collect();
        self.load = Some(Bench { whole, copies, next: 0, sample, expected, out });
        let cold = n_cases > 1 || bytes >= enough;
        Ok(Prepared {
            cache_state: if cold { CacheState::Cold } else { CacheState::Warm },
            working_set_bytes: n_cases * bytes,
        })
    }

    fn check(&mut self, config: &Config) -> Check {
        match &mut self.load {
            Some(bench) => bench.check(&self.pool, config),
            None => Check::Failed { reason: "nothing is prepared".to_owned() },
        }
    }

    fn time(&mut self, config: &Config, launches: usize) -> Result<Vec<u64>, String> {
        match &mut self.load {
            Some(bench) => bench.time(&self.pool, config, launches),
            None => Err("nothing is prepared".to_owned()),
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn machine(&self) -> Snapshot {
        Linux.start()
    }
}

impl Bench {
    fn check(&mut self, pool: &Pool, config: &Config) -> Check {
        let expected = &self.expected;
        let result = match &self.sample {
            None => self.whole.run(pool, config, &mut self.out).map(|out| (expected.compare(out), hash(out))),
            // Both must run: one is right by the reference, the other by the bits of its peers.
            Some(sample) => {
                let compared = sample.run(pool, config, &mut self.out).map(|out| expected.compare(out));
                let hashed = |compared| Ok((compared, hash(self.whole.run(pool, config, &mut self.out)?)));
                compared.and_then(hashed)
            }
        };
        match result {
            Ok((Ok(max_err), output_hash)) => Check::Passed { output_hash, max_err },
            Ok((Err((reason, max_err)), _)) => Check::Wrong { reason, max_err },
            Err(check) => check,
        }
    }

    fn time(&mut self, pool: &Pool, config: &Config, launches: usize) -> Result<Vec<u64>, String> {
        let n_cases = self.copies.len() + 1;
        let case = |i: usize| match i % n_cases {
            0 => &self.whole.case,
            i => &self.copies[i - 1],
        };
        let out = &mut self.out[GUARD..][..self.whole.case.out_len()];
        let ready =
            (0..=launches).map(|i| case(self.next + i).ready(config)).collect::<Result<Vec<_>, _>>()?;
        self.next = (self.next + launches + 1) % n_cases;
        let mut samples = Vec::with_capacity(ready.len());
        for launch in &ready {
            let start = Instant::now();
            launch(pool, out).map_err(|e| e.to_string())?;
            samples.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        // The first woke the pool up and brought the code into the caches.
        samples.remove(0);
        Ok(samples)
    }
}

impl Subject {
    /// Runs the case on outputs that held two different fills before. The result is the same, whole, nothing around it
    /// was touched, and the inputs are as they were made; or what of this does not hold.
    fn run<'o>(&self, pool: &Pool, config: &Config, out: &'o mut [f32]) -> Result<&'o [f32], Check> {
        let len = self.case.out_len();
        let out = &mut out[..len + 2 * GUARD];
        let launch = self.case.ready(config).map_err(|reason| Check::Failed { reason })?;
        let mut results: Vec<Vec<u32>> = Vec::new();
        for fill in FILLS {
            out.fill(f32::from_bits(fill));
            launch(pool, &mut out[GUARD..GUARD + len])
                .map_err(|e| Check::Failed { reason: e.to_string() })?;
            let bits: Vec<u32> = out.iter().map(|v| v.to_bits()).collect();
            let (before, rest) = bits.split_at(GUARD);
            let (result, after) = rest.split_at(len);
            if before.iter().chain(after).any(|b| *b != fill) {
                return Err(Check::Wrong { reason: "it wrote outside its output".to_owned(), max_err: None });
            }
            results.push(result.to_vec());
        }
        if let Some(at) = results[0].iter().zip(&results[1]).position(|(a, b)| a != b) {
            let untouched = results[0][at] == FILLS[0] && results[1][at] == FILLS[1];
            return Err(if untouched {
                Check::Wrong { reason: format!("it left output {at} unwritten"), max_err: None }
            } else {
                Check::Unstable { reason: format!("output {at} differed between two launches") }
            });
        }
        if self.case.inputs_hash() != self.inputs {
            return Err(Check::Wrong { reason: "it changed its inputs".to_owned(), max_err: None });
        }
        Ok(&out[GUARD..GUARD + len])
    }
}

fn hash(out: &[f32]) -> String {
    let mut hash = Hash::default();
    hash.floats(out);
    format!("{:016x}", hash.finish())
}

impl Expected {
    fn of(case: &dyn Case) -> Expected {
        case.ordered().map_or_else(|| Expected::Near(case.reference()), Expected::Exact)
    }

    /// The largest error of a right result; the first wrong value and the largest error, where finite, of a wrong one.
    fn compare(&self, out: &[f32]) -> Result<f64, (String, Option<f64>)> {
        let (mut max_err, mut wrong, mut n_wrong) = (0f64, None, 0);
        for (at, got) in out.iter().enumerate() {
            let (want, right) = match self {
                Expected::Exact(values) => (f64::from(values[at]), values[at].to_bits() == got.to_bits()),
                Expected::Near(values) => {
                    (values[at].0, (f64::from(*got) - values[at].0).abs() <= values[at].1)
                }
            };
            let err = (f64::from(*got) - want).abs();
            max_err = if err.is_nan() { f64::INFINITY } else { max_err.max(err) };
            if !right {
                n_wrong += 1;
                wrong.get_or_insert_with(|| format!("output {at} is {got}, not {want}"));
            }
        }
        match wrong {
            None => Ok(max_err),
            Some(first) => {
                let reason = format!("{n_wrong} of {} values are wrong: {first}", out.len());
                Err((reason, Some(max_err).filter(|e| e.is_finite())))
            }
        }
    }
}

/// Refuses a launch whose operands, `bytes` with their copies, and what they are made and checked with exceed the memory
/// that is available: weights and activations are made as f32, and outputs are kept six times.
fn fits(key: &KernelKey, bytes: u64, available: Option<u64>) -> Result<(), String> {
    let (n, k, m) = (key.n as f64, key.k as f64, key.m as f64);
    let needed = 2.0 * bytes as f64 + 4.0 * (n * k + m * k + 6.0 * m * n);
    match available {
        Some(available) if needed > available as f64 => {
            let gib = |bytes: f64| bytes / f64::from(1 << 30);
            let (needed, available) = (gib(needed), gib(available as f64));
            Err(format!("it needs about {needed:.1} GiB of memory, and {available:.1} are available"))
        }
        _ => Ok(()),
    }
}

/// Rows of `key` that are compared with the reference.
fn reference_rows(key: &KernelKey) -> usize {
    let a_row = key.n.saturating_mul(key.k).max(1);
    (REFERENCE_WORK / a_row).max(MIN_ROWS).min(key.m)
}

/// Size of the largest cache under `dir` (Linux's description of one CPU's caches), in bytes.
fn last_level_cache(dir: &Path) -> Option<u64> {
    let sizes = fs::read_dir(dir).ok()?.filter_map(|entry| {
        let text = fs::read_to_string(entry.ok()?.path().join("size")).ok()?;
        let text = text.trim();
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let scale = match unit {
            "" => 1,
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => return None,
        };
        digits.parse::<u64>().ok()?.checked_mul(scale)
    });
    sizes.max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memra_kernels::{DType, NumericClass, NumericPath};

    fn key(m: usize) -> KernelKey {
        let (family, dtype, class) = ("matmul".to_owned(), DType::Q4_1, NumericClass::Q8);
        let path = if m == 1 { NumericPath::Decode } else { NumericPath::Prompt };
        KernelKey { family, dtype, class, path, n: 48, k: 64, m }
    }

    #[test]
    fn every_configuration_gives_the_same_bits_and_the_planted_one_is_caught() {
        let mut device = CpuDevice::new(2);
        for m in [1, 11] {
            let load = Load { key: key(m), working_set_bytes: 100_000, seed: 7 };
            let prepared = device.prepare(&load).unwrap();
            assert_eq!(prepared.cache_state, CacheState::Cold);
            assert!(prepared.working_set_bytes >= 100_000);
            let family = device.family("matmul").unwrap();
            let mut hashes = Vec::new();
            for config in family.space(&key(m), 2).feasible().step_by(7) {
                match device.check(&config) {
                    Check::Passed { output_hash, max_err: 0.0 } => hashes.push(output_hash),
                    other => panic!("{config}: {other:?}"),
                }
                assert_eq!(device.time(&config, 3).unwrap().len(), 3);
            }
            hashes.dedup();
            assert_eq!(hashes.len(), 1);
            let planted = family.space_with_planted(&key(m), 2);
            let wrong = planted.feasible().find(|c| c.get("planted") == Some(1)).unwrap();
            assert!(matches!(device.check(&wrong), Check::Wrong { max_err: Some(e), .. } if e > 0.0));
            let nonsense = Config::new([("tile_rows", 3)]);
            assert!(matches!(device.check(&nonsense), Check::Failed { .. }));
            assert!(device.time(&nonsense, 1).is_err());
        }
    }

    #[test]
    fn a_launch_that_memory_does_not_hold_is_not_made() {
        let (small, large) = (key(1), KernelKey { n: 20_000_000, k: 4096, ..key(1) });
        assert_eq!(fits(&small, 1 << 20, Some(4 << 20)), Ok(()));
        assert!(fits(&small, 1 << 20, Some(1 << 20)).unwrap_err().contains("0.0 are available"));
        assert!(fits(&large, 51_200_000_000, Some(64 << 30)).unwrap_err().contains("it needs about 40"));
        assert_eq!(fits(&large, 51_200_000_000, None), Ok(()));
        assert!(available_memory().is_some());
        let absurd = KernelKey { k: 1 << 42, n: 64, ..key(1) };
        let load = Load { key: absurd, working_set_bytes: 1, seed: 7 };
        assert!(CpuDevice::new(1).prepare(&load).unwrap_err().contains("GiB"));
    }

    #[test]
    fn a_big_launch_is_compared_by_a_sample_of_its_rows() {
        assert_eq!(reference_rows(&key(1)), 1);
        assert_eq!(reference_rows(&key(512)), 512);
        let big = KernelKey { n: 49_152, k: 576, ..key(512) };
        assert_eq!(reference_rows(&big), MIN_ROWS);
    }

    #[test]
    fn what_a_kernel_can_do_wrong_is_told_apart() {
        struct Odd(u32);
        impl Case for Odd {
            fn out_len(&self) -> usize {
                4
            }
            fn ready(&self, _: &Config) -> Result<memra_kernels::family::Launch<'_>, String> {
                let calls = std::sync::atomic::AtomicU32::new(0);
                Ok(Box::new(move |_, out| {
                    let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let whole = if self.0 == 1 { 3 } else { 4 };
                    out[..whole].fill(1.0);
                    if self.0 == 2 {
                        out[2] = call as f32;
                    }
                    Ok(())
                }))
            }
            fn copy(&self) -> Box<dyn Case> {
                Box::new(Odd(self.0))
            }
            fn reference(&self) -> Vec<(f64, f64)> {
                vec![(1.0, 0.1); 4]
            }
            fn inputs_hash(&self) -> u64 {
                u64::from(self.0 == 3)
            }
        }
        let pool = Pool::new(1);
        let mut out = vec![0.0; 4 + 2 * GUARD];
        let mut tried = |kind| {
            let subject = Subject { case: Box::new(Odd(kind)), inputs: 0 };
            subject.run(&pool, &Config::default(), &mut out).map(<[f32]>::to_vec)
        };
        assert_eq!(tried(0), Ok(vec![1.0; 4]));
        let reason = |check: Result<Vec<f32>, Check>| match check.unwrap_err() {
            Check::Wrong { reason, .. } | Check::Unstable { reason } => reason,
            other => panic!("{other:?}"),
        };
        assert!(reason(tried(1)).contains("output 3 unwritten"));
        assert!(reason(tried(2)).contains("output 2 differed"));
        assert!(reason(tried(3)).contains("inputs"));
        let expected = Expected::of(&Odd(0));
        assert_eq!(
            expected.compare(&[1.0, 1.0, 1.0, 1.05]).map_err(|e| e.0).unwrap(),
            f64::from(1.05f32) - 1.0
        );
        let nan = expected.compare(&[1.0, f32::NAN, 1.0, 1.5]).unwrap_err();
        assert!(nan.0.starts_with("2 of 4") && nan.1.is_none(), "{nan:?}");
    }

    #[test]
    fn the_cache_size_is_read_as_linux_writes_it() {
        let dir = tempfile::tempdir().unwrap();
        for (index, size) in [("index0", "48K\n"), ("index3", "300M"), ("index4", "?")] {
            fs::create_dir(dir.path().join(index)).unwrap();
            fs::write(dir.path().join(index).join("size"), size).unwrap();
        }
        assert_eq!(last_level_cache(dir.path()), Some(300 << 20));
        assert_eq!(last_level_cache(&dir.path().join("none")), None);
    }
}
