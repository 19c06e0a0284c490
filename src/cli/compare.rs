//! `nqueens compare`.

mod summary;

use std::ops::ControlFlow;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

use self::summary::{MethodSummary, chart_of, summaries};
use super::args::{Sizes, cores};
use super::chart::{PNG_HELP, SVG_HELP, write_chart};
use super::first::board_size;
use super::interrupt::Interrupt;
use super::picture_args::PictureArgs;
use super::solution_output::{columns_from_one, spaced};
use super::solver::SolverChoice;
use super::terminal::{Terminal, time_limit};
use super::{Exit, Failure, print_report};
use crate::board::{Norm, Piece, Placement, Problem};
use crate::report::{duration, grouped};
use crate::solver::beautiful::{self, fingerprint, most_beautiful_exactly};
use crate::solver::classical::{self, Ending};
use crate::solver::cp;
use crate::solver::ilp::exclusion::{Exclusion, Next};
use crate::solver::ilp::most_beautiful;
use crate::solver::ilp::{
    FirstMethod, Formulation, Goal, Solver, lexicographic_first, one_solution,
};
use crate::solver::{Answer, Verdict};
use crate::solver::{Progress, ProgressSink as _};

/// Compare all methods for a problem, each within a time limit.
///
/// Proven answers must be equal; if two differ, the exit code is 6.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("svg", |flag| flag.help(SVG_HELP)),
    mut_arg("png", |flag| flag.help(PNG_HELP)),
)]
pub(super) struct Args {
    /// The board sizes: numbers, ranges and lists, for example 8 10, 6..10 or 6,8,10.
    #[arg(
        value_name = "N",
        required = true,
        value_parser = |text: &str| Sizes::parse(text, board_size),
        allow_negative_numbers = true
    )]
    sizes: Vec<Sizes>,
    /// The problem: solve, first, beautiful or list.
    #[arg(long, default_value = "first")]
    query: Query,
    /// The time limit of each method for each board: a number and s, m, h or d.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time_limit, allow_negative_numbers = true)]
    limit: Duration,
    #[command(flatten)]
    solver: SolverChoice,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    chart: PictureArgs,
    /// Show no progress bar.
    #[arg(short, long)]
    quiet: bool,
}

/// The query that all methods answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Query {
    Solve,
    First,
    Beautiful,
    List,
}

impl Query {
    const ALL: [Self; 4] = [Self::Solve, Self::First, Self::Beautiful, Self::List];

    const fn name(self) -> &'static str {
        match self {
            Self::Solve => "solve",
            Self::First => "first",
            Self::Beautiful => "beautiful",
            Self::List => "list",
        }
    }
}

impl FromStr for Query {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|query| query.name() == text);
        known.ok_or_else(|| {
            format!("invalid query '{text}'; choose solve, first, beautiful or list")
        })
    }
}

/// The answer of a method.
struct MethodAnswer {
    /// The answer in words; equal answers have equal words.
    answer: Option<String>,
    proven: bool,
    nodes: u64,
}

/// Runs a method on the board of a size; the terminal has the time limit.
type RunMethod<'a> = Box<dyn Fn(usize, &mut Terminal) -> MethodAnswer + 'a>;

/// A method with its name and the largest board that it supports.
struct Contestant<'a> {
    method: &'static str,
    largest: usize,
    run: RunMethod<'a>,
}

impl<'a> Contestant<'a> {
    /// Creates a method that supports boards of any size.
    fn new(method: &'static str, run: impl Fn(usize, &mut Terminal) -> MethodAnswer + 'a) -> Self {
        Self { method, largest: usize::MAX, run: Box::new(run) }
    }
}

/// A row of the table.
#[derive(Debug, Serialize)]
struct Measured {
    n: usize,
    method: &'static str,
    elapsed_s: f64,
    nodes: String,
    /// True if the method finished and its answer is proven.
    proven: bool,
    /// `None` if no solution exists or none was found.
    answer: Option<String>,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    query: &'static str,
    solver: &'static str,
    limit_s: f64,
    results: &'a [Measured],
    methods: Vec<MethodSummary>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let solver = args.solver.solver(args.quiet)?;
    let interrupt = Interrupt::listen();
    // A chart that cannot be written is an error before the comparison, not after it.
    let chart = args.chart.begin_files("chart")?;
    let mut results = Vec::new();
    'all: for n in args.sizes.iter().flat_map(|sizes| sizes.0.iter().copied()) {
        for contestant in contestants(args.query, solver).iter().filter(|c| n <= c.largest) {
            if interrupt.is_raised() {
                break 'all;
            }
            let mut terminal = Terminal::new(contestant.method, Some(args.limit), args.quiet);
            let answer = (contestant.run)(n, &mut terminal);
            terminal.finish();
            results.push(Measured {
                n,
                method: contestant.method,
                elapsed_s: terminal.elapsed().as_secs_f64(),
                nodes: answer.nodes.to_string(),
                proven: answer.proven,
                answer: answer.answer,
            });
        }
    }
    let report = Report {
        query: args.query.name(),
        solver: solver.name(),
        limit_s: args.limit.as_secs_f64(),
        results: &results,
        methods: summaries(&results),
    };
    print_report(args.json, &report, || text(&report))?;
    write_chart(chart, || chart_of(&report))?;
    if let Some((one, other)) = disagreement(&results) {
        let message = format!(
            "{} and {} differ for n = {}: one of them is wrong",
            one.method, other.method, one.n
        );
        return Err(Failure::new(Exit::CheckFailed, message));
    }
    if interrupt.is_raised() {
        return Err(Failure::new(Exit::Interrupted, "interrupted; the results so far are shown"));
    }
    Ok(Exit::Done)
}

