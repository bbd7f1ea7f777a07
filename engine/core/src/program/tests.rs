use super::*;
use std::collections::{HashMap, HashSet};

const KV: StateSpec = StateSpec::Kv { heads: 2, head_dim: 16, dtype: DType::F16 };

fn bucket(class: NumericClass, path: NumericPath, rows: usize) -> Bucket {
    Bucket { path, class, rows, logits: 1, kv: DType::F16, context: 100 }
}

fn tensors() -> HashMap<String, WeightSpec> {
    let spec = |name: &str, n, k| WeightSpec { name: name.into(), dtype: DType::Q8_0, n, k, stack: 1 };
    [
        spec("table.weight", 50, 32),
        spec("norm.weight", 1, 32),
        spec("a.weight", 64, 32),
        spec("b.weight", 64, 32),
        spec("b.bias", 1, 64),
        spec("down.weight", 32, 64),
    ]
    .into_iter()
    .map(|s| (s.name.clone(), s))
    .collect()
}

/// Two rounds of norm, two products of it, their gate, a product back, a residual; then a tied head.
fn program(class: NumericClass, path: NumericPath, rows: usize) -> Program {
    let tensors = tensors();
    let mut b = Builder::new(bucket(class, path, rows), &tensors);
    let x = b.embed("table", 50, 32).unwrap();
    for _ in 0..2 {
        let h = b.rms_norm("norm", x, 1e-5).unwrap();
        let (gate, up) = (b.linear("a", h, 64).unwrap(), b.linear("b", h, 64).unwrap());
        let h = b.swiglu("swiglu", gate, up);
        let down = b.linear("down", h, 32).unwrap();
        b.add("residual", x, down);
    }
    let last = b.gather("gather", x);
    let logits = b.linear_by("head", "table", last, 50).unwrap();
    b.finish(logits)
}

fn names(program: &Program) -> Vec<&str> {
    program.ops.iter().map(|op| op.name.as_str()).collect()
}

#[test]
fn activations_are_rounded_once_for_all_products_and_only_in_class_q8() {
    let q8 = program(NumericClass::Q8, NumericPath::Decode, 1);
    let one = ["norm", "a.q8", "a", "b", "swiglu", "down.q8", "down", "residual"];
    let want: Vec<&str> =
        ["table"].into_iter().chain(one).chain(one).chain(["gather", "head.q8", "head"]).collect();
    assert_eq!(names(&q8), want);
    let f32 = program(NumericClass::F32, NumericPath::Decode, 1);
    assert!(f32.ops.iter().all(|op| !matches!(op.kind, OpKind::Quantise { .. })));
}

#[test]
fn buffers_are_reused_but_never_while_their_value_is_needed() {
    let program = program(NumericClass::Q8, NumericPath::Prompt, 8);
    // x, norm, gate, up, swiglu, down; two widths of rounded rows; gathered rows, rounded; logits.
    assert!(program.buffers.len() <= 11, "{:?}", program.buffers);
    for op in &program.ops {
        let written = op.kind.writes();
        let in_place = matches!(op.kind, OpKind::Add { .. } | OpKind::Rope { .. });
        let aliased = op.kind.reads().filter(|r| Some(*r) == written).count();
        assert_eq!(aliased, usize::from(in_place), "{}", op.name);
    }
}

/// Runs ops symbolically in every order their dependencies allow at random, and expects the same values.
#[test]
fn dependencies_suffice_for_any_order() {
    let program = program(NumericClass::Q8, NumericPath::Decode, 4);
    let run = |order: &[usize]| {
        let mut buffers = vec![String::new(); program.buffers.len()];
        for &at in order {
            let op = &program.ops[at];
            let inputs: Vec<&str> = op.kind.reads().map(|b| buffers[b.0 as usize].as_str()).collect();
            let value = format!("{}({})", op.name, inputs.join(","));
            if let Some(out) = op.kind.writes() {
                buffers[out.0 as usize] = value;
            }
        }
        buffers[program.logits.0 as usize].clone()
    };
    let straight: Vec<usize> = (0..program.ops.len()).collect();
    let mut orders = HashSet::new();
    for seed in 0..50u64 {
        let (mut state, mut done, mut order) = (seed, HashSet::new(), Vec::new());
        while order.len() < program.ops.len() {
            let ready: Vec<usize> = straight
                .iter()
                .copied()
                .filter(|at| !done.contains(at))
                .filter(|&at| program.ops[at].after.iter().all(|&before| done.contains(&(before as usize))))
                .collect();
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let next = ready[(state >> 33) as usize % ready.len()];
            done.insert(next);
            order.push(next);
        }
        assert_eq!(run(&order), run(&straight));
        orders.insert(order);
    }
    assert!(orders.len() > 1, "dependencies leave no freedom at all");
}

#[test]
fn fusion_hints_group_what_a_fused_kernel_covers() {
    let program = program(NumericClass::Q8, NumericPath::Decode, 1);
    let mut groups: HashMap<u32, Vec<&str>> = HashMap::new();
    for op in &program.ops {
        if let Some(group) = op.fuse {
            groups.entry(group).or_default().push(&op.name);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort();
    let groups: Vec<_> = groups.into_iter().map(|(_, names)| names).collect();
    assert_eq!(groups[..3], [vec!["norm", "a.q8"], vec!["a", "b", "swiglu"], vec!["down", "residual"]]);
}

#[test]
fn work_list_merges_equal_keys_and_costs_add_up() {
    let program = program(NumericClass::Q8, NumericPath::Decode, 2);
    let list = program.work_list();
    let counts: Vec<(usize, usize, usize, usize)> =
        list.iter().map(|item| (item.key.n, item.key.k, item.key.m, item.count)).collect();
    assert_eq!(counts, [(32, 64, 2, 2), (50, 32, 1, 1), (64, 32, 2, 4)]);
    let flops: u64 = list.iter().map(|item| item.cost.flops * item.count as u64).sum();
    assert!(program.cost().flops > flops && program.cost().flops < 2 * flops);
    // Two rounds of a (2176), b with its bias (2176 + 68), down (2176), norm (34); the head (1700); two embeddings (34).
    assert_eq!(program.weight_bytes_read(), 2 * (2176 + 2176 + 68 + 2176 + 34) + 1700 + 2 * 34);
    let text = program.to_string();
    assert!(text.contains("matmul/Q8_0/q8/decode n=64 k=32 m=2"), "{text}");
    let json = serde_json::to_value(&program).unwrap();
    assert_eq!(json["ops"][2]["op"], "quantise");
    assert_eq!(json["ops"][3]["key"]["family"], "matmul");
}

#[test]
fn weights_are_checked_by_name_and_shape() {
    let tensors = tensors();
    let mut b = Builder::new(bucket(NumericClass::Q8, NumericPath::Decode, 1), &tensors);
    let x = b.embed("table", 50, 32).unwrap();
    assert!(b.linear("absent", x, 64).unwrap_err().to_string().contains("absent.weight"));
    assert!(b.linear("a", x, 65).unwrap_err().to_string().contains("65 rows of 32"));
}

#[test]
fn kv_states_know_their_size() {
    assert_eq!(KV.bytes_per_token(), 2 * 2 * 16 * 2);
}
