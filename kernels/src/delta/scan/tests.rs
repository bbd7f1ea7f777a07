//! The scan against its definition, and the same bits for every cut, thread count and instruction set.

use super::*;
use crate::testdata::Random;

fn shape(heads: (usize, usize), dims: (usize, usize), key_head: KeyHead) -> DeltaShape {
    DeltaShape {
        key_heads: heads.0,
        value_heads: heads.1,
        key_dim: dims.0,
        value_dim: dims.1,
        key_head,
        eps: 1e-6,
    }
}

struct Inputs {
    shape: DeltaShape,
    qkv: Vec<f32>,
    gates: Vec<f32>,
    rows: usize,
}

impl Inputs {
    fn new(shape: DeltaShape, rows: usize) -> Inputs {
        let mut random = Random::new(rows as u64);
        let qkv = (0..rows * shape.row_len()).map(|_| random.uniform() * 2.0).collect();
        let gates = (0..rows * 2 * shape.value_heads).map(|_| random.uniform().abs()).collect();
        Inputs { shape, qkv, gates, rows }
    }

    fn run(
        &self,
        pool: &Pool,
        range: std::ops::Range<usize>,
        steps: &[SlotStep],
        states: &mut [f32],
    ) -> Vec<f32> {
        let shape = &self.shape;
        let cut = |x: &[f32], each: usize| x[range.start * each..range.end * each].to_vec();
        let (qkv, gates) = (cut(&self.qkv, shape.row_len()), cut(&self.gates, 2 * shape.value_heads));
        let mut out = vec![f32::NAN; range.len() * shape.out_len()];
        let mut scratch = vec![f32::NAN; shape.scratch_len(pool.threads())];
        delta_scan(pool, shape, steps, &qkv, &gates, states, &mut scratch, &mut out).unwrap();
        out
    }

    /// One sequence from its start, in slot 0.
    fn whole(&self, pool: &Pool) -> (Vec<f32>, Vec<f32>) {
        let mut state = vec![f32::NAN; self.shape.state_len()];
        let out = self.run(pool, 0..self.rows, &in_place(0, self.rows), &mut state);
        (out, state)
    }
}

/// Steps of rows `from .. to` of a sequence that lives in slot 0.
fn in_place(from: usize, to: usize) -> Vec<SlotStep> {
    (from..to).map(|t| SlotStep { from: (t > 0).then_some(0), to: 0 }).collect()
}

/// The definition, in f64.
fn exact(inputs: &Inputs) -> Vec<f64> {
    let DeltaShape { key_heads, value_heads, key_dim, value_dim, .. } = inputs.shape;
    let mut out = vec![0f64; inputs.rows * inputs.shape.out_len()];
    for head in 0..value_heads {
        let mut state = vec![0f64; key_dim * value_dim];
        let key = match inputs.shape.key_head {
            KeyHead::Grouped => head / (value_heads / key_heads),
            KeyHead::Tiled => head % key_heads,
        };
        for t in 0..inputs.rows {
            let row = &inputs.qkv[t * inputs.shape.row_len()..][..inputs.shape.row_len()];
            let unit = |start: usize| {
                let x: Vec<f64> = row[start..][..key_dim].iter().map(|v| f64::from(*v)).collect();
                let length = (x.iter().map(|v| v * v).sum::<f64>() + 1e-6).sqrt();
                x.into_iter().map(|v| v / length).collect::<Vec<_>>()
            };
            let (q, k) = (unit(key * key_dim), unit((key_heads + key) * key_dim));
            let gate = |i: usize| f64::from(inputs.gates[t * 2 * value_heads + i]);
            let (decay, beta) = (gate(head), gate(value_heads + head));
            for j in 0..value_dim {
                let v = f64::from(row[2 * key_heads * key_dim + head * value_dim + j]);
                let held: f64 = (0..key_dim).map(|i| decay * state[i * value_dim + j] * k[i]).sum();
                let error = beta * (v - held);
                for i in 0..key_dim {
                    let s = &mut state[i * value_dim + j];
                    *s = decay * *s + k[i] * error;
                    out[t * value_heads * value_dim + head * value_dim + j] += *s * q[i];
                }
            }
        }
    }
    let scale = 1.0 / (key_dim as f64).sqrt();
    out.into_iter().map(|v| v * scale).collect()
}

#[test]
fn matches_the_definition_in_f64() {
    let pool = Pool::new(3);
    for (heads, dims) in [((1, 1), (1, 1)), ((2, 4), (16, 16)), ((2, 6), (20, 83)), ((1, 2), (128, 128))] {
        for key_head in [KeyHead::Grouped, KeyHead::Tiled] {
            let inputs = Inputs::new(shape(heads, dims, key_head), 40);
            let (out, _) = inputs.whole(&pool);
            for (i, (got, want)) in out.iter().zip(exact(&inputs)).enumerate() {
                assert!((f64::from(*got) - want).abs() < 5e-6, "{heads:?} {dims:?} value {i}: {got} {want}");
            }
        }
    }
}

#[test]
fn grouped_and_tiled_heads_differ_and_agree_after_a_permutation() {
    let (grouped, tiled) = (KeyHead::Grouped, KeyHead::Tiled);
    let shape_of = |key_head| shape((2, 4), (8, 8), key_head);
    assert_eq!([0, 1, 2, 3].map(|h| shape_of(grouped).key_head_of(h)), [0, 0, 1, 1]);
    assert_eq!([0, 1, 2, 3].map(|h| shape_of(tiled).key_head_of(h)), [0, 1, 0, 1]);
}

