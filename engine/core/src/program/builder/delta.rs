//! Layers of gated delta nets, and the columns that products of several things are cut into.

use super::{BufferSpec, Builder, Error, OpKind, Storage, Value};
use crate::program::{DeltaNet, StateId, StateSpec, WeightId};

impl Builder<'_> {
    /// Values `from .. from + len` of every `every` values of a row.
    pub fn columns(&mut self, name: &str, x: Value, every: usize, from: usize, len: usize) -> Value {
        let width = self.width(x) / every.max(1) * len;
        let out = self.like(x, width, Storage::F32);
        self.push(name, OpKind::Columns { x: x.buffer(), every, from, out: out.buffer() });
        out
    }

    /// The values of `a`, then those of `b`.
    pub fn concat(&mut self, name: &str, a: Value, b: Value) -> Value {
        let out = self.like(a, self.width(a) + self.width(b), Storage::F32);
        self.push(name, OpKind::Concat { a: a.buffer(), b: b.buffer(), out: out.buffer() });
        out
    }

    /// A causal convolution of each channel over `taps` rows by `{name}.weight` `[channels][taps]`, then SiLU.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub fn short_conv(&mut self, name: &str, x: Value, taps: usize) -> Result<Value, Error> {
        let BufferSpec { width, .. } = *self.spec(x);
        let weight = self.filters(&format!("{}{name}.weight", self.scope), width, taps)?;
        let state = self.recurrent(taps.saturating_sub(1) * width);
        let out = self.like(x, width, Storage::F32);
        self.push(name, OpKind::ShortConv { x: x.buffer(), weight, state, out: out.buffer() });
        Ok(out)
    }

    /// Decays and step sizes of a delta net's heads, by the vectors `ssm_a` and `ssm_dt.bias`.
    ///
    /// # Errors
    /// A vector is missing or has another shape.
    pub fn delta_gates(&mut self, name: &str, a: Value, b: Value) -> Result<Value, Error> {
        let heads = self.width(a);
        let rate = self.weight(&format!("{}ssm_a", self.scope), 1, heads)?;
        let bias = self.weight(&format!("{}ssm_dt.bias", self.scope), 1, heads)?;
        let out = self.like(a, 2 * heads, Storage::F32);
        let (a, b) = (a.buffer(), b.buffer());
        self.push(name, OpKind::DeltaGates { a, b, rate, bias, out: out.buffer() });
        Ok(out)
    }

    /// The gated delta rule over rows of queries, keys and values.
    pub fn delta_scan(&mut self, name: &str, qkv: Value, gates: Value, net: DeltaNet) -> Value {
        let DeltaNet { value_heads, key_dim, value_dim, .. } = net;
        let state = self.recurrent(value_heads * key_dim * value_dim);
        let out = self.like(qkv, value_heads * value_dim, Storage::F32);
        let (qkv, gates) = (qkv.buffer(), gates.buffer());
        self.push(name, OpKind::DeltaScan { qkv, gates, net, state, out: out.buffer() });
        out
    }

    /// RMS norm of each head of `head_dim` values by one `{name}.weight`, times `silu(gate)`.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub fn gated_rms_norm(
        &mut self,
        name: &str,
        x: Value,
        gate: Value,
        head_dim: usize,
        eps: f32,
    ) -> Result<Value, Error> {
        let weight = self.weight(&format!("{}{name}.weight", self.scope), 1, head_dim)?;
        let out = self.like(x, self.width(x), Storage::F32);
        let (x, gate) = (x.buffer(), gate.buffer());
        self.push(name, OpKind::GatedRmsNorm { x, gate, weight, eps, out: out.buffer() });
        Ok(out)
    }

    /// A new recurrent state of so many values.
    fn recurrent(&mut self, values: usize) -> StateId {
        self.states.push(StateSpec::Recurrent { values });
        StateId(self.states.len() as u32 - 1)
    }

    /// Filters of so many channels: a matrix in GGUF files, in folders a stack of matrices of one row.
    fn filters(&mut self, name: &str, channels: usize, taps: usize) -> Result<WeightId, Error> {
        match self.tensors.get(name) {
            Some(spec) if spec.stack > 1 => self.stack(name, channels, 1, taps),
            _ => self.weight(name, channels, taps),
        }
    }
}
