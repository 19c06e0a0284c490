//! What the screen knows and what is chosen on it. Pure: inputs and the time come in, wishes go out.

use std::collections::VecDeque;

use super::rate::Point;
use super::rows::{JobRow, WorkerRow, plain};
use super::unit_map::UnitMap;
use crate::cli::job_report::job_name;
use crate::cluster::protocol::v1;

/// Events that are kept for the log: more than any terminal has lines.
const MOST_EVENTS: usize = 512;

/// Points of the history that are kept: more than any terminal has columns.
const MOST_POINTS: usize = 4096;

/// What comes in.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// How the jobs stand; the coordinator is there.
    Status(Box<v1::StatusResponse>),
    Workers(v1::WorkersResponse),
    /// Where a job has its units.
    Map(UnitMap),
    /// How far a job was over time: points after those that came before.
    History {
        job: String,
        points: Vec<Point>,
    },
    /// The coordinator's latest events, after those that came before.
    Events(Vec<v1::Event>),
    /// The coordinator does not answer, and why.
    Lost(String),
    /// What became of an order.
    Ordered(Result<String, String>),
    Key(Key),
    /// The terminal has another size.
    Resized,
}

/// What people press.
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
    /// The end, whatever is on the screen.
    End,
}

/// What the screen wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To be closed.
    End,
    Order(Order),
}

/// What an operator orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// That the job of this name be in this state.
    SetState(String, v1::JobState),
    /// That this worker take nothing more.
    Drain(String),
}

/// A table in which something is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Table {
    #[default]
    Jobs,
    Workers,
}

/// What lies over the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Overlay {
    #[default]
    None,
    Keys,
    /// All about the chosen job; from this line on.
    Report(u16),
    /// A question, and what is ordered if the answer is yes.
    Question(String, Order),
}

/// The last thing that was said to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Well(String),
    Badly(String),
}

