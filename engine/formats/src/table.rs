//! The tensors of a model: a compact table, so that a file of nothing but tiny tensors costs no more memory than it has
//! bytes.

use crate::{Dims, SharedBytes, Storage};
use memra_kernels::DType;
use std::fmt;

/// How much room the entries of a table take; known before any of it is allocated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    rows: usize,
    name_bytes: usize,
    dim_bytes: usize,
}

impl Tally {
    pub(crate) fn add(&mut self, name: &str, dims: &Dims) {
        self.rows += 1;
        self.name_bytes += name.len();
        self.dim_bytes += dims.packed_len();
    }

    pub(crate) fn join(&mut self, other: &Tally) {
        self.rows += other.rows;
        self.name_bytes += other.name_bytes;
        self.dim_bytes += other.dim_bytes;
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }
}

/// Where and how a tensor is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// First byte, from the beginning of the data section of its part.
    pub(crate) start: u64,
    /// The file it is in, of those the model is split over.
    pub(crate) part: u16,
    pub(crate) storage: Storage,
}

/// An entry: 24 bytes, which is what the smallest entry of a GGUF header takes beside its name and dimensions.
#[derive(Clone, Debug)]
struct Row {
    place: Place,
    /// Ends of the name and of the packed dimensions; they begin where those of the row before end.
    name_end: u32,
    dims_end: u32,
}

/// Every tensor of a model and the data sections they are in.
#[derive(Clone)]
pub(crate) struct Table {
    parts: Vec<SharedBytes>,
    names: String,
    dims: Vec<u8>,
    rows: Vec<Row>,
    /// Indices of `rows`, ordered by name.
    by_name: Vec<u32>,
}

/// Most bytes of names, and of dimensions; ends are kept in 32 bits.
pub(crate) const MAX_NAME_BYTES: usize = u32::MAX as usize;

impl Table {
    /// A table with room for what was tallied, or `None` when names or dimensions take more than 4 GiB.
    pub(crate) fn with_room(tally: &Tally) -> Option<Table> {
        let fits = tally.name_bytes <= MAX_NAME_BYTES && tally.dim_bytes <= MAX_NAME_BYTES;
        fits.then(|| Table {
            parts: Vec::new(),
            names: String::with_capacity(tally.name_bytes),
            dims: Vec::with_capacity(tally.dim_bytes),
            rows: Vec::with_capacity(tally.rows),
            by_name: Vec::new(),
        })
    }

    /// Adds a tensor whose `place` lies inside the data section of the part that is added next.
    pub(crate) fn push(&mut self, name: &str, dims: &Dims, place: Place) {
        self.names.push_str(name);
        dims.pack(&mut self.dims);
        let (name_end, dims_end) = (self.names.len() as u32, self.dims.len() as u32);
        self.rows.push(Row { place, name_end, dims_end });
    }

    /// Adds the data section of the tensors added since the last one.
    pub(crate) fn push_part(&mut self, data: SharedBytes) {
        self.parts.push(data);
    }

    /// Number of parts added.
    pub(crate) fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// Makes names findable; fails with a name that occurs twice.
    pub(crate) fn index(&mut self) -> Result<(), &str> {
        let mut by_name: Vec<u32> = (0..).take(self.rows.len()).collect();
        by_name.sort_unstable_by_key(|&row| self.name(row as usize));
        self.by_name = by_name;
        let twice = self.by_name.windows(2).find(|w| self.name(w[0] as usize) == self.name(w[1] as usize));
        twice.map_or(Ok(()), |pair| Err(self.name(pair[0] as usize)))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    fn name(&self, row: usize) -> &str {
        let start = row.checked_sub(1).map_or(0, |before| self.rows[before].name_end);
        &self.names[start as usize..self.rows[row].name_end as usize]
    }

    /// The tensors in file order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> + Clone {
        (0..self.rows.len()).map(|row| Tensor { table: self, row })
    }

