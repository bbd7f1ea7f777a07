//! Writing GGUF files, tensor by tensor.

use super::reader::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, MAX_ALIGNMENT};
use super::{GgufError, ToValue, cursor::is_name, tensor};
use crate::{Dims, Storage};
use memra_kernels::DType;
use std::{collections::HashSet, io::Write};

/// Collects the header of a GGUF file (version 3): first the metadata and the list of tensors, then [`GgufWriter::begin`]
/// and the tensors' bytes in the order of the list.
#[derive(Clone, Debug)]
pub struct GgufWriter {
    alignment: u32,
    keys: HashSet<String>,
    metadata: Vec<u8>,
    n_keys: u64,
    names: HashSet<String>,
    tensors: Vec<Declared>,
    /// Size of the data section so far.
    data_bytes: u64,
}

/// A tensor that is to be written.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    name: String,
    dims: Dims,
    dtype: DType,
    /// GGUF's number of the type.
    id: u32,
    bytes: usize,
}

impl Declared {
    /// Bytes it takes in the file, padding included, or `None` when that overflows.
    pub(super) fn padded(&self, alignment: u32) -> Option<u64> {
        (self.bytes as u64).checked_next_multiple_of(alignment.into())
    }
}

impl Default for GgufWriter {
    fn default() -> Self {
        GgufWriter::new()
    }
}

impl GgufWriter {
    /// An empty file with the default alignment of 32 bytes.
    pub fn new() -> Self {
        GgufWriter {
            alignment: DEFAULT_ALIGNMENT,
            keys: HashSet::from([ALIGNMENT_KEY.to_owned()]),
            metadata: Vec::new(),
            n_keys: 0,
            names: HashSet::new(),
            tensors: Vec::new(),
            data_bytes: 0,
        }
    }

    /// An empty file whose tensors begin at multiples of `alignment` bytes; `general.alignment` says so in the file.
    ///
    /// # Errors
    /// [`GgufError::Alignment`] unless it is a power of two of at most 1 MiB.
    pub fn with_alignment(alignment: u32) -> Result<Self, GgufError> {
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            return Err(GgufError::Alignment { found: alignment.to_string(), limit: MAX_ALIGNMENT });
        }
        let mut writer = GgufWriter { alignment, ..GgufWriter::new() };
        writer.put(ALIGNMENT_KEY, &alignment);
        Ok(writer)
    }

    fn put<T: ToValue + ?Sized>(&mut self, key: &str, value: &T) {
        key.encode(&mut self.metadata);
        (T::TYPE as u32).encode(&mut self.metadata);
        value.encode(&mut self.metadata);
        self.n_keys += 1;
    }

    /// Adds a metadata pair.
    ///
    /// # Errors
    /// [`GgufError::Unprintable`], [`GgufError::DuplicateKey`]; `general.alignment` is set by
    /// [`GgufWriter::with_alignment`] alone.
    pub fn metadata<T: ToValue + ?Sized>(&mut self, key: &str, value: &T) -> Result<&mut Self, GgufError> {
        check_name(key)?;
        if !self.keys.insert(key.to_owned()) {
            return Err(GgufError::DuplicateKey { key: key.to_owned() });
        }
        self.put(key, value);
        Ok(self)
    }

    /// Declares the next tensor; `dims` are fastest first.
    ///
    /// # Errors
    /// A name already declared or unprintable, more than four dimensions, rows that do not fill blocks, sizes that
    /// overflow, or a type that GGUF has no number for.
    pub fn tensor(&mut self, name: &str, dims: &[usize], dtype: DType) -> Result<&mut Self, GgufError> {
        check_name(name)?;
        let dims = tensor::dims(name, dims)?;
        let bytes = tensor::byte_len(name, &dims, Storage::Blocks(dtype))?;
        let id = dtype.gguf_id().ok_or_else(|| GgufError::NotInGguf { tensor: name.to_owned(), dtype })?;
        let declared = Declared { name: name.to_owned(), dims, dtype, id, bytes };
        if self.names.contains(name) {
            return Err(GgufError::DuplicateTensor { tensor: name.to_owned() });
        }
        self.declare(declared)?;
        Ok(self)
    }

    pub(super) fn declare(&mut self, tensor: Declared) -> Result<(), GgufError> {
        let end = tensor.padded(self.alignment).and_then(|bytes| self.data_bytes.checked_add(bytes));
        let Some(end) = end else {
            let Declared { name, dims, dtype, .. } = tensor;
            let storage = Storage::Blocks(dtype);
            return Err(GgufError::Size { tensor: name, dims: dims.to_vec(), storage });
        };
        self.data_bytes = end;
        self.names.insert(tensor.name.clone());
        self.tensors.push(tensor);
        Ok(())
    }

    /// The alignment, and what was declared so far, taken out.
    pub(super) fn take_tensors(&mut self) -> (u32, Vec<Declared>) {
        self.data_bytes = 0;
        self.names.clear();
        (self.alignment, std::mem::take(&mut self.tensors))
    }

    /// Writes the header to `out` and returns the sink of the tensors' bytes.
    ///
    /// # Errors
    /// [`GgufError::Write`].
    pub fn begin<W: Write>(self, mut out: W) -> Result<GgufBody<W>, GgufError> {
        let mut header = b"GGUF".to_vec();
        3u32.encode(&mut header);
        (self.tensors.len() as u64).encode(&mut header);
        self.n_keys.encode(&mut header);
        header.extend_from_slice(&self.metadata);
        let mut offset = 0_u64;
        for tensor in &self.tensors {
            tensor.name.encode(&mut header);
            (tensor.dims.len() as u32).encode(&mut header);
            tensor.dims.iter().for_each(|&d| (d as u64).encode(&mut header));
            tensor.id.encode(&mut header);
            offset.encode(&mut header);
            // Padded sizes were summed without overflow when they were declared.
            offset += tensor.padded(self.alignment).unwrap_or_default();
        }
        out.write_all(&header)?;
        let mut body =
            GgufBody { out, alignment: self.alignment as usize, tensors: self.tensors, at: 0, written: 0 };
        body.pad(header.len())?;
        body.skip_finished()?;
        Ok(body)
    }
}

