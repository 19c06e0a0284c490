//! The first solution by completion queries.
//!
//! The greedy prefix takes the first free column of each row. Whatever part of it has a completion is part of the first
//! solution, so its longest such part is found by bisection. From there row by row: each free column from the left is
//! asked about, until one has a completion. That completion is kept: as long as the rows agree with it, the columns in
//! front of it alone are to be asked about.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::query::{Outcome, ask};
use super::width::{Narrow, Wide, Width};
use super::{Control, LARGEST, Task};
use crate::optimise::watch::{Progress, Watch};
use crate::proof::first::{Line, Refutation};

/// Prefixes that are refuted, and how.
pub type Refutations = BTreeMap<Vec<usize>, Refutation>;

/// What a run is given.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Queries that are answered at a time; 0 is taken for 1.
    pub threads: usize,
    /// What is refuted already, by an earlier run.
    pub refuted: Refutations,
}

/// What a run comes to.
#[derive(Clone, Debug)]
pub struct Found {
    /// The first solution, or the earliest that came by if the run was stopped: the 0-based column of each row.
    pub solution: Option<Vec<usize>>,
    /// Whether the run went to its end: what was found is the first solution, or there is none.
    pub finished: bool,
    /// What was refuted.
    pub refuted: Refutations,
    /// Nodes of all searches.
    pub nodes: u64,
    /// Linear programmes that were solved.
    pub programmes: u64,
}

impl Found {
    /// The refutations in the order of a certificate.
    pub fn refutations(&self, n: usize) -> Vec<Refutation> {
        match &self.solution {
            Some(columns) => {
                let needed = |prefix: &Vec<usize>| {
                    let (last, above) = prefix.split_last().unwrap_or((&0, &[]));
                    columns.starts_with(above) && columns.get(above.len()).is_some_and(|column| last < column)
                };
                let mut needed: Vec<_> = self.refuted.iter().filter(|(prefix, _)| needed(prefix)).collect();
                needed.sort_by_key(|(prefix, _)| prefix.len());
                needed.into_iter().map(|(_, refutation)| refutation.clone()).collect()
            }
            None => {
                let roots = self.refuted.iter().filter(|(prefix, _)| prefix.len() == 1);
                let children: Vec<_> = roots.map(|(prefix, tree)| (prefix[0], tree.clone())).collect();
                vec![Refutation::branch(n, Line::Row(0), &children)]
            }
        }
    }
}

/// The first solution on the empty board of size `n`. `keep` is told whenever a prefix is refuted.
///
/// # Panics
/// If n is larger than [`LARGEST`].
pub fn first(n: usize, options: Options, watch: &mut dyn Watch, keep: &mut dyn FnMut(&Refutations)) -> Found {
    assert!(n <= LARGEST);
    let mut run = Run {
        n,
        ask: if n <= Narrow::LARGEST { ask::<Narrow> } else { ask::<Wide> },
        threads: options.threads.max(1),
        refuted: options.refuted,
        witness: (n == 0).then(Vec::new),
        control: Control::default(),
        watch,
        keep,
    };
    let finished = run.run().is_continue();
    let (nodes, programmes) = (run.control.nodes(), run.control.programmes());
    Found { solution: run.witness, finished, refuted: run.refuted, nodes, programmes }
}

/// Answers a query: board size, prefix, programmes at most.
type Ask = fn(usize, &[usize], u64, Task<'_>) -> Outcome;

struct Run<'a> {
    n: usize,
    ask: Ask,
    threads: usize,
    refuted: Refutations,
    /// The earliest solution that is known. It begins with the rows that are decided.
    witness: Option<Vec<usize>>,
    control: Control,
    watch: &'a mut dyn Watch,
    keep: &'a mut dyn FnMut(&Refutations),
}

/// Programmes that a part of the greedy prefix is worth.
const FOR_GREEDY: u64 = 60;

