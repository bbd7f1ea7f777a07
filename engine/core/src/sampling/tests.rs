//! Draws, filters and penalties on five logits.

use super::*;

const LOGITS: [f32; 5] = [1.0, 3.0, 2.0, 3.0, -1.0];

fn draw(sampling: Sampling, n: usize) -> Vec<u32> {
    let mut sampler = Sampler::new(sampling).unwrap();
    (0..n).map(|_| sampler.sample(&LOGITS)).collect()
}

#[test]
fn greedy_takes_the_lowest_id_among_equals() {
    assert_eq!(draw(Sampling::default(), 2), [1, 1]);
}

#[test]
fn one_seed_one_stream() {
    let seeded = |seed| draw(Sampling { temperature: 1.0, seed, ..Sampling::default() }, 12);
    assert_eq!(seeded(7), seeded(7));
    assert_ne!(seeded(7), seeded(8));
    // The stream is part of the contract: these tokens may only change with a note to users.
    assert_eq!(seeded(7), STREAM_OF_SEED_7);
}
const STREAM_OF_SEED_7: [u32; 12] = [1, 1, 2, 2, 3, 3, 1, 1, 3, 3, 1, 3];

#[test]
fn draws_follow_the_softmax() {
    let n = 40_000;
    let tokens = draw(Sampling { temperature: 2.0, ..Sampling::default() }, n);
    let total: f64 = LOGITS.iter().map(|&l| f64::from(l / 2.0).exp()).sum();
    for (id, &logit) in LOGITS.iter().enumerate() {
        let share = tokens.iter().filter(|&&t| t as usize == id).count() as f64 / n as f64;
        let p = f64::from(logit / 2.0).exp() / total;
        // Five standard deviations of a share.
        assert!((share - p).abs() < 5.0 * (p * (1.0 - p) / n as f64).sqrt(), "{id}: {share} against {p}");
    }
}

#[test]
fn each_filter_keeps_what_it_should() {
    let kept = |sampling| {
        let mut seen = draw(sampling, 4_000);
        seen.sort_unstable();
        seen.dedup();
        seen
    };
    let hot = || Sampling { temperature: 100.0, ..Sampling::default() };
    assert_eq!(kept(hot()), [0, 1, 2, 3, 4]);
    assert_eq!(kept(Sampling { top_k: 1, ..hot() }), [1]);
    assert_eq!(kept(Sampling { top_k: 3, ..hot() }), [1, 2, 3]);
    // At temperature 1 tokens 1 and 3 have 0.40 each, token 2 0.15: filters see probabilities before temperature.
    assert_eq!(kept(Sampling { top_p: 0.39, ..hot() }), [1]);
    assert_eq!(kept(Sampling { top_p: 0.85, ..hot() }), [1, 2, 3]);
    // Ratios to the likeliest: 1, 0.37 (2), 0.14 (0), 0.02 (4).
    assert_eq!(kept(Sampling { min_p: 0.3, ..hot() }), [1, 2, 3]);
    assert_eq!(kept(Sampling { min_p: 1.0, ..hot() }), [1, 3]);
    // Information contents 0.92 (1, 3), 1.92 (2), 2.92 (0), 4.92 (4) nats, their mean 1.20.
    assert_eq!(kept(Sampling { typical: 0.39, ..hot() }), [1]);
    assert_eq!(kept(Sampling { typical: 0.85, ..hot() }), [1, 2, 3]);
    assert_eq!(
        kept(Sampling { logit_bias: vec![(1, f32::NEG_INFINITY), (3, f32::NEG_INFINITY)], ..hot() }),
        [0, 2, 4]
    );
}

#[test]
fn typical_may_leave_the_likeliest_out() {
    // Information 1.20 nats (0.3) and 2.66 (0.07), the mean 2.22: the ten are more typical than the one.
    let logits: Vec<f32> = std::iter::once(0.3f32).chain([0.07; 10]).map(f32::ln).collect();
    let mut sampler = Sampler::new(Sampling { typical: 0.3, ..Sampling::default() }).unwrap();
    assert_eq!(sampler.sample(&logits), 1);
}

