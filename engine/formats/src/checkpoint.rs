//! A model on disk, whatever its format.

use crate::{Gguf, GgufError, JsonError, ModelFolder, Safetensors, SafetensorsError, Tensor};
use std::path::{Path, PathBuf};

/// A model of any format that is read.
#[derive(Clone, Debug)]
pub enum Checkpoint {
    /// A GGUF file, or all parts of a split one.
    Gguf(Gguf),
    /// A folder with `config.json` and weights in safetensors.
    Folder(ModelFolder),
    /// Weights in safetensors, given without their folder: tensors and nothing else.
    Weights(Safetensors),
}

/// Why a model cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// As a GGUF file.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// As safetensors.
    #[error(transparent)]
    Safetensors(#[from] SafetensorsError),
}

impl From<JsonError> for CheckpointError {
    fn from(error: JsonError) -> Self {
        CheckpointError::Safetensors(error.into())
    }
}

impl Checkpoint {
    /// Opens the model at `path`: a folder, a `.safetensors` file, a `.safetensors.index.json`, or a GGUF file.
    ///
    /// # Errors
    /// A model that is missing, damaged, or of another format.
    pub fn open(path: impl AsRef<Path>) -> Result<Checkpoint, CheckpointError> {
        let path = path.as_ref();
        if path.is_dir() {
            return Ok(Checkpoint::Folder(ModelFolder::open(path)?));
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("safetensors" | "json") => Ok(Checkpoint::Weights(Safetensors::open(path)?)),
            _ => Ok(Checkpoint::Gguf(Gguf::open(path)?)),
        }
    }

    /// Every tensor, file after file.
    pub fn tensors(&self) -> Box<dyn ExactSizeIterator<Item = Tensor<'_>> + '_> {
        match self {
            Checkpoint::Gguf(gguf) => Box::new(gguf.tensors()),
            Checkpoint::Folder(folder) => Box::new(folder.weights().tensors()),
            Checkpoint::Weights(weights) => Box::new(weights.tensors()),
        }
    }

    /// The tensor of this name, if there is one.
    pub fn find_tensor(&self, name: &str) -> Option<Tensor<'_>> {
        match self {
            Checkpoint::Gguf(gguf) => gguf.find_tensor(name),
            Checkpoint::Folder(folder) => folder.weights().find_tensor(name),
            Checkpoint::Weights(weights) => weights.find_tensor(name),
        }
    }

    /// The files that hold tensors.
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            Checkpoint::Gguf(gguf) => gguf.paths(),
            Checkpoint::Folder(folder) => folder.weights().paths(),
            Checkpoint::Weights(weights) => weights.paths(),
        }
    }

    /// Size of these files in bytes.
    pub fn file_bytes(&self) -> u64 {
        match self {
            Checkpoint::Gguf(gguf) => gguf.file_bytes(),
            Checkpoint::Folder(folder) => folder.weights().file_bytes(),
            Checkpoint::Weights(weights) => weights.file_bytes(),
        }
    }
}
