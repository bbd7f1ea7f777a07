//! Reading and checking a whole GGUF header.

use super::{GgufError, Metadata, Tensor, cursor::Cursor, tensor};
use crate::{SharedBytes, mmap};
use memra_kernels::DType;
use std::{fs, path::Path};

/// Most metadata keys read; real files have dozens.
const MAX_KEYS: u64 = 1 << 16;
/// Most tensors read; the largest mixtures of experts, stored unfused, have some 100,000.
const MAX_TENSORS: u64 = 1 << 17;
/// Fewest bytes of a tensor's entry: name length, number of dimensions, type, offset.
const MIN_TENSOR_INFO: u64 = 8 + 4 + 4 + 8;
/// Largest alignment read and written.
pub(super) const MAX_ALIGNMENT: u32 = 1 << 20;
/// Alignment of files that do not say.
pub(super) const DEFAULT_ALIGNMENT: u32 = 32;
/// The key that says.
pub(super) const ALIGNMENT_KEY: &str = "general.alignment";

/// A GGUF file, checked as a whole: every tensor that it lists is inside it, of a known type, and shares no byte with
/// another.
#[derive(Clone, Debug)]
pub struct Gguf {
    version: u32,
    alignment: u32,
    size: usize,
    metadata: Metadata,
    tensors: Vec<Tensor>,
    /// Indices of `tensors`, ordered by name.
    by_name: Vec<u32>,
}

/// A tensor's entry in the header.
struct TensorInfo {
    name: String,
    dims: Vec<usize>,
    dtype: DType,
    offset: u64,
    bytes: usize,
}

impl Gguf {
    /// Maps the file at `path` and checks it. The file must not be changed in place while it is open.
    ///
    /// # Errors
    /// A file that cannot be opened, or that is no valid GGUF file; see [`GgufError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Gguf, GgufError> {
        let path = path.as_ref();
        let fail = |source| GgufError::Open { path: path.to_owned(), source };
        // Asked before opening: opening a pipe would wait for a writer.
        if !fs::metadata(path).map_err(fail)?.is_file() {
            return Err(GgufError::NotAFile { path: path.to_owned() });
        }
        let map = fs::File::open(path).and_then(|file| mmap::map(&file)).map_err(fail)?;
        Gguf::parse(SharedBytes::mapped(map))
    }

    /// Checks a file that is already in memory.
    ///
    /// # Errors
    /// Bytes that are no valid GGUF file; see [`GgufError`].
    pub fn parse(bytes: impl Into<SharedBytes>) -> Result<Gguf, GgufError> {
        let bytes = bytes.into();
        let mut cursor = Cursor::new(&bytes, 0);
        let (version, n_tensors, n_keys) = read_head(&bytes, &mut cursor)?;
        let metadata = Metadata::read(&bytes, &mut cursor, n_keys)?;
        let alignment = read_alignment(&metadata)?;
        let mut infos = Vec::new();
        for _ in 0..n_tensors {
            infos.push(read_tensor_info(&mut cursor, alignment)?);
        }
        let data_at = cursor.pos().checked_next_multiple_of(alignment as usize);
        let data = data_at.and_then(|at| bytes.slice(at..bytes.len()));
        let data = data.unwrap_or_else(|| SharedBytes::from(&[][..]));
        check_overlap(&infos)?;
        let tensors = infos.into_iter().map(|info| place(info, &data)).collect::<Result<Vec<_>, _>>()?;
        let by_name = index_names(&tensors)?;
        Ok(Gguf { version, alignment, size: bytes.len(), metadata, tensors, by_name })
    }

    /// Format version, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Alignment of tensor data in the file, in bytes.
    pub fn alignment(&self) -> u32 {
        self.alignment
    }

    /// Size of the file in bytes.
    pub fn file_size(&self) -> usize {
        self.size
    }

    /// The metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors, in file order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The tensor of this name, if the file has it.
    pub fn find_tensor(&self, name: &str) -> Option<&Tensor> {
        let at = self.by_name.binary_search_by(|&i| self.tensors[i as usize].name.as_str().cmp(name)).ok()?;
        self.tensors.get(self.by_name[at] as usize)
    }

    /// The tensor of this name.
    ///
    /// # Errors
    /// [`GgufError::MissingTensor`].
    pub fn tensor(&self, name: &str) -> Result<&Tensor, GgufError> {
        self.find_tensor(name).ok_or_else(|| GgufError::MissingTensor { tensor: name.to_owned() })
    }
}

