//! Which experts each row of a step goes to, and the order in which slots lie.

use crate::error::{ShapeError, at_least};

/// The experts of some rows: for each row `used` different ones with their weights, and the permutation that brings
/// slots of one expert together. Memory is taken once; a step reuses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Routes {
    used: usize,
    rows: usize,
    /// `[rows][used]`, ascending in each row.
    ids: Vec<u32>,
    /// `[rows][used]`.
    weights: Vec<f32>,
    /// Where each row's slots lie among those sorted by expert: `[rows][used]`.
    place: Vec<u32>,
    /// The row of each slot, slots sorted by expert, then by row.
    source: Vec<u32>,
    /// First slot of each expert, and the number of slots.
    starts: Vec<u32>,
    /// Experts that have slots, ascending.
    active: Vec<u32>,
}

impl Routes {
    /// Room for `rows` rows that use `used` of `experts` experts each.
    pub fn with_capacity(rows: usize, used: usize, experts: usize) -> Routes {
        let slots = rows * used;
        Routes {
            used,
            rows: 0,
            ids: vec![0; slots],
            weights: vec![0.0; slots],
            place: vec![0; slots],
            source: vec![0; slots],
            starts: vec![0; experts + 1],
            active: Vec::with_capacity(experts),
        }
    }

    /// Experts each row uses.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Experts there are.
    pub fn experts(&self) -> usize {
        self.starts.len() - 1
    }

    /// Rows held.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Slots held: `rows` times `used`.
    pub fn slots(&self) -> usize {
        self.rows * self.used
    }

    /// Experts of row `row`, ascending, with their weights.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let range = row * self.used..(row + 1) * self.used;
        self.ids[range.clone()].iter().copied().zip(self.weights[range].iter().copied())
    }

    /// Where the slots of row `row` lie, in the order of [`Routes::row`], with their weights.
    pub(super) fn places(&self, row: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let range = row * self.used..(row + 1) * self.used;
        self.place[range.clone()].iter().map(|p| *p as usize).zip(self.weights[range].iter().copied())
    }

    /// The row of each slot.
    pub fn sources(&self) -> &[u32] {
        &self.source[..self.slots()]
    }

    /// Experts that have slots, ascending.
    pub fn active(&self) -> &[u32] {
        &self.active
    }

    /// The slots of expert `expert`, which must be one of those there are.
    pub fn slots_of(&self, expert: usize) -> std::ops::Range<usize> {
        self.starts[expert] as usize..self.starts[expert + 1] as usize
    }

    /// Takes in `rows` rows: `choose(row, ids, weights)` names each row's experts, different ones, in ascending order.
    ///
    /// # Errors
    /// When the rows do not fit in the capacity. The contents are then unchanged.
    pub(super) fn fill(
        &mut self,
        rows: usize,
        mut choose: impl FnMut(usize, &mut [u32], &mut [f32]),
    ) -> Result<(), ShapeError> {
        at_least("route", "capacity in slots", rows.saturating_mul(self.used), self.ids.len())?;
        self.rows = rows;
        let each = self.used.max(1);
        let ids = self.ids.chunks_exact_mut(each).zip(self.weights.chunks_exact_mut(each));
        for (row, (ids, weights)) in ids.take(rows).enumerate() {
            choose(row, ids, weights);
        }
        self.sort();
        Ok(())
    }

    /// Sorts slots by expert: a counting sort, so that slots of one expert stay in the order of their rows.
    fn sort(&mut self) {
        let slots = self.slots();
        self.starts.fill(0);
        for &id in &self.ids[..slots] {
            self.starts[id as usize + 1] += 1;
        }
        self.active.clear();
        for expert in 0..self.experts() {
            if self.starts[expert + 1] > 0 {
                self.active.push(expert as u32);
            }
            self.starts[expert + 1] += self.starts[expert];
        }
        for (slot, &id) in self.ids[..slots].iter().enumerate() {
            let next = &mut self.starts[id as usize];
            self.place[slot] = *next;
            self.source[*next as usize] = (slot / self.used) as u32;
            *next += 1;
        }
        // Each start has moved to the end of its expert, which is the start of the next.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_one_expert_are_neighbours_in_the_order_of_rows() {
        let mut routes = Routes::with_capacity(4, 2, 5);
        let chosen = [[1, 4], [0, 1], [1, 3]];
        for _ in 0..2 {
            routes
                .fill(3, |row, ids, weights| {
                    ids.copy_from_slice(&chosen[row]);
                    weights.copy_from_slice(&[row as f32, 10.0 + row as f32]);
                })
                .unwrap();
            assert_eq!(routes.active(), [0, 1, 3, 4]);
            assert_eq!([0, 1, 2, 3, 4].map(|e| routes.slots_of(e)), [0..1, 1..4, 4..4, 4..5, 5..6]);
            assert_eq!(routes.sources(), [1, 0, 1, 2, 2, 0]);
            for (row, ids) in chosen.iter().enumerate() {
                for ((place, weight), (id, same)) in routes.places(row).zip(routes.row(row)) {
                    assert!(routes.slots_of(id as usize).contains(&place));
                    assert_eq!(routes.sources()[place] as usize, row);
                    assert_eq!(weight, same);
                    assert!(ids.contains(&id));
                }
            }
        }
        assert!(routes.fill(5, |_, _, _| ()).is_err());
        assert_eq!(routes.rows(), 3);
        routes.fill(0, |_, _, _| ()).unwrap();
        assert_eq!((routes.slots(), routes.active().len()), (0, 0));
    }
}
