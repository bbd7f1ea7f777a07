//! Random numbers with a recorded seed.

use rand_core::{Rng as _, SeedableRng};

/// A seeded generator.
#[derive(Clone, Debug)]
pub struct Rng(rand_pcg::Pcg64Mcg);

impl Rng {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Rng {
        Rng(rand_pcg::Pcg64Mcg::seed_from_u64(seed))
    }

    /// True or false, evenly.
    pub fn coin(&mut self) -> bool {
        self.0.next_u64() >> 63 == 1
    }

    /// Uniform in (0, 1).
    pub fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}
