//! Recurrent states: one fixed-size state a sequence and layer, in slots that are replaced rather than changed.
//!
//! A slot holds the states of all recurrent layers after one position of one sequence. A step reads the slot of the position
//! before it and leaves its result in a slot of its own, so a failed step leaves every sequence as it was, a fork or a
//! checkpoint only counts one more owner, and to keep the state after every row is to give every row a slot.

use super::pages::{PageId, PagePool};
use crate::Error;
use memra_kernels::delta::SlotStep;

/// A slot, by index.
type Slot = PageId;

/// The stores of every recurrent layer, and who owns which slot.
#[derive(Debug)]
pub(super) struct RecurrentCache {
    layers: Vec<Layer>,
    slots: PagePool,
    count: usize,
}

/// One layer's values, slot after slot.
#[derive(Debug)]
struct Layer {
    values: Vec<f32>,
}

impl RecurrentCache {
    /// Stores with so many slots, and no layer yet.
    pub(super) fn new(slots: usize) -> Self {
        RecurrentCache { layers: Vec::new(), slots: PagePool::new(slots), count: slots }
    }

    /// Adds a layer whose state has `len` values, and returns its index.
    ///
    /// # Errors
    /// The store would be beyond memory's addresses.
    pub(super) fn push(&mut self, len: usize) -> Result<usize, Error> {
        let values = self.count.checked_mul(len).filter(|all| *all <= isize::MAX as usize / 4);
        let values = values.ok_or_else(|| {
            Error::Argument(format!("{} recurrent states of {len} values are too many", self.count))
        })?;
        self.layers.push(Layer { values: vec![0.0; values] });
        Ok(self.layers.len() - 1)
    }

    /// Whether any layer is recurrent.
    pub(super) fn is_used(&self) -> bool {
        !self.layers.is_empty()
    }

    /// The store of one layer.
    pub(super) fn layer(&mut self, layer: usize) -> &mut [f32] {
        &mut self.layers[layer].values
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.layers.iter().map(|layer| 4 * layer.values.len() as u64).sum()
    }

    fn take(&mut self, wanted: usize) -> Result<Slot, Error> {
        self.slots.take().map_err(|_| Error::StatesFull { wanted, slots: self.count })
    }
}

/// The recurrent states of one sequence. Where no layer is recurrent it stays empty.
#[derive(Debug, Default)]
pub(super) struct Track {
    /// The state after the last position; none before the first.
    current: Option<Slot>,
    /// States after earlier positions, by length, ascending: those of the last step, if it kept them.
    kept: Vec<(usize, Slot)>,
    /// Slots that the step in hand writes: one for each row if it keeps them, otherwise one.
    pending: Vec<Slot>,
    keep: bool,
}

