//! Where a model comes from: GGUF files and Hugging Face folders as one view, under GGUF's names.

mod keys;
mod names;
mod tensors;

pub(super) use keys::{Field, Keys};
pub(super) use names::{Change, Rule, negative_exp, norm_less_one, renamed};
pub(super) use tensors::Tensors;

use super::Architecture;
use crate::Error;
use memra_formats::{Checkpoint, ModelFolder, SharedBytes};
use std::path::{Path, PathBuf};

/// A model on disk, opened.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    checkpoint: Checkpoint,
    architecture: &'static Architecture,
    tensors: Tensors,
}

impl Source {
    /// Opens what is at `path`, finds the architecture that it names, and lists its tensors.
    ///
    /// # Errors
    /// Unreadable files, an unsupported architecture, or tensors that nothing computes with.
    pub(super) fn open(path: &Path) -> Result<Source, Error> {
        let checkpoint = Checkpoint::open(path)?;
        let architecture = match &checkpoint {
            Checkpoint::Gguf(gguf) => {
                let name = gguf.metadata().get::<&str>(GGUF_KEY)?;
                let found = Architecture::by_gguf(name);
                found.ok_or_else(|| unsupported(path, GGUF_KEY, name, Architecture::gguf_names()))
            }
            Checkpoint::Folder(folder) => {
                let (file, name) = (folder.config().path(), folder.config().get::<String>(FOLDER_KEY)?);
                let found = Architecture::by_model_type(&name);
                found.ok_or_else(|| unsupported(file, FOLDER_KEY, &name, Architecture::model_types()))
            }
            Checkpoint::Weights(_) => Err(Error::Argument(format!(
                "{} holds weights alone; give the folder that it lies in, with its config.json",
                path.display()
            ))),
        }?;
        let tensors = match &checkpoint {
            Checkpoint::Folder(_) => Tensors::of_folder(checkpoint.tensors(), architecture.rules),
            _ => Tensors::of_gguf(checkpoint.tensors()),
        }?;
        Ok(Source { path: path.to_owned(), checkpoint, architecture, tensors })
    }

    /// The path it was opened by.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What it says it is.
    pub(super) fn architecture(&self) -> &'static Architecture {
        self.architecture
    }

    /// The files.
    pub(super) fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The folder, where it is one.
    pub(super) fn folder(&self) -> Option<&ModelFolder> {
        match &self.checkpoint {
            Checkpoint::Folder(folder) => Some(folder),
            _ => None,
        }
    }

    /// The tensors.
    pub(super) fn tensors(&self) -> &Tensors {
        &self.tensors
    }

    /// The tensors, to forget some.
    pub(super) fn forget(&mut self, tensor: &str) {
        self.tensors.forget(tensor);
    }

    /// The bytes of matrix `index` of a tensor, as they are stored.
    ///
    /// # Errors
    /// There is no such tensor or matrix.
    pub(super) fn matrix(&self, name: &str, index: usize) -> Result<SharedBytes, Error> {
        self.tensors.matrix(&self.checkpoint, name, index)
    }

    /// An error with a tensor's name as the files have it, or would have it, beside ours.
    pub(super) fn explain(&self, error: Error) -> Error {
        match error {
            Error::Tensor { name, problem } if self.folder().is_some() => {
                let original = names::original(self.architecture.rules, &name);
                let name = original.map_or_else(|| name.clone(), |original| format!("{name} ({original})"));
                Error::Tensor { name, problem }
            }
            other => other,
        }
    }
}

/// Where GGUF files and folders name their architecture.
const GGUF_KEY: &str = "general.architecture";
const FOLDER_KEY: &str = "model_type";

fn unsupported(file: &Path, key: &str, name: &str, supported: String) -> Error {
    let problem = format!("`{name}` is not supported; supported: {supported}");
    Error::Metadata { file: file.to_owned(), key: key.into(), problem }
}
