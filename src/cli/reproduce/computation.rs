//! The computations whose results are compared with published values, by the methods that the other
//! commands use.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use super::super::args::cores;
use super::super::solution_output::refused;
use super::super::terminal::Terminal;
use super::super::{Exit, Failure};
use super::row::{Ours, Values};
use crate::board::{Norm, OccupiedLines, Piece, Placement, PlacementError, Problem};
use crate::engine::{CountError, CountEvent, CountOptions, CountTask, DeviceChoice, DeviceName};
use crate::kernel::symmetric::{classes, point_symmetric, quarter_turn_symmetric};
use crate::solver::beautiful::{Query, most_beautiful_exactly};
use crate::solver::classical::greedy::Greedy;
use crate::solver::classical::trace::{Step, backtracking_steps, partial_solutions};
use crate::solver::classical::{self, AnswerSink, Ending};
use crate::solver::first::{Options, first_solution};
use crate::solver::ilp::cuts::Families;
use crate::solver::ilp::{BEST_SOLVER, FirstMethod, lex_dfs_with_cuts, lexicographic_first};
use crate::solver::{Answer, Progress, ProgressSink as _};

/// A computation on a board of size n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Computation {
    /// The number of solutions, by the engine.
    Total(Piece),
    /// The number of fundamental solutions, by the engine and a search for the symmetric ones.
    Fundamental(Piece),
    /// The number of solutions that a half turn leaves unchanged.
    HalfTurn,
    /// The number of solutions that a quarter turn leaves unchanged.
    QuarterTurn,
    /// The first solution.
    First(FirstMethod),
    /// The first solution, by `lex-dfs` with the cuts of Fischetti and Salvagnin.
    FirstWithCuts,
    /// The smallest fingerprint.
    Fingerprint,
    /// The number of solutions, by a classical method that lists them.
    Listed(classical::Method),
    /// The number of configurations that brute force tries.
    Configurations,
    /// The number of permutations: of placements of rooks, listed by backtracking.
    Permutations,
    /// The number of those of the permutations that are solutions.
    SolutionsOfPermutations,
    /// For each column, the number of listed solutions with the queen of row 1 in it.
    ByFirstRow,
    /// The number of partial solutions of k columns, for k from 0 to n.
    Profile,
    /// The number of queens that backtracking places, attacked ones included, until it finds a
    /// solution.
    Tentative,
    /// The columns of the first n greedy queens.
    Greedy,
}

/// The end of a computation without a result.
#[derive(Debug)]
pub(super) enum Abort {
    /// Ctrl-C was pressed.
    Interrupted,
    Failed(Failure),
}

impl From<Failure> for Abort {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<CountError> for Abort {
    fn from(error: CountError) -> Self {
        match error {
            CountError::Stopped { .. } => Self::Interrupted,
            error => Self::Failed(error.into()),
        }
    }
}

impl Computation {
    /// Returns the method for the table: the flags of the command that makes the same computation.
    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Total(_) => "count",
            Self::Fundamental(_) | Self::HalfTurn | Self::QuarterTurn => "count --classes",
            Self::First(method) => method.name(),
            Self::FirstWithCuts => "lex-dfs --cliques --odd-cycles",
            Self::Fingerprint => "exact",
            Self::Listed(method) => method.name(),
            Self::Configurations => "brute-force",
            Self::Permutations | Self::SolutionsOfPermutations | Self::ByFirstRow => "backtracking",
            Self::Profile => "columns --trace",
            Self::Tentative => "backtracking --trace",
            Self::Greedy => "greedy",
        }
    }

    /// Runs the computation. Every solution is checked.
    pub(super) fn run(
        self,
        n: usize,
        threads: Option<NonZeroUsize>,
        terminal: &mut Terminal,
    ) -> Result<Ours, Abort> {
        let cores = threads.map_or_else(cores, usize::from);
        let values = match self {
            Self::Total(piece) => vec![total(piece, n, threads, terminal)?],
            Self::Fundamental(piece) => {
                let total = total(piece, n, threads, terminal)?;
                let classes = classes(piece, n, total)
                    .map_err(|error| Failure::new(Exit::CheckFailed, error))?;
                vec![classes.fundamental]
            }
            Self::HalfTurn => vec![point_symmetric(Piece::Queen, n).into()],
            Self::QuarterTurn => vec![quarter_turn_symmetric(Piece::Queen, n).into()],
            Self::First(_) | Self::FirstWithCuts | Self::Fingerprint => {
                return optimum(self, n, cores, terminal);
            }
            Self::Listed(method) => vec![list(method, Piece::Queen, n, terminal)?.answers],
            Self::Configurations => {
                vec![list(classical::Method::BruteForce, Piece::Queen, n, terminal)?.tried]
            }
            Self::Permutations => vec![rooks(n, terminal)?.answers],
            Self::SolutionsOfPermutations => vec![rooks(n, terminal)?.of_queens],
            Self::ByFirstRow => {
                list(classical::Method::Backtracking, Piece::Queen, n, terminal)?.by_first_row
            }
            Self::Profile => profile(n, terminal)?,
            Self::Tentative => vec![tentative(n, terminal)?],
            Self::Greedy => greedy(n)?,
        };
        Ok(Ours::Computed(Values(values)))
    }
}

