//! Builds a Program from an architecture's description: values in, ops, buffers and dependencies out.

mod delta;
mod experts;

use super::{
    Attend, Bucket, BufferId, BufferSpec, Extent, Op, OpKind, Program, Rope, StateId, StateSpec, Storage,
    WeightId, WeightSpec,
};
use crate::Error;
use memra_kernels::family::Family;
use memra_kernels::{Cost, DType, KernelKey, NumericClass, NumericPath, matmul};
use std::collections::{BTreeSet, HashMap};

/// A row-wise value of a Program under construction. It lives from the op that makes it to the last that uses it;
/// [`Builder::finish`] gives values that never live together the same buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value(u32);

/// Emits ops, checks every weight against the file, and does the bookkeeping an architecture should not see:
/// rounding of activations by class, buffer reuse, dependencies, cost, fusion hints.
pub struct Builder<'a> {
    bucket: Bucket,
    /// The model file's tensors by name.
    tensors: &'a HashMap<String, WeightSpec>,
    scope: String,
    weights: Vec<WeightSpec>,
    weight_ids: HashMap<String, WeightId>,
    values: Vec<BufferSpec>,
    quantised: HashMap<Value, Value>,
    states: Vec<StateSpec>,
    ops: Vec<Op>,
    /// The state that is kept of every row, and whether one is asked for.
    hidden: Option<Value>,
    keeps_hidden: bool,
}

impl<'a> Builder<'a> {
    /// An empty Program for `bucket`, over the tensors of a model file.
    pub fn new(bucket: Bucket, tensors: &'a HashMap<String, WeightSpec>) -> Self {
        Builder {
            bucket,
            tensors,
            scope: String::new(),
            weights: Vec::new(),
            weight_ids: HashMap::new(),
            values: Vec::new(),
            quantised: HashMap::new(),
            states: Vec::new(),
            ops: Vec::new(),
            hidden: None,
            keeps_hidden: false,
        }
    }

    /// Asks for the state of every row, see [`Builder::keep_hidden`].
    pub fn with_hidden(mut self) -> Self {
        self.keeps_hidden = true;
        self
    }

    /// Starts with the states of another Program over the same cache.
    pub fn with_states(mut self, states: &[StateSpec]) -> Self {
        self.states = states.to_vec();
        self
    }

    /// Whether the state of every row is asked for: then none may be left out before [`Builder::keep_hidden`].
    pub fn keeps_hidden(&self) -> bool {
        self.keeps_hidden
    }

    /// Prefix of the names of what follows, such as `blk.3.`.
    pub fn scope(&mut self, prefix: String) {
        self.scope = prefix;
    }

    /// Whether the file has this tensor (name without the scope).
    pub fn has(&self, tensor: &str) -> bool {
        self.tensors.contains_key(tensor)
    }

    /// Whether the file has this tensor within the scope.
    pub fn has_scoped(&self, tensor: &str) -> bool {
        self.has(&format!("{}{tensor}", self.scope))
    }

    /// Insists on a tensor that ops read where the file has it, such as a bias.
    ///
    /// # Errors
    /// The file does not have it.
    pub fn require(&self, tensor: &str) -> Result<(), Error> {
        let name = format!("{}{tensor}", self.scope);
        if self.has(&name) { Ok(()) } else { Err(missing(&name)) }
    }

    /// Values a row of a value.
    pub fn width(&self, x: Value) -> usize {
        self.spec(x).width
    }

    /// Rows of the embedding table `{name}.weight` for the step's tokens.
    ///
    /// # Errors
    /// The table is missing or has another shape.
    pub fn embed(&mut self, name: &str, vocab: usize, width: usize) -> Result<Value, Error> {
        let table = self.weight(&format!("{}{name}.weight", self.scope), vocab, width)?;
        let out = self.value(BufferSpec { extent: Extent::Rows, slots: 1, width, storage: Storage::F32 });
        self.push(name, OpKind::Embed { table, out: out.buffer() });
        Ok(out)
    }

