//! What a Program says of itself: the tuner's work list, cost, memory, and a readable table.

use super::{Op, Program, StateSpec};
use memra_kernels::{Cost, KernelKey};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One entry of the tuner's work list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkItem {
    /// Kernel, shape and data types.
    pub key: KernelKey,
    /// Launches a step.
    pub count: usize,
    /// What one launch moves and computes.
    #[serde(flatten)]
    pub cost: Cost,
    /// The first op that needs it.
    pub example: String,
}

impl Program {
    /// The distinct tunable kernels of this Program, sorted by key.
    pub fn work_list(&self) -> Vec<WorkItem> {
        let mut items: BTreeMap<&KernelKey, WorkItem> = BTreeMap::new();
        for op in &self.ops {
            if let Some(key) = &op.key {
                items
                    .entry(key)
                    .or_insert_with(|| WorkItem {
                        key: key.clone(),
                        count: 0,
                        cost: op.cost,
                        example: op.name.clone(),
                    })
                    .count += 1;
            }
        }
        items.into_values().collect()
    }

    /// What one step of a full bucket moves and computes.
    pub fn cost(&self) -> Cost {
        self.ops.iter().fold(Cost::default(), |sum, op| Cost {
            bytes: sum.bytes + op.cost.bytes,
            flops: sum.flops + op.cost.flops,
        })
    }

    /// Bytes of weights that a step reads: every matrix once, one row of the embedding table a token, and as many of a
    /// layer's experts as its rows can use at most.
    pub fn weight_bytes_read(&self) -> u64 {
        let bytes = |op: &Op| {
            let weights = op.kind.weights().map(|id| &self.weights[id.0 as usize]);
            match op.kind {
                super::OpKind::Embed { .. } => {
                    weights.map(|w| w.bytes() / w.n.max(1) * self.bucket.rows).sum::<usize>() as u64
                }
                super::OpKind::Experts { x, .. } => {
                    let slots = self.buffers[x.0 as usize].rows(&self.bucket);
                    weights.map(|w| w.bytes() / w.stack.max(1) * slots.min(w.stack)).sum::<usize>() as u64
                }
                _ => weights.map(|w| w.bytes()).sum::<usize>() as u64,
            }
        };
        self.ops.iter().map(bytes).sum()
    }

    /// Bytes of the weights as the file stores them, each counted once.
    pub fn weight_bytes(&self) -> u64 {
        self.weights.iter().map(|w| w.bytes() as u64).sum()
    }

    /// Bytes of the buffers an executor allocates.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffers.iter().map(|b| (b.rows(&self.bucket) * b.row_bytes()) as u64).sum()
    }

    /// Bytes of state that each token of a sequence keeps.
    pub fn state_bytes_per_token(&self) -> u64 {
        self.states.iter().map(|s: &StateSpec| s.bytes_per_token() as u64).sum()
    }

    /// Bytes of state that a sequence keeps, however long it is.
    pub fn state_bytes_per_sequence(&self) -> u64 {
        self.states.iter().map(|s| s.bytes_per_sequence() as u64).sum()
    }
}

impl fmt::Display for Program {
    /// A heading, then one line an op.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bucket = &self.bucket;
        let cost = self.cost();
        writeln!(
            f,
            "{} path, class {}, {} rows, logits of {}, context {}: {} ops, {:.1} MB and {:.3} GFLOP a step",
            bucket.path.name(),
            bucket.class,
            bucket.rows,
            bucket.logits,
            bucket.context,
            self.ops.len(),
            cost.bytes as f64 / 1e6,
            cost.flops as f64 / 1e9,
        )?;
        writeln!(
            f,
            "weights {:.1} MB, buffers {:.2} MB, state {} bytes a token and {} a sequence",
            self.weight_bytes() as f64 / 1e6,
            self.buffer_bytes() as f64 / 1e6,
            self.state_bytes_per_token(),
            self.state_bytes_per_sequence(),
        )?;
        writeln!(f, "{:<24} {:<10} {:>12} {:>14} {:>5}  kernel", "op", "kind", "bytes", "flops", "fuse")?;
        for op in &self.ops {
            let fuse = op.fuse.map(|n| n.to_string()).unwrap_or_default();
            let key = op.key.as_ref().map(|k| k.to_string()).unwrap_or_default();
            let line = format!(
                "{:<24} {:<10} {:>12} {:>14} {fuse:>5}  {key}",
                op.name,
                op.kind.family(),
                op.cost.bytes,
                op.cost.flops
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
