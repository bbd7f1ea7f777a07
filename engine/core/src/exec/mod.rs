//! Executors: what runs a Program.

mod cpu;
mod delta;
mod experts;

pub(crate) use cpu::{CpuExecutor, RopeTables};

use memra_kernels::delta::SlotStep;

/// Everything that varies from step to step.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    /// Rows in order.
    pub(crate) rows: &'a [StepRow],
    /// Rows whose logits are wanted, ascending.
    pub(crate) wanted: &'a [u32],
    /// Where each row's recurrent state comes from and goes; empty where the model has none.
    pub(crate) slots: &'a [SlotStep],
    /// A state for each row, for a head that starts from one; empty for others.
    pub(crate) hidden: &'a [f32],
}

/// One row of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepRow {
    pub(crate) token: u32,
    pub(crate) position: usize,
    /// The sequence, by its number in the cache.
    pub(crate) seq: usize,
}
