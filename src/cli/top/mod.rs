//! `nqueens top`.
//!
//! | file | what it is |
//! |---|---|
//! | `screen.rs` | what is known and chosen, and what an event makes of it; no I/O |
//! | `rows.rs`, `rate.rs` | jobs and workers as lines of a table; how fast a job was over time |
//! | `draw.rs`, `unit_map.rs` | how that looks on so many cells |
//! | `feed.rs` | the coordinator's end: what changes is asked for again and again, whatever fails |
//! | `keyboard.rs` | the terminal's end: raw mode and back, keys |

mod draw;
mod feed;
mod keyboard;
mod rate;
mod rows;
mod screen;
#[cfg(test)]
mod tests;
mod unit_map;

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::remote::{Remote, block_on, stop_signal};
use super::solution_output::coloured;
use super::{Exit, Failure};
use crate::cluster::protocol::v1;
use feed::Feed;
use keyboard::Console;
use screen::{Input, Screen};

/// Show a live screen of the jobs and workers of a coordinator, with keys to steer them.
///
/// Arrows and Tab choose a job or a worker; p pauses, r resumes and c cancels the job, d drains the worker; q ends, ? tells all
/// keys.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
}

/// The screen is drawn anew at least this often: it says how long ago things were.
const TICK: Duration = Duration::from_secs(1);

/// Inputs that may wait to be drawn; who fills it waits.
const MOST_WAITING: usize = 256;

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    keyboard::demand_terminal()?;
    block_on(async {
        let mut stop = std::pin::pin!(end_signal());
        let met = async {
            let coordinator = args.remote.connect().await?;
            let request = v1::StatusRequest::default();
            let status = coordinator.call(coordinator.link.operations().status(request)).await?;
            Ok::<_, Failure>((coordinator, status))
        };
        let (coordinator, status) = tokio::select! {
            () = &mut stop => return Ok(Exit::Interrupted),
            met = met => met?,
        };
        let began = Instant::now();
        let mut screen = Screen::new(coordinator.address().to_string(), coloured());
        screen.update(Input::Status(Box::new(status)), 0);
        let (inputs, waiting) = mpsc::channel(MOST_WAITING);
        let feed = Feed::start(args.remote.clone(), coordinator, inputs.clone());
        // From here on the terminal is ours, until this is dropped.
        let console = Console::open(inputs)?;
        live(screen, console, feed, waiting, stop, began).await
    })
}

/// [`stop_signal`], and ready also once the terminal hangs up or the process is asked to quit: no signal that can be caught ends
/// it with the terminal in raw mode.
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

/// Draws and listens until somebody wants an end.
async fn live(
    mut screen: Screen,
    mut console: Console,
    feed: Feed,
    mut waiting: mpsc::Receiver<Input>,
    mut stop: Pin<&mut impl Future<Output = ()>>,
    began: Instant,
) -> Result<Exit, Failure> {
    let mut tick = tokio::time::interval(TICK);
    let at_ms = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    loop {
        feed.show(screen.chosen_job());
        console.draw(&screen, at_ms())?;
        let mut input = tokio::select! {
            () = &mut stop => return Ok(Exit::Done),
            input = waiting.recv() => input,
            _ = tick.tick() => None,
        };
        // All that has arrived meanwhile is drawn at once.
        while let Some(next) = input {
            if let Some(wish) = screen.update(next, at_ms()) {
                match wish {
                    screen::Wish::End => return Ok(Exit::Done),
                    screen::Wish::Order(order) => feed.order(order),
                }
            }
            input = waiting.try_recv().ok();
        }
    }
}
