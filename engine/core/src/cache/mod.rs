//! State that outlives a step: the pages that a session's sequences share.

mod kv;
mod pages;
mod seq;

pub(crate) use kv::KvCache;
pub(crate) use pages::PagePool;
pub(crate) use seq::SeqState;

/// Positions a page holds.
pub(crate) use memra_kernels::attention::PAGE;
