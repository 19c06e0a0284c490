//! Arguments that several commands share, and the parsers of their values.

use std::fmt;
use std::io::{self, Read as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::{Exit, Failure, atomic_file};
use crate::board::{Piece, Problem, Square, SquareError, parse_squares};
use crate::board_file;
use crate::decomposition::{Decomposition, Job, MAX_COUNT_SIZE, Scheme, Subproblems};
use crate::engine::{
    CountOptions, DeviceChoice, DeviceName, fastest_subproblems, plan_for_campaign,
};
use crate::kernel::KernelKind;
use crate::report::grouped;

/// Squares that are decided in advance.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DecidedSquares {
    /// A square that holds a piece: 2,4 or d2, with row 1 at the top. Repeat the flag or write
    /// --place '2,4 4,5' for several squares.
    #[arg(long, value_name = "ROW,COL", value_parser = squares, allow_hyphen_values = true)]
    place: Vec<Squares>,
    /// A square that must stay empty. Repeat the flag or write --block '1,1 8,8' for several
    /// squares.
    #[arg(long, value_name = "ROW,COL", value_parser = squares, allow_hyphen_values = true)]
    block: Vec<Squares>,
}

/// A board to count.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Board {
    /// The board size: rows, columns and queens, from 0 to 32. May be omitted with --board.
    #[arg(value_parser = board_size, allow_negative_numbers = true, required_unless_present = "board")]
    n: Option<usize>,
    /// Read the board from FILE, or from stdin if that is -: JSON of count or solve, a FEN, a file
    /// of CSPLib's problems 079 or 080, or lines of Q, . and x (blocked). --place and --block add
    /// to it.
    #[arg(long, value_name = "FILE")]
    board: Option<PathBuf>,
    #[command(flatten)]
    squares: DecidedSquares,
    /// The piece: queen, rook, superqueen (queen plus knight) or toroidal (a queen on a board whose
    /// opposite edges are joined). Default: the piece of --board, or queen.
    #[arg(long)]
    piece: Option<Piece>,
}

impl Board {
    /// Returns the problem to count.
    pub(super) fn problem(&self) -> Result<Problem, Failure> {
        let problem = self.squares.problem(self.piece, self.n, self.board.as_deref())?;
        // The size of a file has not been checked yet.
        board_size(&problem.n().to_string()).map_err(Failure::usage)?;
        Ok(problem)
    }
}

/// The largest file with a board, in bytes.
const LARGEST_BOARD_FILE: u64 = 64 << 20;

/// Reads a board from a file, or from stdin if that is `-`.
pub(super) fn read_board(path: &Path) -> Result<board_file::BoardFile, Failure> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
    let text =
        if is_stdin { read_stdin() } else { atomic_file::read_text(path, LARGEST_BOARD_FILE) };
    let text = text.map_err(|error| {
        Failure::new(Exit::File, format!("the board cannot be read from {name}: {error}"))
    })?;
    board_file::parse(&text).map_err(|error| Failure::usage(format!("{name}: {error}")))
}

