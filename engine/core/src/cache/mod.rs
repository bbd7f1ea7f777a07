//! State that outlives a step: what every sequence of a session keeps, by kind of state.
//!
//! A kind of state ([`StateSpec`]) has a store of its own, and [`SeqState`] what one sequence holds in each store.
//! Everything that happens to a sequence goes through [`Cache`]: it begins, makes room for the rows of a step, advances
//! over them once the step has succeeded, forks, goes back, ends. A store keeps what a step wrote invisible until
//! [`Cache::advance`], so that a failed step leaves no trace.

mod kv;
mod pages;
mod recurrent;
mod seq;

use crate::Error;
use crate::program::{StateId, StateSpec};
use kv::KvCache;
use memra_kernels::ShapeError;
use memra_kernels::attention::KvView;
use memra_kernels::delta::SlotStep;
use pages::PagePool;
use recurrent::RecurrentCache;
use seq::SeqState;

/// Positions a page holds.
pub(crate) use memra_kernels::attention::PAGE;

/// The states of a Program, for every sequence of a session.
#[derive(Debug)]
pub(crate) struct Cache {
    /// For each state of the Program, its index in the store of its kind.
    places: Vec<usize>,
    kv: KvCache,
    pages: PagePool,
    recurrent: RecurrentCache,
    seqs: Vec<Option<SeqState>>,
}

impl Cache {
    /// Empty stores with room for `positions` positions of each of `sequences` sequences, and for `checkpoints` recurrent
    /// states beside those that running sequences need.
    ///
    /// # Errors
    /// A state of a storage type that is not supported, or stores beyond memory's addresses.
    pub(crate) fn new(
        states: &[StateSpec],
        sequences: usize,
        positions: usize,
        checkpoints: usize,
    ) -> Result<Self, Error> {
        let pages = sequences.saturating_mul(positions.div_ceil(PAGE));
        // A step reads one and writes another.
        let slots = sequences.saturating_mul(2).saturating_add(checkpoints);
        let is_recurrent = states.iter().any(|state| matches!(state, StateSpec::Recurrent { .. }));
        let mut recurrent = RecurrentCache::new(if is_recurrent { slots } else { 0 });
        let mut kv = KvCache::default();
        let mut places = Vec::with_capacity(states.len());
        for state in states {
            places.push(match *state {
                StateSpec::Kv { heads, head_dim, dtype } => kv.push(heads, head_dim, dtype, pages)?,
                StateSpec::Recurrent { values } => recurrent.push(values)?,
            });
        }
        Ok(Cache { places, kv, pages: PagePool::new(pages), recurrent, seqs: Vec::new() })
    }

    /// Begins a sequence, empty.
    pub(crate) fn begin(&mut self) -> usize {
        self.adopt(SeqState::default())
    }

    /// Begins a second sequence with the same past.
    pub(crate) fn fork(&mut self, seq: usize) -> Result<usize, Error> {
        let fork = find(&mut self.seqs, seq)?.fork(&mut self.pages, &mut self.recurrent);
        Ok(self.adopt(fork))
    }

    /// Gives a sequence the past of another, which keeps it.
    pub(crate) fn restore(&mut self, seq: usize, from: usize) -> Result<(), Error> {
        self.len(seq)?;
        let fork = find(&mut self.seqs, from)?.fork(&mut self.pages, &mut self.recurrent);
        let mut before = std::mem::replace(find(&mut self.seqs, seq)?, fork);
        before.truncate(&mut self.pages, &mut self.recurrent, 0)
    }

    /// Forgets every position of a sequence from `len` on.
    ///
    /// # Errors
    /// The sequence has ended; it has recurrent state, and none was kept of that length. Nothing has changed.
    pub(crate) fn truncate(&mut self, seq: usize, len: usize) -> Result<(), Error> {
        find(&mut self.seqs, seq)?.truncate(&mut self.pages, &mut self.recurrent, len)
    }

    /// Ends a sequence and gives back what it holds.
    pub(crate) fn end(&mut self, seq: usize) -> Result<(), Error> {
        self.truncate(seq, 0)?;
        self.seqs[seq] = None;
        Ok(())
    }

    /// Positions that a sequence holds.
    pub(crate) fn len(&self, seq: usize) -> Result<usize, Error> {
        self.seqs.get(seq).and_then(Option::as_ref).map(SeqState::len).ok_or_else(|| ended(seq))
    }