/// Refuses a name that no reader would take.
fn check_name(name: &str) -> Result<(), GgufError> {
    if is_name(name) {
        return Ok(());
    }
    Err(GgufError::Unprintable { name: name.chars().take(60).collect() })
}

/// The data section of a file being written.
#[derive(Debug)]
pub struct GgufBody<W: Write> {
    out: W,
    alignment: usize,
    tensors: Vec<Declared>,
    /// Index of the tensor being written.
    at: usize,
    /// Bytes of it that are written.
    written: usize,
}

impl<W: Write> GgufBody<W> {
    /// Zeros up to the alignment after `len` bytes.
    fn pad(&mut self, len: usize) -> Result<(), GgufError> {
        let padding = len.wrapping_neg() % self.alignment;
        Ok(self.out.write_all(&vec![0; padding])?)
    }

    /// Moves past tensors that are complete.
    fn skip_finished(&mut self) -> Result<(), GgufError> {
        while self.tensors.get(self.at).is_some_and(|tensor| tensor.bytes == self.written) {
            self.pad(self.written)?;
            self.at += 1;
            self.written = 0;
        }
        Ok(())
    }

    /// Whether every tensor is written.
    pub(super) fn is_complete(&self) -> bool {
        self.at == self.tensors.len()
    }

    /// Writes the next bytes of the tensor that is due, in pieces of any size; padding between tensors is added here.
    ///
    /// # Errors
    /// [`GgufError::Data`] when `bytes` reach past the end of the tensor, [`GgufError::Write`].
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), GgufError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(tensor) = self.tensors.get(self.at) else {
            return Err(GgufError::Data { problem: format!("{} bytes after the last tensor", bytes.len()) });
        };
        if bytes.len() > tensor.bytes - self.written {
            let Declared { name, bytes: size, .. } = tensor;
            let problem = format!("`{name}` is {size} bytes but would become {}", self.written + bytes.len());
            return Err(GgufError::Data { problem });
        }
        self.out.write_all(bytes)?;
        self.written += bytes.len();
        self.skip_finished()
    }

    /// Ends the file and returns the sink, flushed.
    ///
    /// # Errors
    /// [`GgufError::Data`] when tensors are incomplete, [`GgufError::Write`].
    pub fn finish(mut self) -> Result<W, GgufError> {
        if let Some(Declared { name, bytes, .. }) = self.tensors.get(self.at) {
            let problem = format!("`{name}` ends at {} of {bytes} bytes", self.written);
            return Err(GgufError::Data { problem });
        }
        self.out.flush()?;
        Ok(self.out)
    }
}
