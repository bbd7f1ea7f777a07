//! A slot's result is that of its expert and its row alone.

use super::super::{Matrix, PackedMatrix, matmul};
use super::*;
use crate::DType;
use crate::moe::{Router, Scoring, gather_slots, route};
use crate::testdata::{Random, activations, weights};

const EXPERTS: usize = 6;
const USED: usize = 3;

/// Experts as a file holds them: one tensor, expert after expert.
struct Stored(DType, usize, usize, Vec<u8>);

impl ExpertWeights for Stored {
    fn experts(&self) -> usize {
        EXPERTS
    }

    fn expert(&self, expert: usize) -> Option<Weights<'_>> {
        let each = self.3.len() / EXPERTS;
        let data = &self.3[expert * each..][..each];
        Matrix::new(self.0, self.1, self.2, data).ok().map(Weights::File)
    }
}

fn packed(stored: &Stored, pool: &Pool) -> Vec<PackedMatrix> {
    let pack = |expert| match stored.expert(expert).unwrap() {
        Weights::File(matrix) => PackedMatrix::pack(&matrix, pool),
        Weights::Packed(packed) => packed.clone(),
    };
    (0..EXPERTS).map(pack).collect()
}

fn routes(random: &mut Random, rows: usize) -> Routes {
    let router = Router { scoring: Scoring::Softmax, renormalise: true, scale: 1.0 };
    let mut routes = Routes::with_capacity(rows, USED, EXPERTS);
    route(&router, &activations(random, rows, EXPERTS), None, &mut routes).unwrap();
    routes
}

fn config(tokens: usize, chunk: usize, threads: usize) -> MatmulConfig {
    MatmulConfig { tile_rows: 1, tile_tokens: tokens, prefetch: 0, chunk, threads, planted: false }
}

#[test]
fn a_slot_has_the_bits_of_its_expert_and_row_alone() {
    let mut random = Random::new(12);
    for dtype in DType::all() {
        let (n, k, rows) = (40, 256, 21);
        let stored = Stored(dtype, n, k, weights(&mut random, dtype, EXPERTS * n, k).unwrap());
        let pool = Pool::new(3);
        let packed = packed(&stored, &pool);
        let routes = routes(&mut random, rows);
        let x = activations(&mut random, rows, k);
        let mut slots = vec![0f32; routes.slots() * k];
        gather_slots(&pool, &routes, &x, &mut slots).unwrap();
        let (mut rounded, mut q8) =
            (Q8Rows::with_capacity(rows, k), Q8Rows::with_capacity(routes.slots(), k));
        rounded.quantise(&pool, &x, rows).unwrap();
        gather_q8(&routes, &rounded, &mut q8).unwrap();
        for quantised in [false, true] {
            let all = if quantised {
                Activations::Q8(&q8)
            } else {
                Activations::F32 { x: &slots, rows: routes.slots() }
            };
            let mut want = vec![0f32; routes.slots() * n];
            for expert in 0..EXPERTS {
                for slot in routes.slots_of(expert) {
                    let row = &x[routes.sources()[slot] as usize * k..][..k];
                    let mut one = Q8Rows::with_capacity(1, k);
                    one.quantise(&pool, row, 1).unwrap();
                    let row =
                        if quantised { Activations::Q8(&one) } else { Activations::F32 { x: row, rows: 1 } };
                    let out = &mut want[slot * n..][..n];
                    matmul(&pool, &config(1, 1, 1), &stored.expert(expert).unwrap(), &row, out).unwrap();
                }
            }
            for (tokens, chunk, threads) in [(1, 1, 1), (8, 2, 3), (8, 16, 2)] {
                let mut out = vec![f32::NAN; want.len()];
                let config = config(tokens, chunk, threads);
                experts(&pool, &config, packed.as_slice(), &routes, &all, &mut out).unwrap();
                assert_eq!(out, want, "{dtype} quantised {quantised} packed");
                out.fill(f32::NAN);
                experts(&pool, &config, &stored, &routes, &all, &mut out).unwrap();
                assert_eq!(out, want, "{dtype} quantised {quantised} in the file's layout");
            }
        }
    }
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let mut random = Random::new(1);
    let pool = Pool::new(1);
    let stored = Stored(DType::F32, 4, 8, weights(&mut random, DType::F32, EXPERTS * 4, 8).unwrap());
    let mut matrices = packed(&stored, &pool);
    let routes = routes(&mut random, 2);
    let run = |weights: &[PackedMatrix], x: usize, rows: usize, out: usize| {
        let (x, mut out) = (vec![0f32; x], vec![0f32; out]);
        experts(&pool, &config(1, 1, 1), weights, &routes, &Activations::F32 { x: &x, rows }, &mut out)
    };
    assert!(run(&matrices, 48, 6, 24).is_ok());
    assert!(run(&matrices[1..], 48, 6, 24).is_err());
    assert!(run(&matrices, 40, 5, 24).is_err());
    assert!(run(&matrices, 40, 6, 24).is_err());
    assert!(run(&matrices, 48, 6, 20).is_err());
    let expert = *routes.active().last().unwrap() as usize;
    let data = weights(&mut random, DType::F16, 4, 8).unwrap();
    matrices[expert] = PackedMatrix::pack(&Matrix::new(DType::F16, 4, 8, &data).unwrap(), &pool);
    assert!(run(&matrices, 48, 6, 24).is_err());
    let nobody = Routes::with_capacity(0, USED, EXPERTS);
    let none = Activations::F32 { x: &[], rows: 0 };
    assert!(experts(&pool, &config(1, 1, 1), &stored, &nobody, &none, &mut []).is_ok());
    let (mut small, mut from) = (Q8Rows::with_capacity(1, 32), Q8Rows::with_capacity(2, 32));
    from.quantise(&pool, &[1.0; 64], 2).unwrap();
    assert!(gather_q8(&routes, &from, &mut small).is_err());
    assert!(small.gather(&from, &[2]).is_err());
    assert!(small.gather(&from, &[1]).is_ok());
}
