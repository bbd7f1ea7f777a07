//! Manifests: what `competitors/*.toml` says about an engine.

use super::SubjectError;
use crate::one_line;
use crate::record::TestShape;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Characters of a name.
const LONGEST_NAME: usize = 60;

/// One engine: how it is found, launched, read and checked. `competitors/README.md` explains the keys.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name in commands and records.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// Whether it is someone else's engine.
    pub rival: bool,
    /// File name of its program.
    pub binary: String,
    /// Arguments that make it print its version.
    pub version: Vec<String>,
    /// What to do when it is not found.
    pub install: String,
    /// Arguments of a launch that fails where it cannot be measured as asked, with `{model}` and `{context}`.
    #[serde(default)]
    pub preflight: Vec<String>,
    /// How it is measured.
    pub bench: Bench,
    /// How it takes a configuration overlay, if it does.
    pub overlay: Option<Overlay>,
    /// How it checks itself, if it does.
    pub check: Option<Check>,
    /// What its runs must satisfy.
    #[serde(default)]
    pub sanity: Sanity,
}

/// One benchmark launch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bench {
    /// How the output is read.
    pub output: OutputKind,
    /// Arguments, with placeholders.
    pub args: Vec<String>,
    /// Environment variables that it may see.
    pub env: Vec<String>,
    /// Its best configuration where prompt tokens are timed.
    #[serde(default)]
    pub prompt: Best,
    /// Its best configuration where only generation is timed.
    #[serde(default)]
    pub decode: Best,
}

/// An engine's best configuration for one kind of test, and the proof that it took effect.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// Further arguments.
    pub args: Vec<String>,
    /// Output field to the value it must have, placeholders allowed.
    #[serde(default)]
    pub equals: BTreeMap<String, String>,
}

impl Bench {
    /// The best configuration for a test.
    pub fn best(&self, test: TestShape) -> &Best {
        if test.n_prompt > 0 { &self.prompt } else { &self.decode }
    }
}

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputKind {
    /// JSON lines with the field names of llama-bench.
    LlamaBench,
}

/// Arguments that carry a configuration overlay.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// For one value, with `{key}` and `{value}`.
    pub set: Vec<String>,
    /// For a file, with `{file}`.
    pub file: Vec<String>,
}

/// Arguments of a correctness check.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Always given.
    pub args: Vec<String>,
    /// Given when a model is to be checked too, with `{model}`.
    pub model: Vec<String>,
}

/// What runs must satisfy beyond what every run must.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sanity {
    /// Least prefill rate, as a multiple of the decode rate.
    pub min_prefill_over_decode: Option<f64>,
    /// Output field to the value it must have, placeholders allowed.
    #[serde(default)]
    pub equals: BTreeMap<String, String>,
}

/// What one benchmark launch is asked to do.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The model file.
    pub model: PathBuf,
    /// The test.
    pub test: TestShape,
    /// Timed repetitions.
    pub reps: u32,
    /// Threads.
    pub threads: u32,
}

impl Ask {
    const NAMES: [&str; 6] = ["model", "n_prompt", "n_gen", "n_depth", "reps", "threads"];

    fn value(&self, name: &str) -> Option<OsString> {
        let number = match name {
            "model" => return Some(self.model.clone().into_os_string()),
            "n_prompt" => self.test.n_prompt,
            "n_gen" => self.test.n_gen,
            "n_depth" => self.test.n_depth,
            "reps" => self.reps,
            "threads" => self.threads,
            _ => return None,
        };
        Some(number.to_string().into())
    }

    /// Fills the placeholders of a template.
    pub fn expand(&self, template: &str) -> OsString {
        expand(template, |name| self.value(name))
    }
}

/// Replaces each `{name}` that `value` knows.
pub(super) fn expand(template: &str, value: impl Fn(&str) -> Option<OsString>) -> OsString {
    let mut out = OsString::new();
    let mut rest = template;
    while let Some((before, name, after)) = split_placeholder(rest) {
        out.push(before);
        out.push(value(name).unwrap_or_else(|| format!("{{{name}}}").into()));
        rest = after;
    }
    out.push(rest);
    out
}

fn split_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, inner) = text.split_once('{')?;
    let (name, after) = inner.split_once('}')?;
    Some((before, name, after))
}

impl Manifest {
    /// Parses the TOML text of a manifest; `origin` is used in errors.
    ///
    /// # Errors
    /// Malformed TOML, unknown keys or placeholders, or a name that is none.
    pub fn parse(origin: &str, text: &str) -> Result<Manifest, SubjectError> {
        let fail = |problem: String| SubjectError::Manifest { origin: origin.to_owned(), problem };
        let manifest: Manifest = toml::from_str(text).map_err(|e| fail(e.to_string()))?;
        let is_word =
            |text: &str| !text.is_empty() && one_line(text, LONGEST_NAME) == text && !text.contains('/');
        let reserved = manifest.name == "self" || manifest.name.starts_with("config:");
        if !is_word(&manifest.name) || reserved || manifest.name.starts_with(['.', '-']) {
            return Err(fail(
                "`name` must be a short word, not a path, and neither `self` nor `config:…`".into(),
            ));
        }
        if !is_word(&manifest.binary) || manifest.binary.starts_with('.') {
            return Err(fail("`binary` must be a file name, without folders".into()));
        }
        check_placeholders(&manifest.preflight, &["model", "context"]).map_err(fail)?;
        let bench = &manifest.bench;
        let best =
            [&bench.prompt, &bench.decode].into_iter().flat_map(|b| b.args.iter().chain(b.equals.values()));
        let asked = bench.args.iter().chain(best).chain(manifest.sanity.equals.values());
        check_placeholders(asked, &Ask::NAMES).map_err(fail)?;
        if let Some(overlay) = &manifest.overlay {
            check_placeholders(&overlay.set, &["key", "value"]).map_err(fail)?;
            check_placeholders(&overlay.file, &["file"]).map_err(fail)?;
        }
        if let Some(check) = &manifest.check {
            check_placeholders(check.args.iter().chain(&check.model), &["model"]).map_err(fail)?;
        }
        Ok(manifest)
    }
}

