//! Is this machine fit to measure, and why not?

use crate::record::Host;
use crate::telemetry::{Linux, Telemetry, available_memory, foreign_fraction};
use crate::{exit::Code, provenance};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// One thing looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub name: &'static str,
    /// How it is.
    pub state: State,
    /// In words, with the way out where it is not good.
    pub text: String,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Good,
    /// Measurements will be noisier.
    Warn,
    /// Measurements would not count.
    Unfit,
}

/// Share of others' CPU time from which runs are redone.
const FOREIGN_LIMIT: f64 = 0.1;
const GIB: u64 = 1 << 30;

/// Looks at the machine for about a second.
pub fn examine(data_dir: &Path) -> Vec<Finding> {
    let mut meter = Linux;
    let before = meter.start();
    std::thread::sleep(Duration::from_secs(1));
    let after = meter.start();
    let host = provenance::host();
    vec![
        load(after.loadavg_1m, host.n_cores),
        foreign(foreign_fraction(&before, &after)),
        governor(&host),
        disk(free_bytes(data_dir), is_writable(data_dir), data_dir),
        memory(available_memory()),
    ]
}

/// `Pass`, or `Unfit` when a finding is.
pub fn code(findings: &[Finding]) -> Code {
    if findings.iter().any(|finding| finding.state == State::Unfit) { Code::Unfit } else { Code::Pass }
}

fn finding(name: &'static str, state: State, text: String) -> Finding {
    Finding { name, state, text }
}

fn load(load: Option<f64>, cores: u32) -> Finding {
    let Some(load) = load else {
        return finding("load", State::Warn, "the load average is not readable".into());
    };
    let state = if load > 0.5 * f64::from(cores) { State::Warn } else { State::Good };
    let advice = if state == State::Good { "" } else { "; wait until other work is done" };
    finding("load", state, format!("load average {load:.2} on {cores} cores{advice}"))
}

fn foreign(share: Option<f64>) -> Finding {
    let Some(share) = share else {
        return finding(
            "cpu",
            State::Warn,
            "CPU time of others is not readable: busy neighbours go unnoticed".into(),
        );
    };
    let state = if share > FOREIGN_LIMIT { State::Unfit } else { State::Good };
    let advice = if state == State::Good { "" } else { "; runs would not count: stop what else is running" };
    finding("cpu", state, format!("others take {:.0} % of the CPU time{advice}", 100.0 * share))
}

fn governor(host: &Host) -> Finding {
    match host.governor.as_deref() {
        Some("performance") => finding("governor", State::Good, "performance".into()),
        Some(name) => {
            let text = format!("{name}; `cpupower frequency-set -g performance` makes runs steadier");
            finding("governor", State::Warn, text)
        }
        None => {
            finding("governor", State::Good, "not controllable here (virtual machine or no cpufreq)".into())
        }
    }
}

fn disk(free: Option<u64>, writable: bool, dir: &Path) -> Finding {
    let dir = dir.display();
    match free {
        Some(_) if !writable => finding(
            "disk",
            State::Unfit,
            format!("{dir} cannot be written to; --data DIR names another folder"),
        ),
        Some(bytes) if bytes < GIB => finding(
            "disk",
            State::Unfit,
            format!("{} MiB free for {dir}; logs need 1 GiB: make room", bytes >> 20),
        ),
        Some(bytes) => finding("disk", State::Good, format!("{} GiB free for {dir}", bytes / GIB)),
        None => finding("disk", State::Warn, format!("free space of {dir} is not readable")),
    }
}

fn memory(available: Option<u64>) -> Finding {
    match available {
        Some(bytes) if bytes < GIB => finding(
            "memory",
            State::Warn,
            format!("{} MiB available; models may not stay in memory", bytes >> 20),
        ),
        Some(bytes) => finding("memory", State::Good, format!("{} GiB available", bytes / GIB)),
        None => finding("memory", State::Warn, "available memory is not readable".into()),
    }
}

/// The nearest folder above that exists.
fn existing(dir: &Path) -> &Path {
    let there = dir.ancestors().find(|path| path.exists());
    there.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_writable(dir: &Path) -> bool {
    let there = existing(dir);
    let enter_and_write = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    there.is_dir() && rustix::fs::access(there, enter_and_write).is_ok()
}

/// Free space, in bytes, of the file system that holds `dir` or the nearest folder above it that exists; `None` where
/// the system does not say.
pub fn free_bytes(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(existing(dir)).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_says_what_and_how_to_mend_it() {
        assert_eq!(load(Some(0.2), 2).state, State::Good);
        assert_eq!((load(Some(1.9), 2).state, load(None, 2).state), (State::Warn, State::Warn));
        assert_eq!((foreign(Some(0.02)).state, foreign(Some(0.5)).state), (State::Good, State::Unfit));
        assert!(foreign(Some(0.5)).text.contains("50 %"));
        assert_eq!(disk(Some(GIB - 1), true, Path::new("d")).state, State::Unfit);
        assert_eq!(disk(Some(GIB), true, Path::new("d")).state, State::Good);
        assert_eq!(disk(Some(GIB), false, Path::new("d")).state, State::Unfit);
        let slow = Host { governor: Some("powersave".into()), ..Host::default() };
        assert!(governor(&slow).text.contains("cpupower"));
        assert_eq!(code(&[load(Some(9.0), 2)]), Code::Pass);
        assert_eq!(code(&[load(Some(9.0), 2), foreign(Some(0.5))]), Code::Unfit);
    }

    #[test]
    fn a_folder_below_a_file_is_not_writable_and_one_that_can_be_made_is() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(is_writable(dir.path()) && is_writable(&dir.path().join("new/data")));
        assert!(!is_writable(&dir.path().join("file")) && !is_writable(&dir.path().join("file/data")));
    }

    #[test]
    fn this_machine_can_be_examined() {
        let findings = examine(Path::new("/nowhere/at/all"));
        assert_eq!(findings.len(), 5);
        assert!(findings.iter().all(|finding| !finding.text.is_empty()));
    }
}