#[test]
fn penalties_follow_the_text() {
    let greedy = |penalties, text: &[u32]| {
        let mut sampler = Sampler::new(Sampling { penalties, ..Sampling::default() }).unwrap();
        text.iter().for_each(|&token| sampler.accept(token));
        sampler.sample(&LOGITS)
    };
    let off = Penalties::default();
    assert_eq!(greedy(off, &[1, 1, 1]), 1);
    // 3 / 2 falls below 2.
    assert_eq!(greedy(Penalties { repeat: 2.0, ..off }, &[1]), 3);
    assert_eq!(greedy(Penalties { repeat: 2.0, ..off }, &[1, 3]), 2);
    assert_eq!(greedy(Penalties { repeat: 2.0, last_n: 1, ..off }, &[1, 3]), 1);
    assert_eq!(greedy(Penalties { repeat: 2.0, last_n: 0, ..off }, &[1, 3]), 1);
    // Each occurrence counts for frequency, the first only for presence.
    assert_eq!(greedy(Penalties { frequency: 0.6, ..off }, &[1, 3, 3]), 1);
    assert_eq!(greedy(Penalties { frequency: 0.6, ..off }, &[1, 1, 3, 3]), 2);
    assert_eq!(greedy(Penalties { presence: 0.6, ..off }, &[1, 1, 3, 3]), 1);
    // A logit that is not positive is multiplied.
    assert_eq!(Penalties { repeat: 2.0, ..off }.apply(-1.0, 1), -2.0);
}

#[test]
fn all_tokens_banned_still_gives_one() {
    let logit_bias = (0..5).map(|token| (token, f32::NEG_INFINITY)).collect();
    let sampling = Sampling {
        temperature: 1.0,
        top_p: 0.9,
        min_p: 0.1,
        typical: 0.9,
        logit_bias,
        ..Sampling::default()
    };
    assert!((draw(sampling, 1)[0] as usize) < LOGITS.len());
}

#[test]
fn parameters_out_of_range_are_named() {
    for (sampling, name) in [
        (Sampling { temperature: -1.0, ..Sampling::default() }, "temperature"),
        (Sampling { temperature: f32::NAN, ..Sampling::default() }, "temperature"),
        (Sampling { top_p: 0.0, ..Sampling::default() }, "top-p"),
        (Sampling { min_p: 1.5, ..Sampling::default() }, "min-p"),
        (Sampling { typical: 0.0, ..Sampling::default() }, "typical"),
        (Sampling { logit_bias: vec![(7, f32::NAN)], ..Sampling::default() }, "logit bias of token 7"),
        (
            Sampling { penalties: Penalties { repeat: 0.0, ..Penalties::default() }, ..Sampling::default() },
            "repeat penalty",
        ),
    ] {
        assert!(Sampler::new(sampling).unwrap_err().to_string().contains(name));
    }
}

#[test]
fn log_prob_is_the_log_of_the_softmax() {
    let total: f64 = LOGITS.iter().map(|&l| f64::from(l).exp()).sum();
    assert!((log_prob(&LOGITS, 2) - (2.0 - total.ln())).abs() < 1e-12);
    assert_eq!(log_prob(&LOGITS, 99), f64::NEG_INFINITY);
    let found = token_logprobs(&LOGITS, 0, 3);
    assert_eq!(found.logprob, log_prob(&LOGITS, 0));
    assert_eq!(found.top, [1, 3, 2].map(|token| (token, log_prob(&LOGITS, token))));
    assert_eq!(token_logprobs(&LOGITS, 0, 99).top.len(), 5);
    assert!(token_logprobs(&LOGITS, 0, 0).top.is_empty());
}
