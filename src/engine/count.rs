//! Counts a job: workers take units from a queue, the caller's thread keeps the books.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::estimate::{Forecast, forecast};
use super::progress::Progress;
use crate::board::{Piece, Problem};
use crate::kernel::{KernelError, KernelKind, count_range};
use crate::ledger::{BookError, Damage, FinishedUnit, RunFile, RunFileError, UnitBook};
use crate::preplacement::{Decomposition, Job, JobError};
use crate::tally::TallyError;

/// How to count.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountOptions {
    /// The kernel; `None` for the fastest one here.
    pub kernel: Option<KernelKind>,
    /// Threads; `None` for one a core.
    pub threads: Option<NonZeroUsize>,
}

/// A finished count.
#[derive(Clone, Debug)]
pub struct CountOutcome {
    /// The number of solutions (of completions, if squares were decided).
    pub solutions: u128,
    /// Placements that the kernel made; `None` if it does not count them.
    pub nodes: Option<u128>,
    /// The kernel.
    pub kernel: KernelKind,
    /// Threads that counted.
    pub threads: usize,
    /// Units of the job.
    pub units: u64,
    /// Units that an earlier session had finished.
    pub resumed_units: u64,
    /// What this session took, wall clock.
    pub elapsed: Duration,
    /// Solutions a second in this session.
    pub rate_per_s: f64,
}

