//! Ctrl-C, for commands that end with what they have.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::{Exit, note};

/// Within this time of the first Ctrl-C others say the same: people press it twice, and terminals deliver it twice.
const SAME: Duration = Duration::from_secs(2);

/// Whether the user has pressed Ctrl-C. The command then ends soon, with what it has; another Ctrl-C, two seconds later or
/// more, ends it at once.
#[derive(Clone, Debug)]
pub(super) struct Interrupt(Arc<AtomicBool>);

/// What a Ctrl-C asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// To end with what there is.
    End,
    /// To end without waiting for that.
    EndAtOnce,
}

/// When Ctrl-C was pressed first.
#[derive(Debug, Default)]
struct Presses {
    first: Option<Instant>,
}

impl Presses {
    /// Takes note of a Ctrl-C, and says what it asks for.
    fn press(&mut self, now: Instant) -> Asked {
        let first = *self.first.get_or_insert(now);
        if now.saturating_duration_since(first) < SAME { Asked::End } else { Asked::EndAtOnce }
    }
}

impl Interrupt {
    /// Begins to listen, or goes on listening.
    pub(super) fn listen() -> Self {
        static LISTENER: OnceLock<Interrupt> = OnceLock::new();
        LISTENER.get_or_init(Self::begin).clone()
    }

    fn begin() -> Self {
        let raised = Arc::new(AtomicBool::new(false));
        let raise = Arc::clone(&raised);
        let presses = Mutex::new(Presses::default());
        let handler = ctrlc::set_handler(move || {
            raise.store(true, Ordering::Relaxed);
            let asked =
                presses.lock().unwrap_or_else(PoisonError::into_inner).press(Instant::now());
            if asked == Asked::EndAtOnce {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_press_soon_after_the_first_throws_nothing_away_and_a_later_one_ends_at_once() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let mut presses = Presses::default();
        let asked: Vec<Asked> = [0, 0, 1, 1999].map(|ms| presses.press(at(ms))).into();
        assert_eq!(asked, [Asked::End; 4]);
        assert_eq!(presses.press(at(2000)), Asked::EndAtOnce);
        // The time runs from the first press, whatever came between.
        let mut patient = Presses::default();
        assert_eq!(patient.press(at(5000)), Asked::End);
        assert_eq!(patient.press(at(7001)), Asked::EndAtOnce);
        // Handlers may be late: a press that looks earlier than the first is no later one.
        let mut late = Presses::default();
        assert_eq!((late.press(at(3000)), late.press(at(0))), (Asked::End, Asked::End));
    }
}
