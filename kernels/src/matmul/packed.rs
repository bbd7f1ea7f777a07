//! Weights repacked so that SIMD lanes are weight rows.
//!
//! Sixteen rows make a tile; the last tile is filled up with zero rows. A tile holds its *heads* (scales and
//! minimums), filled up to 64 bytes, then its *bodies* (codes), one for each 32 columns.
//!
//! In a body of a block format, a *quad* is four consecutive columns of the sixteen rows: 64 bytes, row `r` in bytes
//! `4r..4r+4`, which is one operand of a four-way integer dot product whose lanes are the rows.
//!
//! | type | head, for each | of | body, for each 32 columns |
//! |---|---|---|---|
//! | Q8_0 | 32 columns | 16 `d`: f16 | 8 quads of `q + 128`: u8 |
//! | Q4_1 | 32 columns | 16 `d`, 16 `m`: f16 | 4 × 64 bytes: quad `i` in the low four bits, quad `4 + i` in the high ones |
//! | Q4_K | 256 columns | 16 `d`, 16 `dmin`: f16; for each part of 32 columns 16 `sc`, 16 `mn`: u8 | as Q4_1 |
//! | Q6_K | 256 columns | 16 `d`: f16; for each part of 16 columns 16 `sc`: i8; 32 bytes unused | as Q4_1 for the low four bits; then 2 × 64 bytes, quad `i + 2j` in bits `2j..2j+2` of the `i`-th |
//! | F32, F16, BF16 | - | - | for each column the sixteen rows' values |

use super::weights::{Matrix, check_row};
use crate::DType;
use crate::cpu::{AlignedBytes, Pool};
use crate::error::ShapeError;
use crate::quant::{self, Codes, GROUP};

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
    pub(super) const fn of(dtype: DType) -> Layout {
        let (head_columns, head, body) = match dtype {
            DType::F32 => (GROUP, 0, 4 * TILE * GROUP),
            DType::F16 | DType::BF16 => (GROUP, 0, 2 * TILE * GROUP),
            DType::Q8_0 => (GROUP, 32, 512),
            DType::Q4_1 => (GROUP, 64, 256),
            DType::Q4_K => (256, 320, 256),
            DType::Q6_K => (256, 320, 384),
        };
        Layout { head_columns, head, body }
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
        if self.dtype.is_quantised() {
            for (group, out) in out.chunks_exact_mut(GROUP).enumerate() {
                out.copy_from_slice(&codes(self.dtype, self.k, tile, lane, group).decode());
            }
        } else {
            let size = self.dtype.block_bytes();
            for (column, out) in out.iter_mut().enumerate() {
                *out = quant::load(self.dtype, &tile[(column * TILE + lane) * size..][..size]);
            }
        }
        Ok(())
    }

    /// Values `32 * group ..` of row `row` of a block format.
    pub(super) fn codes(&self, row: usize, group: usize) -> Codes {
        codes(self.dtype, self.k, self.tile(row / TILE), row % TILE, group)
    }
}

/// Writes tile `tile` of `matrix` to `out`, which is zeroed and one tile long.
pub(super) fn pack_tile(matrix: &Matrix<'_>, tile: usize, out: &mut [u8]) {
    let (dtype, k) = (matrix.dtype(), matrix.k());
    let layout = Layout::of(dtype);
    let (heads, bodies) = out.split_at_mut(layout.heads(k));
    for lane in 0..TILE.min(matrix.n() - tile * TILE) {
        let row = matrix.row(tile * TILE + lane);
        if !dtype.is_quantised() {
            let size = dtype.block_bytes();
            for (column, value) in row.chunks_exact(size).enumerate() {
                bodies[(column * TILE + lane) * size..][..size].copy_from_slice(value);
            }
            continue;
        }
        let parts = dtype.block_len() / GROUP;
        for (index, block) in row.chunks_exact(dtype.block_bytes()).enumerate() {
            pack_head(dtype, block, &mut heads[index * layout.head..][..layout.head], lane);
            for part in 0..parts {
                let body = &mut bodies[(index * parts + part) * layout.body..][..layout.body];
                pack_body(dtype, &quant::codes(dtype, block, part).q, body, lane);
            }
        }
    }
}

