//! How many parameters the tensors of a model stand for.

use crate::{Checkpoint, JsonError, ScalarType, Storage, Tensor};

/// Bits of a value packed into I32 where the model does not say.
const DEFAULT_PACK_BITS: u64 = 4;

/// How packed values are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packing {
    /// Bits of a parameter packed into I32.
    bits: u64,
}

impl Default for Packing {
    fn default() -> Self {
        Packing { bits: DEFAULT_PACK_BITS }
    }
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

impl Packing {
    /// As the model's quantiser says.
    ///
    /// # Errors
    /// A field of `config.json` of another type than it should be.
    pub(crate) fn of(model: &Checkpoint) -> Result<Packing, JsonError> {
        let keys = ["quantization_config.bits", "quantization_config.config_groups.group_0.weights.num_bits"];
        let Checkpoint::Folder(folder) = model else { return Ok(Packing::default()) };
        for key in keys {
            if let Some(bits) = folder.config().find(key)?.filter(|bits| (1..=32).contains(bits)) {
                return Ok(Packing { bits });
            }
        }
        Ok(Packing::default())
    }

    /// Parameters that a tensor stands for: its values, but none for rotary factors, scales and zero points, and several
    /// for each value of a packed weight (`U8` holds two, `I32` holds 32 / `bits`).
    pub(crate) fn n_params(self, model: &Checkpoint, tensor: &Tensor<'_>) -> u64 {
        let values = tensor.n_values() as u64;
        let name = tensor.name();
        let last = name.rsplit_once('.').map_or(name, |(_, last)| last);
        let is_block_scale = || {
            name.strip_suffix("_scales")
                .is_some_and(|stem| model.find_tensor(&format!("{stem}_blocks")).is_some())
        };
        match tensor.storage() {
            // Converters write the factors that scale rotations as tensors.
            Storage::Blocks(_) if name.contains("rope_f") => 0,
            Storage::Blocks(_) => values,
            _ if BESIDE_WEIGHTS.contains(&last) || name.contains(".quant_state.") || is_block_scale() => 0,
            Storage::Scalars(ScalarType::U8)
                if last == "weight" || last == "weight_packed" || last.ends_with("_blocks") =>
            {
                values.saturating_mul(2)
            }
            Storage::Scalars(ScalarType::I32) if last == "qweight" || last == "weight_packed" => {
                values.saturating_mul(32 / self.bits)
            }
            Storage::Scalars(_) => values,
        }
    }
}
