//! A file from an address.

use super::{cache, downloader, fetch};
use crate::context::Context;
use crate::download::{Job, below, percent_decoded};
use crate::exit::Failure;
use std::path::PathBuf;

/// Fetches `url` into the cache; `None` when it was interrupted.
pub(super) fn pull(
    url: &str,
    sha256: Option<&str>,
    name: Option<&str>,
    cx: &Context,
) -> anyhow::Result<Option<Vec<PathBuf>>> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => name_of(url).ok_or_else(|| {
            Failure::usage(format!(
                "{url}: the address does not end in the name of a .gguf file; give one by --name"
            ))
        })?,
    };
    let target = Some(&name)
        .filter(|name| !name.contains('/') && is_model(name))
        .and_then(|name| below(&cache(cx).ok()?, name))
        .ok_or_else(|| Failure::usage(format!("`{name}` is not the name of a .gguf file")))?;
    let job =
        Job { url: url.to_owned(), target: target.clone(), size: None, sha256: sha256.map(str::to_owned) };
    Ok(fetch(&downloader(cx)?, &job, cx)?.then(|| vec![target]))
}

fn is_model(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".gguf")
}

/// The name at the end of an address's path.
fn name_of(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next()?;
    percent_decoded(path.rsplit('/').next()?).filter(|name| is_model(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_end_of_the_path() {
        assert_eq!(name_of("https://h/a/b%20c.GGUF?download=true#x").as_deref(), Some("b c.GGUF"));
        assert_eq!(name_of("https://h/a/b?file=m.gguf"), None);
        assert_eq!(name_of("https://h/%"), None);
        // What decodes to a path is refused where the name is used.
        assert_eq!(name_of("https://h/..%2fm.gguf").as_deref(), Some("../m.gguf"));
    }
}
