//! A planted fault, with which the gate and the kernel check prove that they notice one.

/// Spoils one value of a result: the middle one gets the opposite sign, and one more.
pub fn corrupt(out: &mut [f32]) {
    let middle = out.len() / 2;
    if let Some(value) = out.get_mut(middle) {
        *value = -*value + 1.0;
    }
}
