//! Weights repacked so that SIMD lanes are weight rows.
//!
//! Sixteen rows make a tile; the last tile is filled up with zero rows. A tile holds its *heads* (scales and
//! minimums), filled up to 64 bytes, then its *bodies* (codes), one for each 32 columns. Heads are laid out as
//! `head` has it, bodies of block formats as `code` has it; a body of F32, F16, BF16 or F8_E4M3 holds, for each column,
//! the sixteen rows' values.
//!
//! Every value is kept exactly. Bits a value, in the file and packed:
//!
//! | type | file | packed | | type | file | packed |
//! |---|---|---|---|---|---|---|
//! | Q4_0, IQ4_NL | 4.5 | 4.5 | | IQ4_XS | 4.25 | 4.31 |
//! | Q4_1, Q5_0, Q5_1, Q8_0 | as packed | 5, 5.5, 6, 8.5 | | IQ3_S | 3.44 | 4.31 |
//! | Q2_K | 2.63 | 3.13 | | IQ3_XXS | 3.06 | 4.31 |
//! | Q3_K | 3.44 | 3.56 | | IQ2_S, IQ2_XS | 2.56, 2.31 | 4.56 |
//! | Q4_K | 4.5 | 4.63 | | IQ2_XXS | 2.06 | 4.31 |
//! | Q5_K | 5.5 | 5.63 | | MXFP4 | 4.25 | 4.5 |
//! | Q6_K | 6.56 | 6.56 | | NVFP4 | 4.5 | 5 |
//!
//! The IQ2 and IQ3 formats grow because their grids are looked up once, when they are packed: a product would look up
//! the same entries again for every row of lanes.

use super::code::{Code, body_bytes};
use super::format::{Visitor, visit};
use super::head::{self, Head, head_size};
use super::weights::{Matrix, check_row};
use crate::DType;
use crate::cpu::{AlignedBytes, Pool};
use crate::error::ShapeError;
use crate::quant::{self, Codes, GROUP, Rule};

/// Rows a tile.
pub const TILE: usize = 16;

/// Sizes of the packed form of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Columns that one head covers.
    pub(super) head_columns: usize,
    /// Bytes of a head.
    pub(super) head: usize,
    /// Bytes of a body.
    pub(super) body: usize,
}

impl Layout {
    /// The layout of a block format with this code and head.
    pub(super) const fn new<C: Code, H: Head>() -> Layout {
        let (head_columns, head) = head_size(H::RULE);
        Layout { head_columns, head, body: body_bytes(C::PLANES) }
    }

    pub(super) fn of(dtype: DType) -> Layout {
        let float = || Layout { head_columns: GROUP, head: 0, body: dtype.block_bytes() * TILE * GROUP };
        BlockPacking::of(dtype).map_or_else(float, |packing| packing.layout)
    }

    /// Bytes of all heads of a tile with `k` columns, filled up to whole lines.
    pub(super) const fn heads(self, k: usize) -> usize {
        (k.div_ceil(self.head_columns) * self.head).next_multiple_of(64)
    }

    /// Bytes of a tile with `k` columns.
    pub(super) const fn tile(self, k: usize) -> usize {
        self.heads(k) + k.div_ceil(GROUP) * self.body
    }
}

/// How a block format is packed and read back, one row and 32 columns at a time.
#[derive(Clone, Copy)]
struct BlockPacking {
    layout: Layout,
    rule: Rule,
    put: fn(&mut [u8], usize, &[i8; GROUP]),
    get: fn(&[u8], usize) -> [i8; GROUP],
}

impl BlockPacking {
    /// That of `dtype`; float types have none.
    fn of(dtype: DType) -> Option<BlockPacking> {
        struct Of;
        impl Visitor for Of {
            type Output = BlockPacking;
            fn visit<C: Code, H: Head>(self) -> BlockPacking {
                BlockPacking { layout: Layout::new::<C, H>(), rule: H::RULE, put: C::put, get: C::get }
            }
        }
        visit(dtype, Of)
    }

    /// Head and part within it of group `group`.
    fn place(self, group: usize) -> (usize, usize) {
        let parts = self.layout.head_columns / GROUP;
        (group / parts * self.layout.head, group % parts)
    }