fn read_stdin() -> io::Result<String> {
    let mut text = String::new();
    let read = io::stdin().lock().take(LARGEST_BOARD_FILE + 1).read_to_string(&mut text)?;
    if read as u64 > LARGEST_BOARD_FILE {
        let message = format!("it is longer than {LARGEST_BOARD_FILE} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

/// The squares of one occurrence of a flag.
#[derive(Clone, Debug)]
struct Squares(Vec<Square>);

fn squares(text: &str) -> Result<Squares, SquareError> {
    parse_squares(text).map(Squares)
}

impl DecidedSquares {
    /// Returns the problem of these squares and those of a file. The piece and the size must agree
    /// with the file; without both, the piece is the queen.
    pub(super) fn problem(
        &self,
        piece: Option<Piece>,
        n: Option<usize>,
        file: Option<&Path>,
    ) -> Result<Problem, Failure> {
        self.problem_with(piece, n, file, [])
    }

    /// Like [`Self::problem`], with further pieces on `above`.
    pub(super) fn problem_with(
        &self,
        piece: Option<Piece>,
        n: Option<usize>,
        file: Option<&Path>,
        above: impl IntoIterator<Item = Square>,
    ) -> Result<Problem, Failure> {
        let list = |flags: &[Squares], first: Vec<Square>| -> Vec<Square> {
            first.into_iter().chain(flags.iter().flat_map(|f| f.0.iter().copied())).collect()
        };
        let read = file.map(read_board).transpose()?;
        let (size, file_piece) =
            (read.as_ref().map(|read| read.n), read.as_ref().and_then(|r| r.piece));
        if let (Some(n), Some(size)) = (n, size)
            && n != size
        {
            let message =
                format!("the board of --board has n = {size}, not n = {n}; omit the size");
            return Err(Failure::usage(message));
        }
        if let (Some(piece), Some(other)) = (piece, file_piece)
            && piece != other
        {
            return Err(Failure::usage(format!(
                "the board of --board is for the {other}, not for the {piece}"
            )));
        }
        let n = n.or(size).ok_or_else(|| {
            Failure::usage("the board size is missing; give N, or a board with --board FILE")
        })?;
        let piece = piece.or(file_piece).unwrap_or(Piece::Queen);
        let read = read.unwrap_or_default();
        let mut placed = list(&self.place, read.placed);
        placed.extend(above);
        Problem::new(piece, n, placed, list(&self.block, read.blocked)).map_err(Failure::usage)
    }

    /// Returns the name of a flag that is given, if one is.
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given([("--place", !self.place.is_empty()), ("--block", !self.block.is_empty())])
    }
}

/// Returns the first of these flags that is given.
pub(super) fn first_given<const N: usize>(
    flags: [(&'static str, bool); N],
) -> Option<&'static str> {
    flags.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
}

/// Rejects a flag, if it is given, for this reason: "needs --method ilp".
pub(super) fn reject(given: Option<&str>, why: impl fmt::Display) -> Result<(), Failure> {
    given.map_or(Ok(()), |flag| Err(Failure::usage(format!("{flag} {why}"))))
}

/// Returns a square for JSON: row and column, counted from 1.
pub(super) const fn square_from_one(square: Square) -> [usize; 2] {
    [square.row + 1, square.col + 1]
}

/// Returns squares for JSON.
pub(super) fn from_one(squares: &[Square]) -> Vec<[usize; 2]> {
    squares.iter().copied().map(square_from_one).collect()
}

/// Parses `what`, a whole number between two bounds.
pub(super) fn number<T: TryFrom<usize>>(
    text: &str,
    what: &str,
    least: usize,
    most: usize,
) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        let range = match most {
            usize::MAX => format!("of at least {least}"),
            // As everywhere in the help, numbers of four digits are not grouped.
            1000..=9999 => format!("from {least} to {most}"),
            _ => format!("from {least} to {}", grouped(most as u128)),
        };
        format!("invalid {what} '{text}'; use a whole number {range}")
    })
}

/// One or several board sizes, as they are written: 8, 4..40 (with both ends) or 6,8,10.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sizes(pub(super) Vec<usize>);

impl Sizes {
    /// Parses sizes, each of them by `size`.
    pub(super) fn parse(
        text: &str,
        size: impl Fn(&str) -> Result<usize, String>,
    ) -> Result<Self, String> {
        let mut sizes = Vec::new();
        for part in text.split(',').map(str::trim) {
            let Some((first, last)) = part.split_once("..") else {
                sizes.push(size(part)?);
                continue;
            };
            let (first, last) = (size(first)?, size(last)?);
            if first > last {
                return Err(format!(
                    "invalid range '{part}'; put the smaller size first, for example 4..40"
                ));
            }
            sizes.extend(first..=last);
        }
        Ok(Self(sizes))
    }
}

/// The choice of devices.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DeviceArgs {
    /// The devices, separated by commas: auto, cpu, gpu, or ids from nqueens devices.
    #[arg(long, value_name = "DEVICES", default_value = "auto")]
    device: DeviceChoice,
    /// Use the GPUs only; the same as --device gpu.
    #[arg(long, conflicts_with = "device")]
    gpu: bool,
}

impl DeviceArgs {
    /// Returns the chosen devices.
    pub(super) fn choice(&self) -> DeviceChoice {
        if self.gpu { DeviceChoice::These(vec![DeviceName::Gpu]) } else { self.device.clone() }
    }
}

/// The options of counting on the CPU.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct CpuArgs {
    /// The CPU kernel: auto (the fastest for the board on this processor), reference, textbook,
    /// scalar, avx2, avx512, generic, sets, sets-avx2 or sets-avx512.
    #[arg(long, default_value = "auto", value_parser = or_auto::<KernelKind>)]
    kernel: OrAuto<KernelKind>,
    #[command(flatten)]
    threads: ThreadsArg,
}

impl CpuArgs {
    /// Returns the options for the engine.
    pub(super) fn options(self, devices: DeviceChoice) -> CountOptions {
        CountOptions {
            kernel: self.kernel.0,
            threads: self.threads.given(),
            devices,
            ..CountOptions::default()
        }
    }
}

