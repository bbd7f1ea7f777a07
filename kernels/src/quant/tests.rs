//! Encoders: what they lose, and what they take. Decoding is tested against other implementations' results by
//! `tests/quant_fixtures.rs`.

use super::*;
use crate::testdata::Random;

/// Relative root-mean-square error on roughly normal values, and the largest error on constants and slow ramps in parts
/// of their largest magnitude: what each type's step allows.
fn bounds(dtype: DType) -> Option<(f32, f32)> {
    Some(match dtype {
        DType::F32 => (0.0, 0.0),
        DType::F16 => (0.00021, 0.0005),
        DType::BF16 => (0.0017, 0.0033),
        DType::F8_E4M3 => (0.027, 0.053),
        DType::Q4_0 => (0.086, 0.065),
        DType::Q4_1 => (0.079, 0.0035),
        DType::Q5_0 => (0.043, 0.033),
        DType::Q5_1 => (0.0385, 0.0005),
        DType::Q8_0 => (0.0054, 0.0038),
        DType::Q2_K => (0.276, 0.069),
        DType::Q3_K => (0.145, 0.041),
        DType::Q4_K => (0.0715, 0.034),
        DType::Q5_K => (0.036, 0.0165),
        DType::Q6_K => (0.0174, 0.015),
        DType::IQ4_NL => (0.0745, 0.052),
        DType::IQ4_XS => (0.075, 0.063),
        DType::MXFP4 => (0.119, 0.21),
        DType::NVFP4 => (0.099, 0.08),
        DType::IQ3_S | DType::IQ3_XXS | DType::IQ2_S | DType::IQ2_XS | DType::IQ2_XXS => return None,
    })
}

fn encodable() -> impl Iterator<Item = (DType, f32, f32)> {
    DType::all().filter_map(|dtype| bounds(dtype).map(|(rms, worst)| (dtype, rms, worst)))
}

/// Roughly normal values.
fn values(random: &mut Random, n: usize) -> Vec<f32> {
    (0..n).map(|_| (0..6).map(|_| random.uniform()).sum::<f32>()).collect()
}

fn round_trip(dtype: DType, x: &[f32]) -> Vec<f32> {
    let mut back = vec![f32::NAN; x.len()];
    decode(dtype, &encode(dtype, x).unwrap(), &mut back).unwrap();
    back
}

#[test]
fn encoding_keeps_normal_values_within_each_types_error() {
    let x = values(&mut Random::new(11), 64 * 256);
    let size: f32 = x.iter().map(|v| v * v).sum();
    for (dtype, bound, _) in encodable() {
        let error: f32 = x.iter().zip(round_trip(dtype, &x)).map(|(a, b)| (a - b) * (a - b)).sum();
        let error = (error / size).sqrt();
        assert!(error <= bound, "{dtype}: {error}");
        assert!(error >= 0.9 * bound, "{dtype}: the bound {bound} is loose, the error is {error}");
    }
}

#[test]
fn constants_zeros_and_one_sided_rows_survive() {
    for (dtype, _, bound) in encodable() {
        for f in [|_| 0.0, |_| 0.75, |_| -2.0, |i| i as f32 / 64.0 + 1.0, |i| -1.0 - i as f32 / 64.0] {
            let x: Vec<f32> = (0..256).map(f).collect();
            let range = x.iter().fold(0f32, |a, v| a.max(v.abs()));
            for (a, b) in x.iter().zip(round_trip(dtype, &x)) {
                assert!((a - b).abs() <= range * bound, "{dtype}: {a} became {b}");
            }
        }
    }
}

#[test]
fn what_was_encoded_once_is_encoded_again_without_further_loss() {
    let x = values(&mut Random::new(5), 32 * 256);
    let distance =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
    for (dtype, ..) in encodable() {
        let once = round_trip(dtype, &x);
        let twice = round_trip(dtype, &once);
        let (first, more) = (distance(&x, &once), distance(&once, &twice));
        assert!(more <= 0.5 * first, "{dtype}: {first} at first, then {more}");
    }
}

#[test]
fn hostile_values_never_panic() {
    let mut x = values(&mut Random::new(3), 256);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e-45] {
        x[40] = bad;
        for (dtype, ..) in encodable() {
            round_trip(dtype, &x);
        }
        encodable().for_each(|(dtype, ..)| drop(round_trip(dtype, &[bad; 256])));
    }
}

#[test]
fn lengths_that_do_not_fit_are_errors() {
    let mut out = [0f32; 32];
    assert!(matches!(decode(DType::Q4_1, &[0; 19], &mut out), Err(QuantError::Length { want: 20, .. })));
    assert!(matches!(decode(DType::Q4_1, &[0; 40], &mut out), Err(QuantError::Length { want: 20, .. })));
    assert!(matches!(decode(DType::Q4_K, &[0; 144], &mut out), Err(QuantError::Row(_))));
    assert!(matches!(encode(DType::Q8_0, &[0.0; 33]), Err(QuantError::Row(_))));
    decode(DType::Q6_K, &[], &mut []).unwrap();
}

#[test]
fn types_without_an_encoder_say_so() {
    let without: Vec<DType> = DType::all().filter(|dtype| bounds(*dtype).is_none()).collect();
    assert_eq!(without.len(), 5);
    for dtype in without {
        let error = encode(dtype, &[0.0; 256]).unwrap_err();
        assert_eq!(error, QuantError::NoEncoder { dtype });
        assert!(error.to_string().contains(&dtype.to_string()), "{error}");
    }
}

#[test]
fn every_block_is_read_without_a_panic() {
    let mut random = Random::new(17);
    for dtype in DType::all() {
        let mut out = vec![0f32; dtype.block_len()];
        for fill in [Some(0), Some(0xff), None, None, None] {
            let block: Vec<u8> =
                (0..dtype.block_bytes()).map(|_| fill.unwrap_or_else(|| random.bits() as u8)).collect();
            decode(dtype, &block, &mut out).unwrap();
        }
    }
}