fn contestants(query: Query, solver: &dyn Solver) -> Vec<Contestant<'_>> {
    match query {
        Query::Solve => solvers(solver),
        Query::First => {
            FirstMethod::ALL.into_iter().map(|method| first_by(method, solver)).collect()
        }
        Query::Beautiful => {
            // The optimum is not unique, but its fingerprint is.
            let costs = |columns: &[usize]| spaced(&fingerprint(columns));
            let threads = cores();
            let exactly =
                move |n| beautiful::Query { n, norm: Norm::Euclidean, turning: false, threads };
            vec![
                Contestant::new("exact", move |n, terminal| {
                    answer_of(&most_beautiful_exactly(exactly(n), terminal).answer, costs)
                }),
                Contestant::new("ilp", move |n, terminal| {
                    answer_of(&most_beautiful(n, solver, terminal), costs)
                }),
            ]
        }
        Query::List => listers(solver),
    }
}

fn first_by(method: FirstMethod, solver: &dyn Solver) -> Contestant<'_> {
    Contestant {
        method: method.name(),
        largest: method.largest(),
        run: Box::new(move |n, terminal| {
            let answer = lexicographic_first(n, method, solver, terminal);
            let line = |columns: &[usize]| spaced(&columns_from_one(columns));
            answer_of(&answer.expect("the size is checked before"), line)
        }),
    }
}

/// Methods find different solutions; only the existence of one is compared.
const A_SOLUTION: &str = "a solution";

fn solvers(solver: &dyn Solver) -> Vec<Contestant<'_>> {
    let classical = classical::Method::ALL
        .into_iter()
        .filter(|method| *method != classical::Method::BruteForce);
    let mut all: Vec<Contestant<'_>> =
        classical.map(|method| classical_by(method, Some(1))).collect();
    for formulation in Formulation::ALL {
        all.push(Contestant::new(
            match formulation {
                Formulation::Borders => "ilp, borders",
                Formulation::Diagonals => "ilp, diagonals",
            },
            move |n, terminal| {
                let problem = Problem::empty(Piece::Queen, n);
                let model = Goal::AnySolution.model(&problem, formulation);
                answer_of(&one_solution(&problem, &model, solver, terminal), |_| A_SOLUTION.into())
            },
        ));
    }
    all.push(Contestant::new("cp", |n, terminal| {
        let (event, nodes) = cp::find_one(&Problem::empty(Piece::Queen, n), terminal);
        let answer = matches!(event, cp::Event::Solution(_)).then(|| A_SOLUTION.to_owned());
        MethodAnswer { answer, proven: event != cp::Event::Stopped, nodes }
    }));
    all
}

fn listers(solver: &dyn Solver) -> Vec<Contestant<'_>> {
    let complete = classical::Method::ALL.into_iter().filter(|method| method.is_complete());
    let mut all: Vec<Contestant<'_>> = complete.map(|method| classical_by(method, None)).collect();
    all.push(Contestant::new("ilp", move |n, terminal| {
        let problem = Problem::empty(Piece::Queen, n);
        let mut exclusion = Exclusion::new(&problem, Formulation::default(), solver);
        let mut found = 0;
        let verdict = loop {
            match exclusion.next(terminal) {
                Next::Solution(_) => found += 1,
                Next::End(verdict) => break verdict,
            }
        };
        counted(found, verdict == Verdict::Proven, exclusion.nodes())
    }));
    all.push(Contestant::new("cp", |n, terminal| {
        let mut search = cp::Search::new(&Problem::empty(Piece::Queen, n), cp::Branching::FirstRow);
        let mut found = 0;
        let end = loop {
            match search.next(terminal) {
                cp::Event::Solution(_) => found += 1,
                end => break end,
            }
        };
        counted(found, end == cp::Event::Exhausted, search.nodes())
    }));
    all
}

/// Returns the answer of a list, as far as it got.
fn counted(found: u64, proven: bool, nodes: u64) -> MethodAnswer {
    MethodAnswer { answer: Some(format!("{found} solutions")), proven, nodes }
}