impl Run<'_> {
    /// Breaks if the run was stopped.
    fn run(&mut self) -> ControlFlow<()> {
        let greedy = greedy(self.n);
        let mut decided = self.longest(&greedy)?;
        while decided < self.n {
            let above = match &self.witness {
                Some(columns) => columns[..decided].to_vec(),
                None => Vec::new(),
            };
            let end = self.witness.as_ref().map_or(self.n, |columns| columns[decided]);
            let candidates: Vec<Vec<usize>> = (0..end)
                .filter(|&column| is_free(&above, column))
                .map(|column| above.iter().copied().chain([column]).collect())
                .collect();
            self.first_completable(&candidates, u64::MAX, decided)?;
            if self.witness.is_none() {
                break;
            }
            decided += 1;
        }
        ControlFlow::Continue(())
    }

    /// The length of the longest part of the greedy prefix for which a completion is found: it is the witness.
    fn longest(&mut self, greedy: &[usize]) -> ControlFlow<(), usize> {
        let (mut low, mut high) = (0, greedy.len() + 1);
        let mut next = (self.n * 3 / 10).clamp(1, greedy.len().max(1));
        while high - low > 1 {
            self.first_completable(&[greedy[..next].to_vec()], FOR_GREEDY, next)?;
            match &self.witness {
                Some(columns) if columns[..next] == greedy[..next] => {
                    low = columns.iter().zip(greedy).take_while(|(a, b)| a == b).count().min(high - 1);
                }
                _ => high = next,
            }
            next = low.midpoint(high);
        }
        ControlFlow::Continue(low)
    }

    /// Asks about prefixes, the first ones first, until it is known which is the first with a completion; that becomes the
    /// witness. Those before it are refuted, or given up after so many programmes.
    fn first_completable(&mut self, prefixes: &[Vec<usize>], programmes: u64, row: usize) -> ControlFlow<()> {
        let open: Vec<&Vec<usize>> =
            prefixes.iter().filter(|prefix| !self.refuted.contains_key(*prefix)).collect();
        let completed = AtomicUsize::new(usize::MAX);
        let next = AtomicUsize::new(0);
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..self.threads.min(open.len()) {
                let (open, next, completed, sender) = (&open, &next, &completed, sender.clone());
                let (n, ask, control) = (self.n, self.ask, &self.control);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let task = Task { control, number, completed };
                        if number >= open.len() || task.is_stopped() {
                            return;
                        }
                        let outcome = ask(n, open[number], programmes, task);
                        if matches!(outcome, Outcome::Completed(_)) {
                            completed.fetch_min(number, Ordering::Relaxed);
                        }
                        if sender.send((number, outcome)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut earliest = usize::MAX;
            loop {
                match receiver.recv_timeout(LOOK_EVERY) {
                    Ok((number, Outcome::Refuted(refutation))) => {
                        self.refuted.insert(open[number].clone(), refutation);
                        (self.keep)(&self.refuted);
                    }
                    Ok((number, Outcome::Completed(columns))) if number < earliest => {
                        earliest = number;
                        self.witness = Some(columns);
                    }
                    Ok(_) | Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
                let nodes = self.control.nodes();
                if self.watch.look(&Progress { level: row, bound: None, nodes }).is_break() {
                    self.control.stop();
                }
            }
        });
        if self.control.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The watch is asked at least this often.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The first free column of each row, as far as there is one.
fn greedy(n: usize) -> Vec<usize> {
    let mut prefix = Vec::new();
    while prefix.len() < n {
        let Some(column) = (0..n).find(|&column| is_free(&prefix, column)) else { break };
        prefix.push(column);
    }
    prefix
}

/// Whether a queen on the next row attacks none of those above.
fn is_free(above: &[usize], column: usize) -> bool {
    let row = above.len();
    above.iter().enumerate().all(|(r, &c)| c != column && c.abs_diff(column) != row - r)
}
