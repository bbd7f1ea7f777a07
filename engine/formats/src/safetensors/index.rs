//! The index of a model in several files: which tensor is in which.

use super::{SafetensorsError as Error, reader::map};
use crate::json::{At, Each, Text};
use crate::{Json, SharedBytes};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::{Component, Path};

/// Largest index read; that of a quantised mixture of experts of 10^12 parameters has some 40 MB.
const MAX_INDEX_BYTES: usize = 100_000_000;

/// Most files of a model; real ones have up to some 200.
const MAX_FILES: usize = u16::MAX as usize;

/// An index, such as `model.safetensors.index.json`. It is walked when it is needed, never held.
pub(super) struct Index {
    json: Json,
}

impl Index {
    pub(super) fn open(path: &Path) -> Result<Index, Error> {
        Ok(Index { json: Json::open_at_most(path.to_owned(), MAX_INDEX_BYTES)? })
    }

    /// Maps the files that it names, each when it is first named: an index of names that lead nowhere ends at the first.
    pub(super) fn map_files(&self) -> Result<BTreeMap<String, SharedBytes>, Error> {
        let mut files = BTreeMap::new();
        self.walk(|tensor, file| {
            if files.contains_key(file) {
                return Ok(());
            }
            if !is_file_name(file) {
                let (index, tensor, file) = (self.json.path().to_owned(), tensor.to_owned(), file.to_owned());
                return Err(Error::ShardName { index, tensor, file });
            }
            if files.len() == MAX_FILES {
                return Err(Error::TooMany { what: "files", count: MAX_FILES + 1, limit: MAX_FILES });
            }
            let missing =
                |source| Error::MissingShard { tensor: tensor.to_owned(), source: Box::new(source) };
            let bytes = map(&self.json.path().with_file_name(file)).map_err(missing)?;
            files.insert(file.to_owned(), bytes);
            Ok(())
        })?;
        Ok(files)
    }

    /// Checks that each tensor is in the file it is said to be in.
    pub(super) fn check(&self, is_in: impl Fn(&str, &str) -> bool) -> Result<(), Error> {
        self.walk(|tensor, file| {
            if is_in(tensor, file) {
                return Ok(());
            }
            let path = self.json.path().with_file_name(file);
            Err(Error::NotInShard { tensor: tensor.to_owned(), path })
        })
    }

    /// Calls `each` with every tensor and the file it is said to be in.
    fn walk(&self, mut each: impl FnMut(&str, &str) -> Result<(), Error>) -> Result<(), Error> {
        let path = || self.json.path().to_owned();
        let each = |tensor: &str, file: Result<Text<'_>, String>| match file {
            Ok(Text(file)) => each(tensor, &file),
            Err(problem) => Err(Error::IndexEntry { index: path(), tensor: tensor.to_owned(), problem }),
        };
        let mut failure = None;
        let seed = Each { skip: None, each, failure: &mut failure, value: PhantomData };
        let walked = self.json.walk(At { keys: &[WEIGHT_MAP], seed });
        match (failure, walked) {
            (Some(error), _) => Err(error),
            (None, Err(source)) => Err(self.json.document_error(source).into()),
            (None, Ok(None)) => Err(self.json.missing_error(WEIGHT_MAP).into()),
            (None, Ok(Some(()))) => Ok(()),
        }
    }
}

/// The field of an index that says which tensor is where.
const WEIGHT_MAP: &str = "weight_map";

/// Whether this is the name of a file in the index's own folder, on any system.
fn is_file_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let plain = matches!((components.next(), components.next()), (Some(Component::Normal(only)), None) if only == name);
    plain && !name.contains(['/', '\\', ':']) && !name.contains(char::is_control)
}
