//! Keys and values of every layer, in the kernels' page layout.

use super::pages::PageId;
use crate::Error;
use crate::program::StateSpec;
use memra_kernels::attention::{AttentionShape, KvStore, KvView, Side};

/// One layer's keys and values.
#[derive(Debug)]
struct Layer {
    shape: AttentionShape,
    keys: KvStore,
    values: KvStore,
}

/// The pages of every state of a Program, all sequences together.
#[derive(Debug)]
pub(crate) struct KvCache {
    layers: Vec<Layer>,
}

impl KvCache {
    pub(crate) fn new(states: &[StateSpec], pages: usize) -> Result<Self, Error> {
        let layer = |spec: &StateSpec| {
            let StateSpec::Kv { heads, head_dim, dtype } = *spec;
            let shape = AttentionShape { n_heads: heads, n_kv_heads: heads, head_dim, scale: 1.0 };
            let store = || KvStore::new(dtype, &shape, pages).map_err(Error::Argument);
            Ok(Layer { shape, keys: store()?, values: store()? })
        };
        Ok(KvCache { layers: states.iter().map(layer).collect::<Result<_, Error>>()? })
    }

    /// A sequence's view of one layer.
    pub(crate) fn view<'a>(&'a self, layer: usize, pages: &'a [PageId]) -> KvView<'a> {
        let Layer { keys, values, .. } = &self.layers[layer];
        KvView { keys, values, pages }
    }

    /// Stores one position's key and value rows.
    pub(crate) fn write(
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
    pub(crate) fn copy_page(&mut self, from: PageId, to: PageId) {
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
    pub(crate) fn bytes(&self) -> u64 {
        self.layers.iter().map(|l| (l.keys.bytes() + l.values.bytes()) as u64).sum()
    }
}