/// Magic, version, and the numbers of tensors and keys.
fn read_head(bytes: &[u8], cursor: &mut Cursor<'_>) -> Result<(u32, u32, u32), GgufError> {
    if !bytes.starts_with(b"GGUF") {
        let found = bytes[..bytes.len().min(4)].escape_ascii().to_string();
        return Err(GgufError::Magic { found });
    }
    cursor.u32("the magic")?;
    let version = cursor.u32("the version")?;
    if version != 2 && version != 3 {
        let hint = match version {
            1 => "an early format; convert the model again",
            v if (1..=3).contains(&v.swap_bytes()) => {
                "a big-endian file; convert the model for little-endian machines"
            }
            _ => "newer than this reader, or corrupt",
        };
        return Err(GgufError::Version { version, hint });
    }
    let n_tensors = cursor.u64("the tensor count")?;
    let n_keys = cursor.u64("the key count")?;
    let offset = cursor.pos();
    let left = cursor.left();
    let need = u128::from(n_tensors) * u128::from(MIN_TENSOR_INFO);
    if need > left as u128 {
        return Err(GgufError::Truncated { what: "the tensor table", offset, need, left });
    }
    let bounded = |what, count, limit| match u32::try_from(count) {
        Ok(small) if count <= limit => Ok(small),
        _ => Err(GgufError::TooMany { what, count, limit }),
    };
    Ok((version, bounded("tensors", n_tensors, MAX_TENSORS)?, bounded("metadata keys", n_keys, MAX_KEYS)?))
}

fn read_alignment(metadata: &Metadata) -> Result<u32, GgufError> {
    match metadata.value_of(ALIGNMENT_KEY) {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(super::Value::U32(a)) if a.is_power_of_two() && a <= MAX_ALIGNMENT => Ok(a),
        Some(other) => {
            let found = format!("{} {other}", other.value_type());
            Err(GgufError::Alignment { found, limit: MAX_ALIGNMENT })
        }
    }
}

fn read_tensor_info(cursor: &mut Cursor<'_>, alignment: u32) -> Result<TensorInfo, GgufError> {
    let name = cursor.name("a tensor name")?.to_owned();
    let n_dims = cursor.u32("a tensor's number of dimensions")?;
    if n_dims as usize > tensor::MAX_DIMS {
        return Err(GgufError::Dimensions { tensor: name, n_dims: n_dims.into() });
    }
    let mut dims = Vec::with_capacity(n_dims as usize);
    for _ in 0..n_dims {
        // A dimension beyond the address space fails in `byte_size`, as its largest value does.
        dims.push(usize::try_from(cursor.u64("a tensor's dimensions")?).unwrap_or(usize::MAX));
    }
    let id = cursor.u32("a tensor's type")?;
    let Some(dtype) = DType::from_gguf_id(id) else {
        let supported = DType::all().map(|t| t.to_string()).collect::<Vec<_>>().join(", ");
        return Err(GgufError::TensorType { tensor: name, id, name: ggml_type_name(id), supported });
    };
    let offset = cursor.u64("a tensor's offset")?;
    if !offset.is_multiple_of(alignment.into()) {
        return Err(GgufError::Misaligned { tensor: name, offset, alignment });
    }
    let bytes = tensor::byte_size(&name, &dims, dtype)?;
    Ok(TensorInfo { name, dims, dtype, offset, bytes })
}

fn place(info: TensorInfo, data: &SharedBytes) -> Result<Tensor, GgufError> {
    let TensorInfo { name, dims, dtype, offset, bytes } = info;
    let start = usize::try_from(offset).ok();
    let range = start.and_then(|start| Some(start..start.checked_add(bytes)?));
    match range.and_then(|range| data.slice(range)) {
        Some(data) => Ok(Tensor { name, dims, dtype, data }),
        None => Err(GgufError::OutsideFile { tensor: name, offset, bytes, available: data.len() }),
    }
}

fn check_overlap(infos: &[TensorInfo]) -> Result<(), GgufError> {
    let mut order: Vec<&TensorInfo> = infos.iter().filter(|info| info.bytes > 0).collect();
    order.sort_unstable_by_key(|info| info.offset);
    for pair in order.windows(2) {
        if pair[1].offset - pair[0].offset < pair[0].bytes as u64 {
            return Err(GgufError::Overlap { first: pair[0].name.clone(), second: pair[1].name.clone() });
        }
    }
    Ok(())
}

fn index_names(tensors: &[Tensor]) -> Result<Vec<u32>, GgufError> {
    let name = |i: u32| tensors[i as usize].name.as_str();
    let mut by_name: Vec<u32> = (0..).take(tensors.len()).collect();
    by_name.sort_unstable_by_key(|&i| name(i));
    match by_name.windows(2).find(|w| name(w[0]) == name(w[1])) {
        Some(pair) => Err(GgufError::DuplicateTensor { tensor: name(pair[0]).to_owned() }),
        None => Ok(by_name),
    }
}

/// Names of storage types that ggml defines and memra does not read.
fn ggml_type_name(id: u32) -> &'static str {
    match id {
        2 => "Q4_0",
        6 => "Q5_0",
        7 => "Q5_1",
        9 => "Q8_1",
        10 => "Q2_K",
        11 => "Q3_K",
        13 => "Q5_K",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        40 => "NVFP4",
        _ => "unknown to this build",
    }
}
