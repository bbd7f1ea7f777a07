//! Reads `/proc` and `/sys`; what is not there is left out.

use super::{CpuTicks, Snapshot, Telemetry, foreign_fraction};
use crate::record::Regime;
use std::fs::read_to_string;

/// The machine this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

impl Telemetry for Linux {
    fn start(&mut self) -> Snapshot {
        Snapshot {
            loadavg_1m: read_to_string("/proc/loadavg").ok().and_then(|text| loadavg(&text)),
            cpu: read_to_string("/proc/stat").ok().and_then(|text| cpu_ticks(&text)),
            own: read_to_string("/proc/self/stat").ok().and_then(|text| own_ticks(&text)),
        }
    }

    fn finish(&mut self, before: &Snapshot) -> Regime {
        let after = self.start();
        Regime {
            loadavg_1m_before: before.loadavg_1m,
            loadavg_1m_after: after.loadavg_1m,
            foreign_cpu_frac: foreign_fraction(before, &after),
            freq_mhz: read_to_string("/proc/cpuinfo").ok().and_then(|text| mean_mhz(&text)),
            extra: serde_json::Map::new(),
        }
    }
}

/// Memory that new work may use, in bytes.
pub(crate) fn available_memory() -> Option<u64> {
    available_bytes(&read_to_string("/proc/meminfo").ok()?)
}

fn available_bytes(meminfo: &str) -> Option<u64> {
    let kib = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(kib.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

fn loadavg(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite())
}

/// First line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user.
fn cpu_ticks(text: &str) -> Option<CpuTicks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
    let total: u64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(CpuTicks { busy: total - idle, total })
}

/// `utime`, `stime`, `cutime` and `cstime`: fields 14 to 17; the name before them may hold anything.
fn own_ticks(text: &str) -> Option<u64> {
    let after_name = text.rsplit_once(')')?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    fields.get(11..15)?.iter().map(|n| n.parse::<u64>().ok()).sum()
}

fn mean_mhz(cpuinfo: &str) -> Option<f64> {
    let value = |line: &str| line.strip_prefix("cpu MHz")?.split_once(':')?.1.trim().parse::<f64>().ok();
    let all: Vec<f64> = cpuinfo.lines().filter_map(value).filter(|mhz| mhz.is_finite()).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_texts_are_read() {
        assert_eq!(loadavg("2.59 1.73 0.86 3/120 4242\n"), Some(2.59));
        assert_eq!(available_bytes("MemFree: 1 kB\nMemAvailable:  2048 kB\n"), Some(2 << 20));
        let stat = "cpu  100 10 20 1000 70 1 2 3 4 5\ncpu0 1 1 1 1\n";
        assert_eq!(cpu_ticks(stat), Some(CpuTicks { busy: 136, total: 1206 }));
        let own = "77 (a) b ) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
        assert_eq!(own_ticks(own), Some(11 + 12 + 13 + 14));
        assert_eq!(mean_mhz("cpu MHz\t\t: 2000.0\nx: 1\ncpu MHz\t\t: 3000.0\n"), Some(2500.0));
        assert_eq!(
            (loadavg(""), cpu_ticks("cpu0 1"), own_ticks("1 (x) S 1"), mean_mhz("")),
            (None, None, None, None)
        );
    }

    #[test]
    fn this_machine_is_readable_and_a_busy_loop_of_ours_is_not_foreign() {
        let mut linux = Linux;
        let before = linux.start();
        if before.cpu.is_none() || before.own.is_none() {
            eprintln!("not run: no readable /proc/stat here");
            return;
        }
        let started = std::time::Instant::now();
        while started.elapsed().as_millis() < 150 {
            std::hint::spin_loop();
        }
        let regime = linux.finish(&before);
        let foreign = regime.foreign_cpu_frac.unwrap();
        assert!((0.0..=1.0).contains(&foreign), "{foreign}");
        assert!(linux.start().own.unwrap() > before.own.unwrap());
    }
}
