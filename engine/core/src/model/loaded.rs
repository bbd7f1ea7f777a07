//! A model whose weights are ready to compute with.

use super::ModelFile;
use super::source::Change;
use crate::Error;
use crate::program::{OpKind, Program, WeightId, WeightSpec};
use memra_formats::SharedBytes;
use memra_kernels::cpu::{Pool, physical_cores};
use memra_kernels::matmul::{ExpertWeights, Matrix, PackedMatrix, Weights};
use memra_kernels::{DType, quant};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// How to load a model.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Repacks matrices for SIMD, with the same values. Without it they are read from the mapping, more slowly.
    pub pack: bool,
    /// Threads that repack.
    pub threads: usize,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions { pack: true, threads: physical_cores() }
    }
}

/// A loaded model. Sessions share it.
#[derive(Debug)]
pub struct Model {
    file: ModelFile,
    weights: HashMap<String, Arc<Weight>>,
}

/// One tensor, as ops read it.
#[derive(Debug)]
pub(crate) enum Weight {
    /// Norms and biases, decoded.
    Vector(Vec<f32>),
    /// A matrix in the mapping.
    Mapped { dtype: DType, n: usize, k: usize, data: SharedBytes },
    /// A matrix repacked for SIMD.
    Packed(PackedMatrix),
    /// Matrices of experts, each in either form.
    Experts(Vec<Weight>),
}

impl Model {
    /// Opens a model file and makes its weights ready.
    ///
    /// # Errors
    /// As [`ModelFile::open`].
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Arc<Model>, Error> {
        Model::from_file(ModelFile::open(path)?, options)
    }

    /// Makes the weights of an opened file ready.
    ///
    /// # Errors
    /// A tensor whose data cannot be read.
    pub fn from_file(file: ModelFile, options: &LoadOptions) -> Result<Arc<Model>, Error> {
        let pool = Pool::new(options.threads);
        let mut weights = HashMap::new();
        for program in file.smallest_programs()? {
            for (id, vector) in roles(&program) {
                let name = &program.weights[id.0 as usize].name;
                if !weights.contains_key(name) {
                    let weight = read(&file, &program, id, vector, options.pack.then_some(&pool))?;
                    weights.insert(name.clone(), Arc::new(weight));
                }
            }
        }
        Ok(Arc::new(Model { file, weights }))
    }

    /// The file it was loaded from: configuration, tokenizer, metadata.
    pub fn file(&self) -> &ModelFile {
        &self.file
    }

    /// Bytes of weights held in memory beside the mapping.
    pub fn resident_bytes(&self) -> usize {
        self.weights.values().map(|w| w.resident_bytes()).sum()
    }

    /// The weights of a Program of this model, in its order.
    pub(crate) fn resolve(&self, program: &Program) -> Result<Vec<Arc<Weight>>, Error> {
        let find = |name: &String| {
            self.weights.get(name).cloned().ok_or_else(|| Error::Tensor {
                name: name.clone(),
                problem: "was not loaded: this Program is of another model".into(),
            })
        };
        program.weights.iter().map(|w| find(&w.name)).collect()
    }
}

/// Each weight that an op reads, and whether as a vector.
fn roles(program: &Program) -> impl Iterator<Item = (WeightId, bool)> + '_ {
    program.ops.iter().flat_map(|op| {
        let matrix = match op.kind {
            OpKind::Embed { table, .. } => Some(table),
            OpKind::Matmul { weight, .. } | OpKind::Experts { weight, .. } => Some(weight),
            _ => None,
        };
        op.kind.weights().map(move |id| (id, Some(id) != matrix))
    })
}

fn read(
    file: &ModelFile,
    program: &Program,
    id: WeightId,
    vector: bool,
    pack: Option<&Pool>,
) -> Result<Weight, Error> {
    let spec = &program.weights[id.0 as usize];
    if vector {
        return vector_of(file, spec);
    }
    if spec.stack == 1 {
        return matrix_of(file, spec, 0, pack);
    }
    let experts = (0..spec.stack).map(|index| matrix_of(file, spec, index, pack));
    Ok(Weight::Experts(experts.collect::<Result<_, _>>()?))
}

/// All values of a tensor, decoded and changed as its rule says.
fn vector_of(file: &ModelFile, spec: &WeightSpec) -> Result<Weight, Error> {
    let each = spec.n * spec.k;
    let mut values = vec![0.0; spec.stack * each];
    for (index, values) in values.chunks_exact_mut(each.max(1)).enumerate() {
        let data = file.matrix(&spec.name, index)?;
        quant::decode(spec.dtype, &data, values).map_err(|e| broken(spec, &e))?;
    }
    match file.change(&spec.name) {
        Change::None => {}
        Change::AddOne => values.iter_mut().for_each(|value| *value += 1.0),
        Change::NegativeExp => values.iter_mut().for_each(|value| *value = -f64::from(*value).exp() as f32),
    }
    Ok(Weight::Vector(values))
}

/// One matrix of a tensor.
fn matrix_of(
    file: &ModelFile,
    spec: &WeightSpec,
    index: usize,
    pack: Option<&Pool>,
) -> Result<Weight, Error> {
    let data = file.matrix(&spec.name, index)?;
    let WeightSpec { dtype, n, k, .. } = *spec;
    let matrix = Matrix::new(dtype, n, k, &data).map_err(|e| broken(spec, &e))?;
    Ok(match pack {
        Some(pool) => {
            let packed = PackedMatrix::pack(&matrix, pool);
            // One copy in memory is enough.
            data.evict();
            Weight::Packed(packed)
        }
        None => Weight::Mapped { dtype, n, k, data },
    })
}

fn broken(spec: &WeightSpec, error: &quant::QuantError) -> Error {
    Error::Tensor { name: spec.name.clone(), problem: error.to_string() }
}

impl Weight {
    /// The values of a vector.
    pub(crate) fn vector(&self) -> &[f32] {
        match self {
            Weight::Vector(values) => values,
            _ => &[],
        }
    }

    /// The matrix, where it is one.
    pub(crate) fn matrix(&self) -> Option<Weights<'_>> {
        match self {
            Weight::Vector(_) | Weight::Experts(_) => None,
            // Checked when it was loaded.
            Weight::Mapped { dtype, n, k, data } => Matrix::new(*dtype, *n, *k, data).ok().map(Weights::File),
            Weight::Packed(packed) => Some(Weights::Packed(packed)),
        }
    }

    fn resident_bytes(&self) -> usize {
        match self {
            Weight::Vector(values) => 4 * values.len(),
            Weight::Mapped { .. } => 0,
            Weight::Packed(packed) => packed.bytes().len(),
            Weight::Experts(experts) => experts.iter().map(Weight::resident_bytes).sum(),
        }
    }
}

impl ExpertWeights for Weight {
    fn experts(&self) -> usize {
        match self {
            Weight::Experts(experts) => experts.len(),
            _ => 1,
        }
    }

    fn expert(&self, expert: usize) -> Option<Weights<'_>> {
        match self {
            Weight::Experts(experts) => experts.get(expert)?.matrix(),
            one => one.matrix().filter(|_| expert == 0),
        }
    }
}
