//! Mixture of experts: which experts a row goes to, and how their results come together.
//!
//! A launch first decides ([`route`]), then sorts rows by expert: each of a row's experts is a *slot*, and slots that
//! share an expert are neighbours ([`Routes`]). Rows are copied into slots once ([`gather_slots`], or
//! [`Q8Rows::gather`](crate::matmul::Q8Rows::gather) after rounding), each expert multiplies its own
//! ([`experts`](crate::matmul::experts)), and [`combine`] adds up a row's slots.
//!
//! # Order of operations
//! A row's experts are kept in increasing order of their number, whatever their scores, and are added in that order. Where
//! a row's slots lie depends on the other rows of the step, but no operation does: each slot is treated alone, by kernels
//! whose rows do not influence each other. So a row's bits do not depend on the step it is part of, nor on threads.

pub(crate) mod family;
mod router;
mod routes;
mod slots;

pub use router::{Router, Scoring, route};
pub use routes::Routes;
pub use slots::{combine, gather_slots};
