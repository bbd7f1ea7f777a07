//! Keys and values of every layer, in the kernels' page layout.

use super::pages::PageId;
use crate::Error;
use memra_kernels::DType;
use memra_kernels::attention::{AttentionShape, KvStore, KvView, Side};

/// One layer's keys and values.
#[derive(Debug)]
struct Layer {
    shape: AttentionShape,
    keys: KvStore,
    values: KvStore,
}

/// The pages of every key-value state of a Program, all sequences together.
#[derive(Debug, Default)]
pub(super) struct KvCache {
    layers: Vec<Layer>,
}

impl KvCache {
    /// Adds a layer of so many pages and returns its index.
    pub(super) fn push(
        &mut self,
        heads: usize,
        head_dim: usize,
        dtype: DType,
        pages: usize,
    ) -> Result<usize, Error> {
        let shape = AttentionShape {
            n_heads: heads,
            n_kv_heads: heads,
            head_dim,
            scale: 1.0,
            window: None,
            softcap: None,
        };
        let store = || KvStore::new(dtype, &shape, pages).map_err(Error::Argument);
        self.layers.push(Layer { shape, keys: store()?, values: store()? });
        Ok(self.layers.len() - 1)
    }

    /// A sequence's view of one layer.
    pub(super) fn view<'a>(&'a self, layer: usize, pages: &'a [PageId]) -> KvView<'a> {
        let Layer { keys, values, .. } = &self.layers[layer];
        KvView { keys, values, pages }
    }

    /// Stores one position's key and value rows.
    pub(super) fn write(
        &mut self,
        layer: usize,
        pages: &[PageId],
        position: usize,
        k: &[f32],
        v: &[f32],
    ) -> Result<(), memra_kernels::ShapeError> {
        let Layer { shape, keys, values } = &mut self.layers[layer];
        keys.write(Side::Keys, shape, pages, position, k)?;
        values.write(Side::Values, shape, pages, position, v)
    }

    /// Copies a page in every layer.
    pub(super) fn copy_page(&mut self, from: PageId, to: PageId) {
        for Layer { shape, keys, values } in &mut self.layers {
            let len = shape.n_kv_heads * shape.head_dim * super::PAGE;
            let (from, to) = (from as usize * len, to as usize * len);
            for store in [keys, values] {
                match store {
                    KvStore::F32(v) => v.copy_within(from..from + len, to),
                    KvStore::F16(v) => v.copy_within(from..from + len, to),
                }
            }
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.layers.iter().map(|l| (l.keys.bytes() + l.values.bytes()) as u64).sum()
    }
}
