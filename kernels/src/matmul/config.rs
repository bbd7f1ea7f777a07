//! The tuning space of the matrix product.

use crate::space::{Config, Param, Space};

/// How one product is cut up. Every configuration gives the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatmulConfig {
    /// Tiles of 16 weight rows that a microkernel holds at once: 1, 2 or 4.
    pub tile_rows: usize,
    /// Activation rows that a microkernel holds at once: 1, 2, 4 or 8; at most 16 over `tile_rows`.
    pub tile_tokens: usize,
    /// How many groups of 32 columns ahead weights are prefetched; 0 leaves it to the hardware.
    pub prefetch: usize,
    /// Tiles in one unit of work handed to a thread.
    pub chunk: usize,
    /// Threads used, at most the pool's.
    pub threads: usize,
    /// A planted fault: the last block of every row is left out. Only in [`planted_space`].
    pub planted: bool,
}

const PLANTED: &str = "planted";

/// Accumulator blocks (tiles × tokens) that fit in registers.
const MAX_BLOCKS: i64 = 16;

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
        space_of(threads.max(1), config.get(PLANTED).is_some(), None).validate(config)?;
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

/// The space for `m` activation rows on at most `threads` threads.
pub(super) fn space(m: usize, threads: usize) -> Space {
    space_of(threads, false, Some(m))
}

/// [`space`] with a parameter whose value 1 gives wrong results, to prove that a sweep rejects them.
pub(super) fn planted_space(m: usize, threads: usize) -> Space {
    space_of(threads, true, Some(m))
}

fn space_of(threads: usize, planted: bool, m: Option<usize>) -> Space {
    let param = |name, values: &[i64], doc| Param { name, values: values.to_vec(), doc };
    // A microkernel wider than the step would never run.
    let widest = m.map_or(8, |m| m.next_power_of_two().min(8));
    let tokens: Vec<i64> = [1i64, 2, 4, 8].into_iter().filter(|t| *t <= widest as i64).collect();
    let threads: Vec<i64> = (1..=threads as i64).collect();
    let mut params = vec![
        param("tile_rows", &[1, 2, 4], "tiles of 16 weight rows a microkernel holds"),
        param("tile_tokens", &tokens, "activation rows a microkernel holds"),
        param("prefetch", &[0, 2, 4, 8, 16], "groups of 32 columns prefetched ahead"),
        param("chunk", &[1, 2, 4, 8, 16, 32], "tiles a unit of work"),
        param("threads", &threads, "threads used"),
    ];
    if planted {
        params.push(param(
            PLANTED,
            &[0, 1],
            "1 drops the last block of every row: a wrong kernel, for self-tests",
        ));
    }
    Space { params, constraint: fits }
}

fn fits(config: &Config) -> Result<(), String> {
    let get = |name| config.get(name).unwrap_or(1);
    let (rows, tokens, chunk) = (get("tile_rows"), get("tile_tokens"), get("chunk"));
    if rows * tokens > MAX_BLOCKS {
        return Err(format!(
            "tile_rows x tile_tokens is {}, above the {MAX_BLOCKS} that fit in registers",
            rows * tokens
        ));
    }
    if chunk % rows != 0 {
        return Err(format!("chunk {chunk} is no multiple of tile_rows {rows}"));
    }
    Ok(())
}

/// A configuration that does well without tuning.
pub(super) fn default_config(m: usize, threads: usize) -> MatmulConfig {
    let (tile_rows, tile_tokens) = match m {
        0 | 1 => (2, 1),
        2 => (2, 2),
        3 | 4 => (2, 4),
        _ => (1, 8),
    };
    MatmulConfig { tile_rows, tile_tokens, prefetch: 0, chunk: 4, threads: threads.max(1), planted: false }
}
