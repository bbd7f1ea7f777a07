//! A model from a Hugging Face hub.

use super::{cache, downloader, endpoint, fetch};
use crate::context::Context;
use crate::download::hub::{Listing, Repo, Selection};
use crate::download::{Job, below};
use crate::exit::{Exit, Failure};
use std::path::PathBuf;

/// Fetches what `wanted` means in `repo` into `CACHE/OWNER/REPO`; `None` when it was interrupted.
///
/// A split model is its first part, a model of safetensors its folder.
pub(super) fn pull(repo: &Repo, wanted: Option<&str>, cx: &Context) -> anyhow::Result<Option<Vec<PathBuf>>> {
    let downloader = downloader(cx)?;
    let Some(listing) = Listing::fetch(&downloader, endpoint(cx)?, repo)? else { return Ok(None) };
    let id = &repo.id;
    let selection = listing.select(wanted).map_err(|error| error.context(format!("hf:{id}")))?;
    let (Selection::Gguf(files) | Selection::Folder(files)) = &selection;
    let folder = cache(cx)?.join(id);
    let mut jobs = Vec::new();
    for file in files {
        let target = below(&folder, &file.path).ok_or_else(|| {
            Failure::error(Exit::Corrupt, format!("hf:{id}: `{}` is no name of a file", file.path))
        })?;
        jobs.push(Job { url: listing.url(file), target, size: file.size, sha256: file.sha256.clone() });
    }
    for job in &jobs {
        if !fetch(&downloader, job, cx)? {
            return Ok(None);
        }
    }
    let model = match (&selection, jobs.first()) {
        (Selection::Gguf(_), Some(first)) => first.target.clone(),
        _ => folder,
    };
    Ok(Some(vec![model]))
}
