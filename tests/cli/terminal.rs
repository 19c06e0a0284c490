//! A pseudo-terminal in which the program runs.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::support::{NQUEENS, Process, eventually};

/// A pseudo-terminal: its screen, its keyboard, and the end that the program uses.
pub(crate) struct Terminal {
    pub(crate) screen: Arc<Mutex<vt100::Parser>>,
    keyboard: File,
    pub(crate) line: OwnedFd,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        const SIZE: (NonZero<u16>, NonZero<u16>) =
            (NonZero::new(32).expect("not 0"), NonZero::new(120).expect("not 0"));
        let controller =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&controller).expect("it is a pseudo-terminal");
        unlockpt(&controller).expect("it is a pseudo-terminal");
        let name = ptsname(&controller, Vec::new()).expect("it has a name");
        let path = Path::new(name.to_str().expect("UTF-8"));
        let line = File::options().read(true).write(true).open(path).expect("its other end").into();
        let size =
            Winsize { ws_row: SIZE.0.get(), ws_col: SIZE.1.get(), ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).expect("it has a size");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(SIZE.0, SIZE.1, 0)));
        let keyboard = File::from(controller);
        let (mut output, drawn) = (keyboard.try_clone().expect("a copy"), screen.clone());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The terminal is closed at the end of the test.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                drawn.lock().expect("no thread panicked").process(&bytes[..read]);
            }
        });
        Self { screen, keyboard, line }
    }

    /// Starts the program in this terminal.
    pub(crate) fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
        self.run_in(Path::new("."), arguments, variables)
    }

    /// Starts the program in this terminal, in a directory.
    pub(crate) fn run_in(
        &self,
        directory: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Process {
        let end = || Stdio::from(self.line.try_clone().expect("a copy"));
        let mut command = Command::new(NQUEENS);
        command.args(arguments).current_dir(directory);
        command.env_remove("NO_COLOR").env("TERM", "xterm-256color");
        command.envs(variables.iter().copied()).stdin(end()).stdout(end()).stderr(end());
        Process(command.spawn().expect("the program starts"))
    }

    pub(crate) fn text(&self) -> String {
        self.screen.lock().expect("no thread panicked").screen().contents()
    }

    /// Waits until the terminal shows this text.
    pub(crate) fn wait_for_text(&self, words: &str) {
        let mut last = String::new();
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(words, || {
                last = self.text();
                last.contains(words).then_some(())
            })
        }));
        assert!(seen.is_ok(), "'{words}' is not shown, but\n{last}");
    }

    /// Prints a line, as a shell would.
    pub(crate) fn print(&self, line: &str) {
        let mut out = self.line.try_clone().map(File::from).expect("a copy");
        out.write_all(format!("{line}\r\n").as_bytes()).expect("the terminal is open");
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    pub(crate) fn modes(&self) -> Termios {
        tcgetattr(&self.line).expect("it is a terminal")
    }

    /// Asserts that the shell's screen is restored, the cursor is visible, and the terminal modes
    /// are those of before.
    pub(crate) fn assert_restored(&self, before: &Termios, shell: &str) {
        eventually("main screen", || {
            (!self.screen.lock().expect("no thread panicked").screen().alternate_screen())
                .then_some(())
        });
        eventually("cursor", || {
            (!self.screen.lock().expect("no thread panicked").screen().hide_cursor()).then_some(())
        });
        assert!(self.text().contains(shell), "{}", self.text());
        let now = self.modes();
        assert!(now.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG));
        assert_eq!(
            (now.local_modes, now.input_modes, now.output_modes, now.control_modes),
            (before.local_modes, before.input_modes, before.output_modes, before.control_modes)
        );
    }
}
