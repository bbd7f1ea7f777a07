//! Records: the one schema in which everything measured is kept, one JSON object a line.
//!
//! Keys carry their unit (`_ns`, `_tps`, `_bytes`, `_gbps`, `_mhz`); times and sizes are integers; `null` means not
//! measured. NaN and infinities are refused at write. A failure is a record with a status and a reason, never a zero or
//! a gap. Keys this build does not know are kept in `extra` and written back unchanged.

mod log;
mod measured;
mod session;
mod verdict;

pub use log::{Log, LogError, MAX_FILE_BYTES, Reading, read, read_dir};
pub use measured::{
    CacheState, Exit, Model, Phase, Regime, Run, RunStatus, TestShape, Trial, TrialStatus, Verify,
    VerifyStatus,
};
pub use session::{Competitor, Design, Host, Look, Session, Tool};
pub use verdict::{Aa, Arm, ArmId, Incident, Judgement, Label, Note, Supersede, Verdict};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Name and version of the schema, the value of every record's `schema` key.
pub const SCHEMA: &str = "memra/1";

/// Highest rate, in tokens per second, that a run may count with.
pub const MAX_TPS: f64 = 1e9;
/// Highest ratio of two rates that a verdict may hold; its inverse is the lowest.
pub const MAX_RATIO: f64 = 1e15;

/// Keys this build does not know, kept as they were read.
pub type Extra = Map<String, Value>;

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// ULID of this record.
    pub id: String,
    /// ULID of the session it was measured in.
    pub session_id: String,
    /// When it was written: RFC 3339, UTC, milliseconds.
    pub at: String,
    /// What was measured; its variant is the `kind` key.
    #[serde(flatten)]
    pub body: Body,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Body {
    /// Where, with what and how a series of records was measured.
    Session(Session),
    /// One process launch of an engine.
    Run(Run),
    /// One configuration of a kernel in a sweep.
    Trial(Trial),
    /// The comparison of two arms in one cell.
    Verdict(Verdict),
    /// A noise floor, measured by comparing an arm with itself.
    Aa(Aa),
    /// Something that went wrong around the measurements.
    Incident(Incident),
    /// A remark by a person or a tool.
    Note(Note),
    /// Says that earlier records no longer count; lines themselves are never edited.
    Supersede(Supersede),
}

impl Record {
    /// Checks what the types alone do not say.
    ///
    /// # Errors
    /// What is inconsistent, naming the keys.
    pub fn validate(&self) -> Result<(), String> {
        let is_id = |id: &str| (1..=26).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric());
        if self.schema != SCHEMA {
            return Err(format!("schema {} is not read by this build (it reads {SCHEMA})", self.schema));
        }
        if !is_id(&self.id) || !is_id(&self.session_id) {
            return Err(format!("id `{}` or session_id `{}` is not a ULID", self.id, self.session_id));
        }
        if self.at.len() != "2026-11-30T10:02:00.000Z".len() || self.at.parse::<jiff::Timestamp>().is_err() {
            return Err(format!("at `{}` is not a time in UTC with milliseconds", self.at));
        }
        if let Body::Supersede(Supersede { old_ids, new_id, .. }) = &self.body
            && old_ids.iter().any(|old| *old == self.id || Some(old) == new_id.as_ref())
        {
            return Err("it supersedes itself, or what takes its place".to_owned());
        }
        self.body.validate()
    }
}

/// Refuses a value outside `lowest..=highest`.
fn within(key: &str, value: impl Into<Option<f64>>, lowest: f64, highest: f64) -> Result<(), String> {
    match value.into() {
        Some(value) if !(lowest..=highest).contains(&value) => {
            Err(format!("{key} is {value:?}; it may be {lowest:?} to {highest:?}"))
        }
        _ => Ok(()),
    }
}

impl Body {
    /// The value of the `kind` key.
    pub fn kind(&self) -> &'static str {
        match self {
            Body::Session(_) => "session",
            Body::Run(_) => "run",
            Body::Trial(_) => "trial",
            Body::Verdict(_) => "verdict",
            Body::Aa(_) => "aa",
            Body::Incident(_) => "incident",
            Body::Note(_) => "note",
            Body::Supersede(_) => "supersede",
        }
    }

    /// Checks what the types alone do not say.
    ///
    /// # Errors
    /// What is inconsistent, naming the keys.
    pub fn validate(&self) -> Result<(), String> {
        match self {
            Body::Run(run) => run.validate(),
            Body::Trial(trial) => trial.validate(),
            Body::Verdict(verdict) => verdict.validate(),
            Body::Aa(aa) => aa.validate(),
            _ => Ok(()),
        }
    }
}

macro_rules! into_body {
    ($($name:ident),+) => {$(
        impl From<$name> for Body {
            fn from(value: $name) -> Body {
                Body::$name(value)
            }
        }
    )+};
}
into_body!(Session, Run, Trial, Verdict, Aa, Incident, Note, Supersede);
