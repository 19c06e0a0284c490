//! The program as its users run it.

// Each test uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own for each test, which goes when the test ends.
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

    /// The same as an argument of a command.
    pub fn file(&self, name: &str) -> String {
        self.path(name).to_str().expect("a readable path").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program with its arguments, and nothing to read.
pub fn nqueens(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nqueens"));
    // Mesa's device-select layer has things to say on stderr.
    command.args(arguments).stdin(Stdio::null()).env("NODEVICE_SELECT", "1");
    // Nor is it to find somebody's configuration.
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// Runs the program to its end.
pub fn run(arguments: &[&str]) -> Output {
    nqueens(arguments).output().expect("the program starts")
}

/// What the program wrote.
pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program writes UTF-8")
}

/// What the program prints when all goes well.
pub fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// The program refuses with this code and one line on stderr that has these words, and prints no data.
pub fn assert_refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = run(arguments);
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {complaint}");
    assert_eq!(complaint.lines().count(), 1, "{arguments:?}: {complaint}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
    for word in words {
        assert!(complaint.contains(word), "{arguments:?} does not say '{word}': {complaint}");
    }
}
