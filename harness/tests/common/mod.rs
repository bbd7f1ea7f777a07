//! A folder with a fake memra, a fake llama-bench and a model, and a context to run them in.
#![allow(dead_code, reason = "each test program uses its own part")]

use memra_harness::Stop;
use memra_harness::ab::{Context, Event, Events, Plan};
use memra_harness::record::{Body, Log, Record, Regime, Run, read_dir};
use memra_harness::subject::{Finder, Registry};
use memra_harness::telemetry::Mock;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder.
pub(crate) struct Bed {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) finder: Finder,
    pub(crate) stop: Stop,
}

impl Bed {
    pub(crate) fn new() -> Bed {
        let dir = tempfile::tempdir().unwrap();
        for place in ["memra", "rival/llama-bench"] {
            install(&dir.path().join(place));
        }
        std::fs::write(dir.path().join("model.gguf"), "not a real model").unwrap();
        let env = [("PATH".into(), "/usr/bin:/bin".into())].into();
        let finder = Finder {
            self_exe: dir.path().join("memra"),
            memra_args: Vec::new(),
            env,
            path: vec!["/usr/bin".into(), "/bin".into()],
            explicit: [("llama.cpp".to_owned(), dir.path().join("rival"))].into(),
            install_dirs: Vec::new(),
            manifests: Registry::builtin().unwrap(),
        };
        Bed { dir, finder, stop: Stop::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes one of the files that steer the fake engine (`rival/mode`, `noise`, …).
    pub(crate) fn steer(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn plan(&self, a: &str, b: &str) -> Plan {
        let resolve = |spec| self.finder.resolve(spec, &self.stop).unwrap();
        let mut plan = Plan::new(resolve(a), resolve(b), self.path("model.gguf"), 2);
        plan.run_limit = std::time::Duration::from_secs(20);
        plan.min_timed = std::time::Duration::from_micros(10);
        plan
    }

    pub(crate) fn log(&self) -> Log {
        Log::create(&self.path("data")).unwrap()
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        read_dir(&self.path("data")).unwrap().records
    }

    pub(crate) fn runs(&self) -> Vec<Run> {
        self.records()
            .into_iter()
            .filter_map(|r| if let Body::Run(run) = r.body { Some(run) } else { None })
            .collect()
    }
}

/// Copies the scripts by another process: were it this one, a fork of another test could hold them open for writing while
/// they are executed ("text file busy").
fn install(to: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common");
    let folder = to.parent().unwrap();
    std::fs::create_dir_all(folder).unwrap();
    let copy = "cp \"$1/fake_engine.sh\" \"$2\" && chmod 755 \"$2\" && cp \"$1/commands.sh\" \"$3\"";
    let status =
        Command::new("/bin/sh").args(["-c", copy, "sh"]).arg(here).arg(to).arg(folder).status().unwrap();
    assert!(status.success());
}

/// Keeps what it is told; may ask for a stop after some runs.
#[derive(Default)]
pub(crate) struct Tape<'a> {
    pub(crate) lines: Vec<String>,
    pub(crate) ran: u32,
    pub(crate) stop_after: Option<(u32, &'a Stop)>,
}

impl Events for Tape<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.lines.push(match event {
            Event::Planned { cells, launches, log, .. } => {
                assert!(log.exists());
                format!("planned {cells:?} {launches:?}")
            }
            Event::Launching { cell, subject, phase, pair } => {
                format!("launching {cell} {subject} {phase:?} {pair}")
            }
            Event::Ran(run) => {
                self.ran += 1;
                if let Some((after, stop)) = self.stop_after
                    && self.ran == after
                {
                    stop.request();
                }
                format!("ran {:?}", run.status)
            }
            Event::Estimate { .. } => "estimate".to_owned(),
            Event::Floor { cell, margin, floor, mde, .. } => {
                format!("floor {cell} {margin:.4} {floor:.4} {mde:?}")
            }
            Event::Verdict(verdict) => format!("verdict {} {}", verdict.cell_id, verdict.verdict.words()),
            other => format!("{other:?}"),
        });
    }
}

/// Calls `work` with a context around a mock machine that goes through `regimes`.
pub(crate) fn with_context<R>(
    stop: &Stop,
    regimes: Vec<Regime>,
    tape: &mut Tape<'_>,
    work: impl FnOnce(&mut Context<'_>) -> R,
) -> R {
    let mut telemetry = Mock::new(regimes);
    work(&mut Context { telemetry: &mut telemetry, events: tape, stop })
}