/// Copies the two bytes at `from` to lane `lane` of the row of 16 that starts at `to`.
fn copy_f16(block: &[u8], from: usize, head: &mut [u8], to: usize, lane: usize) {
    head[to + 2 * lane..][..2].copy_from_slice(&block[from..from + 2]);
}

fn pack_head(dtype: DType, block: &[u8], head: &mut [u8], lane: usize) {
    match dtype {
        DType::Q8_0 => copy_f16(block, 0, head, 0, lane),
        DType::Q4_1 => {
            copy_f16(block, 0, head, 0, lane);
            copy_f16(block, 2, head, 32, lane);
        }
        DType::Q4_K => {
            copy_f16(block, 0, head, 0, lane);
            copy_f16(block, 2, head, 32, lane);
            for part in 0..8 {
                let (sc, mn) = quant::q4_k::scale_min(&block[4..16], part);
                head[64 + 32 * part + lane] = sc;
                head[80 + 32 * part + lane] = mn;
            }
        }
        DType::Q6_K => {
            copy_f16(block, 208, head, 0, lane);
            for part in 0..16 {
                head[32 + 16 * part + lane] = block[192 + part];
            }
        }
        DType::F32 | DType::F16 | DType::BF16 => {}
    }
}

fn pack_body(dtype: DType, q: &[i8; GROUP], body: &mut [u8], lane: usize) {
    for (column, &q) in q.iter().enumerate() {
        let (quad, byte) = (column / 4, 4 * lane + column % 4);
        if dtype == DType::Q8_0 {
            body[64 * quad + byte] = q as u8 ^ 0x80;
            continue;
        }
        let code = if dtype == DType::Q6_K { (q + 32) as u8 } else { q as u8 };
        body[64 * (quad % 4) + byte] |= (code & 15) << (4 * (quad / 4));
        if dtype == DType::Q6_K {
            body[256 + 64 * (quad % 2) + byte] |= code >> 4 << (2 * (quad / 2));
        }
    }
}

/// The inverse of [`pack_tile`] for 32 values of one row, written apart from the SIMD code to check it.
fn codes(dtype: DType, k: usize, tile: &[u8], lane: usize, group: usize) -> Codes {
    let layout = Layout::of(dtype);
    let (heads, bodies) = tile.split_at(layout.heads(k));
    let parts = layout.head_columns / GROUP;
    let (head, part) = (&heads[group / parts * layout.head..][..layout.head], group % parts);
    let body = &bodies[group * layout.body..][..layout.body];
    let q = std::array::from_fn(|column| {
        let (quad, byte) = (column / 4, 4 * lane + column % 4);
        if dtype == DType::Q8_0 {
            return (body[64 * quad + byte] ^ 0x80) as i8;
        }
        let low = body[64 * (quad % 4) + byte] >> (4 * (quad / 4)) & 15;
        if dtype != DType::Q6_K {
            return low as i8;
        }
        let high = body[256 + 64 * (quad % 2) + byte] >> (2 * (quad / 2)) & 3;
        (low | high << 4) as i8 - 32
    });
    let f16 = |at: usize| quant::f16_at(head, at + 2 * lane);
    let (scale, min) = match dtype {
        DType::Q4_1 => ([f16(0); 2], Some(f16(32))),
        DType::Q4_K => {
            let (sc, mn) = (head[64 + 32 * part + lane], head[80 + 32 * part + lane]);
            ([f16(0) * f32::from(sc); 2], Some(-(f16(32) * f32::from(mn))))
        }
        DType::Q6_K => {
            let sc = |half: usize| f32::from(head[32 + 16 * (2 * part + half) + lane] as i8);
            ([f16(0) * sc(0), f16(0) * sc(1)], None)
        }
        _ => ([f16(0); 2], None),
    };
    Codes { q, scale, min }
}
