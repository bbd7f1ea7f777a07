//! Decoding and encoding against the PyPI packages `gguf` and `ml_dtypes`; fixtures by `tools/fixtures/quant.py`.

#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_kernels::{DType, quant};

/// A reader of a fixture's fields.
struct Fields(&'static [u8]);

impl Fields {
    fn bytes(&mut self, n: usize) -> &'static [u8] {
        let (head, tail) = self.0.split_at(n);
        self.0 = tail;
        head
    }

    fn word(&mut self) -> u64 {
        self.bytes(8).iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
    }

    fn count(&mut self) -> usize {
        self.bytes(4).iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
    }
}

macro_rules! fixture {
    ($name:expr) => {
        include_bytes!(concat!("fixtures/quant/", $name, ".bin")) as &[u8]
    };
}

macro_rules! fixtures {
    ($($dtype:ident),*) => {
        [$((DType::$dtype, fixture!(stringify!($dtype)))),*]
    };
}

#[rustfmt::skip]
fn fixtures() -> [(DType, &'static [u8]); DType::ALL.len()] {
    fixtures!(
        F32, F16, BF16, F8_E4M3, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, IQ3_S,
        IQ3_XXS, IQ2_S, IQ2_XS, IQ2_XXS, MXFP4, NVFP4
    )
}

/// Values a row of `rows.bin`.
const ROW: usize = 256;

/// The first rows, which are extremes; the others are ordinary.
const EXTREMES: usize = 10;

fn rows() -> Vec<f32> {
    fixture!("rows").as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn hash(values: &[f32]) -> u64 {
    let bits = |v: &f32| if v.is_nan() { 0x7fc0_0000 } else { v.to_bits() };
    values.iter().fold(0xcbf2_9ce4_8422_2325, |h, v| (h ^ u64::from(bits(v))).wrapping_mul(0x100_0000_01b3))
}

/// Checks the decoded blocks and returns what is left of the fixture.
fn check_decoding(dtype: DType, data: &'static [u8]) -> Fields {
    let mut fields = Fields(data);
    let (blocks, bytes, values) = (fields.count(), fields.count(), fields.count());
    assert_eq!((bytes, values), (dtype.block_bytes(), dtype.block_len()), "{dtype}");
    assert!(blocks >= if dtype.is_quantised() { 200 } else { 10 }, "{dtype}");
    let stored = fields.bytes(blocks * bytes);
    let mut got = vec![0f32; blocks * values];
    quant::decode(dtype, stored, &mut got).unwrap();
    for (i, got) in got.chunks(values).enumerate() {
        let block = &stored[i * bytes..][..bytes];
        assert_eq!(hash(got), fields.word(), "{dtype} block {i}: {block:02x?} became {got:?}");
    }
    assert!(got.iter().any(|v| *v != 0.0));
    fields
}

#[test]
fn decodes_as_the_packages_do() {
    let names: Vec<DType> = fixtures().iter().map(|f| f.0).collect();
    assert_eq!(names, DType::ALL);
    for (dtype, data) in fixtures() {
        check_decoding(dtype, data);
    }
}

/// Error on the ordinary rows, relative to their size.
fn relative_error(dtype: DType, encoded: &[u8]) -> f64 {
    let x = rows();
    let mut back = vec![0f32; x.len()];
    quant::decode(dtype, encoded, &mut back).unwrap();
    let skip = EXTREMES * ROW;
    let (mut error, mut size) = (0f64, 0f64);
    for (a, b) in x[skip..].iter().zip(&back[skip..]) {
        error += (f64::from(*a) - f64::from(*b)).powi(2);
        size += f64::from(*a).powi(2);
    }
    (error / size).sqrt()
}

#[test]
fn encodes_as_the_packages_do_or_better() {
    let mut compared = Vec::new();
    for (dtype, data) in fixtures() {
        let mut fields = check_decoding(dtype, data);
        if fields.0.is_empty() {
            continue;
        }
        let bytes = fields.count();
        let (want, error) = (fields.bytes(bytes), f64::from_bits(fields.word()));
        let got = quant::encode(dtype, &rows()).unwrap();
        assert!((relative_error(dtype, want) - error).abs() <= 1e-9, "{dtype}");
        let ours = relative_error(dtype, &got);
        assert!(ours <= error * 1.001, "{dtype}: {ours}, the package has {error}");
        compared.push(dtype);
        let size = dtype.block_bytes();
        for (i, (got, want)) in got.chunks(size).zip(want.chunks(size)).enumerate() {
            assert_eq!(got, want, "{dtype} block {i}");
        }
        assert_eq!(got.len(), want.len(), "{dtype}");
    }
    use DType::*;
    assert_eq!(compared, [F32, F16, BF16, F8_E4M3, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, MXFP4]);
}
