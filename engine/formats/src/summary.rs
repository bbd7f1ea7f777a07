//! What a model holds, in a few numbers: the same for every format.

use crate::{Checkpoint, CheckpointError, Dims, Gguf, Json, ModelFolder, ScalarType, Storage, Tensor};
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
    /// Parameters of the model, see `n_params`.
    pub n_params: u64,
    /// Number of tensors.
    pub n_tensors: usize,
    /// Bytes of all tensors.
    pub tensor_bytes: u64,
    /// Tensors by storage type, most bytes first.
    pub types: Vec<TypeShare>,
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
}

impl Checkpoint {
    /// The model in numbers.
    ///
    /// # Errors
    /// Metadata, or documents of the folder, that are damaged or not of the type they should be.
    pub fn summary(&self) -> Result<Summary, CheckpointError> {
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
            n_params: 0,
            n_tensors: self.tensors().len(),
            tensor_bytes: types.iter().map(|share| share.bytes).sum(),
            types,
        };
        let mut pack_bits = DEFAULT_PACK_BITS;
        match self {
            Checkpoint::Gguf(gguf) => describe_gguf(gguf, &mut summary)?,
            Checkpoint::Folder(folder) => {
                describe_folder(folder, &mut summary)?;
                pack_bits = packed_bits(folder.config())?;
            }
            Checkpoint::Weights(_) => {}
        }
        let params = |tensor: Tensor<'_>| n_params(self, &tensor, pack_bits);
        summary.n_params = self.tensors().fold(0, |sum, tensor| params(tensor).saturating_add(sum));
        Ok(summary)
    }
}

fn describe_gguf(gguf: &Gguf, summary: &mut Summary) -> Result<(), CheckpointError> {
    let meta = gguf.metadata();
    let text = |key: &str| meta.find::<&str>(key).map(|text| text.map(str::to_owned));
    summary.format = format!("GGUF v{}", gguf.version());
    summary.architecture = text("general.architecture")?;
    summary.name = text("general.name")?;
    let architecture = summary.architecture.as_deref().unwrap_or_default();
    summary.context_length = meta.find(&format!("{architecture}.context_length"))?;
    summary.tokenizer = match (text("tokenizer.ggml.model")?, text("tokenizer.ggml.pre")?) {
        (Some(model), Some(pre)) => Some(format!("{model}/{pre}")),
        (model, _) => model,
    };
    summary.chat_template = meta.value_of("tokenizer.chat_template").is_some();
    Ok(())
}

fn describe_folder(folder: &ModelFolder, summary: &mut Summary) -> Result<(), CheckpointError> {
    let config = folder.config();
    summary.architecture = config.find("model_type")?;
    // Models that see or hear keep their language model's numbers one level deeper.
    for key in ["max_position_embeddings", "text_config.max_position_embeddings"] {
        if summary.context_length.is_none() {
            summary.context_length = config.find(key)?;
        }
    }
    summary.name = folder.path().file_name().map(|name| name.to_string_lossy().into_owned());
    if let Some(bytes) = folder.tokenizer()? {
        let tokenizer = Json::parse(folder.path().join("tokenizer.json"), bytes)?;
        summary.tokenizer = tokenizer.find("model.type")?;
    }
    summary.chat_template = folder.chat_template()?.is_some();
    Ok(())
}

/// Bits of a value packed into I32 where the model does not say.
const DEFAULT_PACK_BITS: u64 = 4;

/// Bits of a value packed into I32, as the model's quantiser says.
fn packed_bits(config: &Json) -> Result<u64, CheckpointError> {
    let keys = ["quantization_config.bits", "quantization_config.config_groups.group_0.weights.num_bits"];
    for key in keys {
        if let Some(bits) = config.find::<u64>(key)?.filter(|bits| (1..=32).contains(bits)) {
            return Ok(bits);
        }
    }
    Ok(DEFAULT_PACK_BITS)
}

/// Last parts of names under which quantisers store what belongs to a weight and is no parameter.
const BESIDE_WEIGHTS: [&str; 19] = [
    "weight_scale",
    "weight_scale_inv",
    "weight_scale_2",
    "weight_global_scale",
    "weight_zero_point",
    "weight_shape",
    "weight_g_idx",
    "input_scale",
    "input_scale_inv",
    "input_global_scale",
    "k_scale",
    "v_scale",
    "scales",
    "qzeros",
    "g_idx",
    "absmax",
    "quant_map",
    "nested_absmax",
    "nested_quant_map",
];

/// Parameters that a tensor stands for: its values, but in safetensors none for scales and zero points, and several for
/// each value of a packed weight (`U8` holds two, `I32` holds 32 / `pack_bits`).
fn n_params(model: &Checkpoint, tensor: &Tensor<'_>, pack_bits: u64) -> u64 {
    let values = tensor.n_values() as u64;
    let name = tensor.name();
    let last = name.rsplit_once('.').map_or(name, |(_, last)| last);
    let is_block_scale = || {
        name.strip_suffix("_scales")
            .is_some_and(|stem| model.find_tensor(&format!("{stem}_blocks")).is_some())
    };
    match tensor.storage() {
        Storage::Blocks(_) => values,
        _ if BESIDE_WEIGHTS.contains(&last) || name.contains(".quant_state.") || is_block_scale() => 0,
        Storage::Scalars(ScalarType::U8)
            if last == "weight" || last == "weight_packed" || last.ends_with("_blocks") =>
        {
            values.saturating_mul(2)
        }
        Storage::Scalars(ScalarType::I32) if last == "qweight" || last == "weight_packed" => {
            values.saturating_mul(32 / pack_bits)
        }
        Storage::Scalars(_) => values,
    }
}
