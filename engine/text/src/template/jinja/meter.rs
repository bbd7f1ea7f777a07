//! What a rendering may spend: steps, and bytes held at one time.
//!
//! Everything whose work or size depends on values is charged here, in proportion, before or while it is done. That is
//! what bounds a template that loops for ever or doubles a string again and again.

use std::cell::Cell;
use std::rc::Rc;

/// Bytes of plain copying or comparing that cost as much as one step.
const BYTES_PER_STEP: usize = 32;

/// Why a rendering ended early; the machine adds the line.
#[derive(Debug)]
pub(crate) enum Fault {
    /// `raise_exception` was called with this message.
    Raised(String),
    /// The template does what Jinja does not allow, or memra does not support.
    Invalid(String),
    /// Out of steps; the number allowed.
    Steps(u64),
    /// Out of memory; the bytes allowed.
    Memory(usize),
    /// Calls, blocks or values nested too deep.
    Depth,
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// An [`Fault::Invalid`].
pub(crate) fn invalid<T>(problem: impl Into<String>) -> Result<T> {
    Err(Fault::Invalid(problem.into()))
}

/// What one rendering has left.
#[derive(Debug)]
pub(crate) struct Meter {
    steps: Cell<u64>,
    allowed_steps: u64,
    live: Cell<usize>,
    /// Bytes that may be live.
    ceiling: Cell<usize>,
    /// How far the ceiling lies above what the input takes.
    allowed_bytes: usize,
}

impl Meter {
    /// A meter that counts bytes, but limits them only after [`Meter::begin`].
    pub(crate) fn new(steps: u64, bytes: usize) -> Rc<Meter> {
        Rc::new(Meter {
            steps: Cell::new(steps),
            allowed_steps: steps,
            live: Cell::new(0),
            ceiling: Cell::new(usize::MAX),
            allowed_bytes: bytes,
        })
    }

    /// The input is in place: from here on, so many bytes on top of it are allowed.
    pub(crate) fn begin(&self) {
        self.ceiling.set(self.live.get().saturating_add(self.allowed_bytes));
    }

    /// Spends `n` steps.
    pub(crate) fn steps(&self, n: usize) -> Result<()> {
        match self.steps.get().checked_sub(n as u64) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => {
                self.steps.set(0);
                Err(Fault::Steps(self.allowed_steps))
            }
        }
    }

    /// Spends steps for going through so many bytes.
    pub(crate) fn bytes(&self, n: usize) -> Result<()> {
        self.steps(n / BYTES_PER_STEP)
    }

    /// Counts bytes as live until the charge is dropped.
    pub(crate) fn hold(self: &Rc<Self>, bytes: usize) -> Result<Charge> {
        let mut charge = Charge { meter: Rc::clone(self), bytes: 0 };
        charge.grow(bytes)?;
        Ok(charge)
    }
}

/// Bytes that count as live while this lives.
#[derive(Debug)]
pub(crate) struct Charge {
    meter: Rc<Meter>,
    bytes: usize,
}

impl Charge {
    /// Fails if so many bytes more are not allowed.
    pub(crate) fn room(&self, bytes: usize) -> Result<()> {
        let meter = &self.meter;
        let fits = meter.live.get().saturating_add(bytes) <= meter.ceiling.get();
        if fits { Ok(()) } else { Err(Fault::Memory(meter.allowed_bytes)) }
    }

    /// Counts more bytes.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        self.room(bytes)?;
        self.meter.live.set(self.meter.live.get().saturating_add(bytes));
        self.bytes += bytes;
        Ok(())
    }

    pub(crate) fn meter(&self) -> &Rc<Meter> {
        &self.meter
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.live.set(self.meter.live.get().saturating_sub(self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_given_back_and_steps_are_not() {
        let meter = Meter::new(10, 100);
        let input = meter.hold(1000).unwrap();
        meter.begin();
        let first = meter.hold(60).unwrap();
        assert!(matches!(meter.hold(41), Err(Fault::Memory(100))));
        let mut second = meter.hold(40).unwrap();
        drop(first);
        second.grow(60).unwrap();
        assert!(second.grow(1).is_err());
        drop((input, second));
        assert_eq!(meter.live.get(), 0);
        meter.steps(7).unwrap();
        meter.bytes(3 * BYTES_PER_STEP).unwrap();
        assert!(matches!(meter.steps(1), Err(Fault::Steps(10))));
    }
}
