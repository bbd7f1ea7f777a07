//! The head that predicts the token after the next (MTP): steps of its own, after those of the model.
//!
//! A row of the head brings a token and the state that predicted it: a row of [`Session::hidden`] of the model's step, or of
//! the head's own when it drafts on. Its keys and values lie in the same pages as the model's, at the position of the
//! state, so they are forked and truncated with them; what it drafted beyond the sequence's end is forgotten when the
//! sequence goes on.

use super::{Row, Session, check_finite};
use crate::Error;
use crate::exec::{CpuExecutor, Step, StepRow};
use crate::model::Model;
use crate::program::{Bucket, Program};
use memra_kernels::NumericPath;

impl Session {
    /// The state that the logits of each row of the last step are made from, `[rows][width]`; empty without
    /// [`SessionOptions::mtp`](super::SessionOptions::mtp), or after a step that failed.
    pub fn hidden(&self) -> &[f32] {
        match self.last {
            Some((true, at, rows)) => self.heads[at].hidden(rows),
            Some((false, at, rows)) => self.executors[at].hidden(rows),
            None => &[],
        }
    }

    /// Positions of a sequence that the head has been through.
    ///
    /// # Errors
    /// The sequence was freed.
    pub fn mtp_len(&self, seq: super::SeqId) -> Result<usize, Error> {
        self.cache.head_len(seq.0)
    }

    /// Takes the head on by rows, each a token and the state that predicted it (`hidden`, `[rows][width]`), at the next
    /// positions that it has not been through; returns what it says of the tokens that follow the rows listed in `wanted`:
    /// `[wanted][vocabulary]`. On an error it is where it was.
    ///
    /// Row `t` of a sequence belongs to the state after its token `t`, so the token is number `t + 1`.
    ///
    /// # Errors
    /// The session does not use the head; as [`Session::step`]; `hidden` is of another size.
    pub fn step_mtp(
        &mut self,
        path: NumericPath,
        rows: &[Row],
        hidden: &[f32],
        wanted: &[u32],
    ) -> Result<&[f32], Error> {
        if !self.options.mtp {
            return Err(Error::Argument(
                "the session does not use the MTP head; ask for it in its options".into(),
            ));
        }
        let width = self.model.file().config().n_embd;
        if hidden.len() != rows.len() * width {
            let problem = format!(
                "{} rows need {width} values of state each, but {} were given",
                rows.len(),
                hidden.len()
            );
            return Err(Error::Argument(problem));
        }
        super::check_wanted(rows, wanted)?;
        self.place_mtp(rows)?;
        let at = self.executor(true, path, rows.len(), wanted.len())?;
        self.last = None;
        let head: &mut CpuExecutor = &mut self.heads[at];
        let step = Step { rows: &self.rows, wanted, slots: &[], hidden };
        head.run(&self.pool, &step, &mut self.cache)?;
        check_finite(head.logits(wanted.len()), wanted, &self.rows)?;
        self.cache.advance_head(&self.pending);
        self.last = Some((true, at, rows.len()));
        Ok(self.heads[at].logits(wanted.len()))
    }

    /// Gives each row its position, and the head room for it.
    fn place_mtp(&mut self, rows: &[Row]) -> Result<(), Error> {
        let (n_vocab, trained) = {
            let config = self.model.file().config();
            (config.n_vocab, config.n_ctx_train)
        };
        self.rows.clear();
        self.pending.clear();
        self.pending.resize(self.cache.sequences(), 0);
        for &Row { seq, token } in rows {
            if token as usize >= n_vocab {
                return Err(Error::Token { token, vocab: n_vocab });
            }
            let position = self.cache.head_len(seq.0)? + self.pending[seq.0];
            if position >= self.context {
                return Err(Error::Context { needed: position + 1, context: self.context, trained });
            }
            self.pending[seq.0] += 1;
            self.rows.push(StepRow { token, position, seq: seq.0 });
        }
        self.cache.reserve_head(&self.pending)
    }
}

/// The head's Program.
pub(super) fn program(model: &Model, bucket: Bucket) -> Result<Program, Error> {
    both(model, bucket).map(|[_, head]| head)
}

/// The model's Program, which keeps the states that the head needs.
pub(super) fn main_program(model: &Model, bucket: Bucket) -> Result<Program, Error> {
    both(model, bucket).map(|[main, _]| main)
}

fn both(model: &Model, bucket: Bucket) -> Result<[Program; 2], Error> {
    let none = || Error::Argument("the model has no MTP head".into());
    model.file().programs_with_mtp(bucket)?.ok_or_else(none)
}