    /// RMS norm by `{name}.weight`.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub fn rms_norm(&mut self, name: &str, x: Value, eps: f32) -> Result<Value, Error> {
        self.rms_norm_heads(name, x, self.width(x), eps)
    }

    /// RMS norm of each head of `head_dim` values by one `{name}.weight`.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub fn rms_norm_heads(
        &mut self,
        name: &str,
        x: Value,
        head_dim: usize,
        eps: f32,
    ) -> Result<Value, Error> {
        let weight = self.weight(&format!("{}{name}.weight", self.scope), 1, head_dim)?;
        let out = self.like(x, self.width(x), Storage::F32);
        self.push(name, OpKind::RmsNorm { x: x.buffer(), weight, eps, out: out.buffer() });
        Ok(out)
    }

    /// Matrix product of an f32 value with `{name}.weight` `[n][width]`, plus `{name}.bias` where the file has one.
    /// In class `q8` the value is rounded first, once for all products that read it.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub fn linear(&mut self, name: &str, x: Value, n: usize) -> Result<Value, Error> {
        self.linear_by(name, &format!("{}{name}", self.scope), x, n)
    }

    /// [`Builder::linear`] with the weight of another name (no scope applied): a tied head.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub fn linear_by(&mut self, name: &str, tensor: &str, x: Value, n: usize) -> Result<Value, Error> {
        let weight = self.weight(&format!("{tensor}.weight"), n, self.width(x))?;
        let bias_name = format!("{tensor}.bias");
        let bias = if self.has(&bias_name) { Some(self.weight(&bias_name, 1, n)?) } else { None };
        let x = self.activations(name, x);
        let out = self.like(x, n, Storage::F32);
        self.push(name, OpKind::Matmul { x: x.buffer(), weight, bias, out: out.buffer() });
        Ok(out)
    }

    /// A vector of `len` values that several ops may read (no scope applied), where the file has it.
    ///
    /// # Errors
    /// It has another shape.
    pub fn vector(&mut self, tensor: &str, len: usize) -> Result<Option<WeightId>, Error> {
        if self.has(tensor) { self.weight(tensor, 1, len).map(Some) } else { Ok(None) }
    }

    /// Rotary position embedding, in place.
    pub fn rope(&mut self, name: &str, x: Value, rope: Rope) {
        self.push(name, OpKind::Rope { x: x.buffer(), rope });
    }

    /// A new key-value state.
    pub fn kv(&mut self, heads: usize, head_dim: usize) -> StateId {
        self.states.push(StateSpec::Kv { heads, head_dim, dtype: self.bucket.kv });
        StateId(self.states.len() as u32 - 1)
    }

    /// Appends keys and values to a state.
    pub fn kv_append(&mut self, name: &str, k: Value, v: Value, state: StateId) {
        self.push(name, OpKind::KvAppend { k: k.buffer(), v: v.buffer(), state });
    }

    /// Causal attention over a state.
    pub fn attention(&mut self, name: &str, q: Value, state: StateId, attend: Attend) -> Value {
        let out = self.like(q, self.width(q), Storage::F32);
        self.push(name, OpKind::Attention { q: q.buffer(), state, attend, out: out.buffer() });
        out
    }

    /// `silu(gate) · up`.
    pub fn swiglu(&mut self, name: &str, gate: Value, up: Value) -> Value {
        let out = self.like(gate, self.width(gate), Storage::F32);
        self.push(name, OpKind::SwiGlu { gate: gate.buffer(), up: up.buffer(), out: out.buffer() });
        out
    }

    /// `gelu(gate) · up`.
    pub fn geglu(&mut self, name: &str, gate: Value, up: Value) -> Value {
        let out = self.like(gate, self.width(gate), Storage::F32);
        self.push(name, OpKind::GeGlu { gate: gate.buffer(), up: up.buffer(), out: out.buffer() });
        out
    }

    /// `x *= factor`, in place.
    pub fn scale(&mut self, name: &str, x: Value, factor: f32) {
        self.push(name, OpKind::Scale { x: x.buffer(), factor });
    }

    /// `x = cap · tanh(x / cap)`, in place.
    pub fn softcap(&mut self, name: &str, x: Value, cap: f32) {
        self.push(name, OpKind::Softcap { x: x.buffer(), cap });
    }

    /// `x += y`, in place.
    pub fn add(&mut self, name: &str, x: Value, y: Value) {
        self.push(name, OpKind::Add { x: x.buffer(), y: y.buffer() });
    }

    /// Keeps a value as the state of every row, if that is asked for.
    pub fn keep_hidden(&mut self, x: Value) {
        self.hidden = Some(x).filter(|_| self.keeps_hidden);
    }

    /// The states that a step brings along.
    pub fn hidden(&mut self, name: &str, width: usize) -> Value {
        let out = self.value(BufferSpec { extent: Extent::Rows, slots: 1, width, storage: Storage::F32 });
        self.push(name, OpKind::Hidden { out: out.buffer() });
        out
    }

    /// The rows of `x` whose logits are wanted.
    pub fn gather(&mut self, name: &str, x: Value) -> Value {
        let spec = BufferSpec { extent: Extent::Logits, ..*self.spec(x) };
        let out = self.value(spec);
        self.push(name, OpKind::Gather { x: x.buffer(), out: out.buffer() });
        out
    }

    /// The finished Program, whose result is `logits`.
    pub fn finish(mut self, logits: Value) -> Program {
        let (buffers, map) = self.assign_buffers(logits);
        let place = |id: BufferId| map[id.0 as usize];
        for op in &mut self.ops {
            op.kind = op.kind.map_buffers(place);
        }
        dependencies(&mut self.ops);
        fusion_hints(&mut self.ops);
        Program {
            bucket: self.bucket,
            weights: self.weights,
            buffers,
            states: self.states,
            logits: place(logits.buffer()),
            hidden: self.hidden.map(|value| place(value.buffer())),
            ops: self.ops,
        }
    }

    fn spec(&self, value: Value) -> &BufferSpec {
        &self.values[value.0 as usize]
    }

    fn value(&mut self, spec: BufferSpec) -> Value {
        self.values.push(spec);
        Value(self.values.len() as u32 - 1)
    }

    /// A value with the rows of `x`.
    fn like(&mut self, x: Value, width: usize, storage: Storage) -> Value {
        let BufferSpec { extent, slots, .. } = *self.spec(x);
        self.value(BufferSpec { extent, slots, width, storage })
    }

    /// `x` as the class wants it in front of a matrix product.
    fn activations(&mut self, name: &str, x: Value) -> Value {
        if self.bucket.class == NumericClass::F32 || self.spec(x).storage == Storage::Q8 {
            return x;
        }
        if let Some(&done) = self.quantised.get(&x) {
            return done;
        }
        let out = self.like(x, self.width(x), Storage::Q8);
        self.push(&format!("{name}.q8"), OpKind::Quantise { x: x.buffer(), out: out.buffer() });
        self.quantised.insert(x, out);
        out
    }

    fn weight(&mut self, name: &str, n: usize, k: usize) -> Result<WeightId, Error> {
        self.stack(name, 1, n, k)
    }

    /// A tensor of `stack` matrices.
    fn stack(&mut self, name: &str, stack: usize, n: usize, k: usize) -> Result<WeightId, Error> {
        let fail = |problem: String| Error::Tensor { name: name.to_owned(), problem };
        let spec = self.tensors.get(name).ok_or_else(|| missing(name))?;
        if spec.stack != stack {
            let problem = format!("holds {} matrices; {stack} of {n} rows of {k} are needed", spec.stack);
            return Err(fail(problem));
        }
        if (spec.n, spec.k) != (n, k) {
            return Err(fail(format!(
                "has {} rows of {} values; the file's metadata ask for {n} rows of {k}",
                spec.n, spec.k
            )));
        }
        if let Some(&id) = self.weight_ids.get(name) {
            return Ok(id);
        }
        let id = WeightId(self.weights.len() as u32);
        self.weights.push(spec.clone());
        self.weight_ids.insert(name.to_owned(), id);
        Ok(id)
    }

    fn push(&mut self, name: &str, kind: OpKind) {
        // A value changed in place is no longer what was rounded.
        if let Some(written) = kind.writes() {
            self.quantised.remove(&Value(written.0));
        }
        let (key, cost) = self.work(&kind);
        self.ops.push(Op {
            name: format!("{}{name}", self.scope),
            kind,
            after: Vec::new(),
            fuse: None,
            key,
            cost,
        });
    }

    /// Work-list entry and cost of an op at the full bucket.
    fn work(&self, kind: &OpKind) -> (Option<KernelKey>, Cost) {
        let bucket = &self.bucket;
        let buffer_bytes = |id: BufferId| {
            let spec = &self.values[id.0 as usize];
            (spec.rows(bucket) * spec.row_bytes()) as u64
        };
        let values = |id: BufferId| {
            let spec = &self.values[id.0 as usize];
            (spec.rows(bucket) * spec.width) as u64
        };
        let moved: u64 = kind.reads().chain(kind.writes()).map(buffer_bytes).sum();
        let weights: u64 = kind.weights().map(|id| self.weights[id.0 as usize].bytes() as u64).sum();
        match *kind {
            OpKind::Matmul { x, weight, .. } => {
                let WeightSpec { dtype, n, k, .. } = self.weights[weight.0 as usize];
                let m = self.values[x.0 as usize].rows(bucket);
                let key = self.key(kind, x, (dtype, n, k), m);
                let cost = matmul::family().cost(&key);
                (Some(key), cost)
            }
            OpKind::Embed { table, out } => {
                let WeightSpec { n, .. } = self.weights[table.0 as usize];
                let read = weights / n.max(1) as u64 * bucket.rows as u64;
                (None, Cost { bytes: read + buffer_bytes(out), flops: 0 })
            }
            OpKind::Attention { q, state, attend, .. } => {
                // A prompt chunk is one sequence, whose keys are read once; each decode row reads its own.
                let sequences = if bucket.path == NumericPath::Decode { bucket.rows } else { 1 };
                let seen = attend.window.map_or(bucket.context, |window| window.min(bucket.context));
                let keys = (sequences * seen * self.states[state.0 as usize].bytes_per_token()) as u64;
                (None, Cost { bytes: moved + keys, flops: 4 * values(q) * seen as u64 })
            }
            OpKind::KvAppend { k, state, .. } => {
                let rows = self.values[k.0 as usize].rows(bucket);
                let stored = (rows * self.states[state.0 as usize].bytes_per_token()) as u64;
                (None, Cost { bytes: moved + stored, flops: 0 })
            }
            OpKind::RmsNorm { x, .. } => (None, Cost { bytes: moved + weights, flops: 4 * values(x) }),
            OpKind::Rope { x, .. } => (None, Cost { bytes: moved, flops: 3 * values(x) }),
            OpKind::SwiGlu { gate, .. } => (None, Cost { bytes: moved, flops: 4 * values(gate) }),
            OpKind::GeGlu { gate, .. } => (None, Cost { bytes: moved, flops: 9 * values(gate) }),
            OpKind::Softcap { x, .. } => (None, Cost { bytes: moved, flops: 3 * values(x) }),
            OpKind::Quantise { x, .. } | OpKind::Add { x, .. } | OpKind::Scale { x, .. } => {
                (None, Cost { bytes: moved, flops: 2 * values(x) })
            }
            OpKind::Gather { out, .. } => (None, Cost { bytes: 2 * buffer_bytes(out), flops: 0 }),
            OpKind::Experts { x, weight, .. } => {
                let WeightSpec { dtype, n, k, stack, .. } = self.weights[weight.0 as usize];
                let slots = self.values[x.0 as usize].rows(bucket);
                let active = slots.clamp(1, stack.max(1));
                let read = weights / stack.max(1) as u64 * active as u64;
                let cost = Cost { bytes: moved + read, flops: 2 * n as u64 * (k * slots) as u64 };
                (Some(self.key(kind, x, (dtype, n, k), slots.div_ceil(active))), cost)
            }
            OpKind::Hidden { out } | OpKind::Columns { out, .. } => {
                (None, Cost { bytes: 2 * buffer_bytes(out), flops: 0 })
            }
            OpKind::Concat { .. } | OpKind::GatherSlots { .. } => (None, Cost { bytes: moved, flops: 0 }),
            OpKind::ShortConv { x, weight, state, .. } => {
                let taps = self.weights[weight.0 as usize].k as u64;
                let bytes = moved + weights + self.replaced(state);
                (None, Cost { bytes, flops: (2 * taps + 4) * values(x) })
            }
            OpKind::DeltaGates { out, .. } => {
                (None, Cost { bytes: moved + weights, flops: 20 * values(out) })
            }
            OpKind::DeltaScan { qkv, net, state, .. } => {
                let rows = self.values[qkv.0 as usize].rows(bucket);
                let flops = 7 * rows * net.value_heads * net.key_dim * net.value_dim;
                (None, Cost { bytes: moved + self.replaced(state), flops: flops as u64 })
            }
            OpKind::GatedRmsNorm { x, .. } => (None, Cost { bytes: moved + weights, flops: 9 * values(x) }),
            OpKind::SigmoidGate { x, .. } => (None, Cost { bytes: moved, flops: 4 * values(x) }),
            OpKind::Route { logits, .. } => (None, Cost { bytes: moved, flops: 12 * values(logits) }),
            OpKind::Combine { x, .. } => (None, Cost { bytes: moved, flops: 2 * values(x) }),
        }
    }

    /// Bytes of a state that a step reads and writes: a prompt chunk is one sequence, each decode row one of its own.
    fn replaced(&self, state: StateId) -> u64 {
        let sequences = if self.bucket.path == NumericPath::Decode { self.bucket.rows } else { 1 };
        (2 * sequences * self.states[state.0 as usize].bytes_per_sequence()) as u64
    }

    /// The key of a product of `m` rows of `x`.
    fn key(&self, kind: &OpKind, x: BufferId, (dtype, n, k): (DType, usize, usize), m: usize) -> KernelKey {
        let class = match self.values[x.0 as usize].storage {
            Storage::Q8 => NumericClass::Q8,
            _ => NumericClass::F32,
        };
        KernelKey { family: kind.family().to_owned(), dtype, class, path: self.bucket.path, n, k, m }
    }

    /// Linear scan: a value takes the first free buffer of its kind, and frees it after its last use.
    fn assign_buffers(&self, logits: Value) -> (Vec<BufferSpec>, Vec<BufferId>) {
        let mut last_use = vec![0; self.values.len()];
        for (i, op) in self.ops.iter().enumerate() {
            op.kind.reads().chain(op.kind.writes()).for_each(|id| last_use[id.0 as usize] = i);
        }
        for kept in [Some(logits), self.hidden].into_iter().flatten() {
            last_use[kept.0 as usize] = usize::MAX;
        }
        let mut buffers: Vec<BufferSpec> = Vec::new();
        let mut free: Vec<BufferId> = Vec::new();
        let mut map: Vec<Option<BufferId>> = vec![None; self.values.len()];
        for (i, op) in self.ops.iter().enumerate() {
            let used: BTreeSet<usize> =
                op.kind.reads().chain(op.kind.writes()).map(|id| id.0 as usize).collect();
            for &value in &used {
                if map[value].is_none() {
                    let spec = &self.values[value];
                    let found = free.iter().position(|b| buffers[b.0 as usize] == *spec);
                    map[value] = Some(found.map(|at| free.remove(at)).unwrap_or_else(|| {
                        buffers.push(spec.clone());
                        BufferId(buffers.len() as u32 - 1)
                    }));
                }
            }
            free.extend(
                used.into_iter().filter(|&value| last_use[value] == i).filter_map(|value| map[value]),
            );
        }
        // A value no op touches needs no buffer of its own.
        (buffers, map.into_iter().map(|id| id.unwrap_or(BufferId(0))).collect())
    }
}

