//! The measurements themselves.

use crate::{Bandwidth, FORMAT, Handoff, Ledger};
use memra_kernels::cpu::{self, Isa, Pool, stream};
use std::hint::black_box;
use std::time::Instant;

/// Smallest working set measured.
pub const MIN_BYTES: u64 = 1 << 20;
/// Bytes that a sample moves at least: tens of milliseconds, far above the clock and the hand-off.
const SAMPLE_BYTES: u64 = 256 << 20;
/// Empty regions in one hand-off sample.
const REGIONS: u64 = 1000;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Largest working set; sizes double from [`MIN_BYTES`] up to it. Memory of this size is allocated.
    pub max_bytes: u64,
    /// Samples a point.
    pub samples: usize,
    /// Most threads used; each point is measured with 1 and with this many.
    pub threads: usize,
}

/// Measures this machine and returns its ledger. `progress(done, total)` is called after each point.
///
/// Runs for seconds to tens of seconds with every core busy: on a loaded machine the figures are too low, which the
/// gap between best and median shows.
pub fn measure(options: Options, date: &str, progress: &mut dyn FnMut(usize, usize)) -> Ledger {
    let isa = Isa::detect();
    let pool = Pool::new(options.threads);
    let threads = pool.threads();
    let counts: Vec<usize> = if threads > 1 { vec![1, threads] } else { vec![1] };
    let sizes: Vec<u64> =
        (0..).map(|i| MIN_BYTES << i).take_while(|&size| size <= options.max_bytes.max(MIN_BYTES)).collect();
    let total = sizes.len() * (counts.len() + 1) + counts.len();
    let mut done = 0;
    let mut step = || {
        done += 1;
        progress(done, total);
    };

    let mut memory = touched(&pool, sizes.last().copied().unwrap_or(MIN_BYTES));
    let (mut read, mut copy) = (Vec::new(), Vec::new());
    for &size in &sizes {
        let words = (size / 8) as usize;
        for &threads in &counts {
            read.push(read_point(&pool, &memory[..words], threads, isa, options.samples));
            step();
        }
        copy.push(copy_point(&pool, &mut memory[..words], options.samples));
        step();
    }
    let mut handoff = Vec::new();
    for &threads in &counts {
        handoff.push(handoff_point(&pool, threads, options.samples));
        step();
    }
    Ledger {
        format: FORMAT,
        device_class: cpu::device_class(),
        cpu: cpu::cpu_name(),
        isa: isa.name().to_owned(),
        cores: threads,
        date: date.to_owned(),
        read,
        copy,
        handoff,
    }
}

/// Memory whose every page is really there, written by the threads that will read it.
fn touched(pool: &Pool, bytes: u64) -> Vec<u64> {
    let mut memory = vec![0u64; (bytes / 8) as usize];
    let share = memory.len().div_ceil(pool.threads());
    pool.chunks_mut(pool.threads(), &mut memory, share, &|index, part| part.fill(index as u64 + 1));
    memory
}

/// Times `pass` (which moves `bytes`) repeated until a sample is long enough, once unrecorded first.
fn sample(bytes: u64, samples: usize, pass: &mut dyn FnMut(u64)) -> (u64, Vec<u64>) {
    let passes = SAMPLE_BYTES.div_ceil(bytes.max(1));
    pass(passes.div_ceil(4));
    let times = (0..samples.max(1)).map(|_| {
        let start = Instant::now();
        pass(passes);
        u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    });
    (passes * bytes, times.collect())
}

/// Each thread reads its own share of `memory` over and over, so that nothing it needs sits in another core's cache.
fn read_point(pool: &Pool, memory: &[u64], threads: usize, isa: Isa, samples: usize) -> Bandwidth {
    let bytes = 8 * memory.len() as u64;
    let share = memory.len().div_ceil(threads);
    let (moved, times) = sample(bytes, samples, &mut |passes| {
        pool.run(threads, threads, &|index, _| {
            let part = &memory[(index * share).min(memory.len())..((index + 1) * share).min(memory.len())];
            for _ in 0..passes {
                black_box(stream::read(black_box(part), isa));
            }
        });
    });
    Bandwidth::new(bytes, threads, moved, times)
}

/// Every thread copies the first half of its share of `memory` onto the second.
fn copy_point(pool: &Pool, memory: &mut [u64], samples: usize) -> Bandwidth {
    let threads = pool.threads();
    let bytes = 8 * memory.len() as u64;
    let share = memory.len().div_ceil(threads);
    let (moved, times) = sample(bytes, samples, &mut |passes| {
        pool.chunks_mut(threads, memory, share, &|_, part| {
            let (from, to) = part.split_at_mut(part.len() / 2);
            for _ in 0..passes {
                black_box(&mut *to)[..from.len()].copy_from_slice(black_box(&*from));
            }
        });
    });
    Bandwidth::new(bytes, threads, moved, times)
}

fn handoff_point(pool: &Pool, threads: usize, samples: usize) -> Handoff {
    let times = (0..samples.max(1)).map(|_| {
        let start = Instant::now();
        for _ in 0..REGIONS {
            pool.run(threads, threads, &|index, _| _ = black_box(index));
        }
        u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    });
    Handoff::new(threads, REGIONS, times.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shape and bookkeeping only: a timing never fails a test.
    #[test]
    fn a_small_probe_fills_every_point_and_keeps_its_samples() {
        let mut steps = Vec::new();
        let options = Options { max_bytes: 2 * MIN_BYTES, samples: 2, threads: 2 };
        let ledger = measure(options, "2026-01-31", &mut |done, total| steps.push((done, total)));
        assert_eq!(steps.last(), Some(&(8, 8)));
        let points: Vec<_> = ledger.read.iter().map(|p| (p.bytes, p.threads)).collect();
        assert_eq!(points, [(1 << 20, 1), (1 << 20, 2), (2 << 20, 1), (2 << 20, 2)]);
        assert_eq!((ledger.copy.len(), ledger.handoff.len()), (2, 2));
        for point in ledger.read.iter().chain(&ledger.copy) {
            assert_eq!(point.samples_ns.len(), 2);
            assert!(point.bytes_per_sample >= SAMPLE_BYTES && point.bytes_per_sample % point.bytes == 0);
            assert!(point.best_gbps >= point.median_gbps && point.best_gbps.is_finite());
        }
        assert!(ledger.wall_gbps(1).is_some());
    }

    #[test]
    fn copying_really_copies() {
        let mut memory: Vec<u64> = (0..1024).collect();
        copy_point(&Pool::new(2), &mut memory, 1);
        assert_eq!(memory[..256], memory[256..512]);
        assert_eq!(memory[512..768], memory[768..]);
    }
}