/// The screen.
#[derive(Debug)]
pub(super) struct Screen {
    /// The coordinator's.
    pub(super) address: String,
    pub(super) coloured: bool,
    /// In which times are told.
    pub(super) zone: jiff::tz::TimeZone,
    pub(super) build: String,
    /// What is wrong with the coordinator; empty if nothing is.
    pub(super) trouble: String,
    /// Workers heard of in the time of a lease.
    pub(super) at_work: u32,
    pub(super) jobs: Vec<JobRow>,
    pub(super) workers: Vec<WorkerRow>,
    /// Of the job that was chosen when it came.
    map: Option<UnitMap>,
    /// Of which job, and by time.
    history: (String, Vec<Point>),
    /// By number.
    pub(super) events: VecDeque<v1::Event>,
    pub(super) table: Table,
    /// The names of the chosen ones.
    job: Option<String>,
    worker: Option<String>,
    pub(super) overlay: Overlay,
    pub(super) said: Said,
    /// Since when, and why, the coordinator does not answer: ms after the beginning.
    pub(super) lost: Option<(u64, String)>,
    /// The coordinator's clock, in ms since 1970, and when it said so: ms after the beginning.
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
            at_work: 0,
            jobs: Vec::new(),
            workers: Vec::new(),
            map: None,
            history: Default::default(),
            events: VecDeque::new(),
            table: Table::Jobs,
            job: None,
            worker: None,
            overlay: Overlay::None,
            said: Said::Nothing,
            lost: None,
            clock: (0, 0),
        }
    }

    /// Takes an input that came `at_ms` after the beginning.
    pub(super) fn update(&mut self, input: Input, at_ms: u64) -> Option<Wish> {
        match input {
            Input::Status(status) => self.take_status(*status, at_ms),
            Input::Workers(answer) => {
                self.workers = answer.workers.into_iter().map(WorkerRow::new).collect();
                self.workers.sort_by(|a, b| a.name.cmp(&b.name));
                self.choose_what_is_there();
            }
            Input::Map(map) => {
                if self.job.as_ref() == Some(&map.job) {
                    self.map = Some(map);
                }
            }
            Input::History { job, points } => self.take_history(job, points),
            Input::Events(events) => self.take_events(events),
            Input::Lost(why) => {
                let since = self.lost.take().map_or(at_ms, |(since, _)| since);
                self.lost = Some((since, plain(&why)));
            }
            Input::Ordered(Ok(said)) => self.said = Said::Well(plain(&said)),
            Input::Ordered(Err(said)) => self.said = Said::Badly(plain(&said)),
            Input::Key(key) => return self.press(key),
            Input::Resized => {}
        }
        None
    }

    /// The coordinator's time, in ms since 1970, `at_ms` after the beginning.
    pub(super) const fn now_ms(&self, at_ms: u64) -> u64 {
        let (now_ms, said_ms) = self.clock;
        now_ms + at_ms.saturating_sub(said_ms)
    }

    /// The place of the chosen job among them.
    pub(super) fn job_place(&self) -> Option<usize> {
        let name = self.job.as_ref()?;
        self.jobs.iter().position(|job| job.name == *name)
    }

    /// The place of the chosen worker among them.
    pub(super) fn worker_place(&self) -> Option<usize> {
        let name = self.worker.as_ref()?;
        self.workers.iter().position(|worker| worker.name == *name)
    }

    /// The chosen job.
    pub(super) fn job(&self) -> Option<&JobRow> {
        Some(&self.jobs[self.job_place()?])
    }

    /// The name of the chosen job, if it has units.
    pub(super) fn chosen_job(&self) -> Option<&str> {
        self.job().filter(|job| job.shares.is_some()).map(|job| &job.name[..])
    }

    /// Where the chosen job has its units, as far as it is known.
    pub(super) fn map(&self) -> Option<&UnitMap> {
        self.map.as_ref().filter(|map| Some(&map.job) == self.job.as_ref())
    }

    /// How far the chosen job was over time, as far as it is known.
    pub(super) fn history(&self) -> &[Point] {
        if Some(&self.history.0) == self.job.as_ref() { &self.history.1 } else { &[] }
    }

    fn take_status(&mut self, status: v1::StatusResponse, at_ms: u64) {
        let now_ms = status.now_ms;
        self.clock = (now_ms, at_ms);
        self.lost = None;
        self.build = plain(&status.build);
        self.trouble = plain(&status.trouble);
        self.at_work = status.workers;
        let age = |job: &v1::JobStatus| job.submitted_ms;
        let counts = status.jobs.into_iter().map(|job| (age(&job), JobRow::of_count(job, now_ms)));
        let proofs = status
            .proofs
            .into_iter()
            .map(|proof| (proof.submitted_ms, JobRow::of_proof(proof, now_ms)));
        let mut jobs: Vec<(u64, JobRow)> = counts.chain(proofs).collect();
        // What goes on first, then the newest.
        let rank = |job: &JobRow| match job.state {
            "running" | "disputed" => 0,
            "paused" => 1,
            _ => 2,
        };
        jobs.sort_by(|(a_ms, a), (b_ms, b)| {
            (rank(a), b_ms, &a.name).cmp(&(rank(b), a_ms, &b.name))
        });
        self.jobs = jobs.into_iter().map(|(_, job)| job).collect();
        self.choose_what_is_there();
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
            // Every second one, and the last.
            let last = known.len() - 1;
            let mut place = 0..;
            known.retain(|_| place.next().is_some_and(|place| place % 2 == 0 || place == last));
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

    /// Whoever is chosen is there; the first if that one is gone.
    fn choose_what_is_there(&mut self) {
        if self.job_place().is_none() {
            self.job = self.jobs.first().map(|job| job.name.clone());
        }
        if self.worker_place().is_none() {
            self.worker = self.workers.first().map(|worker| worker.name.clone());
        }
    }

    fn press(&mut self, key: Key) -> Option<Wish> {
        if key == Key::End {
            return Some(Wish::End);
        }
        match (std::mem::take(&mut self.overlay), key) {
            (Overlay::Question(_, order), Key::Letter('y' | 'Y')) => {
                return Some(Wish::Order(order));
            }
            // Whatever is not a yes is a no.
            (Overlay::Question(..), _) => self.said = Said::Well("nothing was changed".to_owned()),
            (Overlay::Report(line), Key::Down) => {
                self.overlay = Overlay::Report(line.saturating_add(1))
            }
            (Overlay::Report(line), Key::Up) => {
                self.overlay = Overlay::Report(line.saturating_sub(1))
            }
            (Overlay::Keys | Overlay::Report(_), Key::Letter('q')) => return Some(Wish::End),
            (Overlay::Keys | Overlay::Report(_), _) => {}
            (Overlay::None, key) => return self.press_on_tables(key),
        }
        None
    }

    fn press_on_tables(&mut self, key: Key) -> Option<Wish> {
        self.said = Said::Nothing;
        match key {
            Key::Letter('q') => return Some(Wish::End),
            Key::Letter('?' | 'h') => self.overlay = Overlay::Keys,
            Key::Enter if self.job.is_some() => self.overlay = Overlay::Report(0),
            Key::OtherTable => {
                self.table = match self.table {
                    Table::Jobs => Table::Workers,
                    Table::Workers => Table::Jobs,
                };
            }
            Key::Up | Key::Letter('k') => self.choose(|place, _| place.saturating_sub(1)),
            Key::Down | Key::Letter('j') => self.choose(|place, last| (place + 1).min(last)),
            Key::First => self.choose(|_, _| 0),
            Key::Last => self.choose(|_, last| last),
            Key::Letter(letter @ ('p' | 'r' | 'c')) => return self.order_job(letter),
            Key::Letter('d') => self.ask_to_drain(),
            Key::Letter(_) | Key::Escape | Key::Enter | Key::End => {}
        }
        None
    }

    /// Chooses the one at the place that `to` makes of the present place and the last one.
    fn choose(&mut self, to: impl Fn(usize, usize) -> usize) {
        match self.table {
            Table::Jobs => {
                let Some(place) = self.job_place() else { return };
                let place = to(place, self.jobs.len() - 1);
                self.job = Some(self.jobs[place].name.clone());
            }
            Table::Workers => {
                let Some(place) = self.worker_place() else { return };
                let place = to(place, self.workers.len() - 1);
                self.worker = Some(self.workers[place].name.clone());
            }
        }
    }

    fn order_job(&mut self, letter: char) -> Option<Wish> {
        let Some(job) = self.job() else {
            self.said = Said::Badly("there is no job".to_owned());
            return None;
        };
        let (name, called) = (job.name.clone(), job.called());
        // What is finished stays so; what is cancelled can be resumed, and nothing else.
        if job.state == "finished" || (job.state == "cancelled" && letter != 'r') {
            self.said = Said::Badly(format!("job {called} is {}", job.state));
            return None;
        }
        match letter {
            'p' => Some(Wish::Order(Order::SetState(name, v1::JobState::Paused))),
            'r' => Some(Wish::Order(Order::SetState(name, v1::JobState::Running))),
            _ => {
                let order = Order::SetState(name, v1::JobState::Cancelled);
                self.overlay = Overlay::Question(format!("Cancel job {called}?"), order);
                None
            }
        }
    }

    fn ask_to_drain(&mut self) {
        match &self.worker {
            None => self.said = Said::Badly("there is no worker".to_owned()),
            Some(worker) => {
                let question = format!("Drain {worker}? It gets nothing more until it restarts.");
                self.overlay = Overlay::Question(question, Order::Drain(worker.clone()));
            }
        }
    }
}

/// The name of the job that an event is about, as far as it is told.
pub(super) fn about(event: &v1::Event) -> String {
    job_name(event.job.get(..4).unwrap_or_default())
}
