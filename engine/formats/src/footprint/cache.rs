//! What a model keeps of the tokens before: keys and values, layer by layer, and recurrent states.

use super::Unknown;
use super::blocks::{Block, Blocks};
use super::hyper::{Hyper, Kind};
use crate::Checkpoint;
use memra_kernels::DType;

/// Bytes of a value of recurrent state, which engines keep in f32 whatever the type of keys and values.
const STATE_BYTES: u64 = 4;

/// What one layer keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerCache {
    /// Values of all heads' keys, for each token.
    pub k_values: u64,
    /// Values of all heads' values, for each token; 0 where they are part of the keys (latent attention).
    pub v_values: u64,
    /// Tokens that are kept, where the layer attends to so many of the last alone.
    pub window: Option<u64>,
    /// Whether it reads the cache of an earlier layer and has none.
    pub is_shared: bool,
    /// Values of recurrent state, whatever the context.
    pub state_values: u64,
}

/// What all layers keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    layers: Vec<LayerCache>,
}

/// Sizes of a cache, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheBytes {
    /// What a token adds, while windows are not full.
    pub per_token: u64,
    /// Keys and values of the context, as they are kept.
    pub kept: u64,
    /// Keys and values that the next token reads: more than are kept where layers share them.
    pub read: u64,
    /// Recurrent states.
    pub state: u64,
}

impl Cache {
    /// The layers in order.
    pub fn layers(&self) -> &[LayerCache] {
        &self.layers
    }

    /// Sizes at a context of so many tokens, with keys and values of these types.
    ///
    /// # Errors
    /// A type whose blocks a token's keys or values do not fill, or sizes beyond 64 bits.
    pub fn bytes(&self, context: u64, k: DType, v: DType) -> Result<CacheBytes, Unknown> {
        let overflow = || Unknown::new("the size of the cache overflows");
        let mut sum = CacheBytes::default();
        for layer in &self.layers {
            let token = row_bytes(k, layer.k_values)?.checked_add(row_bytes(v, layer.v_values)?);
            let tokens = layer.window.unwrap_or(u64::MAX).min(context);
            let read = token.and_then(|token| token.checked_mul(tokens)).ok_or_else(overflow)?;
            let state = layer.state_values.checked_mul(STATE_BYTES).ok_or_else(overflow)?;
            let own = |bytes| if layer.is_shared { 0 } else { bytes };
            let add = |sum: u64, bytes: u64| sum.checked_add(bytes).ok_or_else(overflow);
            sum = CacheBytes {
                per_token: add(sum.per_token, own(token.unwrap_or_default()))?,
                kept: add(sum.kept, own(read))?,
                read: add(sum.read, read)?,
                state: add(sum.state, state)?,
            };
        }
        Ok(sum)
    }
}

/// Bytes of a token's keys or values.
fn row_bytes(dtype: DType, values: u64) -> Result<u64, Unknown> {
    let values = usize::try_from(values).map_err(Unknown::new)?;
    dtype.row_bytes(values).map(|bytes| bytes as u64).map_err(Unknown::new)
}

/// What the layers of a model keep.
pub(super) fn read(
    model: &Checkpoint,
    hyper: &Hyper,
    blocks: &Blocks,
    n_layers: usize,
) -> Result<Cache, Unknown> {
    let mut layers: Vec<LayerCache> = Vec::with_capacity(n_layers);
    let mut kinds = Vec::with_capacity(n_layers);
    for layer in 0..n_layers {
        let kind = hyper.kinds.of(layer)?;
        let is_shared = (n_layers - layer) as u64 <= hyper.n_shared_kv;
        layers.push(if is_shared {
            let earlier = kinds.iter().rposition(|&earlier| earlier == kind).and_then(|i| layers.get(i));
            let unsaid =
                || Unknown::new(format!("there is no layer before {layer} whose cache it could use"));
            LayerCache { is_shared, ..*earlier.ok_or_else(unsaid)? }
        } else {
            own(model, hyper, blocks, layer, kind)?
        });
        kinds.push(kind);
    }
    Ok(Cache { layers })
}

/// What a layer keeps that has a cache of its own.
fn own(
    model: &Checkpoint,
    hyper: &Hyper,
    blocks: &Blocks,
    layer: usize,
    kind: Kind,
) -> Result<LayerCache, Unknown> {
    let block = blocks.blocks.get(&(layer as u32)).cloned().unwrap_or_default();
    if block.has_indexer {
        return Err(Unknown::new(format!(
            "block {layer} keeps keys of its own to choose what it attends to, which is not known here"
        )));
    }
    let mut cache = LayerCache::default();
    if kind == Kind::Recurrent || block.is_recurrent {
        cache.state_values = state_values(model, hyper, &block, layer)?;
    }
    if kind != Kind::Recurrent {
        (cache.k_values, cache.v_values) = kv_values(hyper, &block, layer)?;
    }
    if let (Kind::Window(window), true) = (kind, cache.k_values > 0) {
        cache.window = Some(window);
    }
    Ok(cache)
}

