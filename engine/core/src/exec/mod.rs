//! Executors: what runs a Program.

mod cpu;
mod experts;

pub(crate) use cpu::{CpuExecutor, RopeTables};

/// Everything that varies from step to step.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    /// Rows in order.
    pub(crate) rows: &'a [StepRow],
    /// Rows whose logits are wanted, ascending.
    pub(crate) wanted: &'a [u32],
}

/// One row of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepRow {
    pub(crate) token: u32,
    pub(crate) position: usize,
    /// The sequence, by its number in the cache.
    pub(crate) seq: usize,
}