fn total(
    piece: Piece,
    n: usize,
    threads: Option<NonZeroUsize>,
    terminal: &mut Terminal,
) -> Result<u128, Abort> {
    let devices = DeviceChoice::These(vec![DeviceName::Cpu]);
    let options = CountOptions { threads, devices, ..CountOptions::default() };
    let task = CountTask::plan(&Problem::empty(piece, n), &options)?;
    let outcome = task.run(|event| match event {
        CountEvent::Progress(_) => terminal.report(&Progress::default()),
        CountEvent::Note(_) => ControlFlow::Continue(()),
    })?;
    Ok(outcome.solutions)
}

/// Finds a first or a most beautiful solution.
fn optimum(
    computation: Computation,
    n: usize,
    threads: usize,
    terminal: &mut Terminal,
) -> Result<Ours, Abort> {
    let answer: Answer<Vec<usize>> = match computation {
        Computation::First(FirstMethod::Exact) => {
            let options = Options { threads, ..Options::default() };
            first_solution(n, options, terminal, &mut |_| {}).into()
        }
        Computation::First(method) => lexicographic_first(n, method, BEST_SOLVER, terminal)
            .map_err(|error| Failure::usage(error.to_string()))?,
        Computation::FirstWithCuts => {
            let families = Families { cliques: true, odd_cycles: true, ..Families::default() };
            lex_dfs_with_cuts(n, families, BEST_SOLVER, terminal).0
        }
        _ => {
            let query = Query { n, norm: Norm::Euclidean, turning: false, threads };
            most_beautiful_exactly(query, terminal).answer
        }
    };
    if !answer.is_proven() && terminal.is_interrupted() {
        return Err(Abort::Interrupted);
    }
    if let Some(columns) = &answer.found {
        Placement::check_solution(&Problem::empty(Piece::Queen, n), columns)
            .map_err(|error| refused(computation.method(), &error))?;
    }
    let is_proven = answer.is_proven();
    let values = |columns: Vec<usize>| -> Vec<u128> {
        match computation {
            Computation::Fingerprint => {
                Norm::Euclidean.fingerprint(&columns).into_iter().map(u128::from).collect()
            }
            _ => columns.into_iter().map(|column| column as u128 + 1).collect(),
        }
    };
    let found = answer.found.map(|columns| Values(values(columns)));
    Ok(match (is_proven, found) {
        (true, Some(values)) => Ours::Computed(values),
        // OEIS A141843 has zeros where there is no solution.
        (true, None) => Ours::Computed(Values(vec![0; n])),
        (false, found) => Ours::Unproven(found),
    })
}

