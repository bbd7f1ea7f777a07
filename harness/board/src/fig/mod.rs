//! The figures. Each is a function from rows to a [`Scene`](crate::scene::Scene).

pub(crate) mod ratio;
pub(crate) mod sweep;
pub(crate) mod throughput;
pub(crate) mod wall;
