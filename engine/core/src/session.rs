//! A session: sequences over one loaded model, advanced step by step.

mod mtp;

use crate::Error;
use crate::cache::Cache;
use crate::exec::{CpuExecutor, RopeTables, Step, StepRow};
use crate::model::Model;
use crate::program::{Bucket, Program};
use memra_kernels::cpu::{Pool, physical_cores};
use memra_kernels::delta::SlotStep;
use memra_kernels::dispatch::Dispatcher;
use memra_kernels::{DType, NumericClass, NumericPath};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Default number of prompt tokens a step processes.
pub const CHUNK: usize = 512;

/// How a session computes.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Type of the activations that matrix products see.
    pub class: NumericClass,
    /// Threads.
    pub threads: usize,
    /// Chooses each kernel's configuration; make it for the same number of threads. The default knows no tables.
    pub dispatcher: Arc<Dispatcher>,
    /// Storage type of keys and values: F16 or F32.
    pub kv: DType,
    /// Positions a sequence may have; `None` is the model's own limit, at most 4,096.
    pub context: Option<usize>,
    /// Sequences with full contexts that the cache has room for.
    pub sequences: usize,
    /// Recurrent states kept beside those that running sequences need: for checkpoints, and for [`Session::verify`], which
    /// keeps one for each row. Models without recurrent layers need none.
    pub checkpoints: usize,
    /// Whether the head that predicts the token after the next (MTP) is used: [`Session::step_mtp`].
    pub mtp: bool,
    /// Planted faults, with which a harness proves that it notices.
    pub fault: Fault,
}

/// Faults to plant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fault {
    /// Keeps the processor busy for this fraction of each step's time, after it.
    pub slow: f64,
    /// Kernel family whose output is corrupted.
    pub wrong: Option<String>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            class: NumericClass::default(),
            threads: physical_cores(),
            dispatcher: Arc::new(Dispatcher::defaults(physical_cores())),
            kv: DType::F16,
            context: None,
            sequences: 1,
            checkpoints: 8,
            mtp: false,
            fault: Fault::default(),
        }
    }
}

/// A sequence of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeqId(usize);

/// What a sequence had at one moment. A session's own, until it is [discarded](Session::discard).
#[derive(Debug, PartialEq, Eq)]
pub struct Checkpoint(usize);

/// One row of a step: a token to append to a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The sequence.
    pub seq: SeqId,
    /// The token.
    pub token: u32,
}

/// Time spent in one op of a Program over all steps since profiling began.
#[derive(Clone, Debug)]
pub struct OpTime {
    /// Bucket of the Program it belongs to.
    pub bucket: Bucket,
    /// The op's name.
    pub name: String,
    /// Its kernel family.
    pub family: &'static str,
    /// Time in all.
    pub total: Duration,
    /// Times it ran.
    pub calls: u64,
}

/// Sequences over one loaded model, the cache they share, and an executor for each bucket in use.
pub struct Session {
    model: Arc<Model>,
    options: SessionOptions,
    context: usize,
    pool: Pool,
    executors: Vec<CpuExecutor>,
    /// Executors of the head that predicts the token after the next.
    heads: Vec<CpuExecutor>,
    /// The last step: of the head or not, its executor, and its rows.
    last: Option<(bool, usize, usize)>,
    rope_tables: RopeTables,
    profiling: bool,
    cache: Cache,
    /// Rows of the step in hand, with positions; and how many each sequence has. Kept to allocate nothing per step.
    rows: Vec<StepRow>,
    slots: Vec<SlotStep>,
    pending: Vec<usize>,
}