/// Values of keys and of values that a token adds in this layer. The shapes of the projections say it; where their
/// tensors are packed or fused, heads times their sizes do.
fn kv_values(hyper: &Hyper, block: &Block, layer: usize) -> Result<(u64, u64), Unknown> {
    let shape = &hyper.shape;
    let unsaid =
        || Unknown::new(format!("neither shapes nor numbers of heads tell the keys of block {layer}"));
    let kv_heads = shape.n_kv_heads.as_ref().and_then(|heads| heads.get(layer));
    let of_heads = |size: Option<u64>| kv_heads?.checked_mul(size?);
    if block.k.is_there {
        let k = block.k.n_out.or_else(|| of_heads(shape.head_dim)).ok_or_else(unsaid)?;
        // A layer without a projection to values uses its keys as values.
        let v = match block.v {
            v if v.is_there => v.n_out.or_else(|| of_heads(shape.value_dim)).ok_or_else(unsaid)?,
            _ => k,
        };
        return Ok((k, v));
    }
    if block.latent.is_there {
        return Ok((block.latent.n_out.ok_or_else(unsaid)?, 0));
    }
    // Recurrent layers may have fused projections that are none of attention.
    if block.qkv.is_there && !block.is_recurrent {
        let (k, v) = of_heads(shape.head_dim).zip(of_heads(shape.value_dim)).ok_or_else(unsaid)?;
        let heads = shape.n_heads.as_ref().and_then(|heads| heads.get(layer));
        let q = heads.zip(shape.head_dim).and_then(|(heads, size)| heads.checked_mul(size));
        let all = q.and_then(|q| q.checked_add(k)?.checked_add(v));
        return match (block.qkv.n_out, all) {
            (Some(found), Some(all)) if found != all => Err(Unknown::new(format!(
                "block {layer} projects to {found} queries, keys and values where its heads need {all}"
            ))),
            _ => Ok((k, v)),
        };
    }
    if block.is_recurrent || kv_heads == Some(0) {
        return Ok((0, 0));
    }
    Err(Unknown::new(format!("block {layer} has neither attention nor a recurrent state that is known here")))
}

/// Values of a recurrent layer's state.
fn state_values(model: &Checkpoint, hyper: &Hyper, block: &Block, layer: usize) -> Result<u64, Unknown> {
    let unknown =
        || Unknown::new(format!("the recurrent state of block {layer} is of a kind not known here"));
    if let Some((width, channels)) = block.short_conv {
        return width.saturating_sub(1).checked_mul(channels).ok_or_else(unknown);
    }
    let Checkpoint::Gguf(gguf) = model else {
        return hyper.delta.and_then(|delta| delta.state_values()).ok_or_else(unknown);
    };
    let meta = gguf.metadata();
    let architecture = meta.find::<&str>("general.architecture").map_err(Unknown::new)?.unwrap_or_default();
    let number = |key: &str| {
        let value = meta.find::<u64>(&format!("{architecture}.ssm.{key}")).map_err(Unknown::new)?;
        Ok::<_, Unknown>(value.unwrap_or_default())
    };
    let (inner, state, groups) = (number("inner_size")?, number("state_size")?, number("group_count")?);
    let (width, channels) = block.conv.filter(|_| inner > 0 && state > 0).ok_or_else(unknown)?;
    // The convolution runs over values, and over what plays the part of queries and keys.
    let expected = groups.checked_mul(state).and_then(|keys| keys.checked_mul(2)?.checked_add(inner));
    if expected != Some(channels) {
        return Err(unknown());
    }
    let last_inputs = width.saturating_sub(1).checked_mul(channels);
    last_inputs.and_then(|last| inner.checked_mul(state)?.checked_add(last)).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_windows_sharing_and_types() {
        let full = LayerCache { k_values: 64, v_values: 32, ..LayerCache::default() };
        let windowed = LayerCache { window: Some(10), ..full };
        let shared = LayerCache { is_shared: true, ..full };
        let recurrent = LayerCache { state_values: 100, ..LayerCache::default() };
        let cache = Cache { layers: vec![full, windowed, shared, recurrent] };
        let sizes = |context| cache.bytes(context, DType::F16, DType::F32).unwrap();
        // A token is 64 x 2 + 32 x 4 = 256 bytes a layer.
        assert_eq!(sizes(0), CacheBytes { per_token: 512, kept: 0, read: 0, state: 400 });
        assert_eq!(sizes(4), CacheBytes { per_token: 512, kept: 2048, read: 3072, state: 400 });
        assert_eq!(
            sizes(100),
            CacheBytes { per_token: 512, kept: 25_600 + 2560, read: 51_200 + 2560, state: 400 }
        );
        let q8 = cache.bytes(1, DType::Q8_0, DType::Q8_0).unwrap();
        assert_eq!((q8.per_token, q8.read), (2 * 34 * 3, 3 * 34 * 3));
        let error = cache.bytes(1, DType::Q4_K, DType::F16).unwrap_err().to_string();
        assert!(error.contains("a row of 64 values does not fill whole Q4_K blocks"), "{error}");
    }

    #[test]
    fn sizes_that_overflow_are_unknown() {
        let huge = LayerCache { k_values: u64::MAX / 2, ..LayerCache::default() };
        let full = LayerCache { k_values: 1 << 40, ..LayerCache::default() };
        assert!(Cache { layers: vec![huge] }.bytes(1, DType::F32, DType::F32).is_err());
        assert!(Cache { layers: vec![full] }.bytes(1 << 40, DType::F32, DType::F32).is_err());
        let state = LayerCache { state_values: u64::MAX, ..LayerCache::default() };
        assert!(Cache { layers: vec![state] }.bytes(1, DType::F32, DType::F32).is_err());
    }
}
