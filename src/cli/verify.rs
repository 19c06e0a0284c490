//! `nqueens verify`.

use std::collections::HashMap;
use std::io::Write as _;

use serde::Serialize;

use super::args::DecidedSquares;
use super::candidate::{self, Candidate, Verdict};
use super::interrupt::Interrupt;
use super::picture_args::PictureArgs;
use super::solution_output::object;
use super::stream::Stream;
use super::{Exit, Failure};
use crate::board::{Piece, Problem};
use crate::render::{Look, MAX_ATTACKS, Picture};
use crate::report::grouped;

/// Check solutions, typed or in a file, in any format that this program writes.
///
/// Each is valid, or a line says which two pieces attack each other and which rows and columns have
/// none. Several solutions must also be different. If one is not valid, or a repetition, the exit
/// code is 6.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The column in each row (2 4 1 3, '2 4 1 3' or 2413), a file of solutions, or - for stdin. A
    /// file may have solutions as text, digits, boards (also of Q, . and x), ascii, variables,
    /// pairs, fen, csv or json.
    #[arg(required = true, value_name = "SOLUTION|FILE", allow_negative_numbers = true)]
    solution: Vec<String>,
    /// The piece: queen, rook, superqueen (queen plus knight) or toroidal (a queen on a board whose
    /// opposite edges are joined).
    #[arg(long, default_value = "queen")]
    piece: Piece,
    #[command(flatten)]
    squares: DecidedSquares,
    #[command(flatten)]
    pictures: PictureArgs,
    /// Print one JSON object for each solution, and a summary as the last one.
    #[arg(long)]
    json: bool,
    /// Print only the solutions that are not valid or are repeated, and the summary.
    #[arg(short, long)]
    quiet: bool,
}

/// The number of solutions of which repetitions are found. Their hashes take about 200 MB.
const MOST_HASHES: usize = 7_000_000;

/// A line of the output of `--json`.
#[derive(Debug, Serialize)]
struct Line {
    /// The number of the solution in the input, and the line where it begins, from 1.
    number: u64,
    line: u64,
    #[serde(flatten)]
    report: candidate::Report,
    /// The number of the same solution, if it was there before.
    repeats: Option<u64>,
}

/// The last line of the output of `--json`.
#[derive(Debug, Serialize)]
struct Summary {
    solutions: String,
    valid: String,
    repeated: String,
    /// True if all solutions were compared with each other.
    compared: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    if args.pictures.given().is_some() {
        return with_picture(args);
    }
    let interrupt = Interrupt::listen();
    let mut reader = candidate::open(&args.solution)?;
    let mut check = Check::new(args);
    while let Some(found) = reader.next_candidate()? {
        if check.take(&found)? || interrupt.is_raised() {
            break;
        }
    }
    let checked = check.number;
    let exit = check.end();
    if interrupt.is_raised() {
        let message = format!("interrupted after {} solutions", grouped(checked.into()));
        return Err(Failure::new(Exit::Interrupted, message));
    }
    exit
}

/// Checks one solution, and draws it.
fn with_picture(args: &Args) -> Result<Exit, Failure> {
    let found = candidate::only(&args.solution, "a picture")?;
    let pictures = args.pictures.begin(found.n, found.n)?;
    let mut check = Check::new(args);
    check.take(&found)?;
    let exit = check.end();
    let problem = args.squares.problem(Some(args.piece), Some(found.n), None)?;
    let verdict = Verdict::of(&found, &problem);
    let picture = match verdict.placement() {
        Some(placement) => Picture::of(placement),
        None if found.off_board().is_some() => return exit,
        None => {
            let picture = Picture::of_squares(args.piece, found.n, found.n, &found.squares);
            let look = if found.n <= MAX_ATTACKS { Look::Attacks } else { Look::Chequered };
            picture.with_look(look)
        }
    };
    pictures.finish(&picture.deciding(&problem)).and(exit)
}

/// The solutions that were read.
struct Check<'a> {
    args: &'a Args,
    stream: Stream,
    /// The problem of the size of the last solution.
    problem: Option<Problem>,
    /// The hashes of the solutions, with their numbers.
    hashes: HashMap<[u8; 16], u32>,
    /// The squares of the last solution, as long as each is lexicographically larger than the one
    /// before it. Then all are different.
    last: Option<Candidate>,
    ascending: bool,
    number: u64,
    valid: u64,
    repeated: u64,
    /// The first solution, which has no number if there is no other one.
    held: Option<String>,
}

