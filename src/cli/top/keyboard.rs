//! The terminal: raw mode and the other screen while this is open, and all as it was once it is dropped; keys.

use std::io::{self, IsTerminal};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc::Sender;

use super::draw::draw;
use super::screen::{Input, Key, Screen};
use crate::cli::{Exit, Failure};

/// Refuses whatever is no terminal.
pub(super) fn demand_terminal() -> Result<(), Failure> {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if io::stdout().is_terminal() && !dumb {
        return Ok(());
    }
    Err(Failure::usage(
        "top draws on a terminal, and stdout is none; nqueens status --watch prints lines",
    ))
}

/// The terminal, drawn upon.
pub(super) struct Console(DefaultTerminal);

impl Console {
    /// Takes the terminal over, and hands its keys to `inputs`.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub(super) fn open(inputs: Sender<Input>) -> Result<Self, Failure> {
        // From here on a panic gives the terminal back before it says anything.
        let terminal = ratatui::try_init().map_err(|error| {
            // It may be in raw mode already.
            let _ = ratatui::try_restore();
            unusable(&error)
        })?;
        let console = Self(terminal);
        let listen = move || {
            while let Ok(event) = event::read() {
                if let Some(input) = input(&event)
                    && inputs.blocking_send(input).is_err()
                {
                    return;
                }
            }
            // The terminal is gone.
            let _ = inputs.blocking_send(Input::Key(Key::End));
        };
        std::thread::Builder::new()
            .name("keys".into())
            .spawn(listen)
            .map_err(|error| unusable(&error))?;
        Ok(console)
    }

    /// Draws the screen as it is `at_ms` after its beginning.
    ///
    /// # Errors
    /// The terminal cannot be written.
    pub(super) fn draw(&mut self, screen: &Screen, at_ms: u64) -> Result<(), Failure> {
        self.0.draw(|frame| draw(frame, screen, at_ms)).map(drop).map_err(|error| unusable(&error))
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // What cannot be undone here nobody can undo.
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}

fn unusable(error: &io::Error) -> Failure {
    Failure { exit: Exit::NotAvailable, message: format!("the terminal cannot be used: {error}") }
}

/// What an event of the terminal means.
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
