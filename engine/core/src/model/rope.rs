//! Rotary position embedding: frequencies and their scaling, read from either kind of model.

use super::source::Keys;
use crate::Error;
use crate::program::Rope;
use memra_kernels::rope::Scaling;
use serde::{Deserialize, Serialize};

/// How a model's heads are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RopeConfig {
    /// Leading values of each head that are rotated.
    pub dims: usize,
    /// Base of the frequencies (`rope_theta`).
    pub base: f32,
    /// Whether value `i` rotates with `i + dims / 2`, instead of with its neighbour.
    pub neox: bool,
    /// How the frequencies are changed.
    pub scaling: Scaling,
}

/// An object of rotary settings in `config.json`: `rope_parameters`, or its older form, `rope_scaling`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    rope_type: Option<String>,
    #[serde(rename = "type")]
    older_type: Option<String>,
    rope_theta: Option<f32>,
    partial_rotary_factor: Option<f32>,
    factor: Option<f32>,
    low_freq_factor: Option<f32>,
    high_freq_factor: Option<f32>,
    original_max_position_embeddings: Option<f32>,
    attention_factor: Option<f32>,
    beta_fast: Option<f32>,
    beta_slow: Option<f32>,
    truncate: Option<bool>,
    mscale: Option<f32>,
    mscale_all_dim: Option<f32>,
    // Which of several positions turns which pair: a text has only one.
    #[serde(rename = "mrope_section")]
    _sections: Option<Vec<usize>>,
    #[serde(rename = "mrope_interleaved")]
    _interleaved: Option<bool>,
}

impl RopeConfig {
    /// Reads the settings that hold for all layers, or for those that see the whole context where layers differ.
    ///
    /// # Errors
    /// A scaling that is not supported, or numbers out of range.
    pub(super) fn read(keys: &Keys<'_>, head_dim: usize, n_ctx_train: usize) -> Result<Self, Error> {
        let neox = keys.source().architecture().rope_neox || keys.source().folder().is_some();
        if keys.source().folder().is_some() {
            let (settings, name) = Settings::find(keys)?;
            return settings.rope(keys, name, head_dim, n_ctx_train);
        }
        let dims = keys.optional("rope.dimension_count")?.unwrap_or(head_dim);
        if dims > head_dim || !dims.is_multiple_of(2) {
            let problem = format!("is {dims}; it must be even and at most the head size, {head_dim}");
            return Err(keys.fail("rope.dimension_count", problem));
        }
        let base = keys.positive("rope.freq_base", Some(10_000.0))?;
        Ok(RopeConfig { dims, base, neox, scaling: gguf_scaling(keys, n_ctx_train)? })
    }

    /// Reads the settings of layers with a sliding window, where the model has some of their own: another base, and no
    /// scaling.
    ///
    /// # Errors
    /// As [`RopeConfig::read`].
    pub(super) fn read_sliding(
        &self,
        keys: &Keys<'_>,
        head_dim: usize,
        n_ctx_train: usize,
    ) -> Result<Self, Error> {
        const OWN: &str = "rope_parameters.sliding_attention";
        if let Some(settings) = keys.json::<Settings>(OWN)? {
            return settings.rope(keys, OWN, head_dim, n_ctx_train);
        }
        let base = keys.positive("rope.freq_base_swa", Some(10_000.0))?;
        Ok(RopeConfig { base, scaling: Scaling::None, ..*self })
    }

    /// As an op takes it.
    pub(super) fn of(&self, heads: usize, head_dim: usize) -> Rope {
        let RopeConfig { dims, base, neox, scaling } = *self;
        Rope { heads, head_dim, dims, base, neox, scaling, factors: None }
    }
}

/// GGUF's keys name linear scaling and YaRN; Llama 3's comes as a tensor of factors. A factor alone means linear.
fn gguf_scaling(keys: &Keys<'_>, n_ctx_train: usize) -> Result<Scaling, Error> {
    const FACTOR: &str = "rope.scaling.factor";
    let kind = keys.gguf_text("rope.scaling.type")?;
    let older = keys.gguf::<f32>("rope.scale_linear")?;
    let factor = keys.positive(FACTOR, Some(older.unwrap_or(1.0)))?;
    match kind.unwrap_or("linear") {
        "none" => Ok(Scaling::None),
        "linear" if factor == 1.0 => Ok(Scaling::None),
        "linear" => Ok(Scaling::Linear { factor }),
        "yarn" => {
            let extrapolated = keys.positive("rope.scaling.yarn_ext_factor", Some(1.0))?;
            if extrapolated != 1.0 {
                let problem = format!("is {extrapolated}; this build supports 1");
                return Err(keys.fail("rope.scaling.yarn_ext_factor", problem));
            }
            let by = keys.positive("rope.scaling.attn_factor", Some(1.0))?
                * keys.positive("rope.scaling.yarn_attn_factor", Some(1.0))?;
            Ok(Scaling::Yarn {
                factor,
                fast: keys.positive("rope.scaling.yarn_beta_fast", Some(32.0))?,
                slow: keys.positive("rope.scaling.yarn_beta_slow", Some(1.0))?,
                original: match keys.optional("rope.scaling.original_context_length")? {
                    Some(_) => keys.count("rope.scaling.original_context_length")?,
                    None => n_ctx_train,
                } as f32,
                truncate: true,
                magnitude: by * yarn_magnitude(factor, 1.0),
            })
        }
        other => {
            let problem = format!("`{other}` is not supported; supported: none, linear, yarn");
            Err(keys.fail("rope.scaling.type", problem))
        }
    }
}

