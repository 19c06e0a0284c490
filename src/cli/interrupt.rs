//! Ctrl-C, for commands that print what they have found so far.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::{Exit, note};

/// A second Ctrl-C within this time of the first is ignored: users press it twice, and terminals
/// deliver it twice.
const DEBOUNCE: Duration = Duration::from_secs(2);

/// The flag that Ctrl-C raises. The command then ends soon, and prints what it has found. Another
/// Ctrl-C, at least two seconds later, ends it at once.
#[derive(Clone, Debug)]
pub(super) struct Interrupt(Arc<AtomicBool>);

/// The effect of a Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// End, and print what was found.
    End,
    /// End at once.
    EndAtOnce,
}

/// The time of the first Ctrl-C.
#[derive(Debug, Default)]
struct Presses {
    first: Option<Instant>,
}

impl Presses {
    /// Records a Ctrl-C, and returns its effect.
    fn press(&mut self, now: Instant) -> Effect {
        let first = *self.first.get_or_insert(now);
        if now.saturating_duration_since(first) < DEBOUNCE {
            Effect::End
        } else {
            Effect::EndAtOnce
        }
    }
}

impl Interrupt {
    /// Installs the handler if it is not installed, and returns the flag.
    pub(super) fn listen() -> Self {
        static LISTENER: OnceLock<Interrupt> = OnceLock::new();
        LISTENER.get_or_init(Self::install).clone()
    }

    fn install() -> Self {
        let raised = Arc::new(AtomicBool::new(false));
        let raise = Arc::clone(&raised);
        let presses = Mutex::new(Presses::default());
        on_ctrl_c(move || {
            raise.store(true, Ordering::Relaxed);
            let effect =
                presses.lock().unwrap_or_else(PoisonError::into_inner).press(Instant::now());
            if effect == Effect::EndAtOnce {
                std::process::exit(Exit::Interrupted as i32);
            }
        });
        Self(raised)
    }

    /// Returns whether Ctrl-C was pressed.
    pub(super) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Installs the handler of Ctrl-C, or prints a note if that is not possible.
pub(super) fn on_ctrl_c(handler: impl FnMut() + Send + 'static) {
    if let Err(error) = ctrlc::set_handler(handler) {
        note(&format!("cannot handle Ctrl-C, which will end the program at once: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_press_soon_after_the_first_is_ignored_and_a_later_one_exits_at_once() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let mut presses = Presses::default();
        let effect: Vec<Effect> = [0, 0, 1, 1999].map(|ms| presses.press(at(ms))).into();
        assert_eq!(effect, [Effect::End; 4]);
        assert_eq!(presses.press(at(2000)), Effect::EndAtOnce);
        // The time is measured from the first press.
        let mut slow = Presses::default();
        assert_eq!(slow.press(at(5000)), Effect::End);
        assert_eq!(slow.press(at(7001)), Effect::EndAtOnce);
        // Handlers may be late: a press may have an earlier time than the first.
        let mut late = Presses::default();
        assert_eq!((late.press(at(3000)), late.press(at(0))), (Effect::End, Effect::End));
    }
}
