//! Every version, layout, tiling and thread count gives the bits of the ordered reference.

use super::*;
use crate::NumericClass;
use crate::testdata::{Random, activations, raw_weights, weights};

fn isas() -> impl Iterator<Item = Isa> {
    [Isa::Portable, Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| {
        let here = *isa <= Isa::detect();
        if !here {
            eprintln!("not tested: this machine has no {isa}");
        }
        here
    })
}

const PLAIN: MatmulConfig =
    MatmulConfig { tile_rows: 1, tile_tokens: 1, prefetch: 0, chunk: 1, threads: 1, planted: false };

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

struct Inputs {
    data: Vec<u8>,
    x: Vec<f32>,
    q8: Q8Rows,
    rows: usize,
    shape: (DType, usize, usize),
}

impl Inputs {
    fn new(seed: u64, pool: &Pool, (dtype, n, k): (DType, usize, usize), rows: usize) -> Inputs {
        let mut random = Random::new(seed);
        let make = if seed.is_multiple_of(2) { weights } else { raw_weights };
        let data = make(&mut random, dtype, n, k).unwrap();
        let x = activations(&mut random, rows, k);
        let mut q8 = Q8Rows::with_capacity(rows, k);
        q8.quantise(pool, &x, rows).unwrap();
        Inputs { data, x, q8, rows, shape: (dtype, n, k) }
    }

    fn matrix(&self) -> Matrix<'_> {
        Matrix::new(self.shape.0, self.shape.1, self.shape.2, &self.data).unwrap()
    }

    fn activations(&self, class: NumericClass) -> Activations<'_> {
        match class {
            NumericClass::F32 => Activations::F32 { x: &self.x, rows: self.rows },
            NumericClass::Q8 => Activations::Q8(&self.q8),
        }
    }
}

/// Row lengths worth trying: one block, an odd number of them, and for float types rows that fill none.
fn lengths(dtype: DType) -> &'static [usize] {
    match dtype.block_len() {
        1 => &[1, 31, 33, 96],
        32 => &[32, 64, 160],
        _ => &[256, 768],
    }
}

fn configs(rows: usize) -> impl Iterator<Item = MatmulConfig> {
    let shapes = (0..3).flat_map(|r| (0..4).map(move |t| (1 << r, 1 << t)));
    shapes.enumerate().map(move |(i, (tile_rows, tile_tokens))| MatmulConfig {
        tile_rows,
        tile_tokens,
        prefetch: [0, 4, 16][(i + rows) % 3],
        chunk: [1, 2, 8][i % 3],
        threads: 1 + (i + rows) % 2,
        planted: false,
    })
}

