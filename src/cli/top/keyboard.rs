//! The terminal: raw mode, the alternate screen and keys. Dropping it restores the terminal.

use std::io::{self, IsTerminal};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc::Sender;

use super::draw::draw;
use super::screen::{Input, Key, Screen};
use crate::cli::{Exit, Failure};

/// Checks that stdout is a terminal.
pub(super) fn require_terminal() -> Result<(), Failure> {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if io::stdout().is_terminal() && !dumb {
        return Ok(());
    }
    Err(Failure::usage(
        "nqueens top needs a terminal on stdout; use nqueens status --watch instead",
    ))
}

/// The terminal in raw mode.
pub(super) struct RawTerminal(DefaultTerminal);

impl RawTerminal {
    /// Opens the terminal, and sends its keys to `inputs`.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub(super) fn open(inputs: Sender<Input>) -> Result<Self, Failure> {
        // From here on, a panic restores the terminal before its message.
        let terminal = ratatui::try_init().map_err(|error| {
            // The terminal may already be in raw mode.
            let _ = ratatui::try_restore();
            cannot_use(&error)
        })?;
        let raw = Self(terminal);
        let listen = move || {
            while let Ok(event) = event::read() {
                if let Some(input) = input(&event)
                    && inputs.blocking_send(input).is_err()
                {
                    return;
                }
            }
            // The terminal is closed.
            let _ = inputs.blocking_send(Input::Key(Key::End));
        };
        std::thread::Builder::new()
            .name("keys".into())
            .spawn(listen)
            .map_err(|error| cannot_use(&error))?;
        Ok(raw)
    }

    /// Draws the screen `at_ms` after the start.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    pub(super) fn draw(&mut self, screen: &Screen, at_ms: u64) -> Result<(), Failure> {
        self.0
            .draw(|frame| draw(frame, screen, at_ms))
            .map(drop)
            .map_err(|error| cannot_use(&error))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // There is nothing else to do if this fails.
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}

fn cannot_use(error: &io::Error) -> Failure {
    Failure::new(Exit::NotAvailable, format!("the terminal cannot be used: {error}"))
}

/// Converts an event of the terminal.
fn input(event: &Event) -> Option<Input> {
    let key = match event {
        Event::Resize(..) => return Some(Input::Resized),
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        _ => return None,
    };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let key = match key.code {
        KeyCode::Char('c') if control => Key::End,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char(letter) => Key::Letter(letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Home => Key::First,
        KeyCode::End => Key::Last,
        KeyCode::Tab | KeyCode::BackTab | KeyCode::Left | KeyCode::Right => Key::OtherTable,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        _ => return None,
    };
    Some(Input::Key(key))
}
