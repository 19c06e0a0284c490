//! The options of `nqueens solve --method ilp`: the formulation, the objective, cuts, model files.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::{first_given, number};
use super::atomic_file;
use super::cuts::{CutArgs, CutsFound};
use super::output_file::OutputFile;
use super::solver::SolverChoice;
use super::solver_log::SolverLog;
use super::terminal::Terminal;
use super::{Exit, Failure, note};
use crate::board::{Problem, Square};
use crate::report::{counted, rounded};
use crate::solver::ilp::cuts::{Families, Separation, separate};
use crate::solver::ilp::model::Model;
use crate::solver::ilp::model_file::Format;
use crate::solver::ilp::{Formulation, Goal, Solver, heaviest, largest_set, one_solution};
use crate::solver::{Answer, Unproven, Verdict};

/// The options of integer programming.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Integer programming (--method ilp)")]
pub(super) struct Options {
    /// The formulation: borders (6n constraints, the two long diagonals twice; maximises the number
    /// of queens) or diagonals (each diagonal once; no objective) (default: diagonals).
    #[arg(long, value_name = "FORMULATION")]
    formulation: Option<Formulation>,
    /// Place as many non-attacking queens as possible, even where no solution exists.
    #[arg(long, alias = "maximise", conflicts_with_all = ["weights", "prefer"])]
    maximize: bool,
    /// Maximise the sum of the weights in FILE: n lines of n numbers, separated by commas.
    #[arg(long, value_name = "FILE", conflicts_with = "prefer")]
    weights: Option<PathBuf>,
    /// Maximise the sum of the weights of these squares. Repeat the flag or write --prefer '2,4=1.5
    /// 4,5=-2' for several squares.
    #[arg(long, value_name = "ROW,COL=WEIGHT", value_parser = preferences, allow_hyphen_values = true)]
    prefer: Vec<Preferences>,
    /// Write the 0-1 integer program to FILE, for other solvers: .mps, .lp or .opb.
    #[arg(long, value_name = "FILE")]
    write_model: Option<PathBuf>,
    /// Print the log of the solver on stderr: nodes, bound, best solution, gap, LP iterations and
    /// cuts, at the start, every NODES nodes (default: 100) and at the end.
    #[arg(
        long,
        value_name = "NODES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "100",
        value_parser = log_interval
    )]
    log: Option<u64>,
    #[command(flatten)]
    cuts: CutArgs,
    #[command(flatten)]
    solver: SolverChoice,
}

impl Options {
    /// Returns the first option that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = first_given([
            ("--formulation", self.formulation.is_some()),
            ("--maximize", self.maximize),
            ("--weights", self.weights.is_some()),
            ("--prefer", !self.prefer.is_empty()),
            ("--write-model", self.write_model.is_some()),
            ("--log", self.log.is_some()),
        ]);
        given.or_else(|| self.cuts.given())
    }

    /// Returns the solver's log, if it is wanted.
    pub(super) fn log(&self) -> Option<SolverLog> {
        self.log.map(SolverLog::new)
    }
}

fn log_interval(text: &str) -> Result<u64, String> {
    number(text, "number of nodes", 1, 1_000_000_000)
}

/// The squares and weights of one occurrence of a flag.
#[derive(Clone, Debug)]
struct Preferences(Vec<(Square, String)>);

fn preferences(text: &str) -> Result<Preferences, String> {
    let read = |word: &str| -> Result<(Square, String), String> {
        let wrong =
            || format!("invalid preference '{word}'; use row,col=weight, for example 2,4=1.5");
        let (square, weight) = word.split_once('=').ok_or_else(wrong)?;
        let square = square.parse::<Square>().map_err(|error| error.to_string())?;
        Decimal::read(weight).ok_or_else(wrong)?;
        Ok((square, weight.to_owned()))
    };
    let read: Vec<_> = text.split_whitespace().map(read).collect::<Result<_, _>>()?;
    if read.is_empty() {
        Err("invalid preference ''; use row,col=weight, for example 2,4=1.5".into())
    } else {
        Ok(Preferences(read))
    }
}

/// An exact decimal number: digits · 10^−places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    digits: i64,
    places: u32,
}

/// The maximum number of digits after the point.
const MOST_PLACES: usize = 9;

impl Decimal {
    /// Parses a decimal such as "-12.5", without exponent, NaN and infinity.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let (negative, number) = match text.strip_prefix(['-', '+']) {
            Some(number) => (text.starts_with('-'), number),
            None => (false, text),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{part}");
        let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits || part.len() > MOST_PLACES {
            return None;
        }
        let value: i64 = digits.parse().ok()?;
        Some(Self { digits: if negative { -value } else { value }, places: part.len() as u32 })
    }
}

/// The weights of all squares as multiples of 10^−places.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Weights {
    scaled: Vec<i64>,
    places: u32,
}

