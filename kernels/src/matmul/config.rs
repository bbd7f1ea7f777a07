//! The tuning space of the matrix product.

use super::TILE;
use super::variants::shapes;
use crate::cpu::Isa;
use crate::space::{Config, Param, Space};
use crate::{KernelKey, NumericClass};
use std::collections::BTreeSet;

/// How one product is cut up. Every configuration gives the same bits; a microkernel that is not compiled for this machine
/// is replaced by a smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatmulConfig {
    /// Tiles of 16 weight rows that a microkernel holds at once: 1, 2 or 4.
    pub tile_rows: usize,
    /// Activation rows that a microkernel holds at once: 1, 2, 4 or 8.
    pub tile_tokens: usize,
    /// How many groups of 32 columns ahead weights are prefetched; 0 leaves it to the hardware.
    pub prefetch: usize,
    /// Tiles in one unit of work handed to a thread.
    pub chunk: usize,
    /// Threads used, at most the pool's.
    pub threads: usize,
    /// A planted fault: the last block of every row is left out. Only in `planted_space`.
    pub planted: bool,
}

const PLANTED: &str = "planted";

/// Units of work, in tiles.
const CHUNKS: [i64; 6] = [1, 2, 4, 8, 16, 32];

/// More threads than any pool has.
const MAX_THREADS: usize = 4096;

impl From<MatmulConfig> for Config {
    fn from(c: MatmulConfig) -> Config {
        let int = |v: usize| i64::try_from(v).unwrap_or(i64::MAX);
        let mut config = Config::new([
            ("tile_rows", int(c.tile_rows)),
            ("tile_tokens", int(c.tile_tokens)),
            ("prefetch", int(c.prefetch)),
            ("chunk", int(c.chunk)),
            ("threads", int(c.threads)),
        ]);
        if c.planted {
            config.0.insert(PLANTED.to_owned(), 1);
        }
        config
    }
}

impl TryFrom<&Config> for MatmulConfig {
    type Error = String;

    /// # Errors
    /// The parameter that is missing, unknown, negative, or not among the compiled variants.
    fn try_from(config: &Config) -> Result<Self, String> {
        let get = |name: &str| {
            let value = config.get(name).ok_or_else(|| format!("parameter `{name}` is missing"))?;
            usize::try_from(value).map_err(|_| format!("parameter `{name}` cannot be {value}"))
        };
        let threads = get("threads")?;
        if threads > MAX_THREADS {
            return Err(format!("parameter `threads` cannot be {threads}, above {MAX_THREADS}"));
        }
        let shapes = [true, false].map(|integers| shapes(Isa::detect(), integers)).concat();
        space_of(&shapes, threads, config.get(PLANTED).is_some()).validate(config)?;
        Ok(MatmulConfig {
            tile_rows: get("tile_rows")?,
            tile_tokens: get("tile_tokens")?,
            prefetch: get("prefetch")?,
            chunk: get("chunk")?,
            threads,
            planted: config.get(PLANTED) == Some(1),
        })
    }
}

/// The space for `key` on at most `threads` threads.
pub(super) fn space(key: &KernelKey, threads: usize) -> Space {
    space_of(&useful_shapes(key), threads.max(1), false)
}

/// [`space`] with a parameter whose value 1 gives wrong results, to prove that a sweep rejects them.
pub(super) fn planted_space(key: &KernelKey, threads: usize) -> Space {
    space_of(&useful_shapes(key), threads.max(1), true)
}

/// The microkernels this machine has for `key`, less those wider than the step, which would never run.
fn useful_shapes(key: &KernelKey) -> Vec<(usize, usize)> {
    let integers = key.class == NumericClass::Q8 && key.dtype.is_quantised();
    let widest = key.m.next_power_of_two();
    shapes(Isa::detect(), integers).iter().copied().filter(|shape| shape.1 <= widest).collect()
}

