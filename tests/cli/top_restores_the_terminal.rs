//! `nqueens top` in a pseudo-terminal shows the state of a coordinator, obeys keys, and restores
//! the terminal when it ends.
#![cfg(unix)]

use crate::support;

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

use support::{Coordinator, NQUEENS, Process, Scratch, Worker, authority, eventually, submit};

/// A pseudo-terminal: its screen, its keyboard, and the end that the program uses.
struct Terminal {
    screen: Arc<Mutex<vt100::Parser>>,
    keyboard: File,
    line: OwnedFd,
}

impl Terminal {
    fn new() -> Self {
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
    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
        let end = || Stdio::from(self.line.try_clone().expect("a copy"));
        let mut command = Command::new(NQUEENS);
        command.args(arguments).env_remove("NO_COLOR").env("TERM", "xterm-256color");
        command.envs(variables.iter().copied()).stdin(end()).stdout(end()).stderr(end());
        Process(command.spawn().expect("the program starts"))
    }

    fn text(&self) -> String {
        self.screen.lock().expect("no thread panicked").screen().contents()
    }

    /// Waits until the terminal shows this text.
    fn wait_for_text(&self, words: &str) {
        let mut last = String::new();
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(words, || {
                last = self.text();
                last.contains(words).then_some(())
            })
        }));
        assert!(seen.is_ok(), "'{words}' is not shown, but\n{last}");
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    fn modes(&self) -> Termios {
        tcgetattr(&self.line).expect("it is a terminal")
    }

    /// Asserts that the shell's screen is restored, the cursor is visible, and the terminal modes
    /// are those of before.
    fn assert_restored(&self, before: &Termios, shell: &str) {
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

fn send(process: &Process, signal: Signal) {
    let pid = Pid::from_raw(process.0.id().try_into().expect("a pid")).expect("a pid");
    kill_process(pid, signal).expect("it runs");
}

// Waiting for the terminal blocks a thread; the coordinator runs in another process.
#[tokio::test(flavor = "multi_thread")]
async fn top_shows_a_campaign_obeys_keys_and_restores_the_terminal() {
    let scratch = Scratch::new("top");
    let mut coordinator =
        Coordinator::start(&scratch.path("coordinator"), &["--lease", "30s", "--sync", "1s"]);
    let job = submit(&coordinator.channel(), 12, 0).await;
    // It holds leased units and has counted none.
    let mut worker = Worker::new("hare", coordinator.channel());
    assert!(worker.sync().await.expect("answered") > 0);

    let mut terminal = Terminal::new();
    (&terminal.line.try_clone().map(File::from).expect("a copy"))
        .write_all(b"$ nqueens top\r\n")
        .expect("the terminal is open");
    let before = terminal.modes();
    let data = coordinator.data().to_owned();
    let mut top = terminal.run(&["top", "--data", &data], &[]);
    terminal.wait_for_text("count of 12 queens");
    terminal.wait_for_text("hare");
    // The map of units and the event log.
    terminal.wait_for_text("░");
    terminal.wait_for_text("hare has joined");
    assert!(!terminal.modes().local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO));

    terminal.press("p");
    terminal.wait_for_text("is paused; it was running");
    let paused = coordinator.last_job().await;
    assert_eq!(paused.state(), nqueens::cluster::protocol::v1::JobState::Paused);
    terminal.press("r");
    terminal.wait_for_text("is running; it was paused");
    // Any answer but yes changes nothing.
    terminal.press("c");
    terminal.wait_for_text("y: yes, any other key: no");
    terminal.press("n");
    terminal.wait_for_text("nothing changed");
    assert_eq!(
        coordinator.last_job().await.state(),
        nqueens::cluster::protocol::v1::JobState::Running
    );

    // The coordinator is stopped and restarted; the program keeps running.
    coordinator.process.kill();
    terminal.wait_for_text("disconnected for");
    coordinator.restart();
    eventually("new connection to the coordinator", || {
        (!terminal.text().contains("disconnected for")).then_some(())
    });

    // The end of the job is shown without a key press.
    let mut worker = Worker::new("hare", coordinator.channel());
    worker.kernels = vec!["scalar".into()];
    let other = Worker::new("tortoise", coordinator.channel());
    let counting = [worker, other]
        .map(|mut worker| tokio::spawn(async move { worker.work_until_done().await }));
    for worker in counting {
        worker.await.expect("no panic");
    }
    terminal.wait_for_text("14200 solutions");
    terminal.wait_for_text("tortoise");
    assert!(terminal.text().contains(&job[..8]));

    terminal.press("q");
    assert_eq!(top.wait("end"), 0);
    terminal.assert_restored(&before, "$ nqueens top");
}

