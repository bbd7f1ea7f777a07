//! Records, statistics, telemetry, sweep, A/B, gate, nightly
