//! A Hugging Face hub: what files a model's repository has, and which of them make up the model that was asked for.

use super::Downloader;
use super::name::percent_encoded;
use crate::exit::{Exit, Failure};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The largest listing that is read.
const MAX_LISTING: u64 = 64 << 20;
/// The mix of types that is taken when a repository has several and none was asked for.
const USUAL_QUANT: &str = "Q4_K_M";
/// Names listed in an error.
const MAX_NAMES: usize = 20;

/// A model's repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repo {
    /// `owner/name`.
    pub(crate) id: String,
    /// Branch, tag or commit.
    pub(crate) revision: Option<String>,
}

/// A file of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RepoFile {
    /// Path in the repository.
    pub(crate) path: String,
    pub(crate) size: Option<u64>,
    /// In lower-case hexadecimal digits; small text files have none.
    pub(crate) sha256: Option<String>,
}

/// The files of a repository at one commit.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    base: String,
    pub(crate) files: Vec<RepoFile>,
}

/// Files that make up a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// One file, or the parts of a split one in order.
    Gguf(Vec<RepoFile>),
    /// A folder: weights, configuration, tokenizer.
    Folder(Vec<RepoFile>),
}

#[derive(Deserialize)]
struct ModelInfo {
    sha: Option<String>,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: Option<String>,
    size: Option<u64>,
}

impl Listing {
    /// Asks the hub at `endpoint`; `None` when asked to stop.
    pub(crate) fn fetch(
        downloader: &Downloader<'_>,
        endpoint: &str,
        repo: &Repo,
    ) -> anyhow::Result<Option<Listing>> {
        let Repo { id, revision } = repo;
        let revision = percent_encoded(revision.as_deref().unwrap_or("main")).replace('/', "%2F");
        let url = format!("{endpoint}/api/models/{id}/revision/{revision}?blobs=true");
        let Some(bytes) = downloader.document(&url, MAX_LISTING)? else { return Ok(None) };
        let info: ModelInfo = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::error(Exit::Unfit, format!("{url}: the answer is no listing of a model: {error}"))
        })?;
        // The commit, so that all files are of one version whatever happens to the branch meanwhile.
        let commit = info.sha.filter(|sha| !sha.is_empty()).unwrap_or(revision);
        let files = info.siblings.into_iter().map(|sibling| {
            let (size, sha256) = match sibling.lfs {
                Some(lfs) => (lfs.size.or(sibling.size), lfs.sha256.map(|sha| sha.to_ascii_lowercase())),
                None => (sibling.size, None),
            };
            RepoFile { path: sibling.rfilename, size, sha256 }
        });
        Ok(Some(Listing { base: format!("{endpoint}/{id}/resolve/{commit}"), files: files.collect() }))
    }

    /// Where a file is fetched from.
    pub(crate) fn url(&self, file: &RepoFile) -> String {
        format!("{}/{}", self.base, percent_encoded(&file.path))
    }

    /// The files that `wanted` means: a file's name, a mix of types, or, with nothing said, what there is.
    ///
    /// # Errors
    /// Nothing, or more than one model, answers to it.
    pub(crate) fn select(&self, wanted: Option<&str>) -> anyhow::Result<Selection> {
        let sets = self.gguf_sets();
        let named =
            |set: &&Vec<&RepoFile>, wanted: &str| set.iter().any(|file| is_called(&file.path, wanted));
        let found: Vec<&Vec<&RepoFile>> = match wanted {
            Some(wanted) => {
                let by_name: Vec<_> = sets.values().filter(|set| named(set, wanted)).collect();
                let by_quant = || sets.values().filter(|set| has_quant(&set[0].path, wanted)).collect();
                if by_name.is_empty() { by_quant() } else { by_name }
            }
            None if sets.len() == 1 => sets.values().collect(),
            None => sets.values().filter(|set| has_quant(&set[0].path, USUAL_QUANT)).collect(),
        };
        match found[..] {
            [set] => whole(set).map(Selection::Gguf),
            [] if sets.is_empty() && wanted.is_none() => self.folder(),
            [] => Err(Failure::usage(format!(
                "nothing here answers to `{}`; write hf:OWNER/REPO:FILE or :QUANT with one of {}",
                wanted.unwrap_or(USUAL_QUANT),
                names(self.files.iter().filter(|file| is_gguf(&file.path)))
            ))),
            _ => Err(Failure::usage(format!(
                "more than one model answers to that: {}; write hf:OWNER/REPO:FILE",
                names(found.into_iter().map(|set| set[0]))
            ))),
        }
    }

    /// GGUF models: files, and parts of split ones together.
    fn gguf_sets(&self) -> BTreeMap<(&str, u16), Vec<&RepoFile>> {
        let mut sets = BTreeMap::<_, Vec<&RepoFile>>::new();
        for file in self.files.iter().filter(|file| is_gguf(&file.path)) {
            // A picture encoder or calibration data beside the model.
            let name = file.path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
            if name.starts_with("mmproj") || name.contains("imatrix") {
                continue;
            }
            let key = match split_part(&file.path) {
                Some((stem, _, count)) => (stem, count),
                None => (file.path.as_str(), 0),
            };
            sets.entry(key).or_default().push(file);
        }
        for set in sets.values_mut() {
            set.sort_by_key(|file| &file.path);
        }
        sets
    }

    /// A model as a folder of safetensors.
    fn folder(&self) -> anyhow::Result<Selection> {
        let top: Vec<&RepoFile> = self.files.iter().filter(|file| !file.path.contains('/')).collect();
        let weights: Vec<&RepoFile> =
            top.iter().copied().filter(|file| file.path.ends_with(".safetensors")).collect();
        if weights.is_empty() || !top.iter().any(|file| file.path == "config.json") {
            let message =
                "the repository holds neither GGUF files nor safetensors with a config.json".to_owned();
            return Err(Failure::usage(message));
        }
        // Some repositories hold the same weights a second time, under another name.
        let usual = |file: &&RepoFile| file.path.starts_with("model");
        let any_usual = weights.iter().any(usual);
        let weights = weights.into_iter().filter(|file| !any_usual || usual(file));
        let text = |path: &str| {
            path.ends_with(".json")
                || path.ends_with(".jinja")
                || matches!(path, "tokenizer.model" | "merges.txt" | "vocab.txt")
        };
        let texts = top.iter().copied().filter(|file| text(&file.path));
        Ok(Selection::Folder(texts.chain(weights).cloned().collect()))
    }
}