impl Value {
    /// Before buffers are assigned, an op names a value by its own number.
    fn buffer(self) -> BufferId {
        BufferId(self.0)
    }
}

fn missing(name: &str) -> Error {
    Error::Tensor {
        name: name.to_owned(),
        problem:
            "is missing from the file; the file is incomplete, or its architecture is not the one it names"
                .into(),
    }
}

/// Orders ops by what they read and write: read after write, write after read, write after write, on buffers and states.
fn dependencies(ops: &mut [Op]) {
    #[derive(Default)]
    struct Uses {
        writer: Option<u32>,
        readers: Vec<u32>,
    }
    let mut uses: HashMap<(bool, u32), Uses> = HashMap::new();
    for (i, op) in ops.iter_mut().enumerate() {
        let index = i as u32;
        let mut after = BTreeSet::new();
        let state = op.kind.state();
        let reads = op.kind.reads().map(|b| (false, b.0)).chain(state.map(|(s, _)| (true, s.0)));
        for resource in reads {
            let uses = uses.entry(resource).or_default();
            after.extend(uses.writer);
            uses.readers.push(index);
        }
        let writes = op.kind.writes().map(|b| (false, b.0));
        for resource in writes.into_iter().chain(state.filter(|s| s.1).map(|(s, _)| (true, s.0))) {
            let uses = uses.entry(resource).or_default();
            after.extend(uses.writer);
            after.extend(uses.readers.drain(..));
            uses.writer = Some(index);
        }
        after.remove(&index);
        op.after = after.into_iter().collect();
    }
}

