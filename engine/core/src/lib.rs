//! The inference engine: models, Program, executors, caches, sampling.
//!
//! A [`model::Model`] is loaded once; a [`Session`] advances sequences over it, step by step; [`generate`],
//! [`bench`](bench::bench), [`logits`] and [`selfcheck`](selfcheck::selfcheck) are what one does with a session.
//!
//! ```no_run
//! use memra_engine::model::{LoadOptions, Model};
//! use memra_engine::{GenerateOptions, Progress, Session, SessionOptions, generate};
//! use std::ops::ControlFlow;
//!
//! # fn main() -> Result<(), memra_engine::Error> {
//! let model = Model::load("model.gguf".as_ref(), &LoadOptions::default())?;
//! let mut session = Session::new(model, SessionOptions::default())?;
//! let seq = session.new_sequence();
//! let result = generate(&mut session, seq, &[1, 2, 3], &GenerateOptions::default(), &mut |progress| {
//!     if let Progress::Token(generated) = progress {
//!         println!("{}", generated.token);
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! println!("{:.1} tok/s", result.stats.decode_rate());
//! # Ok(())
//! # }
//! ```

pub mod bench;
mod cache;
mod error;
mod exec;
mod generate;
pub mod logits;
pub mod model;
pub mod perplexity;
pub mod program;
pub mod sampling;
pub mod selfcheck;
mod session;
pub mod synth;
pub mod tokenizer;

pub use error::Error;
pub use generate::{Finish, GenerateOptions, Generated, Generation, Progress, Stats, generate};
pub use session::{CHUNK, Checkpoint, Fault, OpTime, Row, SeqId, Session, SessionOptions};