#[test]
fn top_restores_the_terminal_however_it_ends() {
    let scratch = Scratch::new("top-ends");
    let data = scratch.path("coordinator");
    std::fs::create_dir_all(&data).expect("writable");
    drop(authority(&data));
    let coordinator = Coordinator::start(&data, &[]);
    for end in ["q", "\u{3}", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"] {
        let mut terminal = Terminal::new();
        let before = terminal.modes();
        // With NO_COLOR, no cell has a colour.
        let mut top = terminal.run(&["top", "--data", coordinator.data()], &[("NO_COLOR", "1")]);
        terminal.wait_for_text("no jobs; submit one");
        let colours = {
            let parser = terminal.screen.lock().expect("no thread panicked");
            let cell = |row, column| parser.screen().cell(row, column).map(|cell| cell.fgcolor());
            (0..32).flat_map(|row| (0..120).map(move |column| (row, column))).any(
                |(row, column)| {
                    cell(row, column).is_some_and(|colour| colour != vt100::Color::Default)
                },
            )
        };
        assert!(!colours);
        match end {
            "SIGTERM" => send(&top, Signal::TERM),
            "SIGINT" => send(&top, Signal::INT),
            "SIGHUP" => send(&top, Signal::HUP),
            "SIGQUIT" => send(&top, Signal::QUIT),
            keys => terminal.press(keys),
        }
        assert_eq!(top.wait("end"), 0, "{end:?}");
        terminal.assert_restored(&before, "");
    }
}

/// The program can be ended while a coordinator accepts its connection and does not answer.
#[test]
fn top_can_be_ended_while_the_coordinator_does_not_answer() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = silent.local_addr().expect("bound").to_string();
        let terminal = Terminal::new();
        let before = terminal.modes();
        let mut top = terminal.run(&["top", "--coordinator", &address], &[]);
        // The program has connected; it installs its signal handlers before that.
        let _line = silent.accept().expect("a call");
        send(&top, signal);
        assert_eq!(top.wait("end"), 130, "{signal:?}");
        terminal.assert_restored(&before, "");
    }
}

#[test]
fn top_refuses_to_run_without_a_terminal() {
    for (arguments, variables) in [
        (&["top"][..], ("TERM", "xterm")),
        (&["top", "--coordinator", "127.0.0.1:1"], ("TERM", "xterm")),
    ] {
        let output = Command::new(NQUEENS)
            .args(arguments)
            .envs([variables])
            .output()
            .expect("the program starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert_eq!((message.lines().count(), output.stdout.len()), (1, 0), "{message}");
        assert!(message.contains("status --watch"), "{message}");
    }
    // Failures to connect are reported before the terminal is changed: an absent coordinator, and
    // one that requires TLS.
    let scratch = Scratch::new("top-refused");
    drop(authority(&scratch.path("coordinator")));
    let coordinator = Coordinator::start(&scratch.path("coordinator"), &[]);
    for (address, expected) in
        [("127.0.0.1:1", "cannot reach"), (&coordinator.address.to_string(), "give --token")]
    {
        let terminal = Terminal::new();
        let mut top = terminal.run(&["top", "--coordinator", address], &[]);
        assert_eq!(top.wait("end"), 8);
        terminal.wait_for_text(expected);
        assert!(!terminal.screen.lock().expect("no thread panicked").screen().alternate_screen());
    }
}
