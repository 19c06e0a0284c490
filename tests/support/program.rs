//! Helpers that run the program as its users do.

// Each test program uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder, removed when it is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("nqueens-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        Self(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns a path in the folder as an argument of a command.
    pub fn file(&self, name: &str) -> String {
        self.path(name).to_str().expect("a readable path").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a command that runs the program with these arguments and an empty stdin.
pub fn nqueens(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nqueens"));
    // Mesa's device-select layer writes to stderr.
    command.args(arguments).stdin(Stdio::null()).env("NODEVICE_SELECT", "1");
    // Ignore the configuration of the user who runs the tests.
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// Runs the program until it ends.
pub fn run(arguments: &[&str]) -> Output {
    nqueens(arguments).output().expect("the program starts")
}

/// Returns the program's output as text.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program writes UTF-8")
}

/// Returns what the program prints; it must succeed.
pub fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Asserts that the program refuses with this exit code and one line on stderr that contains
/// `words`, and prints nothing to stdout.
pub fn assert_refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = run(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
    for word in words {
        assert!(message.contains(word), "{arguments:?} does not say '{word}': {message}");
    }
}

/// Returns the one JSON object that the program prints on one line; it must succeed.
pub fn json(arguments: &[&str]) -> serde_json::Value {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 1, "{arguments:?}: one object, one line");
    serde_json::from_slice(&output.stdout).expect("stdout is one JSON object")
}

/// Sends SIGINT, as Ctrl-C does.
#[cfg(unix)]
pub fn interrupt(child: &std::process::Child) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("our own child process");
}