/// Why there is no count.
#[derive(Debug, thiserror::Error)]
pub enum CountError {
    /// The problem is too large.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The kernel cannot count it here.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The run file cannot be used.
    #[error(transparent)]
    RunFile(#[from] RunFileError),
    /// A unit's result is not to be believed.
    #[error("unit {unit}: {source}")]
    Unit {
        /// Its index.
        unit: u64,
        /// What is wrong.
        source: TallyError,
    },
    /// The books do not balance.
    #[error(transparent)]
    Book(#[from] BookError),
    /// The total is not to be believed.
    #[error("the total: {0}")]
    Total(#[from] TallyError),
    /// A worker thread ended before its work; its own message stands above.
    #[error("a counting thread failed; nothing it counted was believed")]
    WorkerLost,
    /// The watcher asked to stop.
    #[error("stopped after {units_done} of {units} units")]
    Stopped {
        /// Units finished by then.
        units_done: u64,
        /// Units of the job.
        units: u64,
    },
}

/// Counts `problem`.
///
/// # Errors
/// The board is too large, the kernel cannot count it here, or a check of the result fails.
pub fn count(problem: &Problem, options: &CountOptions) -> Result<CountOutcome, CountError> {
    CountTask::plan(problem, options)?.run(|_| ControlFlow::Continue(()))
}

/// A job, planned and ready to be counted.
#[derive(Debug)]
pub struct CountTask {
    decomposition: Arc<Decomposition>,
    kernel: KernelKind,
    threads: NonZeroUsize,
    forecast: Option<Forecast>,
    books: Books,
}

/// Where finished units are kept.
#[derive(Debug)]
enum Books {
    InMemory(UnitBook),
    OnDisk(RunFile),
}

impl Books {
    fn book(&self) -> &UnitBook {
        match self {
            Self::InMemory(book) => book,
            Self::OnDisk(file) => file.book(),
        }
    }

    /// Keeps finished units; on disk, if that is where the books are, before they are believed.
    fn keep(&mut self, units: &[FinishedUnit]) -> Result<(), CountError> {
        match self {
            Self::InMemory(book) => units.iter().try_for_each(|f| book.enter(f.unit, &f.tally).map(drop))?,
            Self::OnDisk(file) => file.append(units)?,
        }
        Ok(())
    }
}

impl CountTask {
    /// Cuts `problem` into units for this machine.
    ///
    /// # Errors
    /// The board is too large, or the kernel cannot count it here.
    pub fn plan(problem: &Problem, options: &CountOptions) -> Result<Self, CountError> {
        let (job, kernel) = job(problem, options)?;
        let decomposition = Decomposition::new(job);
        let forecast = forecast_if_long(&decomposition, kernel);
        let units = match &forecast {
            Some(forecast) => {
                units_for(forecast.nodes(0..decomposition.prefixes()), kernel, threads(options))
            }
            None => FEWEST_UNITS,
        };
        let size = decomposition.prefixes().div_ceil(units);
        let decomposition = decomposition.with_unit_prefixes(size);
        let books = Books::InMemory(UnitBook::new(decomposition.units()));
        let decomposition = Arc::new(decomposition);
        Ok(Self { decomposition, kernel, threads: threads(options), forecast, books })
    }

    /// The same, with finished units kept in the run file at `path`, and those already in it not counted
    /// again. The units are those of the file if there is one, so that another machine may go on with it.
    ///
    /// # Errors
    /// As for [`Self::plan`]; the file belongs to another job, is damaged or in use, or cannot be written.
    pub fn resume(problem: &Problem, options: &CountOptions, path: &Path) -> Result<Self, CountError> {
        let (job, kernel) = job(problem, options)?;
        let mut run_file = RunFile::open(path)?;
        let Some(kept) = run_file.job().cloned() else {
            let mut task = Self::plan(problem, options)?;
            run_file.begin(task.decomposition.job(), task.decomposition.units())?;
            task.books = Books::OnDisk(run_file);
            return Ok(task);
        };
        if kept.problem() != problem || kept.scheme() != job.scheme() {
            let (found, wanted) = (kept.to_string(), job.to_string());
            return Err(RunFileError::AnotherJob { path: path.to_owned(), found, wanted }.into());
        }
        let decomposition = Arc::new(Decomposition::new(kept));
        let (found, units) = (run_file.book().units(), decomposition.units());
        if found != units {
            let damage = Damage::Unknown(format!("{found} units, where the job has {units}"));
            return Err(RunFileError::Damaged { path: path.to_owned(), line: 1, damage }.into());
        }
        let forecast = forecast_if_long(&decomposition, kernel);
        let books = Books::OnDisk(run_file);
        Ok(Self { decomposition, kernel, threads: threads(options), forecast, books })
    }

    /// Units that are finished already, and bytes of a torn last line that were dropped from the run file.
    pub fn resumed(&self) -> (u64, usize) {
        let torn_bytes = match &self.books {
            Books::InMemory(_) => 0,
            Books::OnDisk(file) => file.torn_bytes(),
        };
        (self.book().done(), torn_bytes)
    }

    fn book(&self) -> &UnitBook {
        self.books.book()
    }

    /// The plan.
    pub fn decomposition(&self) -> &Decomposition {
        &self.decomposition
    }

    /// Counts what is not finished yet. `watch` is told of the progress after each finished unit and at least
    /// ten times a second; if it breaks off, the count stops at once and what the workers have in hand is lost.
    ///
    /// # Errors
    /// A check of a result fails, the run file cannot be written, or `watch` broke off.
    pub fn run(
        mut self,
        mut watch: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<CountOutcome, CountError> {
        const TICK: Duration = Duration::from_millis(100);
        let began = Instant::now();
        let resumed_units = self.book().done();
        let before = *self.book().so_far();
        let mut finished_nodes = self.finished_nodes();
        let fraction_before = self.fraction(finished_nodes);
        let workers = Workers::start(&self);
        while self.book().done() < self.book().units() {
            let batch = match workers.results.recv_timeout(TICK) {
                // Together with all that came meanwhile: the disk is asked once.
                Ok(first) => std::iter::once(first)
                    .chain(workers.results.try_iter())
                    .collect::<Result<Vec<FinishedUnit>, CountError>>()?,
                Err(mpsc::RecvTimeoutError::Timeout) => Vec::new(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(CountError::WorkerLost),
            };
            self.books.keep(&batch)?;
            finished_nodes += batch.iter().map(|f| self.forecast_of(f.unit)).sum::<f64>();
            let fraction = self.fraction(finished_nodes);
            let progress = self.progress(began.elapsed(), before.thirds(), fraction_before, fraction);
            if watch(&progress).is_break() {
                return Err(CountError::Stopped {
                    units_done: self.book().done(),
                    units: self.book().units(),
                });
            }
        }
        let elapsed = began.elapsed();
        let total = self.book().total()?;
        let in_session = total.thirds() - before.thirds();
        Ok(CountOutcome {
            solutions: total.solutions()?,
            nodes: self.kernel.counts_nodes().then(|| total.nodes()),
            kernel: self.kernel,
            threads: workers.threads,
            units: self.book().units(),
            resumed_units,
            elapsed,
            rate_per_s: in_session as f64 / 3.0 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
        })
    }

    fn progress(&self, elapsed: Duration, before: u128, fraction_before: f64, fraction: f64) -> Progress {
        let measured = Progress::time_left(fraction_before, fraction, elapsed);
        let predicted = || {
            let nodes = self.forecast.as_ref()?.nodes(0..self.decomposition.prefixes());
            let rate = usual_nodes_per_s(self.kernel) * self.threads.get() as f64;
            Duration::try_from_secs_f64(nodes * (1.0 - fraction) / rate).ok()
        };
        let in_session = self.book().so_far().thirds() - before;
        Progress {
            units_done: self.book().done(),
            units: self.book().units(),
            fraction,
            solutions: self.book().so_far().thirds() / 3,
            elapsed,
            rate_per_s: (in_session > 0).then(|| in_session as f64 / 3.0 / elapsed.as_secs_f64()),
            left: measured.or_else(predicted),
        }
    }

    /// Nodes forecast for a unit; every unit the same where there is no forecast.
    fn forecast_of(&self, unit: u64) -> f64 {
        self.forecast.as_ref().map_or(1.0, |f| f.nodes(self.decomposition.unit(unit)))
    }

    fn finished_nodes(&self) -> f64 {
        (0..self.book().units())
            .filter(|&unit| self.book().has(unit))
            .map(|unit| self.forecast_of(unit))
            // The sum of no floats would be −0.
            .fold(0.0, |sum, nodes| sum + nodes)
    }

    fn fraction(&self, finished_nodes: f64) -> f64 {
        let all = match &self.forecast {
            Some(forecast) => forecast.nodes(0..self.decomposition.prefixes()),
            None => self.book().units() as f64,
        };
        if all > 0.0 { (finished_nodes / all).min(1.0) } else { 1.0 }
    }
}

/// The job with units of one prefix, and the kernel that is to count it.
fn job(problem: &Problem, options: &CountOptions) -> Result<(Job, KernelKind), CountError> {
    let kernel = options.kernel.unwrap_or_else(|| KernelKind::fastest(problem.piece()));
    kernel.build(problem.piece())?;
    Ok((Job::new(problem.clone(), kernel.scheme(problem), None, 1)?, kernel))
}

/// The fewest units that a job is cut into, if it has as many prefixes: enough for some dozens of threads.
const FEWEST_UNITS: u64 = 64;
/// The most: a run file of some megabytes.
const MOST_UNITS: u64 = 1 << 16;

/// Nodes (placements without look-ahead) that one thread makes a second, roughly: it sizes units, and predicts
/// the time left until there is a measurement. Measured at n = 16 and 17 on a 3 GHz server core.
const fn usual_nodes_per_s(kernel: KernelKind) -> f64 {
    match kernel {
        KernelKind::Avx512 => 3e9,
        KernelKind::Avx2 => 1.2e9,
        KernelKind::Scalar => 1.5e8,
        KernelKind::Textbook => 1.5e8,
        KernelKind::Generic => 8e7,
        KernelKind::Reference => 3e6,
    }
}

/// Into how many units to cut a job with so many nodes: one takes a second, or more in very long jobs, and less
/// where many threads would otherwise wait for the last ones.
fn units_for(nodes: f64, kernel: KernelKind, threads: NonZeroUsize) -> u64 {
    const UNITS_PER_THREAD: u64 = 16;
    // The cast saturates.
    let a_second_each = (nodes / usual_nodes_per_s(kernel)) as u64;
    a_second_each.max(threads.get() as u64 * UNITS_PER_THREAD).clamp(FEWEST_UNITS, MOST_UNITS)
}

/// The forecast of a queens job, if it is long enough that some milliseconds for it do not matter.
fn forecast_if_long(decomposition: &Decomposition, kernel: KernelKind) -> Option<Forecast> {
    const STARTS: u64 = 4096;
    const DIVES: u32 = 4;
    /// Any constant will do: the same job gets the same units.
    const SEED: u64 = 2026;
    let problem = decomposition.job().problem();
    let shortest = match kernel {
        KernelKind::Avx512 | KernelKind::Avx2 => 18,
        KernelKind::Scalar | KernelKind::Textbook => 15,
        KernelKind::Generic | KernelKind::Reference => 10,
    };
    (problem.piece() == Piece::Queen && problem.n() >= shortest)
        .then(|| forecast(decomposition, STARTS, DIVES, SEED))
}

/// One thread a core unless the options say otherwise.
fn threads(options: &CountOptions) -> NonZeroUsize {
    options.threads.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}

/// Threads that take units from a common queue and send their results. They end when the queue is empty, or
/// after the unit in hand once this is dropped.
struct Workers {
    results: mpsc::Receiver<Result<FinishedUnit, CountError>>,
    threads: usize,
    stop: Arc<AtomicBool>,
}

impl Workers {
    fn start(task: &CountTask) -> Self {
        let open: Arc<[u64]> = task.book().missing().collect();
        let next = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, results) = mpsc::channel();
        let wanted = task.threads.get().min(open.len().max(1));
        let mut threads = 0;
        while threads < wanted {
            let worker = Worker {
                decomposition: Arc::clone(&task.decomposition),
                kernel: task.kernel,
                open: Arc::clone(&open),
                next: Arc::clone(&next),
                stop: Arc::clone(&stop),
                sender: sender.clone(),
            };
            // Where the system gives no more threads, those that run do the work.
            if std::thread::Builder::new().spawn(move || worker.work()).is_err() {
                break;
            }
            threads += 1;
        }
        Self { results, threads, stop }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Worker {
    decomposition: Arc<Decomposition>,
    kernel: KernelKind,
    open: Arc<[u64]>,
    next: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    sender: mpsc::Sender<Result<FinishedUnit, CountError>>,
}

impl Worker {
    /// Counts units until there are none, or nobody wants them.
    fn work(self) {
        let mut kernel = match self.kernel.build(self.decomposition.job().problem().piece()) {
            Ok(kernel) => kernel,
            // A receiver that is gone needs no message, here and below.
            Err(error) => return self.sender.send(Err(error.into())).unwrap_or(()),
        };
        while !self.stop.load(Ordering::Relaxed) {
            let Some(&unit) = self.open.get(self.next.fetch_add(1, Ordering::Relaxed)) else { return };
            let began = Instant::now();
            let result = count_range(&mut *kernel, &self.decomposition, self.decomposition.unit(unit));
            let finished = result.map(|tally| FinishedUnit {
                unit,
                tally,
                elapsed_s: began.elapsed().as_secs_f64(),
                kernel: self.kernel.name().to_owned(),
            });
            let failed = finished.is_err();
            let sent = self.sender.send(finished.map_err(|source| CountError::Unit { unit, source }));
            // A kernel that failed may hold back work of the unit: it counts nothing more.
            if failed || sent.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_counts_the_known_boards_on_any_number_of_threads() {
        let known = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680];
        for kernel in KernelKind::ALL.into_iter().filter(|kind| kind.runs_here()) {
            for threads in [1, 3] {
                let options = CountOptions { kernel: Some(kernel), threads: NonZeroUsize::new(threads) };
                for (n, solutions) in known.into_iter().enumerate() {
                    let outcome = count(&Problem::empty(Piece::Queen, n), &options).expect("counts");
                    assert_eq!(outcome.solutions, solutions, "{kernel}, n = {n}");
                }
            }
        }
    }

    #[test]
    fn a_watcher_that_breaks_off_stops_the_count() {
        let task = CountTask::plan(&Problem::empty(Piece::Queen, 14), &CountOptions::default());
        let outcome = task.expect("plans").run(|_| ControlFlow::Break(()));
        assert!(matches!(outcome, Err(CountError::Stopped { .. })));
    }

    #[test]
    fn progress_goes_from_nothing_to_everything() {
        let options = CountOptions { kernel: Some(KernelKind::Scalar), threads: None };
        let task = CountTask::plan(&Problem::empty(Piece::Queen, 15), &options).expect("plans");
        assert!(task.forecast.is_some());
        let mut fractions = Vec::new();
        let outcome = task.run(|progress| {
            fractions.push(progress.fraction);
            ControlFlow::Continue(())
        });
        assert_eq!(outcome.expect("counts").solutions, 2_279_184);
        assert!(fractions.is_sorted(), "{fractions:?}");
        assert!(fractions.last().is_some_and(|last| *last > 0.999_999));
    }
}
