//! `nqueens top` in a pseudo-terminal shows the state of a coordinator, obeys keys, and restores
//! the terminal when it ends.
#![cfg(unix)]

use crate::support;
use crate::terminal::Terminal;

use std::net::TcpListener;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::LocalModes;

use support::{Coordinator, NQUEENS, Process, Scratch, Worker, authority, eventually, submit};

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
    terminal.print("$ nqueens top");
    let before = terminal.modes();
    let data = coordinator.data().to_owned();
    let mut top = terminal.run(&["top", "--data", &data], &[]);
    terminal.wait_for_text("count of 12 queens");
    terminal.wait_for_text("hare");
    // The map of units and the event log.
    terminal.wait_for_text("░");
    terminal.wait_for_text("Worker hare joined from");
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
