//! A job: a problem with a fixed decomposition, so that every machine derives the same units.

use std::fmt;
use std::str::FromStr;

use hmac_sha256::Hash as Sha256;
use serde::{Deserialize, Serialize};

use super::MAX_PREFIX_ROWS;
use crate::board::{Piece, Problem, Square};
use crate::symmetry::{Group, Symmetry};

/// The largest board size that can be counted: a row is one 32-bit mask.
pub const MAX_COUNT_SIZE: usize = 32;

/// The symmetry argument that splits the problem into cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// 8-fold symmetry, for problems with the full symmetry group and n ≥ 6.
    CentreCross,
    /// Up to 4-fold, by the row-preserving symmetries that leave the problem unchanged; the general
    /// scheme.
    CentreRows,
    /// 2-fold, from the top row, as in textbooks; for the textbook kernel.
    TopMirror,
    /// n-fold, for toroidal queens on the empty board.
    Translations,
    /// A single subproblem, for kernels that process the board as a whole.
    Whole,
    /// Sets of columns instead of prefixes, with up to 8-fold symmetry; for queens. See
    /// [`SetFamily`](super::SetFamily).
    ColumnSets,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Self; 6] = [
        Self::CentreCross,
        Self::CentreRows,
        Self::TopMirror,
        Self::Translations,
        Self::Whole,
        Self::ColumnSets,
    ];

    /// Returns the scheme with the fewest nodes for kernels that count prefixes.
    pub fn best(problem: &Problem) -> Self {
        match problem.piece() {
            Piece::Rook => Self::Whole,
            Piece::Toroidal if problem.is_empty() && problem.n() > 0 => Self::Translations,
            _ if problem.n() >= super::centre_cross::SMALLEST
                && problem.placed().is_empty()
                && Group::of(problem) == Group::FULL =>
            {
                Self::CentreCross
            }
            _ => Self::CentreRows,
        }
    }

    /// Returns the scheme's name in job texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CentreCross => "centre-cross",
            Self::CentreRows => "centre-rows",
            Self::TopMirror => "top-mirror",
            Self::Translations => "translations",
            Self::Whole => "whole",
            Self::ColumnSets => "column-sets",
        }
    }
}

/// A problem, its scheme, the number of rows that a prefix fills, and the number of prefixes in a
/// unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    problem: Problem,
    scheme: Scheme,
    depth: usize,
    unit_prefixes: u64,
}

/// The error returned when a problem cannot become a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The board is larger than a row mask.
    #[error(
        "n = {0} is too large to count; n goes from 0 to {MAX_COUNT_SIZE}, because a row of the board is one 32-bit mask"
    )]
    TooLarge(usize),
    /// The scheme is for queens.
    #[error("column sets are for queens, not for {0}s")]
    QueensOnly(Piece),
}

impl Job {
    /// Creates the job that counts `problem` by `scheme` with prefixes of `depth` rows, the block
    /// of the symmetry case included (`None` for the default depth of the board size), and
    /// `unit_prefixes` prefixes in a unit (at least 1).
    ///
    /// # Errors
    /// The board is larger than [`MAX_COUNT_SIZE`], or the scheme is not for its pieces.
    pub fn new(
        problem: Problem,
        scheme: Scheme,
        depth: Option<usize>,
        unit_prefixes: u64,
    ) -> Result<Self, JobError> {
        if problem.n() > MAX_COUNT_SIZE {
            return Err(JobError::TooLarge(problem.n()));
        }
        if scheme == Scheme::ColumnSets && problem.piece() != Piece::Queen {
            return Err(JobError::QueensOnly(problem.piece()));
        }
        let depth = match scheme {
            Scheme::Whole => 0,
            Scheme::ColumnSets => {
                depth.unwrap_or_else(|| set_depth(problem.n())).min(most_set_depth(problem.n()))
            }
            _ => depth.unwrap_or_else(|| default_depth(problem.n())).min(MAX_PREFIX_ROWS),
        };
        Ok(Self { problem, scheme, depth, unit_prefixes: unit_prefixes.max(1) })
    }