fn is_gguf(path: &str) -> bool {
    path.len() > 5 && path[path.len().saturating_sub(5)..].eq_ignore_ascii_case(".gguf")
}

/// Whether a path, or the file at its end, is called so.
fn is_called(path: &str, wanted: &str) -> bool {
    path == wanted || path.rsplit('/').next() == Some(wanted)
}

/// Whether a word of the path is this mix of types: `Q4_K` is none of `m-Q4_K_M.gguf`.
fn has_quant(path: &str, quant: &str) -> bool {
    path.split(['/', '-', '.', ' ']).any(|word| word.eq_ignore_ascii_case(quant))
}

/// Stem, number from 1, and count of parts, where a file is named as a part.
pub(crate) fn split_part(path: &str) -> Option<(&str, u16, u16)> {
    let (rest, count) = path.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (stem, no) = rest.rsplit_once('-')?;
    let number = |digits: &str| {
        let five = digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit());
        digits.parse::<u16>().ok().filter(|_| five)
    };
    let (no, count) = (number(no)?, number(count)?);
    (1..=count).contains(&no).then_some((stem, no, count))
}

/// The parts, if none is missing.
fn whole(set: &[&RepoFile]) -> anyhow::Result<Vec<RepoFile>> {
    let count = split_part(&set[0].path).map_or(1, |(_, _, count)| usize::from(count));
    if set.len() == count {
        return Ok(set.iter().map(|file| (*file).clone()).collect());
    }
    let (first, here) = (&set[0].path, set.len());
    Err(Failure::error(
        Exit::Corrupt,
        format!("{first}: the repository holds {here} of its {count} parts; ask its owner for the others"),
    ))
}

