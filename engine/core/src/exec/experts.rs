//! Ops of mixtures of experts, but for their products.

use super::cpu::{Buffer, CpuExecutor, Outcome};
use crate::program::{BufferId, OpKind, Routing};
use memra_kernels::cpu::Pool;
use memra_kernels::moe::{self, Router, Routes, Scoring};

impl CpuExecutor {
    /// The routes in a buffer.
    pub(super) fn routes(&self, id: BufferId) -> Option<&Routes> {
        match self.buffer(id) {
            Buffer::Routes(routes) => Some(routes),
            _ => None,
        }
    }

    /// Ops that say where `rows` rows go.
    pub(super) fn route(&self, kind: OpKind, rows: usize, out: &mut Routes) -> Outcome {
        let OpKind::Route { logits, bias, routing, .. } = kind else { return Ok(()) };
        let Routing { sigmoid, renormalise, scale, .. } = routing;
        let scoring = if sigmoid { Scoring::Sigmoid } else { Scoring::Softmax };
        let logits = &self.f32s(logits)[..rows * self.width(logits)];
        moe::route(&Router { scoring, renormalise, scale }, logits, bias.map(|id| self.vector(id)), out)
    }

    /// Ops between rows and slots; `out` holds the rows that the step fills.
    pub(super) fn mixed(&self, kind: OpKind, pool: &Pool, out: &mut [f32]) -> Outcome {
        match kind {
            OpKind::GatherSlots { x, routes, .. } => {
                let Some(routes) = self.routes(routes) else { return Ok(()) };
                moe::gather_slots(pool, routes, &self.f32s(x)[..routes.rows() * self.width(x)], out)
            }
            OpKind::Combine { x, routes, .. } => {
                let Some(routes) = self.routes(routes) else { return Ok(()) };
                moe::combine(pool, routes, &self.f32s(x)[..routes.slots() * self.width(x)], out)
            }
            _ => Ok(()),
        }
    }
}
