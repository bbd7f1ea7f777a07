//! Records, statistics, telemetry, sweep, A/B, gate, nightly.
//!
//! Nothing here depends on the engine: memra is measured as a fresh process, exactly as a rival is.

pub mod ab;
pub mod child;
pub mod doctor;
pub mod exit;
pub mod gate;
pub mod nightly;
pub mod provenance;
pub mod record;
pub mod stats;
mod stop;
pub mod subject;
pub mod sweep;
pub mod telemetry;
mod text;

pub use provenance::file_hash;
pub use stop::Stop;
pub use text::one_line;

#[cfg(test)]
mod testing;
