//! The stages of a night, as command lines of memra.

use super::NightlyPlan;
use crate::exit::Code;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the night's model comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// A file that is there.
    File(PathBuf),
    /// A source for `memra pull`; where it cannot be fetched, a tiny model is made.
    Pull(String),
    /// A tiny model is made.
    Synth,
}

/// One stage.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Its name, also of its log.
    pub name: String,
    /// Most time it may take.
    pub limit: Duration,
    /// Whether its exit code counts for the night.
    pub counts: Counts,
    pub(super) makes_model: bool,
    /// Whether another stage makes a model if this one does not.
    pub(super) has_fallback: bool,
    pub(super) needs_model: bool,
    args: Vec<Arg>,
}

/// Which ends of a stage count for the night's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// All.
    Always,
    /// None: what it finds shows in the later stages, or is made up for by them.
    Never,
    /// All but being slower than a rival, or not decided: those are open gaps, which the board shows.
    UnlessBehind,
}

impl Counts {
    pub(super) fn holds_for(self, code: Code) -> bool {
        match self {
            Counts::Always => true,
            Counts::Never => false,
            Counts::UnlessBehind => !matches!(code, Code::Regressed | Code::Inconclusive),
        }
    }
}

#[derive(Clone, Debug)]
enum Arg {
    Text(OsString),
    Model,
}

impl Stage {
    fn new(name: &str, minutes: u64, args: &[&str]) -> Stage {
        Stage {
            name: name.to_owned(),
            limit: Duration::from_secs(60 * minutes),
            counts: Counts::Always,
            makes_model: false,
            has_fallback: false,
            needs_model: false,
            args: args.iter().map(|arg| Arg::Text(arg.into())).collect(),
        }
    }

    /// With the model's path as the next argument.
    fn model(mut self) -> Stage {
        self.needs_model = true;
        self.args.push(Arg::Model);
        self
    }

    fn and(mut self, args: &[&str]) -> Stage {
        self.args.extend(args.iter().map(|arg| Arg::Text(arg.into())));
        self
    }

    fn counting(self, counts: Counts) -> Stage {
        Stage { counts, ..self }
    }

    pub(super) fn args(&self, model: Option<&Path>) -> Vec<OsString> {
        let arg = |arg: &Arg| match arg {
            Arg::Text(text) => Some(text.clone()),
            Arg::Model => model.map(|path| path.as_os_str().to_owned()),
        };
        self.args.iter().filter_map(arg).collect()
    }
}

/// Every stage of a night, in order.
pub(super) fn all(plan: &NightlyPlan) -> Vec<Stage> {
    let quick: &[&str] = if plan.quick { &["--quick"] } else { &[] };
    let (sweep_budget, ab_minutes) = if plan.quick { ("90s", 20) } else { ("60m", 180) };
    let mut stages = vec![Stage::new("doctor", 1, &["doctor"]).counting(Counts::Never)];
    stages.extend(model_stages(plan));
    stages.push(Stage::new("check", 15, &["check", "--json", "--model"]).model());
    stages.push(Stage::new("probe", 5, &["probe", "--json"]));
    stages.push(Stage::new("sweep", 90, &["sweep", "--model"]).model().and(&["--budget", sweep_budget]));
    let untuned = ["ab", "--json", "--a", "config:dispatch=default", "--b", "self", "--model"];
    stages.push(Stage::new("ab-untuned", ab_minutes, &untuned).model().and(quick));
    for rival in &plan.rivals {
        let args = ["ab", "--json", "--a", "self", "--b", rival, "--model"];
        let stage = Stage::new(&format!("ab-{rival}"), ab_minutes, &args).model().and(quick);
        stages.push(stage.counting(Counts::UnlessBehind));
    }
    stages.push(Stage::new("board", 5, &["board"]));
    stages
}

fn model_stages(plan: &NightlyPlan) -> Vec<Stage> {
    let synth = || Stage { makes_model: true, ..Stage::new("synth", 5, &["synth"]) };
    match &plan.model {
        ModelSource::File(_) => Vec::new(),
        ModelSource::Pull(source) => {
            let pull = Stage::new("pull", 20, &["pull", source]);
            vec![Stage { makes_model: true, has_fallback: true, ..pull }, synth()]
        }
        ModelSource::Synth => vec![synth()],
    }
}