/// `0.1 m ln(factor) + 1`: what YaRN multiplies cosines and sines by.
fn yarn_magnitude(factor: f32, m: f32) -> f32 {
    if factor > 1.0 { 0.1 * m * factor.ln() + 1.0 } else { 1.0 }
}

impl Settings {
    /// The settings of layers that see the whole context, or of all, and the name of the object that they are in.
    fn find(keys: &Keys<'_>) -> Result<(Settings, &'static str), Error> {
        // An object of objects, one for each type of layer, or one for all.
        for name in ["rope_parameters.full_attention", "rope_parameters"] {
            if let Some(settings) = keys.json::<Settings>(name)? {
                return Ok((settings, name));
            }
        }
        let older = keys.json::<Settings>("rope_scaling")?.unwrap_or_default();
        let rope_theta = older.rope_theta.or(keys.json("rope_theta")?);
        let partial_rotary_factor = older.partial_rotary_factor.or(keys.json("partial_rotary_factor")?);
        Ok((Settings { rope_theta, partial_rotary_factor, ..older }, "rope_scaling"))
    }

    fn rope(
        &self,
        keys: &Keys<'_>,
        name: &str,
        head_dim: usize,
        n_ctx_train: usize,
    ) -> Result<RopeConfig, Error> {
        let part = positive(keys, name, "partial_rotary_factor", self.partial_rotary_factor, Some(1.0))?;
        let dims = (head_dim as f32 * part) as usize;
        if dims > head_dim || !dims.is_multiple_of(2) || dims == 0 {
            let problem = format!("is {part}; of heads of {head_dim} values an even number must be rotated");
            return Err(keys.fail_at(&format!("{name}.partial_rotary_factor"), problem));
        }
        let base = positive(keys, name, "rope_theta", self.rope_theta, Some(10_000.0))?;
        Ok(RopeConfig { dims, base, neox: true, scaling: self.scaling(keys, name, n_ctx_train)? })
    }

    fn scaling(&self, keys: &Keys<'_>, name: &str, n_ctx_train: usize) -> Result<Scaling, Error> {
        let get = |field: &str, value: Option<f32>, default: Option<f32>| {
            positive(keys, name, field, value, default)
        };
        let original = self.original_max_position_embeddings;
        // What transformers takes for a missing factor.
        let factor = || get("factor", self.factor, original.map(|original| n_ctx_train as f32 / original));
        let kind = self.rope_type.as_deref().or(self.older_type.as_deref());
        match kind.unwrap_or("default") {
            "default" => Ok(Scaling::None),
            "linear" => Ok(Scaling::Linear { factor: factor()? }),
            "llama3" => {
                let low = get("low_freq_factor", self.low_freq_factor, None)?;
                let high = get("high_freq_factor", self.high_freq_factor, None)?;
                if high <= low {
                    let problem = format!("is {high}; it must be above low_freq_factor, {low}");
                    return Err(keys.fail_at(&format!("{name}.high_freq_factor"), problem));
                }
                let original = get("original_max_position_embeddings", original, None)?;
                Ok(Scaling::Llama3 { factor: factor()?, low, high, original })
            }
            "yarn" => {
                let factor = factor()?;
                let usual = match (self.mscale, self.mscale_all_dim) {
                    (Some(one), Some(all)) if one != 0.0 && all != 0.0 => {
                        yarn_magnitude(factor, one) / yarn_magnitude(factor, all)
                    }
                    _ => yarn_magnitude(factor, 1.0),
                };
                Ok(Scaling::Yarn {
                    factor,
                    fast: get("beta_fast", self.beta_fast, Some(32.0))?,
                    slow: get("beta_slow", self.beta_slow, Some(1.0))?,
                    original: get("original_max_position_embeddings", original, Some(n_ctx_train as f32))?,
                    truncate: self.truncate.unwrap_or(true),
                    magnitude: get("attention_factor", self.attention_factor, Some(usual))?,
                })
            }
            other => {
                let problem = format!("`{other}` is not supported; supported: default, linear, llama3, yarn");
                Err(keys.fail_at(&format!("{name}.rope_type"), problem))
            }
        }
    }
}

/// A positive number of an object of `config.json`.
fn positive(
    keys: &Keys<'_>,
    object: &str,
    field: &str,
    value: Option<f32>,
    default: Option<f32>,
) -> Result<f32, Error> {
    let fail = |problem: String| keys.fail_at(&format!("{object}.{field}"), problem);
    let value = value.or(default).ok_or_else(|| fail("is missing; the file is incomplete".into()))?;
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(fail(format!("is {value}; it must be positive")))
    }
}
