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
