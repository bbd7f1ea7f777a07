//! The state of the machine around a run: load, CPU time taken by others, frequency.

mod linux;

pub use linux::Linux;
pub(crate) use linux::available_memory;

use crate::record::Regime;

/// A meter of the machine. Real ones read the system; a mock plays back what a test needs.
pub trait Telemetry {
    /// Looks at the machine just before a run.
    fn start(&mut self) -> Snapshot;

    /// Looks again just after it, and says what the run went through. Fields that cannot be read are `None`.
    fn finish(&mut self, before: &Snapshot) -> Regime;
}

/// CPU time in the kernel's ticks, and the load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// One-minute load average.
    pub loadavg_1m: Option<f64>,
    /// Busy and total ticks of all cores.
    pub cpu: Option<CpuTicks>,
    /// Ticks of this process and of the children it has reaped.
    pub own: Option<u64>,
}

/// Ticks of all cores since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Spent on anything, stolen by the hypervisor included.
    pub busy: u64,
    /// Busy and idle.
    pub total: u64,
}

/// Share of the machine's CPU time between two snapshots that went to others, 0 to 1. `None` for less than five ticks.
pub fn foreign_fraction(before: &Snapshot, after: &Snapshot) -> Option<f64> {
    let (from, to) = (before.cpu?, after.cpu?);
    let total = to.total.checked_sub(from.total).filter(|ticks| *ticks >= 5)?;
    let busy = to.busy.saturating_sub(from.busy);
    let own = after.own?.saturating_sub(before.own?);
    Some(busy.saturating_sub(own) as f64 / total as f64)
}

/// Plays back regimes, one a run; the last one repeats.
#[derive(Clone, Debug, Default)]
pub struct Mock {
    /// What the runs go through.
    pub regimes: Vec<Regime>,
    next: usize,
}

impl Mock {
    /// A machine that goes through these regimes; an idle one if there are none.
    pub fn new(regimes: Vec<Regime>) -> Mock {
        Mock { regimes, next: 0 }
    }
}

impl Telemetry for Mock {
    fn start(&mut self) -> Snapshot {
        Snapshot::default()
    }

    fn finish(&mut self, _before: &Snapshot) -> Regime {
        let regime = self.regimes.get(self.next).or(self.regimes.last()).cloned().unwrap_or_default();
        self.next += 1;
        regime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(busy: u64, total: u64, own: u64) -> Snapshot {
        Snapshot { loadavg_1m: None, cpu: Some(CpuTicks { busy, total }), own: Some(own) }
    }

    #[test]
    fn what_others_took_is_what_we_did_not() {
        let before = snapshot(1000, 5000, 100);
        assert_eq!(foreign_fraction(&before, &snapshot(1180, 5200, 270)), Some(0.05));
        assert_eq!(
            foreign_fraction(&before, &snapshot(1100, 5200, 201)),
            Some(0.0),
            "rounding is not negative"
        );
        assert_eq!(foreign_fraction(&before, &snapshot(1002, 5004, 100)), None, "too short to say");
        assert_eq!(foreign_fraction(&Snapshot::default(), &before), None);
    }

    #[test]
    fn a_mock_plays_back_and_then_repeats() {
        let busy = Regime { foreign_cpu_frac: Some(0.5), ..Regime::default() };
        let mut mock = Mock::new(vec![busy.clone(), Regime::default()]);
        let seen: Vec<_> = (0..3).map(|_| mock.finish(&Snapshot::default())).collect();
        assert_eq!(seen, [busy, Regime::default(), Regime::default()]);
    }
}
