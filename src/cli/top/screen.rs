//! The state of the screen and of its selections, without I/O: inputs and times in, actions out.

use std::collections::VecDeque;

use super::rate::Point;
use super::rows::{JobRow, WorkerRow, plain, week};
use super::unit_map::UnitMap;
use crate::cluster::protocol::v1;
use crate::report::job_name;

/// The maximum number of events in the log: more than any terminal has lines.
const MOST_EVENTS: usize = 512;

/// The maximum number of points in the history: more than any terminal has columns.
const MOST_POINTS: usize = 4096;

/// An input of the screen.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// The status of the jobs, from a coordinator that is connected.
    Status(Box<v1::StatusResponse>),
    Workers(v1::WorkersResponse),
    /// The unit map of a job.
    Map(UnitMap),
    /// Points of the progress of a job over time, after those of earlier inputs.
    History {
        job: String,
        points: Vec<Point>,
    },
    /// Events of the coordinator, after those of earlier inputs.
    Events(Vec<v1::Event>),
    /// The coordinator cannot be reached, for this reason.
    Disconnected(String),
    /// The result of a command.
    CommandDone(Result<String, String>),
    Key(Key),
    /// The size of the terminal has changed.
    Resized,
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    First,
    Last,
    OtherTable,
    Enter,
    Escape,
    Letter(char),
    /// Quit, in every state of the screen.
    End,
}

/// An action that the screen requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Close the screen.
    End,
    Command(Command),
}

/// A command to the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Set the state of the job of this name.
    SetState(String, v1::JobState),
    /// Drain the worker of this name.
    Drain(String),
}

/// A table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Table {
    #[default]
    Jobs,
    Workers,
}

/// The dialog that covers the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Overlay {
    #[default]
    None,
    Keys,
    /// The report of the selected job, from this line.
    Report(u16),
    /// A question, and the command that a yes confirms.
    Question(String, Command),
}

/// The message in the last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    None,
    Done(String),
    Failed(String),
}

/// The state of the screen.
#[derive(Debug)]
pub(super) struct Screen {
    /// The address of the coordinator.
    pub(super) address: String,
    pub(super) coloured: bool,
    /// The time zone of the times that are shown.
    pub(super) zone: jiff::tz::TimeZone,
    pub(super) build: String,
    /// The problem of the coordinator; empty if there is none.
    pub(super) trouble: String,
    /// The number of workers with a contact within the time of a lease.
    pub(super) online: u32,
    pub(super) jobs: Vec<JobRow>,
    pub(super) workers: Vec<WorkerRow>,
    /// The contribution of each owner this week, in words.
    pub(super) week: String,
    /// The unit map of the job that was selected when the map arrived.
    map: Option<UnitMap>,
    /// A job and its progress over time.
    history: (String, Vec<Point>),
    /// The events, in the order of their numbers.
    pub(super) events: VecDeque<v1::Event>,
    pub(super) table: Table,
    /// The names of the selected job and worker.
    job: Option<String>,
    worker: Option<String>,
    pub(super) overlay: Overlay,
    pub(super) message: Message,
    /// The time since when the coordinator cannot be reached, in ms after the start, and the
    /// reason.
    pub(super) disconnected: Option<(u64, String)>,
    /// The coordinator's clock, in ms since 1970, and the time of that reading, in ms after the
    /// start.
    clock: (u64, u64),
}

impl Screen {
    pub(super) fn new(address: String, coloured: bool) -> Self {
        Self {
            address,
            coloured,
            zone: jiff::tz::TimeZone::system(),
            build: String::new(),
            trouble: String::new(),
            online: 0,
            jobs: Vec::new(),
            workers: Vec::new(),
            week: String::new(),
            map: None,
            history: Default::default(),
            events: VecDeque::new(),
            table: Table::Jobs,
            job: None,
            worker: None,
            overlay: Overlay::None,
            message: Message::None,
            disconnected: None,
            clock: (0, 0),
        }
    }