#[test]
fn every_cut_thread_count_and_instruction_set_gives_the_same_bits() {
    let shape = shape((2, 4), (24, 100), KeyHead::Grouped);
    let inputs = Inputs::new(shape, 23);
    let (want, want_state) = inputs.whole(&Pool::new(1));
    for (threads, chunk) in [(1, 1), (2, 5), (8, 7), (3, 23)] {
        let pool = Pool::new(threads);
        let mut state = vec![f32::NAN; shape.state_len()];
        let mut out = Vec::new();
        for start in (0..inputs.rows).step_by(chunk) {
            let end = inputs.rows.min(start + chunk);
            out.extend(inputs.run(&pool, start..end, &in_place(start, end), &mut state));
        }
        assert_eq!(out, want, "{threads} threads, chunks of {chunk}");
        assert_eq!(state, want_state);
    }
    for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
        let value_dim = shape.value_dim;
        let (q, k) = (&inputs.qkv[..24], &inputs.qkv[24..48]);
        let run = |isa| {
            let (mut state, mut out) = (want_state[..24 * value_dim].to_vec(), vec![f32::NAN; value_dim]);
            let v = &inputs.qkv[96..][..value_dim];
            let (state_ref, out_ref) = (&mut state, &mut out);
            let columns = Columns {
                q,
                k,
                v,
                decay: 0.9,
                beta: 0.4,
                old: None,
                fresh: false,
                state: state_ref,
                out: out_ref,
            };
            kernel::step(isa, columns);
            (state, out)
        };
        assert_eq!(run(isa), run(Isa::Portable), "{isa}");
    }
}

#[test]
fn sequences_of_a_step_do_not_meet_and_the_state_after_each_row_can_be_kept() {
    let shape = shape((1, 2), (16, 64), KeyHead::Tiled);
    let inputs = Inputs::new(shape, 6);
    let pool = Pool::new(2);
    let (want, want_state) = inputs.whole(&pool);
    let each = shape.state_len();
    // Row `t` leaves slot `t`: what a verification of drafts keeps.
    let steps: Vec<SlotStep> = (0..6u32).map(|t| SlotStep { from: t.checked_sub(1), to: t }).collect();
    let mut states = vec![f32::NAN; 8 * each];
    assert_eq!(inputs.run(&pool, 0..6, &steps, &mut states), want);
    assert_eq!(states[5 * each..6 * each], want_state);
    // Going on from slot 2 gives what the whole gave, and leaves slot 2 alone.
    let kept = states[2 * each..3 * each].to_vec();
    let steps = [SlotStep { from: Some(2), to: 7 }, SlotStep { from: Some(7), to: 7 }];
    let out = inputs.run(&pool, 3..5, &steps, &mut states);
    assert_eq!(out, want[3 * shape.out_len()..5 * shape.out_len()]);
    assert_eq!(states[2 * each..3 * each], kept);
    // A second sequence whose rows stand between.
    let mut mixed = Inputs::new(shape, 12);
    for t in 0..6 {
        let (row, gates) = (shape.row_len(), 2 * shape.value_heads);
        mixed.qkv[2 * t * row..][..row].copy_from_slice(&inputs.qkv[t * row..][..row]);
        mixed.gates[2 * t * gates..][..gates].copy_from_slice(&inputs.gates[t * gates..][..gates]);
    }
    let steps: Vec<SlotStep> =
        (0..12u32).map(|t| SlotStep { from: (t > 1).then_some(t % 2), to: t % 2 }).collect();
    let out = mixed.run(&pool, 0..12, &steps, &mut states);
    let mine: Vec<f32> = out.chunks(shape.out_len()).step_by(2).flatten().copied().collect();
    assert_eq!(mine, want);
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let pool = Pool::new(2);
    let good = shape((2, 4), (8, 8), KeyHead::Tiled);
    let run = |shape: &DeltaShape, qkv: usize, gates: usize, slots: u32, scratch: usize, out: usize| {
        let zeros = |n: usize| vec![0f32; n];
        let mut states = zeros(2 * good.state_len());
        let steps = [SlotStep { from: None, to: slots }];
        let (mut scratch, mut out) = (zeros(scratch), zeros(out));
        delta_scan(&pool, shape, &steps, &zeros(qkv), &zeros(gates), &mut states, &mut scratch, &mut out)
    };
    assert!(run(&good, 64, 8, 1, 32, 32).is_ok());
    assert!(run(&DeltaShape { value_heads: 3, ..good }, 56, 6, 1, 32, 24).is_err());
    assert!(run(&DeltaShape { key_heads: 0, ..good }, 32, 8, 1, 32, 32).is_err());
    assert!(run(&good, 63, 8, 1, 32, 32).is_err());
    assert!(run(&good, 64, 7, 1, 32, 32).is_err());
    assert!(run(&good, 64, 8, 2, 32, 32).is_err());
    assert!(run(&good, 64, 8, 1, 15, 32).is_err());
    assert!(run(&good, 64, 8, 1, 32, 31).is_err());
}
