//! Mixtures of experts, and gates.

use super::{BufferSpec, Builder, Error, OpKind, Storage, Value};
use crate::program::Routing;

impl Builder<'_> {
    /// [`Builder::linear`] without a bias and with rows that are never rounded, for products that decide something.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub fn linear_f32(&mut self, name: &str, x: Value, n: usize) -> Result<Value, Error> {
        let weight = self.weight(&format!("{}{name}.weight", self.scope), n, self.width(x))?;
        let out = self.like(x, n, Storage::F32);
        self.push(name, OpKind::Matmul { x: x.buffer(), weight, bias: None, out: out.buffer() });
        Ok(out)
    }

    /// `x *= sigmoid(gate)`, in place: one gate for each value, or for as many as there are more of them.
    pub fn sigmoid_gate(&mut self, name: &str, x: Value, gate: Value) {
        self.push(name, OpKind::SigmoidGate { x: x.buffer(), gate: gate.buffer() });
    }

    /// Chooses among as many experts as there are logits; a vector `exp_probs_b.bias`, where the file has one, is added for
    /// the choice.
    ///
    /// # Errors
    /// The bias has another shape.
    pub fn route(&mut self, name: &str, logits: Value, routing: Routing) -> Result<Value, Error> {
        let experts = self.width(logits);
        let bias = self.vector(&format!("{}exp_probs_b.bias", self.scope), experts)?;
        let out = self.like(logits, routing.used, Storage::Routes { experts });
        self.push(name, OpKind::Route { logits: logits.buffer(), bias, routing, out: out.buffer() });
        Ok(out)
    }

    /// Each slot's row, for [`Builder::experts`]. In class `q8` rows are rounded before they are copied.
    pub fn gather_slots(&mut self, name: &str, x: Value, routes: Value) -> Value {
        let x = self.activations(name, x);
        let BufferSpec { extent, width, storage, .. } = *self.spec(x);
        let out = self.value(BufferSpec { extent, slots: self.width(routes), width, storage });
        let (x, routes) = (x.buffer(), routes.buffer());
        self.push(name, OpKind::GatherSlots { x, routes, out: out.buffer() });
        out
    }

    /// Each slot times the matrix of its expert: `{name}.weight` holds one of `n` rows for each expert.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub fn experts(&mut self, name: &str, x: Value, routes: Value, n: usize) -> Result<Value, Error> {
        let count = match self.spec(routes).storage {
            Storage::Routes { experts } => experts,
            _ => 0,
        };
        let weight = self.stack(&format!("{}{name}.weight", self.scope), count, n, self.width(x))?;
        let x = self.activations(name, x);
        let out = self.like(x, n, Storage::F32);
        let (x, routes) = (x.buffer(), routes.buffer());
        self.push(name, OpKind::Experts { x, routes, weight, out: out.buffer() });
        Ok(out)
    }

    /// Each row's slots, times their weights, added up.
    pub fn combine(&mut self, name: &str, x: Value, routes: Value) -> Value {
        let out = self.like(routes, self.width(x), Storage::F32);
        let (x, routes) = (x.buffer(), routes.buffer());
        self.push(name, OpKind::Combine { x, routes, out: out.buffer() });
        out
    }
}
