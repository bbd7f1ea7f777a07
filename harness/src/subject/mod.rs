//! Subjects: what can be put into an arm of a comparison.
//!
//! `self` is this binary; a path is another memra binary; `config:KEY=VALUE` and `config:FILE` are this binary with an
//! overlay; anything else is the name of a manifest.

mod manifest;
mod output;

pub use manifest::{Ask, Bench, Best, Check, Manifest, OutputKind, Overlay, Registry, Sanity};
pub use output::{BenchResult, SanityContext, read_output, sanity};

use crate::child::{Captured, ChildError, Launch};
use crate::exit::Code;
use crate::{Stop, file_hash, one_line};
use manifest::expand;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Characters of a version line that are kept.
const LONGEST_VERSION: usize = 200;

/// Name of memra's own manifest.
pub const MEMRA: &str = "memra";

/// A subject that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// A manifest is malformed.
    #[error("{origin}: {problem}")]
    Manifest {
        /// File, or name of the built-in one.
        origin: String,
        /// What is wrong.
        problem: String,
    },
    /// A file could not be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The subject is not one of the known forms.
    #[error("subject `{spec}`: {problem}")]
    Spec {
        /// As given.
        spec: String,
        /// What is wrong, and what would do.
        problem: String,
    },
    /// The engine is not installed.
    #[error("{name} is not found ({looked}); to get it: {install}", looked = looked.join(", "))]
    NotFound {
        /// The manifest's name.
        name: String,
        /// Where it was looked for.
        looked: Vec<String>,
        /// What to do.
        install: String,
    },
    /// It cannot be measured as asked: its configuration, the model, or the tests are at fault.
    #[error("subject `{spec}`: {told}")]
    Refused {
        /// As given.
        spec: String,
        /// What it said.
        told: String,
        /// The exit code that it gave.
        code: Code,
    },
    /// The user asked for a stop.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// It was found, but does not tell its version.
    #[error("{program} does not tell its version: {problem}")]
    Version {
        /// The program.
        program: PathBuf,
        /// What happened.
        problem: String,
    },
}

impl SubjectError {
    /// The exit code it means.
    pub fn code(&self) -> Code {
        match self {
            SubjectError::Manifest { .. } | SubjectError::Io { .. } | SubjectError::Spec { .. } => {
                Code::Usage
            }
            SubjectError::Refused { code, .. } => *code,
            SubjectError::Interrupted => Code::Interrupted,
            SubjectError::NotFound { .. } | SubjectError::Version { .. } => Code::CompetitorFailed,
        }
    }
}

/// What finds and prepares subjects on this machine; everything it knows is given to it.
#[derive(Clone, Debug)]
pub struct Finder {
    /// This binary.
    pub self_exe: PathBuf,
    /// Arguments that every memra subject gets, so that it runs under the caller's configuration.
    pub memra_args: Vec<OsString>,
    /// The environment from which children get what their manifest allows.
    pub env: BTreeMap<OsString, OsString>,
    /// Folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// Paths given for engines, by manifest name.
    pub explicit: BTreeMap<String, PathBuf>,
    /// Folders that engines are installed into.
    pub install_dirs: Vec<PathBuf>,
    /// Known engines.
    pub manifests: Registry,
}

/// A configuration overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverlayValue {
    /// `--set KEY=VALUE`.
    Set {
        /// Dotted key.
        key: String,
        /// Value as text.
        value: String,
    },
    /// `--config FILE`.
    File(PathBuf),
}

/// A subject, found and identified.
#[derive(Clone, Debug)]
pub struct Subject {
    /// As given on the command line, but without folders, which say nothing elsewhere: a binary is its file name and the
    /// head of its hash, `memra@1a2b3c4d`.
    pub spec: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its program.
    pub binary: PathBuf,
    /// SHA-256 of the program.
    pub binary_hash: String,
    /// When it was written, and its length.
    stamp: (SystemTime, u64),
    /// First line that its version command printed, as far as it is fit to be shown.
    pub version: String,
    /// Arguments that carry the caller's configuration; they precede the overlay.
    pub base_args: Vec<OsString>,
    /// Overlay, if any.
    pub overlay: Option<OverlayValue>,
    /// Environment of its processes.
    pub env: BTreeMap<OsString, OsString>,
}