impl Weights {
    fn of(n: usize, decimals: &[Decimal]) -> Result<Self, Failure> {
        let places = decimals.iter().map(|decimal| decimal.places).max().unwrap_or(0);
        // A sum of n weights must be exact in the 53 bits of the solvers.
        let most = (1i64 << 53) / n.max(1) as i64;
        let scale = |decimal: &Decimal| {
            let scaled = decimal.digits.checked_mul(10i64.pow(places - decimal.places))?;
            (-most..=most).contains(&scaled).then_some(scaled)
        };
        let scaled: Option<Vec<i64>> = decimals.iter().map(scale).collect();
        let scaled = scaled.ok_or_else(|| {
            Failure::usage("the weights have too many digits; their sum must be exact in 53 bits")
        })?;
        Ok(Self { scaled, places })
    }

    /// Parses n lines of n numbers.
    fn read(n: usize, text: &str) -> Result<Self, Failure> {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if lines.len() != n {
            let message = format!(
                "the weights have {}; they need n = {n}",
                counted(lines.len() as u128, "line")
            );
            return Err(Failure::usage(message));
        }
        let mut decimals = Vec::with_capacity(n * n);
        for (row, line) in lines.iter().enumerate() {
            let fields: Vec<&str> = line.split(',').collect();
            if fields.len() != n {
                let found = fields.len();
                let message = format!(
                    "line {} of the weights has {}; it needs n = {n}",
                    row + 1,
                    counted(found as u128, "number"),
                );
                return Err(Failure::usage(message));
            }
            for (col, field) in fields.iter().enumerate() {
                let decimal = Decimal::read(field).ok_or_else(|| {
                    Failure::usage(format!(
                        "invalid weight of {}: '{}'; use a decimal number, for example -2.5",
                        Square::new(row, col),
                        field.trim()
                    ))
                })?;
                decimals.push(decimal);
            }
        }
        Self::of(n, &decimals)
    }

    fn preferring(n: usize, preferences: &[Preferences]) -> Result<Self, Failure> {
        let mut decimals = vec![Decimal { digits: 0, places: 0 }; n * n];
        for (square, weight) in preferences.iter().flat_map(|flag| &flag.0) {
            if square.row >= n || square.col >= n {
                let message = format!("the preferred square {square} is off the board; n = {n}");
                return Err(Failure::usage(message));
            }
            // The parser of the flag has checked it.
            decimals[square.row * n + square.col] =
                Decimal::read(weight).unwrap_or(Decimal { digits: 0, places: 0 });
        }
        Self::of(n, &decimals)
    }

    /// Returns the weight of a solution in decimal digits.
    fn total(&self, columns: &[usize]) -> String {
        let n = columns.len();
        let sum: i128 = columns
            .iter()
            .enumerate()
            .map(|(row, &col)| i128::from(self.scaled[row * n + col]))
            .sum();
        let scale = 10i128.pow(self.places);
        let sign = if sum < 0 { "-" } else { "" };
        let (whole, part) = (sum.abs() / scale, sum.abs() % scale);
        if self.places == 0 {
            return format!("{sign}{whole}");
        }
        let part = format!("{part:0width$}", width = self.places as usize);
        format!("{sign}{whole}.{part}").trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// The effect of the cuts.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CutsReport {
    #[serde(flatten)]
    found: CutsFound,
    bound_before: f64,
    bound_after: Option<f64>,
}

/// The result of the solver.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The 0-based column in each row.
    pub(super) found: Option<Vec<Option<usize>>>,
    pub(super) verdict: Verdict,
    pub(super) nodes: u64,
    pub(super) solver: &'static str,
    pub(super) weight: Option<String>,
    pub(super) cuts: Option<CutsReport>,
}

