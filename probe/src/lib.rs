//! Microbenchmarks that measure this machine's walls: how fast memory can be read and copied at each working-set
//! size, and what a parallel region costs. Figures go to a device ledger with every raw sample.

mod ledger;
mod measure;

pub use ledger::{Bandwidth, FORMAT, Handoff, Ledger, LedgerError};
pub use measure::{MIN_BYTES, Options, measure};
