//! The tensors of a model by their GGUF names: what they are, and where they lie in the files.

use super::names::{self, Change, Found, Rule};
use crate::Error;
use crate::program::WeightSpec;
use memra_formats::{Checkpoint, SharedBytes, Tensor};
use std::collections::{BTreeMap, HashMap};

/// Tensors by their GGUF names.
#[derive(Debug, Default)]
pub(in crate::model) struct Tensors {
    specs: HashMap<String, WeightSpec>,
    places: HashMap<String, Place>,
}

/// Where the matrices of a tensor are.
#[derive(Debug)]
struct Place {
    layout: Layout,
    change: Change,
}

#[derive(Debug)]
enum Layout {
    /// In one tensor of the files: matrix `i` begins `first + i * stride` rows down.
    Within { tensor: String, first: usize, stride: usize },
    /// Each is a tensor of the files.
    Apart(BTreeMap<usize, String>),
}

impl Tensors {
    /// The tensors of a GGUF file, whose names are ours.
    ///
    /// # Errors
    /// A tensor of a type or with dimensions that nothing computes with.
    pub(super) fn of_gguf<'a>(tensors: impl Iterator<Item = Tensor<'a>>) -> Result<Tensors, Error> {
        let mut list = Tensors::default();
        for tensor in tensors {
            list.add(&tensor, &names::unknown(tensor.name()))?;
        }
        Ok(list)
    }

    /// The tensors of a folder, by an architecture's rules. Those that no rule knows keep their names: nothing will use
    /// them, and that will be an error.
    ///
    /// # Errors
    /// As [`Tensors::of_gguf`]; tensors that are the same one, do not divide as they should, or of which some are missing.
    pub(super) fn of_folder<'a>(
        tensors: impl Iterator<Item = Tensor<'a>>,
        rules: &[Rule],
    ) -> Result<Tensors, Error> {
        let mut list = Tensors::default();
        for tensor in tensors {
            let found = names::translate(rules, tensor.name());
            list.add(&tensor, &found.unwrap_or_else(|| names::unknown(tensor.name())))?;
        }
        list.check_stacks()?;
        Ok(list)
    }

    /// Adds a tensor of the files: one or several of ours, or a matrix of one of ours.
    fn add(&mut self, tensor: &Tensor<'_>, found: &Found) -> Result<(), Error> {
        let parts = found.names.len();
        if parts == 0 {
            return Ok(());
        }
        let whole = spec(tensor)?;
        if !whole.n.is_multiple_of(parts) {
            let problem = format!("has {} rows, which do not divide into {parts} equal parts", whole.n);
            return Err(fail(tensor, problem));
        }
        let n = whole.n / parts;
        for (part, name) in found.names.iter().enumerate() {
            let spec = WeightSpec { name: name.clone(), n, ..whole.clone() };
            if let Some(index) = found.index {
                self.stack(tensor, spec, index, found.change)?;
                continue;
            }
            let tensor_name = tensor.name().to_owned();
            let layout = Layout::Within { tensor: tensor_name, first: part * n, stride: whole.n };
            let place = Place { layout, change: found.change };
            self.specs.insert(name.clone(), spec);
            if self.places.insert(name.clone(), place).is_some() {
                return Err(twice(tensor, name));
            }
        }
        Ok(())
    }

    /// Puts a matrix in its place among those of a tensor.
    fn stack(
        &mut self,
        tensor: &Tensor<'_>,
        spec: WeightSpec,
        index: usize,
        change: Change,
    ) -> Result<(), Error> {
        let name = spec.name.clone();
        let place = self.places.entry(name.clone());
        let place = place.or_insert_with(|| Place { layout: Layout::Apart(BTreeMap::new()), change });
        let Layout::Apart(all) = &mut place.layout else { return Err(twice(tensor, &name)) };
        if all.insert(index, tensor.name().to_owned()).is_some() {
            return Err(twice(tensor, &name));
        }
        let known = self.specs.entry(name).or_insert_with(|| spec.clone());
        known.stack = all.len();
        let kind = |spec: &WeightSpec| (spec.n, spec.k, spec.dtype);
        if kind(known) == kind(&spec) && spec.stack == 1 {
            return Ok(());
        }
        let said = |s: &WeightSpec| format!("{} rows of {} values of type {}", s.n, s.k, s.dtype);
        Err(fail(
            tensor,
            format!("has {}, others of its kind {}; all must be alike", said(&spec), said(known)),
        ))
    }

    fn check_stacks(&self) -> Result<(), Error> {
        for (name, place) in &self.places {
            if let Layout::Apart(all) = &place.layout
                && let Some(missing) = (0..all.len()).find(|index| !all.contains_key(index))
            {
                let problem =
                    format!("has {} matrices, but not number {missing}; the files are incomplete", all.len());
                return Err(Error::Tensor { name: name.clone(), problem });
            }
        }
        Ok(())
    }

    /// What the tensors are.
    pub(in crate::model) fn specs(&self) -> &HashMap<String, WeightSpec> {
        &self.specs
    }

    /// Forgets a tensor that the configuration says is not used.
    pub(super) fn forget(&mut self, name: &str) {
        self.specs.remove(name);
        self.places.remove(name);
    }

    /// What is done to the values of a vector.
    pub(in crate::model) fn change(&self, name: &str) -> Change {
        self.places.get(name).map_or(Change::None, |place| place.change)
    }

    /// The bytes of matrix `index` of a tensor, as they are stored.
    ///
    /// # Errors
    /// There is no such tensor or matrix.
    pub(super) fn matrix(
        &self,
        checkpoint: &Checkpoint,
        name: &str,
        index: usize,
    ) -> Result<SharedBytes, Error> {
        let missing = || Error::Tensor { name: name.to_owned(), problem: "is not in the file".into() };
        let spec = self.specs.get(name).filter(|spec| index < spec.stack).ok_or_else(missing)?;
        let place = self.places.get(name).ok_or_else(missing)?;
        let (tensor, first) = match &place.layout {
            Layout::Within { tensor, first, stride } => (tensor.as_str(), first + index * stride),
            Layout::Apart(all) => (all.get(&index).map_or("", String::as_str), 0),
        };
        // The files were checked when they were opened: a tensor's bytes are those of its rows.
        let row = spec.dtype.row_bytes(spec.k).unwrap_or(0);
        let data = checkpoint.find_tensor(tensor).ok_or_else(missing)?.shared_data();
        data.slice(first * row..(first + spec.n) * row).ok_or_else(missing)
    }
}

fn fail(tensor: &Tensor<'_>, problem: String) -> Error {
    Error::Tensor { name: tensor.name().to_owned(), problem }
}

fn twice(tensor: &Tensor<'_>, name: &str) -> Error {
    fail(tensor, format!("is {name}, which another tensor is too; the files are damaged"))
}

/// A tensor as rows of values: GGUF's first dimension is the row length, a vector is one row.
fn spec(tensor: &Tensor<'_>) -> Result<WeightSpec, Error> {
    let storage = tensor.storage();
    let dtype = storage.dtype().ok_or_else(|| {
        fail(tensor, format!("is stored as {storage}, which this build does not compute with"))
    })?;
    let (k, n, stack) = match *tensor.dims() {
        [k] => (k, 1, 1),
        [k, n] => (k, n, 1),
        [k, n, stack] => (k, n, stack),
        _ => {
            let dims = tensor.dims();
            return Err(fail(tensor, format!("has dimensions {dims:?}; this build reads one, two or three")));
        }
    };
    Ok(WeightSpec { name: tensor.name().to_owned(), dtype, n, k, stack })
}