    /// Processes an input that arrived `at_ms` after the start.
    pub(super) fn update(&mut self, input: Input, at_ms: u64) -> Option<Action> {
        match input {
            Input::Status(status) => self.take_status(*status, at_ms),
            Input::Workers(answer) => {
                self.week = week(&answer.contributions);
                self.workers = answer.workers.into_iter().map(WorkerRow::new).collect();
                self.workers.sort_by(|a, b| a.name.cmp(&b.name));
                self.repair_selection();
            }
            Input::Map(map) => {
                if self.job.as_ref() == Some(&map.job) {
                    self.map = Some(map);
                }
            }
            Input::History { job, points } => self.take_history(job, points),
            Input::Events(events) => self.take_events(events),
            Input::Disconnected(why) => {
                let since = self.disconnected.take().map_or(at_ms, |(since, _)| since);
                self.disconnected = Some((since, plain(&why)));
            }
            Input::CommandDone(Ok(message)) => self.message = Message::Done(plain(&message)),
            Input::CommandDone(Err(message)) => self.message = Message::Failed(plain(&message)),
            Input::Key(key) => return self.press(key),
            Input::Resized => {}
        }
        None
    }

    /// Returns the coordinator's time, in ms since 1970, `at_ms` after the start.
    pub(super) const fn now_ms(&self, at_ms: u64) -> u64 {
        let (now_ms, read_ms) = self.clock;
        now_ms + at_ms.saturating_sub(read_ms)
    }

    /// Returns the index of the selected job.
    pub(super) fn selected_job_index(&self) -> Option<usize> {
        let name = self.job.as_ref()?;
        self.jobs.iter().position(|job| job.name == *name)
    }

    /// Returns the index of the selected worker.
    pub(super) fn selected_worker_index(&self) -> Option<usize> {
        let name = self.worker.as_ref()?;
        self.workers.iter().position(|worker| worker.name == *name)
    }

    /// Returns the selected job.
    pub(super) fn job(&self) -> Option<&JobRow> {
        Some(&self.jobs[self.selected_job_index()?])
    }

    /// Returns the name of the selected job, if it has units.
    pub(super) fn selected_job_with_units(&self) -> Option<&str> {
        self.job().filter(|job| job.shares.is_some()).map(|job| &job.name[..])
    }

    /// Returns the unit map of the selected job, if it has arrived.
    pub(super) fn map(&self) -> Option<&UnitMap> {
        self.map.as_ref().filter(|map| Some(&map.job) == self.job.as_ref())
    }

    /// Returns the progress of the selected job over time, as far as it has arrived.
    pub(super) fn history(&self) -> &[Point] {
        if Some(&self.history.0) == self.job.as_ref() { &self.history.1 } else { &[] }
    }

    fn take_status(&mut self, status: v1::StatusResponse, at_ms: u64) {
        let now_ms = status.now_ms;
        self.clock = (now_ms, at_ms);
        self.disconnected = None;
        self.build = plain(&status.build);
        self.trouble = plain(&status.trouble);
        self.online = status.workers;
        let age = |job: &v1::JobStatus| job.submitted_ms;
        let counts = status.jobs.into_iter().map(|job| (age(&job), JobRow::of_count(job, now_ms)));
        let proofs = status
            .proofs
            .into_iter()
            .map(|proof| (proof.submitted_ms, JobRow::of_proof(proof, now_ms)));
        let mut jobs: Vec<(u64, JobRow)> = counts.chain(proofs).collect();
        // Running jobs first, and the newest first.
        let rank = |job: &JobRow| match job.state {
            "running" | "disputed" => 0,
            "paused" => 1,
            _ => 2,
        };
        jobs.sort_by(|(a_ms, a), (b_ms, b)| {
            (rank(a), b_ms, &a.name).cmp(&(rank(b), a_ms, &b.name))
        });
        self.jobs = jobs.into_iter().map(|(_, job)| job).collect();
        self.repair_selection();
    }

    fn take_history(&mut self, job: String, points: Vec<Point>) {
        if self.job.as_ref() != Some(&job) {
            return;
        }
        if self.history.0 != job {
            self.history = (job, Vec::new());
        }
        let known = &mut self.history.1;
        let last_ms = known.last().map_or(0, |point| point.at_ms);
        known.extend(points.into_iter().filter(|point| point.at_ms > last_ms));
        if known.len() > MOST_POINTS {
            // Every second point, and the last.
            let last = known.len() - 1;
            let mut index = 0..;
            known.retain(|_| index.next().is_some_and(|index| index % 2 == 0 || index == last));
        }
    }

    fn take_events(&mut self, events: Vec<v1::Event>) {
        for event in events {
            if self.events.back().is_none_or(|last| last.number < event.number) {
                self.events.push_back(event);
            }
        }
        let surplus = self.events.len().saturating_sub(MOST_EVENTS);
        self.events.drain(..surplus);
    }