    /// The tensors of one row on, ordered by where they begin; empty ones come first where several begin.
    pub(crate) fn by_place(&self, first: usize) -> impl Iterator<Item = Tensor<'_>> {
        let mut rows: Vec<u32> = (first as u32..).take(self.rows.len() - first).collect();
        let tensor = |row: u32| Tensor { table: self, row: row as usize };
        rows.sort_unstable_by(|&a, &b| {
            let (a, b) = (tensor(a), tensor(b));
            a.start().cmp(&b.start()).then_with(|| a.byte_len().cmp(&b.byte_len()))
        });
        rows.into_iter().map(tensor)
    }

    pub(crate) fn find(&self, name: &str) -> Option<Tensor<'_>> {
        let at = self.by_name.binary_search_by(|&row| self.name(row as usize).cmp(name)).ok()?;
        Some(Tensor { table: self, row: self.by_name[at] as usize })
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tensors in {} files", self.len(), self.parts.len())
    }
}

/// A tensor whose stored type no kernel computes with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "tensor `{tensor}` is stored as {storage}, which memra does not compute with; use another conversion of the model"
)]
pub struct UnsupportedType {
    /// The tensor.
    pub tensor: String,
    /// Its type.
    pub storage: Storage,
}

/// A tensor: name, shape, storage and data, borrowed from the model it is in.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    table: &'a Table,
    row: usize,
}

impl<'a> Tensor<'a> {
    fn place(&self) -> &'a Place {
        &self.table.rows[self.row].place
    }

    /// Name, such as `blk.0.attn_q.weight` or `model.layers.0.self_attn.q_proj.weight`.
    pub fn name(&self) -> &'a str {
        self.table.name(self.row)
    }

    /// Dimensions, fastest first, whatever the format: a weight matrix is `[in features (k), out features (n)]`. Empty
    /// for a scalar.
    pub fn dims(&self) -> Dims {
        let start = self.row.checked_sub(1).map_or(0, |before| self.table.rows[before].dims_end);
        Dims::unpack(&self.table.dims[start as usize..self.table.rows[self.row].dims_end as usize])
    }

    /// The same dimensions slowest first, as safetensors headers and PyTorch write them.
    pub fn shape(&self) -> Dims {
        self.dims().reversed()
    }

    /// How values are stored.
    pub fn storage(&self) -> Storage {
        self.place().storage
    }

    /// The type kernels compute with.
    ///
    /// # Errors
    /// [`UnsupportedType`]: such tensors can be listed and their bytes read all the same.
    pub fn dtype(&self) -> Result<DType, UnsupportedType> {
        let storage = self.storage();
        storage.dtype().ok_or_else(|| UnsupportedType { tensor: self.name().to_owned(), storage })
    }

    /// Number of stored values: the product of the dimensions.
    pub fn n_values(&self) -> usize {
        self.dims().product().unwrap_or_default()
    }

    /// Index of the file it is in, of those that the model is split over.
    pub fn part(&self) -> usize {
        self.place().part.into()
    }

    /// First byte in the data section.
    pub(crate) fn start(&self) -> u64 {
        self.place().start
    }

    /// Size in bytes; it was computed without overflow before the tensor was put in the table.
    pub(crate) fn byte_len(&self) -> usize {
        self.storage().byte_len(&self.dims()).unwrap_or_default()
    }

    /// The stored values or blocks, row after row.
    pub fn data(&self) -> &'a [u8] {
        let data = self.table.parts.get(self.part());
        data.and_then(|data| data.get(self.range())).unwrap_or_default()
    }

    /// The same bytes as a handle that keeps the file's mapping alive.
    pub fn shared_data(&self) -> SharedBytes {
        let data = self.table.parts.get(self.part());
        data.and_then(|data| data.slice(self.range())).unwrap_or_default()
    }

    /// Where the bytes are in the data section; the readers put no tensor in a table that is not inside.
    fn range(&self) -> std::ops::Range<usize> {
        let start = self.start() as usize;
        start..start + self.byte_len()
    }
}

impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.name(), self.storage(), self.dims())
    }
}