/// Numbers runs of neighbours that a fused kernel could cover: a norm and its rounding; products of one input and what
/// consumes them directly (rope, append, activation, residual).
fn fusion_hints(ops: &mut [Op]) {
    let mut groups = 0;
    let mut start = 0;
    for i in 1..=ops.len() {
        if i < ops.len() && joins(&ops[start..i], &ops[i].kind) {
            continue;
        }
        if i - start > 1 {
            ops[start..i].iter_mut().for_each(|op| op.fuse = Some(groups));
            groups += 1;
        }
        start = i;
    }
}

fn joins(run: &[Op], next: &OpKind) -> bool {
    let reads_run = || next.reads().any(|read| run.iter().any(|op| op.kind.writes() == Some(read)));
    match next {
        OpKind::Quantise { .. } => run.len() == 1 && reads_run(),
        OpKind::Matmul { x, .. } => {
            run.iter().all(|op| matches!(op.kind, OpKind::Matmul { x: shared, .. } if shared == *x))
        }
        OpKind::Rope { .. }
        | OpKind::KvAppend { .. }
        | OpKind::SwiGlu { .. }
        | OpKind::GeGlu { .. }
        | OpKind::Add { .. }
        | OpKind::Softcap { .. } => matches!(run[0].kind, OpKind::Matmul { .. }) && reads_run(),
        _ => false,
    }
}
