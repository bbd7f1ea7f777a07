//! State that outlives a step: what every sequence of a session keeps, by kind of state.
//!
//! A kind of state ([`StateSpec`]) has a store of its own, and [`SeqState`] what one sequence holds in each store.
//! Everything that happens to a sequence goes through [`Cache`]: it begins, makes room for the rows of a step, advances
//! over them once the step has succeeded, forks, goes back, ends. A store keeps what a step wrote invisible until
//! [`Cache::advance`], so that a failed step leaves no trace.

mod kv;
mod pages;
mod seq;

use crate::Error;
use crate::program::{StateId, StateSpec};
use kv::KvCache;
use memra_kernels::ShapeError;
use memra_kernels::attention::KvView;
use pages::PagePool;
use seq::SeqState;

/// Positions a page holds.
pub(crate) use memra_kernels::attention::PAGE;

/// Where a state of the Program is kept: its index in the store of its kind.
#[derive(Clone, Copy, Debug)]
enum Place {
    Kv(usize),
}

/// The states of a Program, for every sequence of a session.
#[derive(Debug)]
pub(crate) struct Cache {
    /// One for each state of the Program.
    places: Vec<Place>,
    kv: KvCache,
    pages: PagePool,
    seqs: Vec<Option<SeqState>>,
}

impl Cache {
    /// Empty stores with room for `positions` positions of each of `sequences` sequences.
    ///
    /// # Errors
    /// A state of a storage type that is not supported, or stores beyond memory's addresses.
    pub(crate) fn new(states: &[StateSpec], sequences: usize, positions: usize) -> Result<Self, Error> {
        let pages = sequences.saturating_mul(positions.div_ceil(PAGE));
        let mut kv = KvCache::default();
        let mut places = Vec::with_capacity(states.len());
        for state in states {
            places.push(match *state {
                StateSpec::Kv { heads, head_dim, dtype } => {
                    Place::Kv(kv.push(heads, head_dim, dtype, pages)?)
                }
            });
        }
        Ok(Cache { places, kv, pages: PagePool::new(pages), seqs: Vec::new() })
    }

    /// Begins a sequence, empty.
    pub(crate) fn begin(&mut self) -> usize {
        self.adopt(SeqState::default())
    }

    /// Begins a second sequence with the same past.
    pub(crate) fn fork(&mut self, seq: usize) -> Result<usize, Error> {
        let fork = find(&mut self.seqs, seq)?.fork(&mut self.pages);
        Ok(self.adopt(fork))
    }

    /// Forgets every position of a sequence from `len` on.
    pub(crate) fn truncate(&mut self, seq: usize, len: usize) -> Result<(), Error> {
        find(&mut self.seqs, seq)?.truncate(&mut self.pages, len);
        Ok(())
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

    /// Makes room for `more[i]` positions of sequence `i`. On an error every sequence is as long as it was.
    pub(crate) fn reserve(&mut self, more: &[usize]) -> Result<(), Error> {
        for (seq, &more) in self.seqs.iter_mut().zip(more) {
            if let Some(seq) = seq {
                seq.reserve(&mut self.pages, more, |from, to| self.kv.copy_page(from, to))?;
            }
        }
        Ok(())
    }

    /// Counts `more[i]` positions of sequence `i` as held, for which room was made and a step has written.
    pub(crate) fn advance(&mut self, more: &[usize]) {
        for (seq, &more) in self.seqs.iter_mut().zip(more) {
            if let Some(seq) = seq {
                seq.advance(more);
            }
        }
    }

    /// A sequence's keys and values in one state.
    pub(crate) fn kv(&self, state: StateId, seq: usize) -> KvView<'_> {
        let Place::Kv(layer) = self.places[state.0 as usize];
        self.kv.view(layer, pages(&self.seqs, seq))
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
        let Place::Kv(layer) = self.places[state.0 as usize];
        self.kv.write(layer, pages(&self.seqs, seq), position, k, v)
    }

    /// Bytes of all stores.
    pub(crate) fn bytes(&self) -> u64 {
        self.kv.bytes()
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
