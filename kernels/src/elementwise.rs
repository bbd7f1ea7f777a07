//! Elementwise operations.

use crate::cpu::multiversion;
use crate::error::{ShapeError, same};

/// `x[i] += y[i]`: a residual connection.
///
/// # Errors
/// When the lengths differ.
pub fn add(x: &mut [f32], y: &[f32]) -> Result<(), ShapeError> {
    same("add", "number of addends", x.len(), y.len())?;
    add_all(x, y);
    Ok(())
}

multiversion! {
    fn add_all(x: &mut [f32], y: &[f32]) {
        for (x, y) in x.iter_mut().zip(y) {
            *x += y;
        }
    }
}
