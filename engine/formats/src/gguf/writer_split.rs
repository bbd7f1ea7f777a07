//! Writing a model split over several files.

use super::split::{COUNT_KEY, NO_KEY, TENSORS_KEY};
use super::{GgufBody, GgufError, GgufWriter};
use std::fmt;
use std::io::{self, Write};

impl GgufWriter {
    /// Writes the model in parts of at most `max_bytes` bytes of tensor data (a tensor larger than that is a part of its
    /// own). `create` opens the sink of a part, given its index from 0 and the number of parts; [`super::split_file_name`]
    /// is how files are called.
    ///
    /// ```
    /// use memra_formats::{Gguf, GgufWriter, split_file_name};
    /// use memra_kernels::DType;
    ///
    /// let dir = tempfile::tempdir()?;
    /// let path = |part, count| dir.path().join(split_file_name("model", part, count));
    /// let mut writer = GgufWriter::new();
    /// writer.tensor("a", &[8], DType::F32)?.tensor("b", &[8], DType::F32)?;
    /// let mut body = writer.begin_split(32, |part, count| std::fs::File::create(path(part, count)))?;
    /// body.append(&[0; 32])?;
    /// body.append(&[1; 32])?;
    /// body.finish()?;
    /// assert_eq!(Gguf::open(path(1, 2))?.tensors().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// More than 65,535 parts, metadata keys of splits that were given by hand, [`GgufError::Write`].
    pub fn begin_split<W, F>(self, max_bytes: u64, mut create: F) -> Result<GgufSplitBody<W, F>, GgufError>
    where
        W: Write,
        F: FnMut(u16, u16) -> io::Result<W>,
    {
        let (first, rest) = split(self, max_bytes)?;
        let count = rest.len() as u16 + 1;
        let current = first.begin(create(0, count)?)?;
        let mut body = GgufSplitBody { current, part: 0, count, rest: rest.into_iter(), create };
        body.advance()?;
        Ok(body)
    }
}

/// The writers of the first part and of the others.
fn split(mut first: GgufWriter, max_bytes: u64) -> Result<(GgufWriter, Vec<GgufWriter>), GgufError> {
    let (alignment, tensors) = first.take_tensors();
    let n_tensors = i32::try_from(tensors.len()).unwrap_or(i32::MAX);
    let mut rest = Vec::new();
    let mut filled = 0_u64;
    for (i, tensor) in tensors.into_iter().enumerate() {
        let bytes = tensor.padded(alignment).unwrap_or(u64::MAX);
        if i > 0 && filled.saturating_add(bytes) > max_bytes {
            rest.push(GgufWriter::with_alignment(alignment)?);
            filled = 0;
        }
        filled = filled.saturating_add(bytes);
        rest.last_mut().unwrap_or(&mut first).declare(tensor)?;
    }
    let (n_parts, limit) = (rest.len() as u64 + 1, u16::MAX.into());
    let Ok(count) = u16::try_from(n_parts) else {
        return Err(GgufError::TooMany { what: "parts".into(), count: n_parts, limit });
    };
    for (no, part) in (0_u16..).zip(std::iter::once(&mut first).chain(&mut rest)) {
        part.metadata(NO_KEY, &no)?.metadata(COUNT_KEY, &count)?.metadata(TENSORS_KEY, &n_tensors)?;
    }
    Ok((first, rest))
}

/// The data sections of the parts of a model being written.
pub struct GgufSplitBody<W: Write, F> {
    current: GgufBody<W>,
    /// Its index, and the number of parts.
    part: u16,
    count: u16,
    /// Parts not yet begun.
    rest: std::vec::IntoIter<GgufWriter>,
    create: F,
}

impl<W: Write, F: FnMut(u16, u16) -> io::Result<W>> GgufSplitBody<W, F> {
    /// Ends parts that are complete and begins the next, down to the last.
    fn advance(&mut self) -> Result<(), GgufError> {
        while self.current.is_complete() {
            let Some(next) = self.rest.next() else { break };
            self.part += 1;
            let next = next.begin((self.create)(self.part, self.count)?)?;
            std::mem::replace(&mut self.current, next).finish()?;
        }
        Ok(())
    }

    /// Writes the next bytes of the tensor that is due, in pieces of any size; see [`GgufBody::append`].
    ///
    /// # Errors
    /// As [`GgufBody::append`], and when the file of the next part cannot be created.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), GgufError> {
        self.current.append(bytes)?;
        self.advance()
    }

    /// Ends the last part.
    ///
    /// # Errors
    /// [`GgufError::Data`] when tensors are incomplete, [`GgufError::Write`].
    pub fn finish(self) -> Result<(), GgufError> {
        self.current.finish().map(drop)
    }
}

impl<W: Write, F> fmt::Debug for GgufSplitBody<W, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of {}", self.part + 1, self.count)
    }
}