/// Solves `problem` with these options.
pub(super) fn solve(
    options: &Options,
    problem: &Problem,
    terminal: &mut Terminal,
    quiet: bool,
) -> Result<Outcome, Failure> {
    let n = problem.n();
    let weights = match &options.weights {
        Some(path) => Some(Weights::read(n, &read(path)?)?),
        None if !options.prefer.is_empty() => Some(Weights::preferring(n, &options.prefer)?),
        None => None,
    };
    let goal = match &weights {
        Some(weights) => Goal::Heaviest(&weights.scaled),
        None if options.maximize => Goal::LargestSet,
        None => Goal::AnySolution,
    };
    // A file that cannot be written is an error before the search, not after it.
    let file = options.write_model.as_deref().map(begin).transpose()?;
    let solver = options.solver.solver(quiet)?;
    let mut model = goal.model(problem, options.formulation.unwrap_or_default());
    if options.log.is_some() {
        SolverLog::begin(solver.name(), model.columns.len(), model.rows.len());
    }
    let cuts = match cut(&mut model, n, options.cuts.families(), solver, terminal) {
        Ok(cuts) => cuts,
        Err(doubt) => {
            let verdict = Verdict::NotProven(doubt);
            return Ok(Outcome {
                found: None,
                verdict,
                nodes: 0,
                solver: solver.name(),
                weight: None,
                cuts: None,
            });
        }
    };
    if let (Some(cuts), false) = (&cuts, quiet) {
        note(&cuts.sentence());
    }
    if let Some((file, format)) = file {
        file.finish(format.write(&model).as_bytes())?;
    }
    let Answer { found, verdict, nodes, .. } = match goal {
        Goal::AnySolution => rows(one_solution(problem, &model, solver, terminal)),
        Goal::Heaviest(weights) => rows(heaviest(problem, &model, weights, solver, terminal)),
        Goal::LargestSet => {
            let answer = largest_set(problem, &model, solver, terminal);
            let by_row = |set: Vec<Square>| {
                let column =
                    |row| set.iter().find(|square| square.row == row).map(|square| square.col);
                (0..n).map(column).collect()
            };
            answer.map(by_row)
        }
    };
    let columns =
        found.as_ref().and_then(|rows| rows.iter().copied().collect::<Option<Vec<usize>>>());
    let weight = weights.as_ref().zip(columns).map(|(weights, columns)| weights.total(&columns));
    Ok(Outcome { found, verdict, nodes, solver: solver.name(), weight, cuts })
}

fn rows(answer: Answer<Vec<usize>>) -> Answer<Vec<Option<usize>>> {
    answer.map(|columns| columns.into_iter().map(Some).collect())
}

/// Adds the requested cuts to the model, and returns their effect.
fn cut(
    model: &mut Model,
    n: usize,
    families: Families,
    solver: &dyn Solver,
    terminal: &mut Terminal,
) -> Result<Option<CutsReport>, Unproven> {
    if families.is_empty() || n == 0 {
        return Ok(None);
    }
    let Some(Separation { rows, counts, before, after }) =
        separate(model, n, families, solver, terminal)?
    else {
        return Ok(None);
    };
    model.rows.extend(rows);
    Ok(Some(CutsReport { found: counts.into(), bound_before: before, bound_after: after }))
}

impl CutsReport {
    fn sentence(&self) -> String {
        let after = self.bound_after.map_or("infeasible".to_owned(), rounded);
        let (found, before) = (self.found.words(), rounded(self.bound_before));
        format!("cuts: {found}; LP bound {before} before, {after} after")
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    /// The maximum size of the file, in bytes.
    const LARGEST_FILE: u64 = 16 << 20;
    atomic_file::read_text(path, LARGEST_FILE).map_err(|error| {
        Failure::new(Exit::File, format!("the weights {} cannot be read: {error}", path.display()))
    })
}

/// Begins a model file in the format of its extension.
fn begin(path: &Path) -> Result<(OutputFile<'_>, Format), Failure> {
    let format = Format::of(path).map_err(Failure::usage)?;
    Ok((OutputFile::begin("model", path)?, format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_exactly_and_summed_exactly() {
        let weights = Weights::read(2, "0.1, -2\n3,0.25\n").expect("weights");
        assert_eq!((&weights.scaled[..], weights.places), (&[10, -200, 300, 25][..], 2));
        assert_eq!(weights.total(&[0, 0]), "3.1");
        assert_eq!(weights.total(&[1, 1]), "-1.75");
        assert_eq!(Weights::read(1, "7").expect("a weight").total(&[0]), "7");
        assert_eq!(Weights::read(1, "-0.50").expect("a weight").total(&[0]), "-0.5");
    }

    #[test]
    fn an_invalid_matrix_of_weights_is_rejected() {
        for (n, text, words) in [
            (2, "1,2\n", "1 line;"),
            (2, "1,2\n3\n", "line 2"),
            (2, "1,2\n3,NaN\n", "2,2"),
            (2, "1,2\n3,inf\n", "'inf'"),
            (2, "1,2\n3,1e5\n", "'1e5'"),
            (1, "99999999999999999", "too many digits"),
            (1, "0.1234567891", "invalid weight"),
        ] {
            let failure = Weights::read(n, text).expect_err(text);
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(words), "{text}: {}", failure.message);
        }
    }

    #[test]
    fn preferences_name_squares_and_weights() {
        let read = preferences("2,1=1.5 1,2=-2").expect("preferences");
        let weights = Weights::preferring(2, &[read]).expect("weights");
        assert_eq!((&weights.scaled[..], weights.places), (&[0, -20, 15, 0][..], 1));
        for text in ["", "1,1", "1,1=", "1,1=x", "0,1=2", "1=2"] {
            assert!(preferences(text).is_err(), "{text}");
        }
        let off = preferences("3,1=1").expect("read");
        assert!(Weights::preferring(2, &[off]).is_err());
    }
}