/// Returns a classical method that searches for `wanted` solutions, or for all.
fn classical_by(method: classical::Method, wanted: Option<u64>) -> Contestant<'static> {
    Contestant {
        method: method.name(),
        largest: method.largest(),
        run: Box::new(move |n, terminal| {
            let problem = Problem::empty(Piece::Queen, n);
            let mut watch =
                Collector { terminal, problem: &problem, found: 0, wanted, sound: true };
            let outcome = method.run(&problem, &mut watch).expect("the size is checked before");
            let Collector { found, sound, .. } = watch;
            let exhausted =
                outcome.ending == Ending::Exhausted && (method.is_complete() || found > 0);
            match wanted {
                None => counted(found, sound && exhausted, outcome.tried),
                Some(_) => MethodAnswer {
                    answer: (found > 0).then(|| A_SOLUTION.to_owned()),
                    proven: sound && (found > 0 || exhausted),
                    nodes: outcome.tried,
                },
            }
        }),
    }
}

/// Receives the solutions of a classical search and checks each.
struct Collector<'a> {
    terminal: &'a mut Terminal,
    problem: &'a Problem,
    found: u64,
    wanted: Option<u64>,
    sound: bool,
}

impl classical::AnswerSink for Collector<'_> {
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
        self.sound &= Placement::check_solution(self.problem, columns).is_ok();
        self.found += 1;
        if Some(self.found) == self.wanted {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn report(&mut self, tried: u64) -> ControlFlow<()> {
        self.terminal.report(&Progress { level: 0, bound: None, nodes: tried })
    }
}

fn answer_of(answer: &Answer<Vec<usize>>, words: impl Fn(&[usize]) -> String) -> MethodAnswer {
    MethodAnswer {
        answer: answer.found.as_deref().map(words),
        proven: answer.is_proven(),
        nodes: answer.nodes,
    }
}

/// Returns two proven answers to the same query that differ.
fn disagreement(results: &[Measured]) -> Option<(&Measured, &Measured)> {
    let proven = || results.iter().filter(|result| result.proven);
    proven().find_map(|one| {
        let other = proven().find(|other| other.n == one.n && other.answer != one.answer)?;
        Some((one, other))
    })
}

fn text(report: &Report<'_>) -> String {
    let mut rows = vec![["n", "method", "time", "nodes", "answer"].map(str::to_owned)];
    rows.extend(report.results.iter().map(|result| {
        let answer = match (&result.answer, result.proven) {
            (Some(answer), true) => answer.clone(),
            (Some(answer), false) => format!("not proven: {answer}"),
            (None, true) => "no solution".to_owned(),
            (None, false) => "not finished".to_owned(),
        };
        let nodes = grouped(result.nodes.parse().unwrap_or(0));
        [
            result.n.to_string(),
            result.method.to_owned(),
            duration(Duration::from_secs_f64(result.elapsed_s)),
            nodes,
            answer,
        ]
    }));
    let limit = duration(Duration::from_secs_f64(report.limit_s));
    let mut lines =
        vec![format!("{}, solver {}, at most {limit} each", report.query, report.solver)];
    lines.extend(super::bench::aligned(&rows));
    lines.push(String::new());
    let mut rows = vec![["method", "solved", "mean time"].map(str::to_owned)];
    rows.extend(report.methods.iter().map(|of| {
        let mean = summary::short_time(of.shifted_geometric_mean_s);
        [of.method.to_owned(), format!("{} of {}", of.solved, of.boards), mean]
    }));
    lines.extend(super::bench::aligned(&rows));
    lines.push(
        "  mean time: shifted geometric mean (shift 1 s) over all boards, also the unsolved ones"
            .into(),
    );
    lines.push("  all proven answers agree".into());
    if disagreement(report.results).is_some() {
        lines.pop();
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a run of half a second.
    pub(super) fn measured(
        n: usize,
        method: &'static str,
        answer: Option<&str>,
        proven: bool,
    ) -> Measured {
        Measured {
            n,
            method,
            elapsed_s: 0.5,
            nodes: "7".into(),
            proven,
            answer: answer.map(str::to_owned),
        }
    }

    #[test]
    fn only_proven_answers_can_contradict_each_other() {
        let mut results = vec![
            measured(4, "cp", Some("2 4 1 3"), true),
            measured(4, "ilp-iter", Some("3 1 4 2"), false),
            measured(4, "lex-dfs", None, false),
            measured(5, "cp", Some("1 3 5 2 4"), true),
        ];
        assert!(disagreement(&results).is_none());
        results.push(measured(4, "cutting-plane", None, true));
        let (one, other) = disagreement(&results).expect("they differ");
        assert_eq!((one.method, other.method), ("cp", "cutting-plane"));
    }

    #[test]
    fn the_table_distinguishes_proven_answers() {
        let results = [
            measured(4, "cp", Some("2 4 1 3"), true),
            measured(4, "ilp-iter", Some("3 1 4 2"), false),
            measured(3, "cp", None, true),
            measured(3, "lex-dfs", None, false),
        ];
        let report = Report {
            query: "first",
            solver: "microlp",
            limit_s: 60.0,
            results: &results,
            methods: summaries(&results),
        };
        let table = text(&report);
        for words in [
            "not proven: 3 1 4 2",
            "no solution",
            "not finished",
            "all proven answers agree",
            "1 min 00 s",
        ] {
            assert!(table.contains(words), "{words}: {table}");
        }
        assert!(chart_of(&report).contains("ilp-iter: 0 of 1 solved"));
    }
}
