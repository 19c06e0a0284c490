//! `nqueens top`.
//!
//! | file | contents |
//! |---|---|
//! | `screen.rs` | the state of the screen and its changes; no I/O |
//! | `rows.rs`, `rate.rs` | jobs and workers as rows of the tables; the rate of a job over time |
//! | `draw.rs`, `unit_map.rs` | drawing; the map of units |
//! | `feed.rs` | the connection to the coordinator: stream, polling, commands |
//! | `keyboard.rs` | the terminal: raw mode, keys |

mod draw;
mod feed;
mod keyboard;
mod rate;
mod rows;
mod screen;
#[cfg(test)]
mod tests;
mod unit_map;

pub(super) use rows::plain;

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::remote::{Remote, block_on, stop_signal};
use super::solution_output::coloured;
use super::{Exit, Failure};
use crate::cluster::protocol::v1;
use feed::Feed;
use keyboard::RawTerminal;
use screen::{Input, Screen};

/// Show and control the jobs and workers of a coordinator on a live screen.
///
/// The arrow keys and Tab select a job or a worker; p pauses, r resumes and c cancels the job; d
/// drains the worker; q quits; ? shows all keys.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
}

/// The maximum time between two redraws, since the screen shows ages.
const TICK: Duration = Duration::from_secs(1);

/// The capacity of the queue of inputs.
const QUEUE_CAPACITY: usize = 256;

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    keyboard::require_terminal()?;
    block_on(async {
        let mut stop = std::pin::pin!(end_signal());
        let connected = async {
            let coordinator = args.remote.connect().await?;
            let request = v1::StatusRequest::default();
            let status = coordinator.call(coordinator.link.operations().status(request)).await?;
            Ok::<_, Failure>((coordinator, status))
        };
        let (coordinator, status) = tokio::select! {
            () = &mut stop => return Ok(Exit::Interrupted),
            connected = connected => connected?,
        };
        let began = Instant::now();
        let mut screen = Screen::new(coordinator.address().to_string(), coloured());
        screen.update(Input::Status(Box::new(status)), 0);
        let (inputs, waiting) = mpsc::channel(QUEUE_CAPACITY);
        let feed = Feed::start(args.remote.clone(), coordinator, inputs.clone());
        // The terminal is in raw mode until this is dropped.
        let terminal = RawTerminal::open(inputs)?;
        run_screen(screen, terminal, feed, waiting, stop, began).await
    })
}

/// Completes at [`stop_signal`], SIGHUP or SIGQUIT, so that no signal that can be caught leaves the
/// terminal in raw mode.
fn end_signal() -> impl Future<Output = ()> {
    let stop = stop_signal();
    #[cfg(unix)]
    let others = {
        use tokio::signal::unix::{SignalKind, signal};
        [SignalKind::hangup(), SignalKind::quit()].map(signal)
    };
    async move {
        #[cfg(unix)]
        if let [Ok(mut hangup), Ok(mut quit)] = others {
            return tokio::select! {
                () = stop => {}
                _ = hangup.recv() => {}
                _ = quit.recv() => {}
            };
        }
        stop.await;
    }
}

/// Draws the screen and processes inputs until the user quits.
async fn run_screen(
    mut screen: Screen,
    mut terminal: RawTerminal,
    feed: Feed,
    mut waiting: mpsc::Receiver<Input>,
    mut stop: Pin<&mut impl Future<Output = ()>>,
    began: Instant,
) -> Result<Exit, Failure> {
    let mut tick = tokio::time::interval(TICK);
    let at_ms = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    loop {
        feed.show(screen.selected_job_with_units());
        terminal.draw(&screen, at_ms())?;
        let mut input = tokio::select! {
            () = &mut stop => return Ok(Exit::Done),
            input = waiting.recv() => input,
            _ = tick.tick() => None,
        };
        // All inputs that have arrived are drawn at once.
        while let Some(next) = input {
            if let Some(action) = screen.update(next, at_ms()) {
                match action {
                    screen::Action::End => return Ok(Exit::Done),
                    screen::Action::Command(command) => feed.command(command),
                }
            }
            input = waiting.try_recv().ok();
        }
    }
}