impl Finder {
    /// Finds and identifies a subject.
    ///
    /// # Errors
    /// An unknown form or name, an engine that is not installed, or one that does not start.
    pub fn resolve(&self, spec: &str, stop: &Stop) -> Result<Subject, SubjectError> {
        let problem = |problem: String| SubjectError::Spec { spec: spec.to_owned(), problem };
        let memra = || self.manifests.get(MEMRA).ok_or_else(|| problem("no manifest named memra".into()));
        let (manifest, binary, overlay) = if spec == "self" {
            (memra()?, self.self_exe.clone(), None)
        } else if let Some(rest) = spec.strip_prefix("config:") {
            (memra()?, self.self_exe.clone(), Some(parse_overlay(rest).map_err(problem)?))
        } else if let Some(manifest) = self.manifests.get(spec) {
            (manifest, self.locate(manifest)?, None)
        } else if Path::new(spec).is_file() {
            (memra()?, PathBuf::from(spec), None)
        } else {
            let names: Vec<&str> = self.manifests.iter().map(|m| m.name.as_str()).collect();
            let known = names.join(", ");
            return Err(problem(format!(
                "no such file or engine; use self, a path to a memra binary, config:KEY=VALUE, config:FILE, or one of: {known}"
            )));
        };
        let is_path = overlay.is_none() && binary == Path::new(spec);
        let mut subject = self.identify(manifest, binary, overlay)?;
        subject.spec = match &subject.overlay {
            Some(OverlayValue::File(path)) => format!("config:{}", file_name(path.as_os_str())),
            None if is_path => format!("{}@{}", file_name(spec.as_ref()), &subject.binary_hash[..8]),
            _ => spec.to_owned(),
        };
        subject.version = match subject.ask_version(stop) {
            // Whatever file it is, its path was meant to be that of a memra.
            Err(SubjectError::Version { problem: told, .. }) if is_path => {
                return Err(problem(format!("not a memra binary: it does not tell its version: {told}")));
            }
            Ok(version) if is_path && !version.starts_with(MEMRA) => {
                return Err(problem(format!("not a memra binary: its version is `{version}`")));
            }
            told => told?,
        };
        Ok(subject)
    }

    /// Where an engine's program is.
    ///
    /// # Errors
    /// [`SubjectError::NotFound`], with the places looked at.
    pub fn locate(&self, manifest: &Manifest) -> Result<PathBuf, SubjectError> {
        let Manifest { name, binary, install, .. } = manifest;
        let mut looked = Vec::new();
        if let Some(path) = self.explicit.get(name) {
            looked.push(format!("configured path {}", path.display()));
            let inside = path.join(binary);
            if let Some(found) = [path.clone(), inside].into_iter().find(|p| is_program(p)) {
                return Ok(found);
            }
        } else {
            for dir in &self.install_dirs {
                looked.push(format!("install folder {}", dir.display()));
                let places =
                    [dir.join(name).join(binary), dir.join(name).join("bin").join(binary), dir.join(binary)];
                if let Some(found) = places.into_iter().find(|p| is_program(p)) {
                    return Ok(found);
                }
            }
            looked.push(format!("{binary} in PATH"));
            if let Some(found) = find_program(&self.path, binary) {
                return Ok(found);
            }
        }
        Err(SubjectError::NotFound { name: name.clone(), looked, install: install.clone() })
    }

    fn identify(
        &self,
        manifest: &Manifest,
        binary: PathBuf,
        overlay: Option<OverlayValue>,
    ) -> Result<Subject, SubjectError> {
        let read = || {
            let binary = binary.canonicalize()?;
            Ok((file_hash(&binary)?, stamp(&binary)?, binary))
        };
        let (binary_hash, stamp, binary) =
            read().map_err(|source| SubjectError::Io { path: binary.clone(), source })?;
        let allowed =
            |(name, _): &(&OsString, &OsString)| manifest.bench.env.iter().any(|e| e.as_str() == *name);
        let env = self.env.iter().filter(allowed).map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok(Subject {
            spec: String::new(),
            manifest: manifest.clone(),
            binary,
            binary_hash,
            stamp,
            version: String::new(),
            base_args: if manifest.name == MEMRA { self.memra_args.clone() } else { Vec::new() },
            overlay,
            env,
        })
    }
}