    /// Selects the first job and worker if the selected one no longer exists.
    fn repair_selection(&mut self) {
        if self.selected_job_index().is_none() {
            self.job = self.jobs.first().map(|job| job.name.clone());
        }
        if self.selected_worker_index().is_none() {
            self.worker = self.workers.first().map(|worker| worker.name.clone());
        }
    }

    fn press(&mut self, key: Key) -> Option<Action> {
        if key == Key::End {
            return Some(Action::End);
        }
        match (std::mem::take(&mut self.overlay), key) {
            (Overlay::Question(_, command), Key::Letter('y' | 'Y')) => {
                return Some(Action::Command(command));
            }
            // Any other key means no.
            (Overlay::Question(..), _) => {
                self.message = Message::Done("nothing changed".to_owned())
            }
            (Overlay::Report(line), Key::Down) => {
                self.overlay = Overlay::Report(line.saturating_add(1))
            }
            (Overlay::Report(line), Key::Up) => {
                self.overlay = Overlay::Report(line.saturating_sub(1))
            }
            (Overlay::Keys | Overlay::Report(_), Key::Letter('q')) => return Some(Action::End),
            (Overlay::Keys | Overlay::Report(_), _) => {}
            (Overlay::None, key) => return self.press_on_tables(key),
        }
        None
    }

    fn press_on_tables(&mut self, key: Key) -> Option<Action> {
        self.message = Message::None;
        match key {
            Key::Letter('q') => return Some(Action::End),
            Key::Letter('?' | 'h') => self.overlay = Overlay::Keys,
            Key::Enter if self.job.is_some() => self.overlay = Overlay::Report(0),
            Key::OtherTable => {
                self.table = match self.table {
                    Table::Jobs => Table::Workers,
                    Table::Workers => Table::Jobs,
                };
            }
            Key::Up | Key::Letter('k') => self.select(|index, _| index.saturating_sub(1)),
            Key::Down | Key::Letter('j') => self.select(|index, last| (index + 1).min(last)),
            Key::First => self.select(|_, _| 0),
            Key::Last => self.select(|_, last| last),
            Key::Letter(letter @ ('p' | 'r' | 'c')) => return self.command_job(letter),
            Key::Letter('d') => self.confirm_drain(),
            Key::Letter(_) | Key::Escape | Key::Enter | Key::End => {}
        }
        None
    }

    /// Selects the index that `to` returns for the current index and the last one.
    fn select(&mut self, to: impl Fn(usize, usize) -> usize) {
        match self.table {
            Table::Jobs => {
                let Some(index) = self.selected_job_index() else { return };
                let index = to(index, self.jobs.len() - 1);
                self.job = Some(self.jobs[index].name.clone());
            }
            Table::Workers => {
                let Some(index) = self.selected_worker_index() else { return };
                let index = to(index, self.workers.len() - 1);
                self.worker = Some(self.workers[index].name.clone());
            }
        }
    }

    fn command_job(&mut self, letter: char) -> Option<Action> {
        let Some(job) = self.job() else {
            self.message = Message::Failed("no job is selected".to_owned());
            return None;
        };
        let (name, called) = (job.name.clone(), job.called());
        // A finished job cannot be changed, and a cancelled job can only be resumed.
        if job.state == "finished" || (job.state == "cancelled" && letter != 'r') {
            self.message = Message::Failed(format!("job {called} is {}", job.state));
            return None;
        }
        match letter {
            'p' => Some(Action::Command(Command::SetState(name, v1::JobState::Paused))),
            'r' => Some(Action::Command(Command::SetState(name, v1::JobState::Running))),
            _ => {
                let command = Command::SetState(name, v1::JobState::Cancelled);
                self.overlay = Overlay::Question(format!("Cancel job {called}?"), command);
                None
            }
        }
    }

    fn confirm_drain(&mut self) {
        match &self.worker {
            None => self.message = Message::Failed("no worker is selected".to_owned()),
            Some(worker) => {
                let question = format!("Drain {worker}? It gets no more units until it restarts.");
                self.overlay = Overlay::Question(question, Command::Drain(worker.clone()));
            }
        }
    }
}

/// Returns the short name of the job that an event concerns; empty if there is none.
pub(super) fn about(event: &v1::Event) -> String {
    job_name(event.job.get(..4).unwrap_or_default())
}
