//! What a model holds, in a few numbers: the same for every format.

use crate::params::Packing;
use crate::{Checkpoint, Dims, Gguf, Json, ModelFolder, Tensor, vocabulary};
use serde::Serialize;
use std::collections::BTreeMap;

/// A model in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// `GGUF v3` or `safetensors`.
    pub format: String,
    /// Number of files that hold tensors.
    pub n_files: usize,
    /// Their size in bytes.
    pub file_bytes: u64,
    /// The architecture, as `general.architecture` or `model_type` names it.
    pub architecture: Option<String>,
    /// The model's name in its metadata, or that of its folder.
    pub name: Option<String>,
    /// Positions it was trained for.
    pub context_length: Option<u64>,
    /// The tokenizer's kind, such as `gpt2/qwen2` or `BPE`.
    pub tokenizer: Option<String>,
    /// Whether it has a chat template.
    pub chat_template: bool,
    /// Documents beside the weights, where the model is a folder.
    pub documents: Vec<&'static str>,
    /// Parameters of the model: the values of its tensors, but in safetensors none for scales and zero points, and
    /// several for each value of a packed weight.
    pub n_params: u64,
    /// Number of tensors.
    pub n_tensors: usize,
    /// Bytes of all tensors.
    pub tensor_bytes: u64,
    /// Tensors by storage type, most bytes first.
    pub types: Vec<TypeShare>,
    /// What is wrong with metadata or documents: wrong types, damaged files, token tables that do not fit each other.
    pub problems: Vec<String>,
}

/// The tensors of one storage type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeShare {
    /// The type's name.
    pub dtype: String,
    /// Number of tensors.
    pub n_tensors: usize,
    /// Their stored values.
    pub n_values: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A tensor as a row of a listing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TensorRow<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its storage type's name.
    pub dtype: String,
    /// Dimensions, fastest first.
    pub dims: Dims,
    /// Size in bytes.
    pub bytes: usize,
    /// Index of its file among [`Checkpoint::paths`].
    pub file: usize,
}

impl<'a> From<Tensor<'a>> for TensorRow<'a> {
    fn from(tensor: Tensor<'a>) -> Self {
        TensorRow {
            name: tensor.name(),
            dtype: tensor.storage().to_string(),
            dims: tensor.dims(),
            bytes: tensor.data().len(),
            file: tensor.part(),
        }
    }
}

impl Summary {
    /// Bits a parameter, all tensors counted.
    pub fn bits_per_param(&self) -> f64 {
        self.tensor_bytes as f64 * 8.0 / self.n_params.max(1) as f64
    }

    /// What was read, or nothing and a problem.
    fn note<T, E: std::fmt::Display>(&mut self, read: Result<T, E>) -> Option<T> {
        read.map_err(|error| self.problems.push(error.to_string())).ok()
    }
}

impl Checkpoint {
    /// The model in numbers. What cannot be read of metadata and documents is left out, and why is said among
    /// [`Summary::problems`].
    pub fn summary(&self) -> Summary {
        let mut shares: BTreeMap<String, TypeShare> = BTreeMap::new();
        for tensor in self.tensors() {
            let empty =
                |dtype: &String| TypeShare { dtype: dtype.clone(), n_tensors: 0, n_values: 0, bytes: 0 };
            let share = shares.entry(tensor.storage().to_string()).or_insert_with_key(empty);
            share.n_tensors += 1;
            share.n_values = share.n_values.saturating_add(tensor.n_values() as u64);
            share.bytes += tensor.data().len() as u64;
        }
        let mut types: Vec<TypeShare> = shares.into_values().collect();
        types.sort_by_key(|share| std::cmp::Reverse(share.bytes));
        let mut summary = Summary {
            format: "safetensors".to_owned(),
            n_files: self.paths().len(),
            file_bytes: self.file_bytes(),
            architecture: None,
            name: None,
            context_length: None,
            tokenizer: None,
            chat_template: false,
            documents: Vec::new(),
            n_params: 0,
            n_tensors: self.tensors().len(),
            tensor_bytes: types.iter().map(|share| share.bytes).sum(),
            types,
            problems: Vec::new(),
        };
        match self {
            Checkpoint::Gguf(gguf) => describe_gguf(gguf, &mut summary),
            Checkpoint::Folder(folder) => describe_folder(folder, &mut summary),
            Checkpoint::Weights(_) => {}
        }
        let packing = summary.note(Packing::of(self)).unwrap_or_default();
        summary.n_params =
            self.tensors().fold(0, |sum, tensor| packing.n_params(self, &tensor).saturating_add(sum));
        summary
    }
}

fn describe_gguf(gguf: &Gguf, summary: &mut Summary) {
    let meta = gguf.metadata();
    let mut text = |key: &str| summary.note(meta.find::<&str>(key)).flatten().map(str::to_owned);
    let architecture = text("general.architecture");
    let name = text("general.name");
    let tokenizer = match (text("tokenizer.ggml.model"), text("tokenizer.ggml.pre")) {
        (Some(model), Some(pre)) => Some(format!("{model}/{pre}")),
        (model, _) => model,
    };
    summary.chat_template = text("tokenizer.chat_template").is_some();
    let context = format!("{}.context_length", architecture.as_deref().unwrap_or_default());
    summary.context_length = summary.note(meta.find(&context)).flatten();
    summary.format = format!("GGUF v{}", gguf.version());
    (summary.architecture, summary.name, summary.tokenizer) = (architecture, name, tokenizer);
    summary.problems.extend(vocabulary::problems(meta));
}

fn describe_folder(folder: &ModelFolder, summary: &mut Summary) {
    let config = folder.config();
    summary.architecture = summary.note(config.find("model_type")).flatten();
    // Models that see or hear keep their language model's numbers one level deeper.
    for key in ["max_position_embeddings", "text_config.max_position_embeddings"] {
        if summary.context_length.is_none() {
            summary.context_length = summary.note(config.find(key)).flatten();
        }
    }
    summary.name = folder.path().file_name().map(|name| name.to_string_lossy().into_owned());
    if let Some(bytes) = summary.note(folder.tokenizer()).flatten() {
        let tokenizer = summary.note(Json::parse(folder.path().join("tokenizer.json"), bytes));
        summary.tokenizer = tokenizer.and_then(|json| summary.note(json.find("model.type"))).flatten();
    }
    summary.chat_template = summary.note(folder.chat_template()).flatten().is_some();
    summary.note(folder.generation_config());
    summary.documents = folder.documents();
}