/// Last part of a path, as text.
fn file_name(path: &OsStr) -> String {
    Path::new(path).file_name().unwrap_or(path).to_string_lossy().into_owned()
}

/// What changes when a file is written anew.
fn stamp(path: &Path) -> io::Result<(SystemTime, u64)> {
    let metadata = path.metadata()?;
    Ok((metadata.modified()?, metadata.len()))
}

/// Program and arguments of a launch as records keep them: of paths that start at the root only the last part, since
/// folders say nothing elsewhere and may name people.
pub fn portable_argv(launch: &Launch) -> Vec<String> {
    let shorten = |text: &str| if text.starts_with('/') { file_name(text.as_ref()) } else { text.to_owned() };
    let argument = |text: String| match text.split_once('=') {
        Some((key, value)) => format!("{key}={}", shorten(value)),
        None => shorten(&text),
    };
    launch.argv().into_iter().map(argument).collect()
}

/// The first program of this name in a list of folders.
pub(crate) fn find_program(dirs: &[PathBuf], name: &str) -> Option<PathBuf> {
    dirs.iter().map(|dir| dir.join(name)).find(|p| is_program(p))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Short forms for overlays: what a person writes, the key it sets.
const SHORT: [(&str, &str); 3] =
    [("slow", "fault.slow"), ("wrong", "fault.wrong"), ("dispatch", "engine.dispatch")];

fn parse_overlay(text: &str) -> Result<OverlayValue, String> {
    let Some((key, value)) = text.split_once('=') else {
        let path = PathBuf::from(text);
        let usable = path.is_file();
        return if usable {
            Ok(OverlayValue::File(path))
        } else {
            Err(format!("no file `{text}`, and no KEY=VALUE"))
        };
    };
    if key.is_empty() || value.is_empty() {
        return Err("KEY=VALUE needs both".into());
    }
    let long = SHORT.iter().find(|(short, _)| *short == key).map_or(key, |(_, long)| long);
    Ok(OverlayValue::Set { key: long.to_owned(), value: value.to_owned() })
}

impl Subject {
    /// Whether it is someone else's engine.
    pub fn is_rival(&self) -> bool {
        self.manifest.rival
    }

    /// Whether two subjects are the same program with the same overlay: their comparison is an A/A.
    pub fn is_identical_to(&self, other: &Subject) -> bool {
        self.binary_hash == other.binary_hash
            && self.overlay == other.overlay
            && self.manifest.bench == other.manifest.bench
    }

    /// Whether the program is still the one that was identified, as far as its time and length tell.
    pub fn is_unchanged(&self) -> bool {
        stamp(&self.binary).is_ok_and(|now| now == self.stamp)
    }

    /// One benchmark launch.
    pub fn bench(&self, ask: &Ask, time_limit: Duration) -> Launch {
        let bench = &self.manifest.bench;
        let templates = bench.args.iter().chain(&bench.best(ask.test).args);
        let args = templates.map(|template| ask.expand(template)).collect();
        self.launch(args, time_limit)
    }

    /// Asks it, where it can be asked, whether it can be measured on this model with `context` tokens.
    ///
    /// # Errors
    /// [`SubjectError::Refused`] when it says that something was asked wrongly or is damaged. Any other failure is left
    /// for the measurement to meet.
    pub fn preflight(&self, model: &Path, context: u64, stop: &Stop) -> Result<(), SubjectError> {
        if self.manifest.preflight.is_empty() {
            return Ok(());
        }
        let value = |name: &str| match name {
            "model" => Some(model.as_os_str().to_owned()),
            "context" => Some(context.to_string().into()),
            _ => None,
        };
        let args = self.manifest.preflight.iter().map(|template| expand(template, value)).collect();
        let launch = Launch { pass_interrupt: true, ..self.launch(args, Duration::from_secs(60)) };
        let done = launch.run(stop);
        if stop.requested() {
            return Err(SubjectError::Interrupted);
        }
        let code = done.as_ref().ok().and_then(|done| done.exit.code).and_then(Code::from_number);
        match (done, code) {
            (Ok(done), Some(code @ (Code::Usage | Code::Corrupt))) => {
                let told = done.stderr.tail(3);
                let told = told.strip_prefix("memra: ").unwrap_or(&told).to_owned();
                Err(SubjectError::Refused { spec: self.spec.clone(), told, code })
            }
            _ => Ok(()),
        }
    }

    /// A launch of its correctness check, if it has one.
    pub fn check(&self, model: Option<&Path>, time_limit: Duration) -> Option<Launch> {
        let check = self.manifest.check.as_ref()?;
        let mut args: Vec<OsString> = check.args.iter().map(OsString::from).collect();
        if let Some(model) = model {
            let value = |name: &str| (name == "model").then(|| model.as_os_str().to_owned());
            args.extend(check.model.iter().map(|template| expand(template, value)));
        }
        Some(self.launch(args, time_limit))
    }

    fn launch(&self, mut args: Vec<OsString>, time_limit: Duration) -> Launch {
        args.extend(self.base_args.iter().cloned().chain(self.overlay_args()));
        Launch { args, env: self.env.clone(), time_limit, ..Launch::new(&self.binary) }
    }

    fn overlay_args(&self) -> Vec<OsString> {
        let (Some(overlay), Some(how)) = (&self.overlay, &self.manifest.overlay) else { return Vec::new() };
        match overlay {
            OverlayValue::Set { key, value } => {
                let fill = |name: &str| match name {
                    "key" => Some(key.into()),
                    "value" => Some(value.into()),
                    _ => None,
                };
                how.set.iter().map(|template| expand(template, fill)).collect()
            }
            OverlayValue::File(file) => {
                let fill = |name: &str| (name == "file").then(|| file.clone().into_os_string());
                how.file.iter().map(|template| expand(template, fill)).collect()
            }
        }
    }

    /// The overlay as a flag of a record: `("overlay.fault.slow", "3%")`.
    pub fn overlay_flag(&self) -> Option<(String, String)> {
        Some(match self.overlay.as_ref()? {
            OverlayValue::Set { key, value } => (format!("overlay.{key}"), value.clone()),
            OverlayValue::File(file) => ("overlay.file".to_owned(), file_name(file.as_os_str())),
        })
    }

    fn ask_version(&self, stop: &Stop) -> Result<String, SubjectError> {
        let fail = |problem: String| SubjectError::Version { program: self.binary.clone(), problem };
        let args = self.manifest.version.iter().map(OsString::from).collect();
        let launch = Launch {
            args,
            env: self.env.clone(),
            time_limit: Duration::from_secs(20),
            output_cap: 64 << 10,
            pass_interrupt: true,
            ..Launch::new(&self.binary)
        };
        let done = launch.run(stop);
        if stop.requested() {
            return Err(SubjectError::Interrupted);
        }
        let done = done.map_err(|e: ChildError| fail(e.source.to_string()))?;
        if done.exit.code != Some(0) {
            return Err(fail(format!("{}{}", describe(&done.exit), told(&done.stderr, 2))));
        }
        let texts = [done.stdout.text(), done.stderr.text()];
        let mut lines =
            texts.iter().flat_map(|t| t.lines()).map(|line| one_line(line.trim(), LONGEST_VERSION));
        lines.find(|line| !line.is_empty()).ok_or_else(|| fail("it printed nothing".into()))
    }
}

/// What a failed process said last, to follow how it ended; nothing where it said nothing.
pub(crate) fn told(stderr: &Captured, lines: usize) -> String {
    let tail = stderr.tail(lines);
    if tail.is_empty() { tail } else { format!("; it said: {tail}") }
}

/// How a process ended, in words.
pub fn describe(exit: &crate::record::Exit) -> String {
    match (exit.timeout, exit.code, exit.signal) {
        (true, ..) => "stopped at its time limit".to_owned(),
        (_, Some(code), _) => format!("exit code {code}"),
        (_, _, Some(signal)) => format!("ended by signal {signal}"),
        _ => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests;