impl<'a> Check<'a> {
    fn new(args: &'a Args) -> Self {
        Self {
            args,
            stream: Stream::begin(),
            problem: None,
            hashes: HashMap::new(),
            last: None,
            ascending: true,
            number: 0,
            valid: 0,
            repeated: 0,
            held: None,
        }
    }

    /// Checks a solution and prints its verdict. Returns whether the reader of the output has gone.
    fn take(&mut self, found: &Candidate) -> Result<bool, Failure> {
        self.number += 1;
        let number = self.number;
        let problem = match self.problem.take().filter(|problem| problem.n() == found.n) {
            Some(problem) => problem,
            None => self.args.squares.problem(Some(self.args.piece), Some(found.n), None)?,
        };
        let verdict = Verdict::of(found, &problem);
        self.problem = Some(problem);
        let is_valid = verdict.solution().is_some();
        self.valid += u64::from(is_valid);
        let repeats = self.repeats(found);
        self.repeated += u64::from(repeats.is_some());
        let shown = !self.args.quiet || !is_valid || repeats.is_some();
        if self.args.json {
            let line = Line { number, line: found.line, report: verdict.report(), repeats };
            return Ok(shown && object(&mut self.stream, &line).is_break());
        }
        let mut words = verdict.words();
        if let Some(first) = repeats {
            words += &format!("; it repeats solution {first}");
        }
        if number == 1 {
            self.held = Some(words);
            return Ok(false);
        }
        let held = self.held.take().filter(|words| !self.args.quiet || !words.starts_with("valid"));
        let flow = self.stream.write(|out| {
            if let Some(first) = held {
                writeln!(out, "1: {first}")?;
            }
            if shown { writeln!(out, "{number}: {words}") } else { Ok(()) }
        });
        Ok(flow.is_break())
    }

    /// Returns the number of the same solution if it was read before.
    fn repeats(&mut self, found: &Candidate) -> Option<u64> {
        let larger = |last: &Candidate| (last.n, &last.squares) < (found.n, &found.squares);
        let larger = self.last.as_ref().is_none_or(larger);
        self.ascending &= larger;
        self.last = self.ascending.then(|| found.clone());
        let hash = hash(found);
        if let Some(&first) = self.hashes.get(&hash) {
            return Some(first.into());
        }
        if self.hashes.len() < MOST_HASHES
            && let Ok(number) = u32::try_from(self.number)
        {
            self.hashes.insert(hash, number);
        }
        None
    }

    fn end(mut self) -> Result<Exit, Failure> {
        if self.number == 0 {
            return Err(candidate::no_solution());
        }
        let wrong = self.number - self.valid;
        let compared = self.ascending || self.number <= MOST_HASHES as u64;
        let of_all = if wrong == 0 { "all" } else { "not all" };
        let number = grouped(self.number.into());
        let different = match (self.repeated, compared) {
            (0, true) => "all different".to_owned(),
            (0, false) => format!(
                "no repetition among those compared with the first {}",
                grouped(MOST_HASHES as u128)
            ),
            (repeated, _) => format!("{} repeated", grouped(repeated.into())),
        };
        let count = match wrong {
            0 => String::new(),
            wrong => format!(" ({} not)", grouped(wrong.into())),
        };
        let summary = format!("{number} solutions: {of_all} valid{count}, {different}");
        let held = self.held.take();
        let _ = if self.args.json {
            let summary = Summary {
                solutions: self.number.to_string(),
                valid: self.valid.to_string(),
                repeated: self.repeated.to_string(),
                compared,
            };
            object(&mut self.stream, &summary)
        } else {
            let last = held.unwrap_or_else(|| summary.clone());
            self.stream.write(|out| writeln!(out, "{last}"))
        };
        self.stream.finish()?;
        match (wrong, self.repeated) {
            (0, 0) => Ok(Exit::Done),
            _ => {
                let hint = candidate::size_hint(&self.args.solution);
                let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
                let one = format!("the solution is not valid{hint}");
                let message = if self.number == 1 { one } else { summary };
                Err(Failure::new(Exit::CheckFailed, message))
            }
        }
    }
}

/// Returns the first 128 bits of the SHA-256 of a solution.
fn hash(found: &Candidate) -> [u8; 16] {
    let mut hash = hmac_sha256::Hash::new();
    hash.update((found.n as u64).to_le_bytes());
    for square in &found.squares {
        hash.update((square.row as u64).to_le_bytes());
        hash.update((square.col as u64).to_le_bytes());
    }
    let full = hash.finalize();
    std::array::from_fn(|i| full[i])
}
