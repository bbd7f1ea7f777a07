//! Finding a model by path or by name.

use crate::context::Context;
use crate::download::hub::split_part;
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
    let known: Vec<Known> = folders.iter().flat_map(|folder| models_in(folder)).collect();
    let is_it = |known: &&Known| {
        let name = known.name();
        name == wanted || name == format!("{wanted}.gguf") || known.place == wanted
    };
    if let Some(known) = known.iter().find(is_it) {
        return Ok(known.path.clone());
    }
    let looks_like_a_path = model.contains(std::path::MAIN_SEPARATOR);
    let mut near: Vec<&Known> =
        known.iter().filter(|known| !looks_like_a_path && known.name().starts_with(&wanted)).collect();
    // The same file name in two folders is one model.
    near.dedup_by_key(|known| known.name().to_owned());
    match near[..] {
        [one] => Ok(one.path.clone()),
        [] => Err(Failure::usage(format!(
            "{model}: no such file, and no such model in {}; fetch one with `memra pull smollm2`",
            list(folders)
        ))),
        _ => {
            let paths: Vec<&PathBuf> = near.into_iter().map(|known| &known.path).collect();
            Err(Failure::usage(format!("{model}: more than one model begins so: {}", list(&paths))))
        }
    }
}

/// Folders below a models folder that are looked into: `OWNER/REPO/QUANT`.
const MAX_DEPTH: usize = 3;

/// A model on disk.
#[derive(Debug)]
struct Known {
    /// A GGUF file, the first part of a split one, or a folder of safetensors.
    path: PathBuf,
    /// Where it lies in its models folder, in lower case.
    place: String,
}

impl Known {
    /// The name of the file or folder, in lower case.
    fn name(&self) -> &str {
        self.place.rsplit('/').next().unwrap_or_default()
    }
}

/// The models of a folder and of the folders below it, sorted by name; none where there is no such folder.
fn models_in(folder: &Path) -> Vec<Known> {
    let mut models = Vec::new();
    look_into(folder, "", MAX_DEPTH, &mut models);
    models.sort_by(|a, b| a.name().cmp(b.name()).then_with(|| a.path.cmp(&b.path)));
    models
}

fn look_into(folder: &Path, place: &str, depth: usize, models: &mut Vec<Known>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        if name.starts_with('.') {
            continue;
        }
        let place = format!("{place}{name}");
        if !path.is_dir() {
            // The first part of a split model stands for all.
            if name.ends_with(".gguf") && split_part(&name).is_none_or(|(_, no, _)| no == 1) {
                models.push(Known { path, place });
            }
            continue;
        }
        if depth > 0 {
            look_into(&path, &format!("{place}/"), depth - 1, models);
        }
        if path.join("config.json").is_file() {
            models.push(Known { path, place });
        }
    }
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

    #[test]
    fn models_of_a_hub_are_found_in_their_folders() {
        let cache = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = cache.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let first = put("Own/Big-GGUF/Q8_0/Big-Q8_0-00001-of-00002.gguf");
        put("Own/Big-GGUF/Q8_0/Big-Q8_0-00002-of-00002.gguf");
        put("Own/Dense/config.json");
        put(".pull-x/content/hidden.gguf");
        put("Own/Big-GGUF/Q8_0/Big-Q4_0.gguf.partial");
        let find = |name: &str| pick(name, &[cache.path().to_owned()]);
        assert_eq!(find("big-q8").unwrap(), first);
        assert_eq!(find("Dense").unwrap(), cache.path().join("Own/Dense"));
        assert_eq!(find("own/dense").unwrap(), cache.path().join("Own/Dense"));
        for absent in ["hidden", "Big-Q4", "own", "Big-Q8_0-00002"] {
            assert!(find(absent).is_err(), "{absent}");
        }
    }
}