    /// One more than the highest number of a sequence.
    pub(crate) fn sequences(&self) -> usize {
        self.seqs.len()
    }

    /// Makes room for `more[i]` positions of sequence `i`; with `keep`, for the recurrent state after each of them. On an
    /// error every sequence is as long as it was.
    pub(crate) fn reserve(&mut self, more: &[usize], keep: bool) -> Result<(), Error> {
        for seq in self.seqs.iter_mut().flatten() {
            seq.track.abandon(&mut self.recurrent);
        }
        for (seq, &more) in self.seqs.iter_mut().zip(more) {
            if let Some(seq) = seq {
                seq.reserve(&mut self.pages, more, |from, to| self.kv.copy_page(from, to))?;
                seq.track.reserve(&mut self.recurrent, more, keep)?;
            }
        }
        Ok(())
    }

    /// Makes room for `more[i]` positions of sequence `i` in what a head that predicts further tokens holds.
    pub(crate) fn reserve_head(&mut self, more: &[usize]) -> Result<(), Error> {
        for (seq, &more) in self.seqs.iter_mut().zip(more) {
            if let Some(seq) = seq {
                seq.reserve_head(&mut self.pages, more, |from, to| self.kv.copy_page(from, to))?;
            }
        }
        Ok(())
    }

    /// [`Cache::advance`] for such a head.
    pub(crate) fn advance_head(&mut self, more: &[usize]) {
        for (seq, &more) in self.seqs.iter_mut().zip(more) {
            if let Some(seq) = seq {
                seq.advance_head(more);
            }
        }
    }

    /// Positions of a sequence that such a head holds.
    pub(crate) fn head_len(&self, seq: usize) -> Result<usize, Error> {
        self.seqs.get(seq).and_then(Option::as_ref).map(SeqState::head_len).ok_or_else(|| ended(seq))
    }

    /// Where row `index` of a sequence's rows in the step in hand reads and leaves recurrent state; none where the model has
    /// none.
    pub(crate) fn slot_step(&self, seq: usize, index: usize) -> Option<SlotStep> {
        self.seqs.get(seq)?.as_ref()?.track.step(index)
    }

    /// Counts `more[i]` positions of sequence `i` as held, for which room was made and a step has written.
    pub(crate) fn advance(&mut self, more: &[usize]) {
        for (seq, &more) in self.seqs.iter_mut().zip(more) {
            if let Some(seq) = seq {
                seq.track.advance(&mut self.recurrent, seq.len());
                seq.advance(more);
            }
        }
    }

    /// A sequence's keys and values in one state.
    pub(crate) fn kv(&self, state: StateId, seq: usize) -> KvView<'_> {
        let layer = self.places[state.0 as usize];
        self.kv.view(layer, pages(&self.seqs, seq))
    }

    /// A recurrent state of all sequences, slot after slot.
    pub(crate) fn recurrent(&mut self, state: StateId) -> &mut [f32] {
        let layer = self.places[state.0 as usize];
        self.recurrent.layer(layer)
    }

    /// Stores one position's key and value rows in one state.
    pub(crate) fn write_kv(
        &mut self,
        state: StateId,
        seq: usize,
        position: usize,
        k: &[f32],
        v: &[f32],
    ) -> Result<(), ShapeError> {
        let layer = self.places[state.0 as usize];
        self.kv.write(layer, pages(&self.seqs, seq), position, k, v)
    }

    /// Bytes of all stores.
    pub(crate) fn bytes(&self) -> u64 {
        self.kv.bytes() + self.recurrent.bytes()
    }

    fn adopt(&mut self, seq: SeqState) -> usize {
        match self.seqs.iter().position(Option::is_none) {
            Some(at) => {
                self.seqs[at] = Some(seq);
                at
            }
            None => {
                self.seqs.push(Some(seq));
                self.seqs.len() - 1
            }
        }
    }
}

fn ended(seq: usize) -> Error {
    Error::Argument(format!("sequence {seq} was freed"))
}

fn find(seqs: &mut [Option<SeqState>], seq: usize) -> Result<&mut SeqState, Error> {
    seqs.get_mut(seq).and_then(Option::as_mut).ok_or_else(|| ended(seq))
}

fn pages(seqs: &[Option<SeqState>], seq: usize) -> &[u32] {
    seqs.get(seq).and_then(Option::as_ref).map_or(&[], SeqState::pages)
}