    /// Returns the job with units of another size (at least 1).
    pub(super) fn with_unit_prefixes(self, unit_prefixes: u64) -> Self {
        Self { unit_prefixes: unit_prefixes.max(1), ..self }
    }

    /// Returns the problem to be counted.
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the symmetry argument.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the number of rows that a prefix fills, including its symmetry case's block. For
    /// column sets it is the number of queens of a part: 0 if the numbers denote whole sets, and at
    /// most 2.
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the number of prefixes (of column sets in their scheme) in a unit; the last unit may
    /// have fewer.
    pub const fn unit_prefixes(&self) -> u64 {
        self.unit_prefixes
    }

    /// Returns whether mirroring the columns leaves the problem unchanged.
    pub(super) fn mirrors(&self) -> bool {
        Group::of(&self.problem).contains(Symmetry::MirrorColumns)
    }

    /// Returns the first 128 bits of the SHA-256 of [the job's text](fmt::Display), which is the
    /// same on every machine.
    pub fn hash(&self) -> JobHash {
        let digest = Sha256::hash(self.to_string().as_bytes());
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        JobHash(first)
    }
}

/// Returns the depth that gives at least some thousands of prefixes, none of them with a much
/// longer search than the others, and that can be numbered within seconds (20 ns a prefix).
/// ARCHITECTURE.md lists the numbers of prefixes.
const fn default_depth(n: usize) -> usize {
    match n {
        0..=7 => 2,
        8..=11 => 3,
        12..=22 => 4,
        23..=24 => 5,
        _ => 6,
    }
}

/// Returns the depth of column sets: from n = 26 on a set takes seconds or minutes, so it is
/// counted in parts, each of which takes seconds.
const fn set_depth(n: usize) -> usize {
    match n {
        0..=25 => 0,
        26..=27 => 1,
        _ => 2,
    }
}

/// Returns the greatest depth of column sets. Kernels fill the second lower row by itself only if
/// there are more than ten lower rows (see `kernel::sets`).
const fn most_set_depth(n: usize) -> usize {
    if n >= 22 { 2 } else { 1 }
}

/// Writes the canonical text of a job. It includes everything that determines which subproblem an
/// index denotes, and a version, to be raised when the order of symmetry cases or prefixes changes.
impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |squares: &[Square]| {
            let words: Vec<String> = squares.iter().map(Square::to_string).collect();
            format!("[{}]", words.join(" "))
        };
        write!(
            f,
            "nqueens-job/1 piece={} n={} placed={} blocked={} scheme={} depth={} unit={}",
            self.problem.piece(),
            self.problem.n(),
            list(self.problem.placed()),
            list(self.problem.blocked()),
            self.scheme.name(),
            self.depth,
            self.unit_prefixes
        )
    }
}

/// The error returned when a text does not denote a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the text of a job")]
pub struct JobTextError(String);

/// Parses exactly the canonical text.
impl FromStr for Job {
    type Err = JobTextError;

