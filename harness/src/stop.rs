//! The stop flag: how a Ctrl-C reaches whatever is being measured.

use std::sync::atomic::{AtomicU8, Ordering};

/// Counts stop requests. The first lets the run in progress finish, and a verdict is given from whole blocks; the
/// second ends the child at once.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

impl Stop {
    /// A flag that nobody raised.
    pub const fn new() -> Stop {
        Stop(AtomicU8::new(0))
    }

    /// Asks once more. Safe to call in a signal handler.
    pub fn request(&self) {
        if self.0.load(Ordering::Relaxed) < 2 {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a stop was asked for.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Whether it was asked for twice.
    pub fn now(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}
