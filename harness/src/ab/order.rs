//! The order of launches in a block.

use crate::record::ArmId;
use crate::stats::Rng;

/// The two pairs of a block: ABBA, or BAAB where the draw says so. Any drift that is linear over a block cancels.
pub(super) fn block(seed: u64, cell: usize, block: u32) -> [[ArmId; 2]; 2] {
    use ArmId::{A, B};
    let stream = (cell as u64) << 32 | u64::from(block);
    let starts_with_b = Rng::new(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)).coin();
    if starts_with_b { [[B, A], [A, B]] } else { [[A, B], [B, A]] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_balanced_reproducible_and_start_either_way() {
        let mut starts = [0; 2];
        for i in 0..200 {
            let order = block(7, i % 3, i as u32);
            assert_eq!(order, block(7, i % 3, i as u32));
            let [[a, b], [c, d]] = order;
            assert!(a != b && c != d && a == d, "{order:?}");
            starts[a as usize] += 1;
        }
        assert!(starts.iter().all(|n| (60..140).contains(n)), "{starts:?}");
    }
}
