//! The inference engine: models, Program, executors, caches, sampling