    /// Values `32 * group ..` of row `lane` of a tile with `k` columns.
    fn codes(self, k: usize, tile: &[u8], lane: usize, group: usize) -> Codes {
        let (heads, bodies) = tile.split_at(self.layout.heads(k));
        let (at, part) = self.place(group);
        let scales = head::get(self.rule, &heads[at..][..self.layout.head], part, lane);
        let body = &bodies[group * self.layout.body..][..self.layout.body];
        Codes::new(self.rule, &scales, (self.get)(body, lane))
    }
}

/// The same values as a [`Matrix`], laid out for SIMD, owned and aligned to 64 bytes.
#[derive(Clone)]
pub struct PackedMatrix {
    dtype: DType,
    n: usize,
    k: usize,
    data: AlignedBytes,
}

impl std::fmt::Debug for PackedMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PackedMatrix({} {} x {})", self.dtype, self.n, self.k)
    }
}

impl PackedMatrix {
    /// Repacks `matrix` on all threads of `pool`.
    pub fn pack(matrix: &Matrix<'_>, pool: &Pool) -> PackedMatrix {
        let (dtype, n, k) = (matrix.dtype(), matrix.n(), matrix.k());
        let size = Layout::of(dtype).tile(k);
        let mut data = AlignedBytes::zeroed(n.div_ceil(TILE) * size);
        pool.chunks_mut(pool.threads(), data.bytes_mut(), size, &|tile, bytes| {
            pack_tile(matrix, tile, bytes)
        });
        PackedMatrix { dtype, n, k, data }
    }

    /// Storage type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Rows (output features), without the filling.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Values a row (input features).
    pub fn k(&self) -> usize {
        self.k
    }

    /// All bytes, filling included: what one pass over the weights reads.
    pub fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }

    /// The bytes of tile `tile`.
    pub(super) fn tile(&self, tile: usize) -> &[u8] {
        let size = Layout::of(self.dtype).tile(self.k);
        &self.bytes()[tile * size..][..size]
    }

    /// Decodes row `row` into `out` (`k` values), from the packed bytes.
    ///
    /// # Errors
    /// When there is no such row or `out` is not `k` long.
    pub fn row_decode(&self, row: usize, out: &mut [f32]) -> Result<(), ShapeError> {
        check_row(row, self.n, self.k, out)?;
        let (tile, lane) = (self.tile(row / TILE), row % TILE);
        if let Some(packing) = BlockPacking::of(self.dtype) {
            for (group, out) in out.chunks_exact_mut(GROUP).enumerate() {
                out.copy_from_slice(&packing.codes(self.k, tile, lane, group).decode());
            }
        } else {
            let size = self.dtype.block_bytes();
            for (column, out) in out.iter_mut().enumerate() {
                *out = quant::load(self.dtype, &tile[(column * TILE + lane) * size..][..size]);
            }
        }
        Ok(())
    }

    /// Values `32 * group ..` of row `row`; none of a float type.
    pub(super) fn codes(&self, row: usize, group: usize) -> Option<Codes> {
        let packing = BlockPacking::of(self.dtype)?;
        Some(packing.codes(self.k, self.tile(row / TILE), row % TILE, group))
    }
}

/// Writes tile `tile` of `matrix` to `out`, which is zeroed and one tile long.
pub(super) fn pack_tile(matrix: &Matrix<'_>, tile: usize, out: &mut [u8]) {
    let (dtype, k) = (matrix.dtype(), matrix.k());
    let packing = BlockPacking::of(dtype);
    for lane in 0..TILE.min(matrix.n() - tile * TILE) {
        let row = matrix.row(tile * TILE + lane);
        let Some(packing) = packing else {
            let size = dtype.block_bytes();
            for (column, value) in row.chunks_exact(size).enumerate() {
                out[(column * TILE + lane) * size..][..size].copy_from_slice(value);
            }
            continue;
        };
        let Layout { head, body, .. } = packing.layout;
        let (heads, bodies) = out.split_at_mut(packing.layout.heads(k));
        let parts = dtype.block_len() / GROUP;
        for (index, block) in row.chunks_exact(dtype.block_bytes()).enumerate() {
            for part in 0..parts {
                let group = index * parts + part;
                let (scales, q) = quant::read(dtype, block, part);
                let (at, part) = packing.place(group);
                head::put(packing.rule, &mut heads[at..][..head], part, lane, &scales);
                (packing.put)(&mut bodies[group * body..][..body], lane, &q);
            }
        }
    }
}
