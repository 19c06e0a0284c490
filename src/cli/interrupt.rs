//! Ctrl-C, for commands that stream what they find.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Exit, note};

/// Whether the user has pressed Ctrl-C. The command then ends soon, with what it has; a second Ctrl-C ends it at once.
#[derive(Clone, Debug)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Begins to listen. Once a process.
    pub(super) fn listen() -> Self {
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