/// The choice of the subproblems of a plan.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct SubproblemsArgs {
    /// The subproblems of the units: auto (those that are faster on CPUs), prefixes, or column-sets
    /// (for large boards of queens).
    #[arg(long, value_name = "KIND", default_value = "auto", value_parser = or_auto::<Subproblems>)]
    subproblems: OrAuto<Subproblems>,
}

impl SubproblemsArgs {
    /// Divides a problem into the units of a plan.
    pub(super) fn plan(self, problem: &Problem) -> Result<Decomposition, Failure> {
        let chosen = self.subproblems.0;
        let kind = chosen.unwrap_or_else(|| fastest_subproblems(problem));
        plan_for_campaign(problem, kind).map_err(Failure::usage)
    }
}

/// A choice by name; `None` for auto. (For an `Option`, clap would make the flag optional.)
#[derive(Clone, Copy, Debug)]
pub(super) struct OrAuto<T>(pub(super) Option<T>);

/// Parses the name of a choice, or auto.
pub(super) fn or_auto<T: FromStr>(text: &str) -> Result<OrAuto<T>, T::Err> {
    Ok(OrAuto(if text == "auto" { None } else { Some(text.parse()?) }))
}

/// The flag `--threads`.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct ThreadsArg {
    /// The number of threads (default: one per core).
    #[arg(
        short = 'j',
        long,
        value_name = "T",
        value_parser = threads,
        allow_negative_numbers = true
    )]
    threads: Option<NonZeroUsize>,
}

impl ThreadsArg {
    /// Returns the given number.
    pub(super) const fn given(self) -> Option<NonZeroUsize> {
        self.threads
    }

    /// Returns the given number, or that of cores.
    pub(super) fn or_cores(self) -> usize {
        self.threads.map_or_else(cores, NonZeroUsize::get)
    }
}

/// Returns the number of cores that this process may use.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Parses a number of threads.
pub(super) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    /// More than any machine has cores. Each thread takes about a megabyte.
    const MOST: usize = 1024;
    number(text, "number of threads", 1, MOST)
}

/// Parses the size of a board that can be counted.
pub(super) fn board_size(text: &str) -> Result<usize, String> {
    let wrong =
        || format!("invalid board size '{text}'; use a whole number from 0 to {MAX_COUNT_SIZE}");
    let n = text.parse().map_err(|_| wrong())?;
    // The error of the job says why a board is too large.
    let job = Job::new(Problem::empty(Piece::Queen, n), Scheme::Whole, None, 1);
    job.map(|_| n).map_err(|error| error.to_string())
}

/// Parses a job's hash or its first digits.
pub(super) fn job_prefix(text: &str) -> Result<String, String> {
    let good = (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wrong = || format!("invalid job '{text}'; use its hash or the first 1 to 32 digits of it");
    if good { Ok(text.to_ascii_lowercase()) } else { Err(wrong()) }
}

/// Parses a time from a second to a year: "90s", "30m", "1h", "7d".
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    const MOST_S: u64 = 366 * 86_400;
    let parsed = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return None,
        };
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(unit)?;
        (1..=MOST_S).contains(&seconds).then(|| Duration::from_secs(seconds))
    };
    let wrong = || {
        format!(
            "invalid time '{text}'; use a number and s, m, h or d, at most 366d, for example 1h"
        )
    };
    parsed().ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_ranges_and_lists() {
        let size = |text: &str| number(text, "board size", 0, 250);
        let parsed = |text| Sizes::parse(text, size).map(|sizes| sizes.0);
        for (text, sizes) in [
            ("8", vec![8]),
            ("6..10", vec![6, 7, 8, 9, 10]),
            ("6,8,10", vec![6, 8, 10]),
            ("10, 4..6,8", vec![10, 4, 5, 6, 8]),
            ("5..5", vec![5]),
        ] {
            assert_eq!(parsed(text), Ok(sizes), "{text}");
        }
        for (text, word) in [
            ("", "''"),
            ("8,", "''"),
            ("10..6", "smaller size first"),
            ("6..", "''"),
            ("1..251", "251"),
            ("6...10", ".10"),
            ("-1..4", "-1"),
        ] {
            let error = parsed(text).expect_err(text);
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_time_is_a_number_with_a_unit() {
        for (text, seconds) in
            [("1s", 1), ("30m", 1800), ("1h", 3600), ("7d", 604_800), ("366d", 31_622_400)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "1",
            "h",
            "0h",
            "-1h",
            "+1h",
            "1.5h",
            "367d",
            "1w",
            "1 h",
            "1é",
            "99999999999999999999d",
        ] {
            let error = parse_duration(text).expect_err(text);
            assert!(error.lines().count() == 1 && error.contains("for example 1h"), "{error}");
        }
    }
}