impl Track {
    /// Makes room for a step of `more` rows; with `keep`, the state after each of them. Nothing of an earlier step may be
    /// left. On an error nothing has changed.
    pub(super) fn reserve(
        &mut self,
        cache: &mut RecurrentCache,
        more: usize,
        keep: bool,
    ) -> Result<(), Error> {
        if more == 0 || !cache.is_used() {
            return Ok(());
        }
        self.keep = keep;
        let wanted = if keep { more } else { 1 };
        for _ in 0..wanted {
            match cache.take(wanted) {
                Ok(slot) => self.pending.push(slot),
                Err(error) => {
                    self.abandon(cache);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Where row `index` of this sequence in the step in hand, for which room was made, reads and leaves its state.
    pub(super) fn step(&self, index: usize) -> Option<SlotStep> {
        let slot =
            |index: usize| if self.keep { self.pending.get(index) } else { self.pending.first() }.copied();
        let from = match index {
            0 => self.current,
            _ => Some(slot(index - 1)?),
        };
        Some(SlotStep { from, to: slot(index)? })
    }

    /// Takes over what the step in hand wrote: the sequence had `len` positions before it.
    pub(super) fn advance(&mut self, cache: &mut RecurrentCache, len: usize) {
        let Some(last) = self.pending.pop() else { return };
        for (_, slot) in self.kept.drain(..) {
            cache.slots.release(slot);
        }
        let before = self.current.replace(last);
        if self.keep {
            let earlier = before.into_iter().map(|slot| (len, slot));
            let rows = self.pending.drain(..).enumerate().map(|(i, slot)| (len + i + 1, slot));
            self.kept.extend(earlier.chain(rows));
        } else if let Some(slot) = before {
            cache.slots.release(slot);
        }
    }

    /// Goes back to the state after `len` positions, of which the sequence has more.
    ///
    /// # Errors
    /// That state was not kept; nothing has changed.
    pub(super) fn truncate(&mut self, cache: &mut RecurrentCache, len: usize) -> Result<(), Error> {
        if cache.is_used() {
            let found = self.kept.iter().position(|(position, _)| *position == len);
            if len > 0 && found.is_none() {
                let kept = self.kept.iter().map(|(position, _)| *position).collect();
                return Err(Error::NotKept { position: len, kept });
            }
            for (_, slot) in self.kept.drain(found.map_or(0, |at| at + 1)..) {
                cache.slots.release(slot);
            }
            let before = std::mem::replace(&mut self.current, self.kept.pop().map(|(_, slot)| slot));
            if let Some(slot) = before {
                cache.slots.release(slot);
            }
        }
        Ok(())
    }

    /// A second track from the same state. What was kept for going back stays with the first.
    pub(super) fn fork(&self, cache: &mut RecurrentCache) -> Track {
        if let Some(slot) = self.current {
            cache.slots.share(slot);
        }
        Track { current: self.current, ..Track::default() }
    }

    /// Gives back the slots of a step that failed, or never ran.
    pub(super) fn abandon(&mut self, cache: &mut RecurrentCache) {
        for slot in self.pending.drain(..) {
            cache.slots.release(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(slots: usize) -> RecurrentCache {
        let mut cache = RecurrentCache::new(slots);
        cache.push(2).unwrap();
        cache
    }

    fn run(
        track: &mut Track,
        cache: &mut RecurrentCache,
        len: usize,
        more: usize,
        keep: bool,
    ) -> Vec<SlotStep> {
        track.abandon(cache);
        track.reserve(cache, more, keep).unwrap();
        let steps = (0..more).map(|i| track.step(i).unwrap()).collect();
        track.advance(cache, len);
        steps
    }

    #[test]
    fn a_step_leaves_the_state_it_reads_alone_and_gives_it_back_when_done() {
        let mut cache = cache(2);
        let mut track = Track::default();
        let step = |from, to| SlotStep { from, to };
        assert_eq!(run(&mut track, &mut cache, 0, 2, false), [step(None, 0), step(Some(0), 0)]);
        assert_eq!(run(&mut track, &mut cache, 2, 1, false), [step(Some(0), 1)]);
        assert_eq!(cache.slots.free(), 1);
        // A step that fails: the next one starts from the same state.
        track.reserve(&mut cache, 3, false).unwrap();
        assert_eq!(track.step(0), Some(step(Some(1), 0)));
        assert_eq!(run(&mut track, &mut cache, 3, 1, false), [step(Some(1), 0)]);
        track.truncate(&mut cache, 0).unwrap();
        assert_eq!(cache.slots.free(), 2);
        assert_eq!(run(&mut track, &mut cache, 0, 1, false)[0].from, None);
    }

    #[test]
    fn one_can_go_back_to_what_the_last_step_kept_and_nowhere_else() {
        let mut cache = cache(6);
        let mut track = Track::default();
        run(&mut track, &mut cache, 0, 10, false);
        let steps = run(&mut track, &mut cache, 10, 3, true);
        assert_eq!((steps[1].from, steps[2].from), (Some(steps[0].to), Some(steps[1].to)));
        assert!(matches!(
            track.truncate(&mut cache, 5),
            Err(Error::NotKept { position: 5, kept }) if kept == [10, 11, 12]
        ));
        track.truncate(&mut cache, 11).unwrap();
        assert_eq!(track.current, Some(steps[0].to));
        // Further back is still possible, forward is not.
        assert!(track.truncate(&mut cache, 12).is_err());
        track.truncate(&mut cache, 10).unwrap();
        assert_eq!(cache.slots.free(), 5);
        run(&mut track, &mut cache, 10, 2, true);
        run(&mut track, &mut cache, 12, 1, false);
        assert!(track.truncate(&mut cache, 11).is_err(), "the next step lets go of what was kept");
        assert_eq!(cache.slots.free(), 5);
    }

    #[test]
    fn forks_share_a_state_until_they_step() {
        let mut cache = cache(3);
        let mut one = Track::default();
        run(&mut one, &mut cache, 0, 1, false);
        let mut two = one.fork(&mut cache);
        assert_eq!(cache.slots.free(), 2);
        let (a, b) = (run(&mut one, &mut cache, 1, 1, false), run(&mut two, &mut cache, 1, 1, false));
        assert_eq!(a[0].from, b[0].from);
        assert_ne!(a[0].to, b[0].to);
        assert_eq!(cache.slots.free(), 1);
        one.truncate(&mut cache, 0).unwrap();
        two.truncate(&mut cache, 0).unwrap();
        assert_eq!(cache.slots.free(), 3);
    }

    #[test]
    fn without_a_slot_nothing_changes() {
        let mut cache = cache(3);
        let mut track = Track::default();
        run(&mut track, &mut cache, 0, 1, false);
        assert!(matches!(track.reserve(&mut cache, 3, true), Err(Error::StatesFull { wanted: 3, slots: 3 })));
        assert_eq!(cache.slots.free(), 2);
        assert_eq!(track.step(0), None);
        assert_eq!(run(&mut track, &mut cache, 1, 2, true).len(), 2);
    }

    #[test]
    fn models_without_recurrent_layers_hold_nothing() {
        let mut cache = RecurrentCache::new(0);
        let mut track = Track::default();
        track.reserve(&mut cache, 4, true).unwrap();
        assert_eq!(track.step(0), None);
        track.advance(&mut cache, 0);
        track.truncate(&mut cache, 2).unwrap();
    }
}
