//! The memra binary.
fn main() {}
