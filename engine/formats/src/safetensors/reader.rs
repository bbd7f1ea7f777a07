//! Opening the weights of a model.

use super::{SafetensorsError as Error, header::Header, index::Index};
use crate::table::{MAX_NAME_BYTES, Table, Tally};
use crate::{SharedBytes, Tensor, bytes::OpenError};
use std::path::{Path, PathBuf};

/// Most tensors read: a quantised mixture of experts of 10^12 parameters has some 300,000.
const MAX_TENSORS: usize = 1 << 20;

/// The weights of a model in safetensors files, checked as a whole: in each file every byte of data belongs to one
/// tensor, of a type the format defines, and no tensor occurs twice.
#[derive(Clone, Debug)]
pub struct Safetensors {
    file_bytes: u64,
    paths: Vec<PathBuf>,
    table: Table,
}

impl Safetensors {
    /// Maps the weights at `path` and checks them: a `.safetensors` file, or the `.index.json` of several, which lie beside
    /// it. The files must not be changed in place while they are open.
    ///
    /// # Errors
    /// A file that is missing or damaged, or that does not belong to the others; see `SafetensorsError`.
    pub fn open(path: impl AsRef<Path>) -> Result<Safetensors, Error> {
        let path = path.as_ref();
        if path.extension().is_some_and(|extension| extension == "json") {
            return Safetensors::open_index(path);
        }
        Safetensors::join(&[map(path)?], vec![path.to_owned()])
    }

    /// Checks a file that is already in memory.
    ///
    /// # Errors
    /// Bytes that are no valid safetensors file; see `SafetensorsError`.
    pub fn parse(bytes: impl Into<SharedBytes>) -> Result<Safetensors, Error> {
        Safetensors::join(&[bytes.into()], Vec::new())
    }

    fn open_index(path: &Path) -> Result<Safetensors, Error> {
        let index = Index::open(path)?;
        let (names, files): (Vec<_>, Vec<_>) = index.map_files()?.into_iter().unzip();
        let paths = names.iter().map(|name| path.with_file_name(name)).collect();
        let model = Safetensors::join(&files, paths)?;
        index.check(|tensor, file| {
            model
                .find_tensor(tensor)
                .is_some_and(|tensor| names.get(tensor.part()).is_some_and(|n| n == file))
        })?;
        Ok(model)
    }

    /// Reads files as one model. `paths` name them in errors.
    fn join(files: &[SharedBytes], paths: Vec<PathBuf>) -> Result<Safetensors, Error> {
        let in_file = |part: usize| {
            let path = paths.get(part).filter(|_| files.len() > 1).cloned();
            move |error| match path {
                Some(path) => Error::Shard { path, source: Box::new(error) },
                None => error,
            }
        };
        let mut headers = Vec::with_capacity(files.len());
        let mut tally = Tally::default();
        for (part, bytes) in files.iter().enumerate() {
            let header = Header::read(bytes).map_err(in_file(part))?;
            tally.join(&header.tally);
            headers.push(header);
        }
        if tally.rows() > MAX_TENSORS {
            return Err(Error::TooMany { what: "tensors", count: tally.rows(), limit: MAX_TENSORS });
        }
        let long = Error::TooMany {
            what: "bytes of tensor names",
            count: MAX_NAME_BYTES + 1,
            limit: MAX_NAME_BYTES,
        };
        let mut table = Table::with_room(&tally).ok_or(long)?;
        for (part, header) in headers.into_iter().enumerate() {
            header.put(&mut table).map_err(in_file(part))?;
        }
        table.index().map_err(|name| Error::DuplicateTensor { tensor: name.to_owned() })?;
        let file_bytes = files.iter().map(|bytes| bytes.len() as u64).sum();
        Ok(Safetensors { file_bytes, paths, table })
    }

    /// Size of all files in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The files, in the order of their names; none when it was parsed from memory.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The tensors, in header order, file after file.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> + Clone {
        self.table.iter()
    }

    /// The tensor of this name, if there is one.
    pub fn find_tensor(&self, name: &str) -> Option<Tensor<'_>> {
        self.table.find(name)
    }

    /// The tensor of this name.
    ///
    /// # Errors
    /// `SafetensorsError::MissingTensor`.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>, Error> {
        self.find_tensor(name).ok_or_else(|| Error::MissingTensor { tensor: name.to_owned() })
    }
}

/// Maps a file.
pub(super) fn map(path: &Path) -> Result<SharedBytes, Error> {
    let path = path.to_owned();
    SharedBytes::open(&path).map_err(|error| match error {
        OpenError::Io(source) => Error::Open { path, source },
        OpenError::NotAFile => Error::NotAFile { path },
    })
}