/// The numbers of a list of placements.
struct Listing<'a> {
    terminal: &'a mut Terminal,
    problem: Problem,
    queens: Problem,
    answers: u128,
    /// The answers that are solutions for queens.
    of_queens: u128,
    /// The answers, by the column in row 1.
    by_first_row: Vec<u128>,
    tried: u128,
    error: Option<PlacementError>,
}

impl AnswerSink for Listing<'_> {
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
        if let Err(error) = Placement::check_solution(&self.problem, columns) {
            self.error = Some(error);
            return ControlFlow::Break(());
        }
        self.answers += 1;
        self.of_queens += u128::from(Placement::check_solution(&self.queens, columns).is_ok());
        if let Some(answers) = columns.first().and_then(|col| self.by_first_row.get_mut(*col)) {
            *answers += 1;
        }
        ControlFlow::Continue(())
    }

    fn report(&mut self, tried: u64) -> ControlFlow<()> {
        self.terminal.report(&Progress { nodes: tried, ..Progress::default() })
    }
}

/// Lists all placements of n pieces by a classical method.
fn list(
    method: classical::Method,
    piece: Piece,
    n: usize,
    terminal: &mut Terminal,
) -> Result<Listing<'_>, Abort> {
    let problem = Problem::empty(piece, n);
    let mut listing = Listing {
        terminal,
        problem: problem.clone(),
        queens: Problem::empty(Piece::Queen, n),
        answers: 0,
        of_queens: 0,
        by_first_row: vec![0; n],
        tried: 0,
        error: None,
    };
    let outcome = method.run(&problem, &mut listing).map_err(Failure::usage)?;
    match &listing.error {
        Some(error) => return Err(refused(method.name(), error).into()),
        None if outcome.ending != Ending::Exhausted => return Err(Abort::Interrupted),
        None => listing.tried = outcome.tried.into(),
    }
    Ok(listing)
}

fn rooks(n: usize, terminal: &mut Terminal) -> Result<Listing<'_>, Abort> {
    list(classical::Method::Backtracking, Piece::Rook, n, terminal)
}

/// Reports the progress of a trace to the terminal from time to time.
struct Reporter<'a> {
    terminal: &'a mut Terminal,
    steps: u64,
}

impl Reporter<'_> {
    fn step(&mut self) -> ControlFlow<()> {
        const STEPS_PER_REPORT: u64 = 1 << 12;
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_PER_REPORT) {
            self.terminal.report(&Progress { nodes: self.steps, ..Progress::default() })
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn profile(n: usize, terminal: &mut Terminal) -> Result<Vec<u128>, Abort> {
    let mut reporter = Reporter { terminal, steps: 0 };
    let mut counts = vec![0; n + 1];
    let flow = partial_solutions(&Problem::empty(Piece::Queen, n), &mut |pieces| {
        counts[pieces.len()] += 1;
        reporter.step()
    });
    if flow.is_break() { Err(Abort::Interrupted) } else { Ok(counts) }
}

fn tentative(n: usize, terminal: &mut Terminal) -> Result<u128, Abort> {
    let mut reporter = Reporter { terminal, steps: 0 };
    let (mut placed, mut solved) = (0, false);
    let flow = backtracking_steps(&Problem::empty(Piece::Queen, n), &mut |step, _| {
        match step {
            Step::Place(_) | Step::Conflict(..) => placed += 1,
            Step::Solution => {
                solved = true;
                return ControlFlow::Break(());
            }
            Step::Backtrack { .. } => {}
        }
        reporter.step()
    });
    if flow.is_break() && !solved { Err(Abort::Interrupted) } else { Ok(placed) }
}

fn greedy(n: usize) -> Result<Vec<u128>, Failure> {
    // An infinite board has no edges to join.
    let mut lines = OccupiedLines::new(Piece::Queen, usize::MAX);
    let mut columns = Vec::with_capacity(n);
    for queen in Greedy::default().take(n) {
        if !lines.add(queen) {
            let message = format!(
                "internal error: the greedy queen on {queen} is attacked; please report this"
            );
            return Err(Failure::new(Exit::CheckFailed, message));
        }
        columns.push(queen.col as u128 + 1);
    }
    Ok(columns)
}