    fn from_str(text: &str) -> Result<Self, JobTextError> {
        parse(text)
            .filter(|job| job.to_string() == text)
            .ok_or_else(|| JobTextError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Job> {
    let list = |words: &str| {
        words.split_whitespace().map(|word| word.parse().ok()).collect::<Option<Vec<Square>>>()
    };
    let rest = text.strip_prefix("nqueens-job/1 piece=")?;
    let (piece, rest) = rest.split_once(" n=")?;
    let (n, rest) = rest.split_once(" placed=[")?;
    let (placed, rest) = rest.split_once("] blocked=[")?;
    let (blocked, rest) = rest.split_once("] scheme=")?;
    let (scheme, rest) = rest.split_once(" depth=")?;
    let (depth, unit) = rest.split_once(" unit=")?;
    let problem =
        Problem::new(piece.parse().ok()?, n.parse().ok()?, list(placed)?, list(blocked)?).ok()?;
    let scheme = Scheme::ALL.into_iter().find(|s| s.name() == scheme)?;
    Job::new(problem, scheme, Some(depth.parse().ok()?), unit.parse().ok()?).ok()
}

/// The identifier of a job: 128 bits, written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct JobHash([u8; 16]);

impl JobHash {
    /// Creates a hash from bytes that were stored or transmitted.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the hash.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for JobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<JobHash> for String {
    fn from(hash: JobHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for JobHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const WRONG: &str = "a job hash is 32 hexadecimal digits";
        if text.len() != 32 || !text.is_ascii() {
            return Err(WRONG);
        }
        let mut bytes = [0; 16];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).map_err(|_| WRONG)?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn job(problem: Problem) -> Job {
        let scheme = Scheme::best(&problem);
        Job::new(problem, scheme, None, 64).expect("small enough")
    }

    #[test]
    fn the_hash_of_a_job_is_stable_and_distinguishes_jobs() {
        let empty = |n| job(Problem::empty(Piece::Queen, n));
        assert_eq!(
            empty(16).to_string(),
            "nqueens-job/1 piece=queen n=16 placed=[] blocked=[] scheme=centre-cross depth=4 unit=64"
        );
        assert_eq!(empty(16).hash().to_string(), "e5de266bef88e30784f61efc53666cec");
        assert_ne!(empty(16).hash(), empty(17).hash());
        let text = String::from(empty(16).hash());
        assert_eq!(JobHash::try_from(text), Ok(empty(16).hash()));
        assert!(JobHash::try_from("12".to_owned()).is_err());
        assert!(JobHash::try_from("é".repeat(16)).is_err());
    }

    #[test]
    fn the_text_of_a_job_parses_to_that_job() {
        let at = Square::new;
        let decided =
            Problem::new(Piece::Queen, 9, vec![at(1, 3), at(0, 0)], vec![at(8, 8), at(4, 4)]);
        for job in [
            job(Problem::empty(Piece::Queen, 0)),
            job(Problem::empty(Piece::Rook, 32)),
            job(Problem::empty(Piece::Toroidal, 7)),
            job(decided.expect("squares on the board")),
        ] {
            let text = job.to_string();
            assert_eq!(text.parse(), Ok(job));
            for end in 0..text.len() {
                // A truncated text is not a job, unless only digits of the last number are missing.
                let cut = &text[..end];
                assert_eq!(cut.parse::<Job>().map_or(cut.to_owned(), |job| job.to_string()), cut);
            }
        }
        for text in [
            "",
            "nqueens-job/2",
            "nqueens-job/1 piece=queen n=99 placed=[] blocked=[] scheme=whole depth=0 unit=1",
            "nqueens-job/1 piece=rook n=9 placed=[] blocked=[] scheme=column-sets depth=0 unit=1",
        ] {
            assert!(text.parse::<Job>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_job_round_trips_through_text(
            piece in prop::sample::select(&Piece::ALL[..]),
            scheme in prop::sample::select(&Scheme::ALL[..]),
            n in 0..=MAX_COUNT_SIZE,
            squares in prop::collection::vec((0..MAX_COUNT_SIZE, 0..MAX_COUNT_SIZE, any::<bool>()), 0..12),
            depth in prop::option::of(0usize..12),
            unit in any::<u64>(),
        ) {
            let on_board = squares.into_iter().filter(|&(row, col, _)| row < n && col < n);
            let (mut placed, mut blocked) = (Vec::new(), Vec::new());
            for (row, col, place) in on_board {
                let square = Square::new(row, col);
                let (list, other) =
                    if place { (&mut placed, &blocked) } else { (&mut blocked, &placed) };
                if !other.contains(&square) {
                    list.push(square);
                }
            }
            let problem = Problem::new(piece, n, placed, blocked).expect("on the board, not both");
            let scheme = if piece == Piece::Queen || scheme != Scheme::ColumnSets {
                scheme
            } else {
                prop_assert!(Job::new(problem, scheme, depth, unit).is_err());
                return Ok(());
            };
            let job = Job::new(problem, scheme, depth, unit).expect("small enough");
            let read: Job = job.to_string().parse().expect("its own text");
            prop_assert_eq!(read.hash(), job.hash());
            prop_assert_eq!(read, job);
        }
    }

    #[test]
    fn boards_larger_than_32_are_refused_with_the_reason() {
        let problem = Problem::empty(Piece::Queen, 33);
        let error = Job::new(problem, Scheme::CentreCross, None, 1).expect_err("too large");
        assert!(error.to_string().contains("32-bit"));
    }
}