fn space_of(shapes: &[(usize, usize)], threads: usize, planted: bool) -> Space {
    let param = |name, values: Vec<i64>, doc| Param { name, values, doc };
    let distinct = |value: fn(&(usize, usize)) -> usize| -> Vec<i64> {
        shapes.iter().map(|shape| value(shape) as i64).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let mut params = vec![
        param("tile_rows", distinct(|s| s.0), "tiles of 16 weight rows a microkernel holds"),
        param("tile_tokens", distinct(|s| s.1), "activation rows a microkernel holds"),
        param("prefetch", vec![0, 2, 4, 8, 16], "groups of 32 columns prefetched ahead"),
        param("chunk", CHUNKS.to_vec(), "tiles a unit of work"),
        param("threads", (1..=threads as i64).collect(), "threads used"),
    ];
    if planted {
        let doc = "1 drops the last block of every row: a wrong kernel, for self-tests";
        params.push(param(PLANTED, vec![0, 1], doc));
    }
    Space { params, constraint: fits }
}

fn fits(config: &Config) -> Result<(), String> {
    let get = |name| config.get(name).unwrap_or(1);
    let (rows, tokens, chunk) = (get("tile_rows"), get("tile_tokens"), get("chunk"));
    let compiled =
        |integers| shapes(Isa::detect(), integers).iter().any(|s| (s.0 as i64, s.1 as i64) == (rows, tokens));
    if !compiled(true) && !compiled(false) {
        return Err(format!(
            "no microkernel of {rows} tiles and {tokens} rows: it would not fit in registers"
        ));
    }
    if chunk % rows != 0 {
        return Err(format!("chunk {chunk} is no multiple of tile_rows {rows}"));
    }
    Ok(())
}

/// A configuration of the space that does well without tuning.
///
/// Few activation rows want several tiles at once, whose streams keep more of memory busy; many want wide microkernels.
/// Units of work are as large as leaves each thread three of them.
pub(super) fn default_config(key: &KernelKey, threads: usize) -> MatmulConfig {
    let threads = threads.max(1);
    let units = key.n.div_ceil(TILE) / (3 * threads);
    let chunk = CHUNKS.iter().map(|c| *c as usize).rev().find(|c| *c <= units).unwrap_or(1);
    let wanted = match key.m {
        0 | 1 => (4, 1),
        2 => (4, 2),
        3..16 => (4, 4),
        _ => (1, 8),
    };
    let fits = |shape: &(usize, usize)| shape.0 <= wanted.0.min(chunk) && shape.1 <= wanted.1;
    let shape = useful_shapes(key).into_iter().filter(fits).max_by_key(|s| s.0 * s.1);
    let (tile_rows, tile_tokens) = shape.unwrap_or((1, 1));
    MatmulConfig { tile_rows, tile_tokens, prefetch: 0, chunk, threads, planted: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize, m: usize, class: NumericClass) -> KernelKey {
        let (family, dtype) = ("matmul".to_owned(), crate::DType::Q4_1);
        KernelKey { family, dtype, class, path: crate::NumericPath::Decode, n, k: 576, m }
    }

    #[test]
    fn defaults_are_in_the_space_and_survive_the_round_trip() {
        for (n, m, threads) in
            [(1, 1, 1), (192, 1, 2), (576, 3, 2), (49152, 1, 8), (1536, 512, 3), (100, 2, 64)]
        {
            for class in NumericClass::ALL {
                let key = key(n, m, class);
                let config = default_config(&key, threads);
                space(&key, threads).validate(&config.into()).unwrap();
                assert_eq!(MatmulConfig::try_from(&Config::from(config)), Ok(config));
            }
        }
        assert_eq!(default_config(&key(49152, 1, NumericClass::Q8), 2).chunk, 32);
        assert_eq!(default_config(&key(192, 1, NumericClass::Q8), 2).chunk, 2);
    }

    #[test]
    fn configurations_that_no_variant_runs_are_refused() {
        let base = Config::from(default_config(&key(576, 1, NumericClass::Q8), 2));
        for (name, value) in [
            ("tile_rows", 3),
            ("tile_tokens", 16),
            ("chunk", 3),
            ("threads", 0),
            ("threads", i64::MAX),
            ("prefetch", -1),
        ] {
            let mut config = base.clone();
            config.0.insert(name.to_owned(), value);
            assert!(MatmulConfig::try_from(&config).is_err(), "{config}");
        }
        let mut config = base.clone();
        config.0.insert("unknown".to_owned(), 1);
        assert!(MatmulConfig::try_from(&config).is_err());
        config = base;
        config.0.remove("chunk");
        assert!(MatmulConfig::try_from(&config).is_err());
    }
}
