//! The families of this module as the kernel check and the planner see them; the product of experts is with the matrix
//! product.

use super::{Router, Routes, Scoring, combine, gather_slots, route};
use crate::family::ops::{FEW, Inputs, Op, cost};
use crate::{Cost, DType, KernelKey, NumericClass, ShapeError};

/// Experts of the launches that are checked, and how many a row uses.
const EXPERTS: usize = 8;
const USED: usize = 3;

/// Even rows' counts go to a softmax that renormalises, odd ones to a sigmoid that scales.
fn router(key: &KernelKey) -> Router {
    if key.m.is_multiple_of(2) {
        Router { scoring: Scoring::Softmax, renormalise: true, scale: 1.0 }
    } else {
        Router { scoring: Scoring::Sigmoid, renormalise: false, scale: 2.5 }
    }
}

fn routed(router: &Router, logits: &[f32], rows: usize, used: usize) -> Result<Routes, ShapeError> {
    let mut routes = Routes::with_capacity(rows, used, logits.len() / rows.max(1));
    route(router, logits, None, &mut routes)?;
    Ok(routes)
}

/// `m` rows of logits of `n` experts, `k` of which are chosen; the output has the weight of each expert, or zero.
pub(crate) static ROUTE: &Op = &Op {
    name: "route",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: &[(8, 2, 1), (128, 8, 9), (512, 10, 2), (1, 1, 3), (16, 16, 65)],
    lengths: |key| [key.m * key.n, 0],
    cost: |key| Cost { bytes: (4 * key.m * (key.n + 3 * key.k)) as u64, flops: 12 * (key.m * key.n) as u64 },
    run: |inputs, _, out| {
        let KernelKey { n, k, m, .. } = inputs.key;
        let routes = routed(&router(&inputs.key), &inputs.a, m, k)?;
        out.fill(0.0);
        for (row, out) in out.chunks_exact_mut(n).enumerate() {
            routes.row(row).for_each(|(id, weight)| out[id as usize] = weight);
        }
        Ok(())
    },
    reference: |inputs| {
        let KernelKey { n, k, .. } = inputs.key;
        let router = router(&inputs.key);
        let row = |logits: &[f32]| {
            let total: f64 = logits.iter().map(|l| f64::from(*l).exp()).sum();
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b)));
            let score = |i: usize| {
                let l = f64::from(logits[i]);
                if router.scoring == Scoring::Softmax { l.exp() / total } else { 1.0 / (1.0 + (-l).exp()) }
            };
            let sum: f64 = order[..k].iter().map(|i| score(*i)).sum();
            let divisor = if router.renormalise { sum } else { 1.0 };
            let value = |i: usize| {
                let chosen = order[..k].contains(&i);
                let value = if chosen { score(i) / divisor * f64::from(router.scale) } else { 0.0 };
                // The differences to the greatest logit, at most 32, are off by a rounding.
                (value, value * 5.0 * FEW)
            };
            (0..n).map(value).collect::<Vec<_>>()
        };
        inputs.a.chunks_exact(n).flat_map(row).collect()
    },
};

/// Logits of the rows that the other families' slots come from: the end of the second input.
fn routes_of(inputs: &Inputs) -> Result<Routes, ShapeError> {
    let rows = inputs.key.m / USED;
    let logits = &inputs.b[inputs.b.len() - rows * EXPERTS..];
    routed(&Router { scoring: Scoring::Softmax, renormalise: true, scale: 1.0 }, logits, rows, USED)
}

/// `m` slots of `m / 3` rows of `k` values.
pub(crate) static GATHER_SLOTS: &Op = &Op {
    name: "gather_slots",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: &[(576, 576, 3), (17, 17, 9), (1000, 1000, 66)],
    lengths: |key| [key.m / USED * key.k, key.m / USED * EXPERTS],
    cost: |key| cost(key.m * key.k, key.m * key.k, 0),
    run: |inputs, pool, out| gather_slots(pool, &routes_of(inputs)?, &inputs.a, out),
    reference: |inputs| {
        let Ok(routes) = routes_of(inputs) else { return Vec::new() };
        let row = |row: &u32| &inputs.a[*row as usize * inputs.key.k..][..inputs.key.k];
        routes.sources().iter().flat_map(row).map(|v| (f64::from(*v), 0.0)).collect()
    },
};

/// `3 m` slots of `k` values to `m` rows.
pub(crate) static COMBINE: &Op = &Op {
    name: "combine",
    class: NumericClass::F32,
    dtypes: &[DType::F32],
    shapes: &[(576, 576, 1), (17, 17, 9), (1000, 1000, 65)],
    lengths: |key| [USED * key.m * key.k, key.m * EXPERTS],
    cost: |key| cost(USED * key.m * key.k, key.m * key.k, 2 * USED as u64),
    run: |inputs, pool, out| combine(pool, &combined(inputs)?, &inputs.a, out),
    reference: |inputs| {
        let Ok(routes) = combined(inputs) else { return Vec::new() };
        let value = |i: usize| {
            let (row, d) = (i / inputs.key.k, i % inputs.key.k);
            let terms = routes.row(row).map(|(id, weight)| {
                let slot = routes.slots_of(id as usize).find(|slot| routes.sources()[*slot] as usize == row);
                f64::from(weight) * f64::from(inputs.a[slot.unwrap_or(0) * inputs.key.k + d])
            });
            let (sum, size) = terms.fold((0f64, 0f64), |(sum, size), v| (sum + v, size + v.abs()));
            (sum, size * FEW)
        };
        (0..inputs.key.m * inputs.key.k).map(value).collect()
    },
};

fn combined(inputs: &Inputs) -> Result<Routes, ShapeError> {
    routed(&router(&inputs.key), &inputs.b, inputs.key.m, USED)
}
