//! What a sweep tells while it runs.

use super::{KeyReport, Survey};
use crate::record::Trial;

/// Receives progress. Every method does nothing unless overridden.
pub trait Events {
    /// A key is begun: `index` of `total`, from 0.
    fn key_started(&mut self, index: usize, total: usize, survey: &Survey) {
        let _ = (index, total, survey);
    }

    /// A stage of the current key is begun with so many configurations.
    fn stage_started(&mut self, stage: &str, configs: usize) {
        let _ = (stage, configs);
    }

    /// A trial was logged, or found in the log of the interrupted sweep.
    fn trial(&mut self, trial: &Trial, reused: bool) {
        let _ = (trial, reused);
    }

    /// The current key is decided.
    fn key_finished(&mut self, report: &KeyReport) {
        let _ = report;
    }

    /// Something the user should know.
    fn warning(&mut self, text: &str) {
        let _ = text;
    }
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Events for Silent {}
