//! The entries of a GGUF file's tensor table.

use super::{GgufError, cursor::Cursor};
use crate::table::{Place, Table, Tally};
use crate::{Dims, ScalarType, SharedBytes, Storage, storage::SizeError};
use memra_kernels::DType;

/// Most dimensions a tensor has.
const MAX_DIMS: usize = 4;

/// A tensor's entry in the header.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) dims: Dims,
    pub(super) storage: Storage,
    /// From the beginning of the data section.
    offset: u64,
    bytes: usize,
}

impl<'a> Entry<'a> {
    /// Reads an entry and checks all of it but its place in the file.
    pub(super) fn read(cursor: &mut Cursor<'a>, alignment: u32) -> Result<Entry<'a>, GgufError> {
        let name = cursor.name("a tensor name")?;
        let tensor = || name.to_owned();
        let (dims, id, offset) =
            read_fields(name, cursor).map_err(|error| error.of(format_args!("tensor `{name}`")))?;
        let Some(storage) = storage(id) else {
            let supported = DType::all().filter(|t| t.gguf_id().is_some()).map(|t| t.to_string());
            let supported = supported.collect::<Vec<_>>().join(", ");
            let name = DType::unsupported_gguf_name(id).unwrap_or("unknown to this build");
            return Err(GgufError::TensorType { tensor: tensor(), id, name, supported });
        };
        if !offset.is_multiple_of(alignment.into()) {
            return Err(GgufError::Misaligned { tensor: tensor(), offset, alignment });
        }
        let bytes = byte_len(name, &dims, storage)?;
        Ok(Entry { name, dims, storage, offset, bytes })
    }

    /// Checks that the tensor lies in a data section of `available` bytes.
    fn check_place(&self, available: usize) -> Result<(), GgufError> {
        let end = self.offset.checked_add(self.bytes as u64);
        if end.is_some_and(|end| end <= available as u64) {
            return Ok(());
        }
        let Entry { name, offset, bytes, .. } = *self;
        Err(GgufError::OutsideFile { tensor: name.to_owned(), offset, bytes, available })
    }
}

/// Dimensions, number of the type, and offset of the tensor of this name.
fn read_fields(name: &str, cursor: &mut Cursor<'_>) -> Result<(Dims, u32, u64), GgufError> {
    let n_dims = cursor.u32("the number of dimensions")?;
    if n_dims as usize > MAX_DIMS {
        return Err(GgufError::Dimensions { tensor: name.to_owned(), n_dims: n_dims.into() });
    }
    let mut sizes = [0; MAX_DIMS];
    let sizes = &mut sizes[..n_dims as usize];
    for size in sizes.iter_mut() {
        // A dimension beyond the address space fails in `byte_len`, as its largest value does.
        *size = usize::try_from(cursor.u64("the dimensions")?).unwrap_or(usize::MAX);
    }
    let dims = Dims::new(sizes).unwrap_or_default();
    Ok((dims, cursor.u32("the type")?, cursor.u64("the offset")?))
}

/// The tensor table of one file, read once: what it needs is known, and nothing is allocated yet.
pub(super) struct Entries<'a> {
    /// At the first entry.
    cursor: Cursor<'a>,
    count: u64,
    alignment: u32,
    pub(super) data: SharedBytes,
    pub(super) tally: Tally,
}

impl<'a> Entries<'a> {
    /// Walks `count` entries at the cursor, which must stand in `bytes`, and checks all but their places.
    pub(super) fn check(
        bytes: &SharedBytes,
        cursor: Cursor<'a>,
        count: u64,
        alignment: u32,
    ) -> Result<Entries<'a>, GgufError> {
        let mut walk = cursor.clone();
        let mut tally = Tally::default();
        for _ in 0..count {
            let entry = Entry::read(&mut walk, alignment)?;
            tally.add(entry.name, &entry.dims);
        }
        let data_at = walk.pos().checked_next_multiple_of(alignment as usize);
        let data = data_at.and_then(|at| bytes.slice(at..bytes.len())).unwrap_or_default();
        Ok(Entries { cursor, count, alignment, data, tally })
    }

    /// Adds the tensors to the table, as its next part; each must be inside the file, and no two may share bytes.
    pub(super) fn put(mut self, table: &mut Table) -> Result<(), GgufError> {
        let first = table.len();
        let part = table.n_parts() as u16;
        for _ in 0..self.count {
            let entry = Entry::read(&mut self.cursor, self.alignment)?;
            entry.check_place(self.data.len())?;
            let place = Place { start: entry.offset, part, storage: entry.storage };
            table.push(entry.name, &entry.dims, place);
        }
        table.push_part(self.data);
        let mut before: Option<crate::Tensor<'_>> = None;
        for tensor in table.by_place(first).filter(|tensor| tensor.byte_len() > 0) {
            if let Some(before) = before.filter(|b| tensor.start() - b.start() < b.byte_len() as u64) {
                let (first, second) = (before.name().to_owned(), tensor.name().to_owned());
                return Err(GgufError::Overlap { first, second });
            }
            before = Some(tensor);
        }
        Ok(())
    }
}

/// The storage type with this GGUF number: one that kernels compute with, or plain numbers, such as tables of tokens.
fn storage(id: u32) -> Option<Storage> {
    let plain = match id {
        24 => ScalarType::I8,
        25 => ScalarType::I16,
        26 => ScalarType::I32,
        27 => ScalarType::I64,
        28 => ScalarType::F64,
        _ => return DType::from_gguf_id(id).map(Storage::Blocks),
    };
    Some(Storage::Scalars(plain))
}

/// Bytes of a tensor of at most four dimensions.
pub(super) fn byte_len(name: &str, dims: &Dims, storage: Storage) -> Result<usize, GgufError> {
    let tensor = name.to_owned();
    match storage.byte_len(dims) {
        Ok(bytes) => Ok(bytes),
        Err(SizeError::Row(source)) => Err(GgufError::Row { tensor, source }),
        Err(_) => Err(GgufError::Size { tensor, dims: dims.to_vec(), storage }),
    }
}

/// The dimensions of a tensor to be written.
pub(super) fn dims(name: &str, dims: &[usize]) -> Result<Dims, GgufError> {
    let fits = Dims::new(dims).filter(|dims| dims.len() <= MAX_DIMS);
    fits.ok_or_else(|| GgufError::Dimensions { tensor: name.to_owned(), n_dims: dims.len() as u64 })
}
