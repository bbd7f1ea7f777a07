//! The parts of a gated delta net layer: short convolution, gates, the delta rule's scan, the gated norm; and gates by a
//! sigmoid, which attention and shared experts of the same models use.
//!
//! Formulas: Gated Delta Networks (Yang, Kautz and Hatamizadeh, arXiv 2412.06464), as the Qwen3-Next and Qwen3.5
//! models of transformers compute them.
//!
//! # State
//! A recurrent state is a fixed number of f32 values for each sequence, kept in *slots* of a store. Each row of a launch
//! says which slot it continues and which one it leaves its result in ([`SlotStep`]). So one launch advances several
//! sequences, a failed step can leave the old state untouched, and the state after every row can be kept.
//!
//! # Order of operations
//! Every op treats the rows of a sequence one after the other, each with operations in a fixed order that its own page
//! gives; threads share heads or channels, never sums. So a sequence's bits depend neither on how its tokens are cut
//! into steps, nor on the other rows of a step, nor on threads or the instruction set.

mod conv;
mod disjoint;
pub(crate) mod family;
mod gates;
mod kernel;
mod norm;
mod scan;

pub use conv::{ConvWeights, short_conv};
pub use gates::{delta_gates, sigmoid_gate};
pub use norm::gated_rms_norm;
pub use scan::{DeltaShape, KeyHead, delta_scan};

use crate::error::{ShapeError, at_least};

/// Where the state of a row's sequence comes from, and where the state after the row goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotStep {
    /// The slot that holds the state before the row; `None` is a state of zeros, as before the first token.
    pub from: Option<u32>,
    /// The slot that receives the state after the row; may be the same. Its old contents do not matter otherwise.
    pub to: u32,
}

/// `Ok` when every slot that `steps` name lies in a store of `values` values, `each` a slot.
fn check_slots(op: &'static str, steps: &[SlotStep], each: usize, values: usize) -> Result<(), ShapeError> {
    let slots =
        steps.iter().flat_map(|s| s.from.into_iter().chain([s.to])).max().map_or(0, |s| s as usize + 1);
    at_least(op, "slots in the state store", slots, values.checked_div(each).unwrap_or(0))
}