#[test]
fn every_version_gives_the_same_bits() {
    let pool = Pool::new(2);
    let mut compared = 0;
    for dtype in DType::all() {
        for (i, &k) in lengths(dtype).iter().enumerate() {
            for rows in [1, 2, 3, 4, 5, 6, 7, 8, 9, 17] {
                let n = [1, 16, 33, 50, 79, 31][(i + rows) % 6];
                let inputs = Inputs::new((i + rows) as u64, &pool, (dtype, n, k), rows);
                let packed = PackedMatrix::pack(&inputs.matrix(), &pool);
                for class in NumericClass::ALL {
                    let x = inputs.activations(class);
                    let layouts = [Weights::File(inputs.matrix()), Weights::Packed(&packed)];
                    let mut want = vec![0f32; rows * n];
                    reference::ordered(&layouts[0], &x, &mut want);
                    for isa in isas() {
                        for config in configs(rows) {
                            for w in &layouts {
                                let mut out = vec![f32::NAN; rows * n];
                                matmul_with(isa, &pool, &config, w, &x, &mut out).unwrap();
                                assert_eq!(
                                    bits(&out),
                                    bits(&want),
                                    "{dtype} {class} {isa} n={n} k={k} m={rows} {config:?} {w:?}"
                                );
                                compared += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(compared > 1000);
}

#[test]
fn the_ordered_reference_is_near_the_exact_product() {
    let pool = Pool::new(1);
    for dtype in DType::all() {
        let inputs = Inputs::new(2, &pool, (dtype, 20, 768), 3);
        let w = Weights::File(inputs.matrix());
        for class in NumericClass::ALL {
            let x = inputs.activations(class);
            let mut out = vec![0f32; 60];
            reference::ordered(&w, &x, &mut out);
            for (got, (want, size)) in out.iter().zip(reference::exact(&w, &x)) {
                let error = (f64::from(*got) - want).abs();
                assert!(error <= 1e-6 * size, "{dtype} {class}: {got} {want} ({size})");
                assert!(size > 0.1, "nothing was multiplied");
            }
        }
    }
}

#[test]
fn packing_keeps_every_value() {
    let pool = Pool::new(2);
    for dtype in DType::all() {
        let k = lengths(dtype)[1];
        let inputs = Inputs::new(5, &pool, (dtype, 37, k), 1);
        let matrix = inputs.matrix();
        let packed = PackedMatrix::pack(&matrix, &pool);
        let (mut a, mut b) = (vec![0f32; k], vec![0f32; k]);
        for row in 0..37 {
            matrix.row_decode(row, &mut a).unwrap();
            packed.row_decode(row, &mut b).unwrap();
            assert_eq!(bits(&a), bits(&b), "{dtype} row {row}");
        }
        assert!(packed.row_decode(37, &mut b).is_err());
        assert_eq!(packed.bytes().as_ptr() as usize % 64, 0);
    }
}

#[test]
fn the_planted_fault_changes_every_type() {
    let pool = Pool::new(1);
    for dtype in DType::all() {
        let inputs = Inputs::new(4, &pool, (dtype, 16, 512), 1);
        let packed = PackedMatrix::pack(&inputs.matrix(), &pool);
        for class in NumericClass::ALL {
            let run = |planted| {
                let config = MatmulConfig { planted, ..PLAIN };
                let mut out = vec![0f32; 16];
                matmul(&pool, &config, &Weights::Packed(&packed), &inputs.activations(class), &mut out)
                    .unwrap();
                out
            };
            assert_ne!(run(false), run(true), "{dtype} {class}");
        }
    }
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let pool = Pool::new(1);
    let inputs = Inputs::new(1, &pool, (DType::Q8_0, 16, 64), 2);
    let w = Weights::File(inputs.matrix());
    let run = |x: &Activations<'_>, n| matmul(&pool, &PLAIN, &w, x, &mut vec![0.0; n]);
    assert!(run(&inputs.activations(NumericClass::Q8), 31).is_err());
    assert!(run(&Activations::F32 { x: &inputs.x, rows: 3 }, 48).is_err());
    assert!(run(&Activations::F32 { x: &[], rows: 1 << 63 }, 0).is_err(), "sizes that wrap around");
    assert!(run(&inputs.activations(NumericClass::F32), 32).is_ok());
    assert!(Matrix::new(DType::Q8_0, 16, 64, &inputs.data[1..]).is_err());
    assert!(Matrix::new(DType::Q8_0, 16, 65, &inputs.data).is_err());
    assert!(Matrix::new(DType::Q8_0, usize::MAX, 64, &inputs.data).is_err());
    let mut small = Q8Rows::with_capacity(1, 64);
    assert!(small.quantise(&pool, &inputs.x, 2).is_err());
    assert!(small.quantise(&pool, &inputs.x[..63], 2).is_err());
}

#[test]
fn nothing_is_an_empty_product() {
    let pool = Pool::new(1);
    let empty = Matrix::new(DType::Q4_1, 0, 32, &[]).unwrap();
    let packed = PackedMatrix::pack(&empty, &pool);
    let x = [1f32; 32];
    for w in [Weights::File(empty), Weights::Packed(&packed)] {
        matmul(&pool, &PLAIN, &w, &Activations::F32 { x: &x, rows: 1 }, &mut []).unwrap();
    }
    let narrow = Matrix::new(DType::Q4_1, 3, 0, &[]).unwrap();
    let mut out = [1f32; 6];
    matmul(&pool, &PLAIN, &Weights::File(narrow), &Activations::F32 { x: &[], rows: 2 }, &mut out).unwrap();
    assert_eq!(out, [0.0; 6]);
}