fn names<'a>(files: impl Iterator<Item = &'a RepoFile>) -> String {
    let all: Vec<&str> = files.map(|file| file.path.as_str()).collect();
    let more = if all.len() > MAX_NAMES { ", …" } else { "" };
    format!("{}{more}", all[..all.len().min(MAX_NAMES)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(paths: &[&str]) -> Listing {
        let file = |path: &&str| RepoFile { path: (*path).to_owned(), size: None, sha256: None };
        Listing { base: "http://h/o/r/resolve/c".into(), files: paths.iter().map(file).collect() }
    }

    fn selected(paths: &[&str], wanted: Option<&str>) -> Result<Vec<String>, String> {
        match listing(paths).select(wanted) {
            Ok(Selection::Gguf(files) | Selection::Folder(files)) => {
                Ok(files.into_iter().map(|file| file.path).collect())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_model_is_found_by_file_or_by_types() {
        let paths = [
            "README.md",
            "m-Q4_K.gguf",
            "m-Q4_K_M.gguf",
            "m.q8_0.gguf",
            "mmproj-m-Q8_0.gguf",
            "imatrix.gguf",
        ];
        assert_eq!(selected(&paths, None).unwrap(), ["m-Q4_K_M.gguf"]);
        assert_eq!(selected(&paths, Some("q4_k")).unwrap(), ["m-Q4_K.gguf"]);
        assert_eq!(selected(&paths, Some("Q8_0")).unwrap(), ["m.q8_0.gguf"]);
        assert_eq!(selected(&paths, Some("m.q8_0.gguf")).unwrap(), ["m.q8_0.gguf"]);
        let error = selected(&paths, Some("Q5_K")).unwrap_err();
        assert!(error.contains("`Q5_K`") && error.contains("m-Q4_K.gguf"), "{error}");
        assert!(selected(&["a.gguf", "b.gguf"], None).unwrap_err().contains("a.gguf, b.gguf"));
        assert!(
            selected(&["a-Q8_0.gguf", "b-Q8_0.gguf"], Some("Q8_0")).unwrap_err().contains("more than one")
        );
        assert_eq!(selected(&["only.gguf", "x.bin"], None).unwrap(), ["only.gguf"]);
    }

    #[test]
    fn parts_come_together_and_in_order() {
        let (one, two) = ("Q8_0/m-00001-of-00002.gguf", "Q8_0/m-00002-of-00002.gguf");
        for wanted in [None, Some("Q8_0"), Some(two), Some("m-00001-of-00002.gguf")] {
            assert_eq!(selected(&[two, one], wanted).unwrap(), [one, two]);
        }
        assert!(selected(&[two], None).unwrap_err().contains("1 of its 2 parts"));
        assert_eq!(split_part("m-00003-of-00002.gguf"), None);
        assert_eq!(split_part("m-00001-of-00002.gguf"), Some(("m", 1, 2)));
    }

    #[test]
    fn a_folder_is_weights_configuration_and_tokenizer() {
        let paths = [
            "config.json",
            "consolidated.safetensors",
            "model.safetensors.index.json",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "onnx/model.onnx",
            "onnx/config.json",
            "tokenizer.json",
            "chat_template.jinja",
            "README.md",
        ];
        let found = selected(&paths, None).unwrap();
        let left_out = ["consolidated.safetensors", "onnx/model.onnx", "onnx/config.json", "README.md"];
        assert_eq!(found.len() + left_out.len(), paths.len());
        assert!(!left_out.iter().any(|path| found.iter().any(|f| f == path)), "{found:?}");
        assert!(selected(&["model.safetensors"], None).unwrap_err().contains("config.json"));
    }

    #[test]
    fn addresses_are_of_one_commit() {
        let listing = listing(&["a b/m.gguf"]);
        assert_eq!(listing.url(&listing.files[0]), "http://h/o/r/resolve/c/a%20b/m.gguf");
    }
}
