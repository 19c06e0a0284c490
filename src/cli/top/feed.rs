//! The coordinator's end: its jobs as a stream, all else asked for once a second, whatever fails meanwhile; and orders.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::rate::Point;
use super::screen::{Input, Order};
use super::unit_map::UnitMap;
use crate::cli::Failure;
use crate::cli::job_report::{job_name, state_name};
use crate::cli::remote::{Coordinator, Remote};
use crate::cluster::protocol::v1;

/// How often is asked for what no stream tells.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// The pause before the coordinator is tried again: the first, which doubles, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// What comes from the coordinator, and goes to it. Its tasks end with the runtime.
pub(super) struct Feed {
    /// The name of the job whose units are shown; empty for none.
    shown: watch::Sender<String>,
    orders: mpsc::UnboundedSender<Order>,
}

impl Feed {
    /// Feeds `inputs`, from `coordinator` at first, and from what `remote` finds when that is lost.
    pub(super) fn start(
        remote: Remote,
        coordinator: Coordinator,
        inputs: mpsc::Sender<Input>,
    ) -> Self {
        let (shown, to_show) = watch::channel(String::new());
        let (orders, ordered) = mpsc::unbounded_channel();
        // Whoever finds the coordinator again tells the others.
        let (found, line) = watch::channel(coordinator);
        tokio::spawn(follow(remote, found, inputs.clone()));
        tokio::spawn(ask(line.clone(), to_show, inputs.clone()));
        tokio::spawn(obey(line, ordered, inputs));
        Self { shown, orders }
    }

    /// The units of this job are shown from now on.
    pub(super) fn show(&self, job: Option<&str>) {
        let job = job.unwrap_or_default();
        self.shown.send_if_modified(|shown| {
            let changes = shown != job;
            if changes {
                job.clone_into(shown);
            }
            changes
        });
    }

    /// The coordinator is to do that.
    pub(super) fn order(&self, order: Order) {
        // Whoever takes orders lives as long as the runtime.
        let _ = self.orders.send(order);
    }
}

/// Follows the stream of the jobs, and finds the coordinator again when it is lost.
async fn follow(remote: Remote, found: watch::Sender<Coordinator>, inputs: mpsc::Sender<Input>) {
    let mut pause = PAUSES.0;
    loop {
        let coordinator = found.borrow().clone();
        let why = match watch_jobs(&coordinator, &inputs, &mut pause).await {
            Ok(()) => "it has stopped".to_owned(),
            Err(failure) => failure.message,
        };
        if inputs.send(Input::Lost(why)).await.is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(PAUSES.1);
        // It may have another address by now, or our certificate may have been renewed.
        match remote.connect().await {
            Ok(coordinator) => drop(found.send_replace(coordinator)),
            Err(failure) => drop(inputs.send(Input::Lost(failure.message)).await),
        }
    }
}

/// Follows the stream to its end.
async fn watch_jobs(
    coordinator: &Coordinator,
    inputs: &mpsc::Sender<Input>,
    pause: &mut Duration,
) -> Result<(), Failure> {
    let request = v1::StatusRequest::default();
    let mut stream = coordinator.call(coordinator.link.operations().watch(request)).await?;
    loop {
        let next = stream.message().await;
        let Some(status) = coordinator.call(async { next.map(tonic::Response::new) }).await? else {
            return Ok(());
        };
        *pause = PAUSES.0;
        if inputs.send(Input::Status(Box::new(status))).await.is_err() {
            return Ok(());
        }
    }
}

/// Asks for the workers, the events, and the units of the job that is shown. What fails is asked for again: whether the
/// coordinator is lost the stream says.
async fn ask(
    mut line: watch::Receiver<Coordinator>,
    mut shown: watch::Receiver<String>,
    inputs: mpsc::Sender<Input>,
) {
    let mut tick = tokio::time::interval(ASK_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last_event = 0;
    let (mut version, mut after_ms) = (0, 0);
    loop {
        // A coordinator that was lost may number its maps anew.
        if line.has_changed().unwrap_or(false) || shown.has_changed().unwrap_or(false) {
            (version, after_ms) = (0, 0);
        }
        let coordinator = line.borrow_and_update().clone();
        let job = shown.borrow_and_update().clone();
        let mut operations = coordinator.link.operations();
        let mut news = Vec::new();
        if let Ok(answer) = operations.workers(v1::WorkersRequest {}).await {
            news.push(Input::Workers(answer.into_inner()));
        }
        if let Ok(answer) = operations.events(v1::EventsRequest { after: last_event }).await {
            let events = answer.into_inner().events;
            last_event = events.last().map_or(last_event, |event| event.number);
            news.push(Input::Events(events));
        }
        if !job.is_empty() {
            let request = v1::UnitMapRequest { job: job.clone(), version };
            let answer = operations.unit_map(request).await.ok();
            if let Some(map) = answer.and_then(|answer| UnitMap::new(answer.into_inner())) {
                version = map.version;
                news.push(Input::Map(map));
            }
            let request = v1::HistoryRequest { job: job.clone(), after_ms };
            if let Ok(answer) = operations.history(request).await {
                let points = answer.into_inner().points;
                let points: Vec<Point> = points
                    .iter()
                    .map(|point| Point { at_ms: point.at_ms, done: point.done })
                    .collect();
                after_ms = points.last().map_or(after_ms, |point| point.at_ms);
                news.push(Input::History { job, points });
            }
        }
        for input in news {
            if inputs.send(input).await.is_err() {
                return;
            }
        }
        // At once when another job is shown.
        tokio::select! {
            _ = tick.tick() => {}
            changed = shown.changed() => {
                if changed.is_err() {
                    return;
                }
                shown.mark_changed();
            }
        }
    }
}

/// Passes orders on, one after the other, and tells what became of them.
async fn obey(
    line: watch::Receiver<Coordinator>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    inputs: mpsc::Sender<Input>,
) {
    while let Some(order) = orders.recv().await {
        let coordinator = line.borrow().clone();
        let outcome = obeyed(&coordinator, order).await;
        if inputs.send(Input::Ordered(outcome)).await.is_err() {
            return;
        }
    }
}

async fn obeyed(coordinator: &Coordinator, order: Order) -> Result<String, String> {
    let mut operations = coordinator.link.operations();
    let called = match order {
        Order::SetState(job, state) => {
            let request = v1::SetJobStateRequest { job, state: state.into() };
            let answer = coordinator.call(operations.set_job_state(request)).await;
            answer.map(|answer| {
                let name = job_name(answer.job.get(..4).unwrap_or_default());
                format!(
                    "job {name} is {}; it was {}",
                    state_name(state),
                    state_name(answer.before())
                )
            })
        }
        Order::Drain(worker) => {
            let request = v1::DrainRequest { worker: worker.clone() };
            let answer = coordinator.call(operations.drain(request)).await;
            answer.map(|_| format!("{worker} finishes what it has in hand and gets nothing more"))
        }
    };
    called.map_err(|failure| failure.message)
}
