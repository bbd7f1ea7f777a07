//! Ctrl-C: asks whatever runs to finish, instead of ending the process at once.

use anyhow::Context as _;
use memra_harness::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Which request ends the process, finished or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hard {
    /// The second: nothing is left to clean up.
    Second,
    /// The third: the second is for ending the child in hand.
    Third,
}

/// From now on an interrupt or a termination request raises the flag that is returned. Commands that do not watch
/// keep the system's behaviour: they end at once.
///
/// # Errors
/// The system refuses the handler or the thread.
pub(crate) fn watch(hard: Hard) -> anyhow::Result<&'static Stop> {
    static STOP: Stop = Stop::new();
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("watching for Ctrl-C")?;
    let limit = if hard == Hard::Second { 2 } else { 3 };
    std::thread::Builder::new()
        .name("memra-interrupt".to_owned())
        .spawn(move || {
            for (count, _) in (1..).zip(signals.forever()) {
                STOP.request();
                if count >= limit {
                    std::process::exit(i32::from(memra_harness::exit::Code::Interrupted.number()));
                }
            }
        })
        .context("watching for Ctrl-C")?;
    Ok(&STOP)
}
