//! Which error gets which exit code, and how errors read. The codes are the harness's: they are part of memra's
//! interface, and scripts and schedulers read them.

use memra_engine::Error as EngineError;
use memra_formats::{CheckpointError, GgufError, JsonError, SafetensorsError};
use memra_harness::ab::AbError;
use memra_harness::record::LogError;
use memra_harness::subject::SubjectError;
use memra_harness::sweep::SweepError;
use std::io;

pub(crate) use memra_harness::exit::Code as Exit;

/// An error that knows its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// An error with the exit code `exit`.
    pub(crate) fn error(exit: Exit, message: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Failure { exit, message: message.into() })
    }

    /// A usage error: what was asked for, why not, and what would do.
    pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
        Failure::error(Exit::Usage, message)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The exit code of an error, by the first cause whose type says.
pub(crate) fn classify(error: &anyhow::Error) -> Exit {
    error.chain().find_map(code_of).unwrap_or(Exit::Unfit)
}

fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if let Some(failure) = cause.downcast_ref::<Failure>() {
        return Some(failure.exit);
    }
    if let Some(error) = cause.downcast_ref::<EngineError>() {
        return match error {
            EngineError::File(error) => Some(checkpoint_code(error)),
            EngineError::NotFinite { .. } => Some(Exit::Incorrect),
            EngineError::Tensor { .. } => Some(Exit::Corrupt),
            _ => Some(Exit::Usage),
        };
    }
    cause
        .downcast_ref()
        .map(gguf_code)
        .or_else(|| cause.downcast_ref().map(checkpoint_code))
        .or_else(|| cause.downcast_ref().map(SubjectError::code))
        .or_else(|| cause.downcast_ref().map(AbError::code))
        .or_else(|| cause.downcast_ref().map(SweepError::code))
        .or_else(|| cause.downcast_ref().map(memra_board::Error::code))
        .or_else(|| cause.downcast_ref().map(LogError::code))
        .or_else(|| cause.downcast_ref().map(io_code))
}

fn checkpoint_code(error: &CheckpointError) -> Exit {
    match error {
        CheckpointError::Gguf(error) => gguf_code(error),
        CheckpointError::Safetensors(error) => safetensors_code(error),
    }
}

fn safetensors_code(error: &SafetensorsError) -> Exit {
    match error {
        SafetensorsError::Open { source, .. } => io_code(source),
        SafetensorsError::Json(JsonError::Open { source, .. }) => io_code(source),
        SafetensorsError::NotAFile { .. } | SafetensorsError::NoWeights { .. } => Exit::Usage,
        _ => Exit::Corrupt,
    }
}

fn gguf_code(error: &GgufError) -> Exit {
    match error {
        GgufError::Open { source, .. } => io_code(source),
        GgufError::NotAFile { .. } | GgufError::Version { .. } => Exit::Usage,
        GgufError::Write(_) => Exit::Unfit,
        _ => Exit::Corrupt,
    }
}

/// A file that is not there, is a folder, or is not text was named wrongly; any other refusal of the system is the
/// machine's.
fn io_code(error: &io::Error) -> Exit {
    use io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound};
    match error.kind() {
        NotFound | IsADirectory | NotADirectory | InvalidData => Exit::Usage,
        _ => Exit::Unfit,
    }
}

/// The error and its causes in one line, less what one of them repeats of another.
pub(crate) fn describe(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if parts.iter().any(|part| part.contains(&cause)) {
            continue;
        }
        parts.retain(|part| !cause.contains(part.as_str()));
        parts.push(cause);
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn errors_get_the_code_of_their_cause_and_say_nothing_twice() {
        let missing = GgufError::Open { path: "m.gguf".into(), source: io::ErrorKind::NotFound.into() };
        let missing = anyhow::Error::new(EngineError::from(missing)).context("m.gguf");
        assert_eq!(classify(&missing), Exit::Usage);
        let said = describe(&missing);
        assert_eq!(said.matches("m.gguf").count(), 1, "{said}");
        let damaged = anyhow::Error::new(EngineError::from(GgufError::Magic { found: "PK".into() }));
        assert_eq!(classify(&damaged), Exit::Corrupt);
        assert!(describe(&damaged.context("m.gguf")).starts_with("m.gguf: not a GGUF file"));
        assert_eq!(classify(&Failure::error(Exit::Incorrect, "wrong").context("check")), Exit::Incorrect);
        let full = Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull)).context("x").unwrap_err();
        assert_eq!(classify(&full), Exit::Unfit);
        assert_eq!(classify(&anyhow::anyhow!("?")), Exit::Unfit);
    }
}
