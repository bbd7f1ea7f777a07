//! Decoding and encoding against the PyPI package `gguf`; fixtures by `tools/fixtures/quant.py`.

use memra_kernels::{DType, quant};

/// A reader of the fixture's fields.
struct Fields(&'static [u8]);

impl Fields {
    fn bytes(&mut self, n: usize) -> &'static [u8] {
        let (head, tail) = self.0.split_at(n);
        self.0 = tail;
        head
    }

    fn count(&mut self) -> usize {
        self.bytes(4).iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
    }

    fn floats(&mut self, n: usize) -> Vec<f32> {
        let bytes = self.bytes(4 * n).as_chunks::<4>().0;
        bytes.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }
}

macro_rules! fixtures {
    ($($dtype:ident),*) => {
        [$((DType::$dtype, include_bytes!(concat!("fixtures/quant/", stringify!($dtype), ".bin")) as &[u8])),*]
    };
}

#[test]
fn decodes_and_encodes_as_the_gguf_package_does() {
    let fixtures = fixtures!(F32, F16, BF16, Q8_0, Q4_1, Q4_K, Q6_K);
    assert_eq!(fixtures.map(|f| f.0).to_vec(), DType::all().collect::<Vec<_>>());
    for (dtype, data) in fixtures {
        let mut fields = Fields(data);
        let (bytes, values) = (fields.count(), fields.count());
        let (stored, want) = (fields.bytes(bytes), fields.floats(values));
        let mut got = vec![0f32; values];
        quant::decode(dtype, stored, &mut got).unwrap();
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(same, "{dtype} value {i}: {got:e}, the package has {want:e}");
        }
        assert!(values >= 10 && want.iter().any(|v| *v != 0.0));
        if fields.0.is_empty() {
            assert!(matches!(dtype, DType::Q4_K | DType::Q6_K), "{dtype} lacks encoded rows");
            continue;
        }
        let (values, bytes) = (fields.count(), fields.count());
        let (source, want) = (fields.floats(values), fields.bytes(bytes));
        let got = quant::encode(dtype, &source).unwrap();
        assert_eq!(got.len(), want.len());
        let size = dtype.block_bytes();
        for (i, (got, want)) in got.chunks(size).zip(want.chunks(size)).enumerate() {
            assert_eq!(got, want, "{dtype} block {i}");
        }
    }
}