impl Session {
    /// A session with an empty cache.
    ///
    /// # Errors
    /// An option out of range.
    pub fn new(model: Arc<Model>, options: SessionOptions) -> Result<Session, Error> {
        let config = model.file().config();
        let trained = config.n_ctx_train;
        let context = options.context.unwrap_or(trained.min(4096));
        let bad = |problem: String| Err(Error::Argument(problem));
        if context == 0 || context > trained {
            return bad(format!(
                "context is {context}; it must be between 1 and {trained}, what the model was trained for"
            ));
        }
        if options.sequences == 0 || options.threads == 0 {
            return bad("a session needs at least one sequence and one thread".into());
        }
        if !(options.fault.slow >= 0.0 && options.fault.slow.is_finite()) {
            return bad(format!("slow is {}; it must be a fraction of 0 or more", options.fault.slow));
        }
        let smallest = bucket(&options, NumericPath::Decode, 1, 1, context);
        let program = model.file().program(smallest)?;
        check_wrong(&program, &options.fault)?;
        let states = if options.mtp { mtp::program(&model, smallest)?.states } else { program.states };
        Ok(Session {
            context,
            pool: Pool::new(options.threads),
            executors: Vec::new(),
            heads: Vec::new(),
            last: None,
            rope_tables: RopeTables::new(context),
            profiling: false,
            cache: Cache::new(&states, options.sequences, context, options.checkpoints)?,
            rows: Vec::new(),
            slots: Vec::new(),
            pending: Vec::new(),
            model,
            options,
        })
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The options it was made with.
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Positions a sequence may have.
    pub fn context(&self) -> usize {
        self.context
    }

    /// A new, empty sequence.
    pub fn new_sequence(&mut self) -> SeqId {
        SeqId(self.cache.begin())
    }

    /// A second sequence with the same past; pages are shared until one of them appends.
    ///
    /// # Errors
    /// The sequence was freed.
    pub fn fork(&mut self, seq: SeqId) -> Result<SeqId, Error> {
        Ok(SeqId(self.cache.fork(seq.0)?))
    }

    /// Forgets every position of a sequence from `len` on.
    ///
    /// A model with recurrent layers cannot take tokens back out of its state. Its sequences go back to the beginning, to
    /// where [`Session::verify`] has just kept the state, or by [`Session::restore`].
    ///
    /// # Errors
    /// The sequence was freed; [`Error::NotKept`] when it has recurrent state, and none was kept of that length. The sequence
    /// is then as it was.
    pub fn truncate(&mut self, seq: SeqId, len: usize) -> Result<(), Error> {
        self.cache.truncate(seq.0, len)
    }

    /// Keeps what a sequence has now, to go back to by [`Session::restore`]. Nothing is copied: pages are shared, and what a
    /// recurrent layer keeps takes one of [`SessionOptions::checkpoints`] as soon as the sequence goes on. It holds these
    /// until [`Session::discard`].
    ///
    /// # Errors
    /// The sequence was freed.
    pub fn checkpoint(&mut self, seq: SeqId) -> Result<Checkpoint, Error> {
        Ok(Checkpoint(self.cache.fork(seq.0)?))
    }

    /// Gives a sequence the past that a checkpoint holds, its own or another's.
    ///
    /// # Errors
    /// The sequence was freed, or the checkpoint is another session's.
    pub fn restore(&mut self, seq: SeqId, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.cache.restore(seq.0, checkpoint.0)
    }

    /// Lets go of a checkpoint.
    ///
    /// # Errors
    /// The checkpoint is another session's.
    pub fn discard(&mut self, checkpoint: Checkpoint) -> Result<(), Error> {
        self.cache.end(checkpoint.0)
    }

    /// Ends a sequence and gives its pages back.
    ///
    /// # Errors
    /// The sequence was freed before.
    pub fn free(&mut self, seq: SeqId) -> Result<(), Error> {
        self.cache.end(seq.0)
    }

    /// Positions that a sequence holds.
    ///
    /// # Errors
    /// The sequence was freed.
    pub fn len(&self, seq: SeqId) -> Result<usize, Error> {
        self.cache.len(seq.0)
    }

    /// Appends tokens to sequences, several of each if need be, and computes the logits after the rows listed in
    /// `wanted` (ascending indices into `rows`): `[wanted][vocabulary]`. On an error no sequence has advanced.
    ///
    /// # Errors
    /// A token outside the vocabulary, a sequence that was freed or would outgrow the context, a full cache, or logits
    /// that are not finite.
    pub fn step(&mut self, path: NumericPath, rows: &[Row], wanted: &[u32]) -> Result<&[f32], Error> {
        self.run(path, rows, wanted, false)
    }

    /// [`Session::step`] with rows that may have to be taken back, such as drafts. Until a sequence's next step,
    /// [`Session::truncate`] can take it back to after any of its rows, and to where it was before, also where layers are
    /// recurrent.
    ///
    /// # Errors
    /// As [`Session::step`]; [`Error::StatesFull`] when there are not enough recurrent states for all rows.
    pub fn verify(&mut self, path: NumericPath, rows: &[Row], wanted: &[u32]) -> Result<&[f32], Error> {
        self.run(path, rows, wanted, true)
    }

    fn run(&mut self, path: NumericPath, rows: &[Row], wanted: &[u32], keep: bool) -> Result<&[f32], Error> {
        let start = Instant::now();
        check_wanted(rows, wanted)?;
        self.place(rows, keep)?;
        let at = self.executor(false, path, rows.len(), wanted.len())?;
        self.last = None;
        let executor = &mut self.executors[at];
        let step = Step { rows: &self.rows, wanted, slots: &self.slots, hidden: &[] };
        executor.run(&self.pool, &step, &mut self.cache)?;
        check_finite(executor.logits(wanted.len()), wanted, &self.rows)?;
        self.cache.advance(&self.pending);
        self.last = Some((false, at, rows.len()));
        if self.options.fault.slow > 0.0 {
            let until = Instant::now() + start.elapsed().mul_f64(self.options.fault.slow);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        }
        Ok(self.executors[at].logits(wanted.len()))
    }

    /// Appends one token on the decode path; returns the logits after it.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn decode(&mut self, seq: SeqId, token: u32) -> Result<&[f32], Error> {
        self.step(NumericPath::Decode, &[Row { seq, token }], &[0])
    }

