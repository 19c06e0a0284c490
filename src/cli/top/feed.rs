//! The connection to the coordinator: the stream of jobs, polling once a second for everything
//! else, and commands. It reconnects after failures.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::rate::Point;
use super::screen::{Command, Input};
use super::unit_map::UnitMap;
use crate::cli::Failure;
use crate::cli::remote::{Coordinator, Remote};
use crate::cluster::protocol::v1;
use crate::report::{job_name, state_name};

/// The interval of polling for what is not in the stream.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// The first pause before a reconnection, which doubles, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// The connection to the coordinator. Its tasks end with the runtime.
pub(super) struct Feed {
    /// The name of the job whose units are shown; empty if there is none.
    shown: watch::Sender<String>,
    commands: mpsc::UnboundedSender<Command>,
}

impl Feed {
    /// Sends what `coordinator` answers to `inputs`, and reconnects by `remote` when it fails.
    pub(super) fn start(
        remote: Remote,
        coordinator: Coordinator,
        inputs: mpsc::Sender<Input>,
    ) -> Self {
        let (shown, to_show) = watch::channel(String::new());
        let (commands, received) = mpsc::unbounded_channel();
        // The task that reconnects passes the connection to the others.
        let (reconnected, connection) = watch::channel(coordinator);
        tokio::spawn(follow(remote, reconnected, inputs.clone()));
        tokio::spawn(poll(connection.clone(), to_show, inputs.clone()));
        tokio::spawn(run_commands(connection, received, inputs));
        Self { shown, commands }
    }

    /// Selects the job whose units are requested.
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

    /// Sends a command to the coordinator.
    pub(super) fn command(&self, command: Command) {
        // The receiver exists as long as the runtime.
        let _ = self.commands.send(command);
    }
}

/// Follows the stream of the jobs, and reconnects when it ends.
async fn follow(
    remote: Remote,
    reconnected: watch::Sender<Coordinator>,
    inputs: mpsc::Sender<Input>,
) {
    let mut pause = PAUSES.0;
    loop {
        let coordinator = reconnected.borrow().clone();
        let why = match watch_jobs(&coordinator, &inputs, &mut pause).await {
            Ok(()) => "the coordinator has stopped".to_owned(),
            Err(failure) => failure.message,
        };
        if inputs.send(Input::Disconnected(why)).await.is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(PAUSES.1);
        // The address or the certificate may have changed.
        match remote.connect().await {
            Ok(coordinator) => drop(reconnected.send_replace(coordinator)),
            Err(failure) => drop(inputs.send(Input::Disconnected(failure.message)).await),
        }
    }
}

/// Follows the stream until it ends.
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

/// Polls for the workers, the events, and the units of the job that is shown. Failures are ignored
/// here: the stream reports a lost connection.
async fn poll(
    mut connection: watch::Receiver<Coordinator>,
    mut shown: watch::Receiver<String>,
    inputs: mpsc::Sender<Input>,
) {
    let mut tick = tokio::time::interval(POLL_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last_event = 0;
    let (mut version, mut after_ms) = (0, 0);
    loop {
        // After a reconnection, the versions of maps may start again.
        if connection.has_changed().unwrap_or(false) || shown.has_changed().unwrap_or(false) {
            (version, after_ms) = (0, 0);
        }
        let coordinator = connection.borrow_and_update().clone();
        let job = shown.borrow_and_update().clone();
        let mut operations = coordinator.link.operations();
        let mut new_inputs = Vec::new();
        if let Ok(answer) = operations.workers(v1::WorkersRequest {}).await {
            new_inputs.push(Input::Workers(answer.into_inner()));
        }
        if let Ok(answer) = operations.events(v1::EventsRequest { after: last_event }).await {
            let events = answer.into_inner().events;
            last_event = events.last().map_or(last_event, |event| event.number);
            new_inputs.push(Input::Events(events));
        }
        if !job.is_empty() {
            let request = v1::UnitMapRequest { job: job.clone(), version };
            let answer = operations.unit_map(request).await.ok();
            if let Some(map) = answer.and_then(|answer| UnitMap::new(answer.into_inner())) {
                version = map.version;
                new_inputs.push(Input::Map(map));
            }
            let request = v1::HistoryRequest { job: job.clone(), after_ms };
            if let Ok(answer) = operations.history(request).await {
                let points = answer.into_inner().points;
                let points: Vec<Point> = points
                    .iter()
                    .map(|point| Point { at_ms: point.at_ms, done: point.done })
                    .collect();
                after_ms = points.last().map_or(after_ms, |point| point.at_ms);
                new_inputs.push(Input::History { job, points });
            }
        }
        for input in new_inputs {
            if inputs.send(input).await.is_err() {
                return;
            }
        }
        // Poll at once when another job is shown.
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

/// Sends commands one after the other, and reports their results.
async fn run_commands(
    connection: watch::Receiver<Coordinator>,
    mut commands: mpsc::UnboundedReceiver<Command>,
    inputs: mpsc::Sender<Input>,
) {
    while let Some(command) = commands.recv().await {
        let coordinator = connection.borrow().clone();
        let outcome = run_command(&coordinator, command).await;
        if inputs.send(Input::CommandDone(outcome)).await.is_err() {
            return;
        }
    }
}

async fn run_command(coordinator: &Coordinator, command: Command) -> Result<String, String> {
    let mut operations = coordinator.link.operations();
    let called = match command {
        Command::SetState(job, state) => {
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
        Command::Drain(worker) => {
            let request = v1::DrainRequest { worker: worker.clone() };
            let answer = coordinator.call(operations.drain(request)).await;
            answer.map(|_| format!("{worker} finishes its leased units and gets no more"))
        }
    };
    called.map_err(|failure| failure.message)
}
