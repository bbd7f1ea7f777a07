//! The one way a kernel call can fail: an operand whose size does not fit the others.

/// An operand of the wrong size. Nothing has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{op}: {what} is {got}, but {want} is needed")]
pub struct ShapeError {
    /// The operation.
    pub op: &'static str,
    /// The operand and the unit counted.
    pub what: &'static str,
    /// The size that the other operands imply.
    pub want: usize,
    /// The size given.
    pub got: usize,
}

/// `Ok` when `got` equals `want`.
pub(crate) fn same(op: &'static str, what: &'static str, want: usize, got: usize) -> Result<(), ShapeError> {
    if want == got { Ok(()) } else { Err(ShapeError { op, what, want, got }) }
}

/// `Ok` when `got` is `want` or more.
pub(crate) fn at_least(
    op: &'static str,
    what: &'static str,
    want: usize,
    got: usize,
) -> Result<(), ShapeError> {
    if got >= want { Ok(()) } else { Err(ShapeError { op, what, want, got }) }
}
