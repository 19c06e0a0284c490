//! Ctrl-C, for commands that end with what they have.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Exit, note};

/// Whether the user has pressed Ctrl-C. The command then ends soon, with what it has; a second Ctrl-C ends it at once.
#[derive(Clone, Debug)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Begins to listen, or goes on listening.
    pub(super) fn listen() -> Self {
        static LISTENER: OnceLock<Interrupt> = OnceLock::new();
        LISTENER.get_or_init(Self::begin).clone()
    }

    fn begin() -> Self {
        let raised = Arc::new(AtomicBool::new(false));
        let raise = Arc::clone(&raised);
        let handler = ctrlc::set_handler(move || {
            if raise.swap(true, Ordering::Relaxed) {
                std::process::exit(Exit::Interrupted as i32);
            }
        });
        if let Err(error) = handler {
            note(&format!("Ctrl-C will end the program without a word: {error}"));
        }
        Self(raised)
    }

    pub(super) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
