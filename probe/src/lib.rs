//! Microbenchmarks that measure this machine's walls