fn check_placeholders<'a>(
    templates: impl IntoIterator<Item = &'a String>,
    known: &[&str],
) -> Result<(), String> {
    for template in templates {
        let mut rest = template.as_str();
        while let Some((_, name, after)) = split_placeholder(rest) {
            if !known.contains(&name) {
                return Err(format!("`{template}`: no placeholder {{{name}}} here; known: {known:?}"));
            }
            rest = after;
        }
    }
    Ok(())
}

/// The manifests known to this process.
#[derive(Clone, Debug)]
pub struct Registry {
    manifests: BTreeMap<String, Manifest>,
}

const BUILTIN: [(&str, &str); 2] = [
    ("competitors/memra.toml", include_str!("../../../competitors/memra.toml")),
    ("competitors/llama-cpp.toml", include_str!("../../../competitors/llama-cpp.toml")),
];

impl Registry {
    /// Those built into the binary.
    ///
    /// # Errors
    /// Never, as a test sees to; the signature is that of parsing.
    pub fn builtin() -> Result<Registry, SubjectError> {
        let mut registry = Registry { manifests: BTreeMap::new() };
        for (origin, text) in BUILTIN {
            registry.insert(Manifest::parse(origin, text)?);
        }
        Ok(registry)
    }

    /// Adds one, in place of one of the same name.
    pub fn insert(&mut self, manifest: Manifest) {
        self.manifests.insert(manifest.name.clone(), manifest);
    }

    /// Adds every `*.toml` of a folder.
    ///
    /// # Errors
    /// The folder or a file cannot be read, or a manifest is malformed.
    pub fn add_dir(&mut self, dir: &Path) -> Result<(), SubjectError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| SubjectError::Io { path, source }
        };
        for entry in std::fs::read_dir(dir).map_err(fail(dir))? {
            let path = entry.map_err(fail(dir))?.path();
            if path.extension() == Some(OsStr::new("toml")) {
                let text = std::fs::read_to_string(&path).map_err(fail(&path))?;
                self.insert(Manifest::parse(&path.display().to_string(), &text)?);
            }
        }
        Ok(())
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Manifest> {
        self.manifests.get(name)
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Manifest> {
        self.manifests.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builtin_manifests_parse_and_know_each_other_by_name() {
        let registry = Registry::builtin().unwrap();
        assert!(registry.get("llama.cpp").unwrap().rival);
        let memra = registry.get("memra").unwrap();
        assert!(!memra.rival && memra.overlay.is_some() && memra.check.is_some());
    }

    #[test]
    fn unknown_keys_and_placeholders_are_refused() {
        let good = BUILTIN[1].1;
        assert!(Manifest::parse("good", good).is_ok());
        for (from, to, expect) in [
            ("rival = true", "rival = true\ncolour = 1", "colour"),
            ("{n_prompt}", "{prompt}", "no placeholder {prompt}"),
            ("n_threads = \"{threads}\"", "n_threads = \"{cores}\"", "no placeholder {cores}"),
            ("\"llama-bench\"\nversion", "\"../llama-bench\"\nversion", "`binary` must be a file name"),
            ("\"llama-bench\"\nversion", "\"..\"\nversion", "`binary` must be a file name"),
            ("\"llama.cpp\"", "\"llama/cpp\"", "`name` must be"),
            ("\"llama.cpp\"", "\"llama\\u001b[31m\"", "`name` must be"),
            ("\"llama.cpp\"", "\"self\"", "`name` must be"),
            ("\"llama.cpp\"", "\"config:slow=3%\"", "`name` must be"),
            ("\"llama.cpp\"", "\"..\"", "`name` must be"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good, "{from}");
            let error = Manifest::parse("x.toml", &bad).expect_err(to).to_string();
            assert!(error.contains(expect) && error.contains("x.toml"), "{error}");
        }
    }

    #[test]
    fn placeholders_expand_anywhere_and_paths_keep_their_bytes() {
        use std::os::unix::ffi::{OsStrExt, OsStringExt};
        let ask = Ask {
            model: PathBuf::from(OsString::from_vec(b"/m/\xff.gguf".to_vec())),
            test: TestShape { n_prompt: 512, n_gen: 0, n_depth: 7 },
            reps: 5,
            threads: 2,
        };
        assert_eq!(ask.expand("--m={model}").as_bytes(), b"--m=/m/\xff.gguf");
        assert_eq!(ask.expand("{n_prompt},{n_gen}@{n_depth}x{reps}/{threads}"), "512,0@7x5/2");
        assert_eq!(ask.expand("{other} {"), "{other} {");
    }
}