    /// Appends `tokens` on the prompt path, at most `chunk` a step; returns the logits after the last.
    ///
    /// # Errors
    /// As [`Session::step`]; no tokens; more than fit the context, in which case nothing is appended.
    pub fn prefill(&mut self, seq: SeqId, tokens: &[u32], chunk: usize) -> Result<&[f32], Error> {
        let logits = self.prefill_while(seq, tokens, chunk, &mut |_| ControlFlow::Continue(()))?;
        Ok(logits.unwrap_or_default())
    }

    /// Appends `tokens` as [`Session::prefill`] does, and asks `go_on` after each chunk but the last, with the number of
    /// tokens appended so far. `None` when it broke off; what was appended stays.
    ///
    /// # Errors
    /// As [`Session::prefill`].
    pub fn prefill_while(
        &mut self,
        seq: SeqId,
        tokens: &[u32],
        chunk: usize,
        go_on: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<&[f32]>, Error> {
        let chunk = self.check_prompt(seq, tokens, chunk)?;
        let split = (tokens.len() - 1) / chunk * chunk;
        let mut rows = Vec::with_capacity(chunk);
        for (done, part) in (1..).zip(tokens[..split].chunks(chunk)) {
            fill(&mut rows, seq, part);
            self.step(NumericPath::Prompt, &rows, &[])?;
            if go_on(done * chunk).is_break() {
                return Ok(None);
            }
        }
        fill(&mut rows, seq, &tokens[split..]);
        let last = rows.len() as u32 - 1;
        self.step(NumericPath::Prompt, &rows, &[last]).map(Some)
    }

    /// Appends `tokens` as [`Session::prefill`] does, and hands each one's logits to `sink` with its index.
    ///
    /// # Errors
    /// As [`Session::prefill`].
    pub fn prefill_all(
        &mut self,
        seq: SeqId,
        tokens: &[u32],
        chunk: usize,
        sink: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), Error> {
        let chunk = self.check_prompt(seq, tokens, chunk)?;
        let n_vocab = self.model.file().config().n_vocab;
        let mut rows = Vec::with_capacity(chunk);
        for (part, tokens) in tokens.chunks(chunk).enumerate() {
            fill(&mut rows, seq, tokens);
            let wanted: Vec<u32> = (0..rows.len() as u32).collect();
            let logits = self.step(NumericPath::Prompt, &rows, &wanted)?;
            logits.chunks_exact(n_vocab).enumerate().for_each(|(i, row)| sink(part * chunk + i, row));
        }
        Ok(())
    }

    /// Starts (or stops) measuring each op; a session that does not profile pays one branch a step.
    pub fn profile(&mut self, on: bool) {
        self.profiling = on;
        self.executors.iter_mut().chain(&mut self.heads).for_each(|e| e.profile(on));
    }

    /// Times of each op since profiling began, in Program order.
    pub fn op_times(&self) -> Vec<OpTime> {
        self.executors.iter().chain(&self.heads).flat_map(CpuExecutor::times).collect()
    }

    /// Bytes of the cache and of every executor's buffers.
    pub fn memory_bytes(&self) -> u64 {
        let executors = self.executors.iter().chain(&self.heads);
        let buffers: u64 = executors.map(|e| e.program().buffer_bytes()).sum();
        buffers + self.cache.bytes()
    }

    /// Bytes that one token at depth `context` must read: weights once, and its sequence's state.
    ///
    /// # Errors
    /// As [`crate::model::ModelFile::program`].
    pub fn bytes_per_token(&self, context: usize) -> Result<u64, Error> {
        let program = self.model.file().program(bucket(&self.options, NumericPath::Decode, 1, 1, context))?;
        let state = program.state_bytes_per_sequence() + context as u64 * program.state_bytes_per_token();
        Ok(program.weight_bytes_read() + state)
    }

    /// Gives each row its position, and each sequence room for its rows.
    fn place(&mut self, rows: &[Row], keep: bool) -> Result<(), Error> {
        let config = self.model.file().config();
        self.rows.clear();
        self.pending.clear();
        self.pending.resize(self.cache.sequences(), 0);
        for &Row { seq, token } in rows {
            if token as usize >= config.n_vocab {
                return Err(Error::Token { token, vocab: config.n_vocab });
            }
            let position = self.cache.len(seq.0)? + self.pending[seq.0];
            if position >= self.context {
                let needed = position + 1;
                return Err(Error::Context { needed, context: self.context, trained: config.n_ctx_train });
            }
            self.pending[seq.0] += 1;
            self.rows.push(StepRow { token, position, seq: seq.0 });
        }
        self.cache.reserve(&self.pending, keep)?;
        self.slots.clear();
        for row in &self.rows {
            let index = row.position - self.cache.len(row.seq)?;
            self.slots.extend(self.cache.slot_step(row.seq, index));
        }
        Ok(())
    }

    /// The executor of the smallest bucket that holds a step, of the model or of its head, made on first use.
    fn executor(
        &mut self,
        head: bool,
        path: NumericPath,
        rows: usize,
        logits: usize,
    ) -> Result<usize, Error> {
        let rows = match path {
            NumericPath::Decode => rows.next_power_of_two(),
            NumericPath::Prompt if rows <= 64 => 64,
            NumericPath::Prompt => rows.next_power_of_two().max(CHUNK),
        };
        let logits = if logits <= 1 { 1 } else { rows };
        let bucket = bucket(&self.options, path, rows, logits, self.context);
        let executors = if head { &self.heads } else { &self.executors };
        if let Some(at) = executors.iter().position(|e| e.program().bucket == bucket) {
            return Ok(at);
        }
        let program = match (head, self.options.mtp) {
            (true, _) => mtp::program(&self.model, bucket)?,
            (false, true) => mtp::main_program(&self.model, bucket)?,
            (false, false) => self.model.file().program(bucket)?,
        };
        let mut executor = CpuExecutor::new(
            program,
            &self.model,
            &self.options,
            self.pool.threads(),
            &mut self.rope_tables,
        )?;
        executor.profile(self.profiling);
        let executors = if head { &mut self.heads } else { &mut self.executors };
        executors.push(executor);
        Ok(executors.len() - 1)
    }

    fn check_prompt(&mut self, seq: SeqId, tokens: &[u32], chunk: usize) -> Result<usize, Error> {
        if tokens.is_empty() {
            return Err(Error::Argument("the prompt has no tokens; start from bos instead".into()));
        }
        let needed = self.len(seq)? + tokens.len();
        if needed > self.context {
            let trained = self.model.file().config().n_ctx_train;
            return Err(Error::Context { needed, context: self.context, trained });
        }
        Ok(chunk.clamp(1, tokens.len()))
    }
}

fn bucket(options: &SessionOptions, path: NumericPath, rows: usize, logits: usize, context: usize) -> Bucket {
    Bucket { path, class: options.class, rows, logits, kv: options.kv, context }
}

/// A fault in a kernel that never runs would prove nothing.
fn check_wrong(program: &Program, fault: &Fault) -> Result<(), Error> {
    let Some(wrong) = &fault.wrong else { return Ok(()) };
    let families: BTreeSet<&str> =
        program.ops.iter().filter(|op| program.is_f32(op)).map(|op| op.kind.family()).collect();
    if families.contains(wrong.as_str()) {
        return Ok(());
    }
    let list = families.into_iter().collect::<Vec<_>>().join(", ");
    Err(Error::Argument(format!("there is no kernel family `{wrong}` to make wrong; there are: {list}")))
}

fn fill(rows: &mut Vec<Row>, seq: SeqId, tokens: &[u32]) {
    rows.clear();
    rows.extend(tokens.iter().map(|&token| Row { seq, token }));
}

/// A step has rows, and those whose logits are wanted are among them.
fn check_wanted(rows: &[Row], wanted: &[u32]) -> Result<(), Error> {
    if rows.is_empty() {
        return Err(Error::Argument("a step needs at least one token".into()));
    }
    if wanted.iter().any(|&row| row as usize >= rows.len()) {
        let problem = format!("logits are wanted of a row beyond the {} of the step", rows.len());
        return Err(Error::Argument(problem));
    }
    Ok(())
}

fn check_finite(logits: &[f32], wanted: &[u32], rows: &[StepRow]) -> Result<(), Error> {
    let width = logits.len() / wanted.len().max(1);
    for (logits, &row) in logits.chunks_exact(width.max(1)).zip(wanted) {
        // Without a branch a value, so that it is vectorised.
        if logits.iter().fold(false, |bad, v| bad | !v.is_finite()) {
            let token = logits.iter().position(|v| !v.is_finite()).unwrap_or(0) as u32;
            return Err(Error::NotFinite { position: rows[row as usize].position, token });
        }
    }
    Ok(())
}
