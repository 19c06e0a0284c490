//! The sources of published values, and what is compared with each.

use std::fmt;
use std::str::FromStr;

use super::computation::Computation;
use super::published::{LARGEST_OF_OEIS, fingerprints, first_solutions, sequence};
use super::row::Values;
use crate::board::Piece;
use crate::oeis::{Sequence, lookup};
use crate::solver::classical::Method;
use crate::solver::ilp::FirstMethod;

/// A source of published values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    FischettiSalvagnin,
    Oeis,
    Textbook,
}

/// A published value, and the computation that must give it.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) n: usize,
    pub(super) published: Values,
    pub(super) computation: Computation,
    /// True if it is part of `--quick`.
    pub(super) quick: bool,
}

/// Comparisons of the same kind.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) title: String,
    pub(super) comparisons: Vec<Comparison>,
}

/// The largest sizes of a table: those of `--quick`, and all.
#[derive(Clone, Copy)]
struct Sizes {
    quick: usize,
    all: usize,
}

impl Source {
    pub(super) const ALL: [Self; 3] = [Self::FischettiSalvagnin, Self::Oeis, Self::Textbook];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::FischettiSalvagnin => "fischetti-salvagnin",
            Self::Oeis => "oeis",
            Self::Textbook => "textbook",
        }
    }

    /// Returns the publication.
    pub(super) const fn publication(self) -> &'static str {
        match self {
            Self::FischettiSalvagnin => {
                "M. Fischetti, D. Salvagnin: Finding first and most-beautiful queens by integer programming, arXiv 1907.08246"
            }
            Self::Oeis => {
                "The On-Line Encyclopedia of Integer Sequences: numbers of solutions, first solutions, greedy queens"
            }
            Self::Textbook => {
                "Exercises: brute force, permutations, column by column, backtracking, its search tree (with the numbers of OEIS)"
            }
        }
    }

    /// Returns the wall-clock seconds that the comparisons took on two cores of an AMD EPYC, beside
    /// other work, on 2026-11-24.
    pub(super) const fn measured_s(self, quick: bool) -> f64 {
        match (self, quick) {
            (Self::FischettiSalvagnin, true) => 5.0,
            (Self::FischettiSalvagnin, false) => 83.0,
            (Self::Oeis, true) => 1.0,
            (Self::Oeis, false) => 100.0,
            (Self::Textbook, true) => 1.0,
            (Self::Textbook, false) => 6.0,
        }
    }

    /// Returns the comparisons, or those of `--quick`.
    pub(super) fn tables(self, quick: bool) -> Vec<Table> {
        let mut tables = match self {
            Self::FischettiSalvagnin => paper(),
            Self::Oeis => oeis(),
            Self::Textbook => textbook(),
        };
        for table in &mut tables {
            table.comparisons.retain(|comparison| comparison.quick || !quick);
        }
        tables.retain(|table| !table.comparisons.is_empty());
        tables
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|source| source.name() == text);
        known.ok_or_else(|| {
            format!("invalid source '{text}'; choose fischetti-salvagnin, oeis or textbook")
        })
    }
}

/// Returns a table of the published values up to these sizes.
fn table(
    title: impl Into<String>,
    published: impl Iterator<Item = (usize, Values)>,
    sizes: Sizes,
    computation: Computation,
) -> Table {
    let comparisons = published.filter(|(n, _)| *n <= sizes.all).map(|(n, published)| Comparison {
        n,
        published,
        computation,
        quick: n <= sizes.quick,
    });
    Table { title: title.into(), comparisons: comparisons.collect() }
}

fn paper() -> Vec<Table> {
    let of_paper = first_solutions().filter(|(n, _)| *n > LARGEST_OF_OEIS);
    let mut tables = vec![
        table(
            "First solutions, found by the authors with CPLEX",
            of_paper,
            Sizes { quick: 71, all: 101 },
            Computation::First(FirstMethod::Exact),
        ),
        table(
            "Fingerprints of the most beautiful solutions",
            fingerprints(),
            Sizes { quick: 80, all: 112 },
            Computation::Fingerprint,
        ),
    ];
    let methods = [
        (Computation::First(FirstMethod::Cp), Sizes { quick: 24, all: 30 }),
        (Computation::First(FirstMethod::IlpIter), Sizes { quick: 10, all: 14 }),
        (Computation::First(FirstMethod::IlpTrunc), Sizes { quick: 10, all: 12 }),
        (Computation::First(FirstMethod::LexDfs), Sizes { quick: 10, all: 14 }),
        (Computation::FirstWithCuts, Sizes { quick: 10, all: 12 }),
        (Computation::First(FirstMethod::CuttingPlane), Sizes { quick: 8, all: 10 }),
        (Computation::First(FirstMethod::IlpWeights), Sizes { quick: 8, all: 10 }),
    ];
    let by_method = methods.into_iter().flat_map(|(computation, sizes)| {
        let even = first_solutions().filter(|(n, _)| *n >= 8 && n % 2 == 0);
        table("", even, sizes, computation).comparisons
    });
    tables.push(Table {
        title: "First solutions (OEIS A141843) by the methods of section 3".into(),
        comparisons: by_method.collect(),
    });
    tables
}

/// Returns the known terms of a sequence from n = 1 on.
fn counts(sequence: Sequence) -> impl Iterator<Item = (usize, Values)> {
    let term = move |n| Some((n, Values(vec![lookup(sequence, n)?])));
    (1..).map_while(term)
}

fn oeis() -> Vec<Table> {
    let queen = Piece::Queen;
    let sequences = [
        (Sequence::Total, Sizes { quick: 17, all: 20 }, Computation::Total(queen)),
        (Sequence::Fundamental, Sizes { quick: 16, all: 18 }, Computation::Fundamental(queen)),
        (Sequence::PointSymmetric, Sizes { quick: 20, all: 24 }, Computation::HalfTurn),
        (Sequence::QuarterTurnSymmetric, Sizes { quick: 29, all: 32 }, Computation::QuarterTurn),
        (Sequence::Toroidal, Sizes { quick: 14, all: 17 }, Computation::Total(Piece::Toroidal)),
        (
            Sequence::Superqueens,
            Sizes { quick: 15, all: 18 },
            Computation::Total(Piece::Superqueen),
        ),
        (
            Sequence::SuperqueensFundamental,
            Sizes { quick: 14, all: 17 },
            Computation::Fundamental(Piece::Superqueen),
        ),
    ];
    let mut tables: Vec<Table> = sequences
        .into_iter()
        .map(|(sequence, sizes, computation)| {
            let title = format!("{}: {}", sequence.oeis(), sequence.title());
            table(title, counts(sequence), sizes, computation)
        })
        .collect();
    let all = Sizes { quick: LARGEST_OF_OEIS - 1, all: LARGEST_OF_OEIS };
    let exact = Computation::First(FirstMethod::Exact);
    tables.push(table("A141843: first solutions", first_solutions(), all, exact));
    let any = Sizes { quick: usize::MAX, all: usize::MAX };
    let greedy = sequence("A065188");
    tables.push(table("A065188: greedy queens", greedy, any, Computation::Greedy));
    tables
}

fn textbook() -> Vec<Table> {
    let totals = || counts(Sequence::Total).filter(|(n, _)| *n >= 4);
    let rooks = counts(Sequence::Rooks).filter(|(n, _)| *n >= 4);
    let (brute_force, permutations) = (Sizes { quick: 7, all: 8 }, Sizes { quick: 8, all: 10 });
    let backtracking = Sizes { quick: 12, all: 14 };
    vec![
        table(
            "Brute force: one queen in each row (A000312)",
            sequence("A000312"),
            brute_force,
            Computation::Configurations,
        ),
        table(
            "  … of which solutions (A000170)",
            totals(),
            brute_force,
            Computation::Listed(Method::BruteForce),
        ),
        table(
            "Permutations: one queen in each row and column (A000142)",
            rooks,
            permutations,
            Computation::Permutations,
        ),
        table(
            "  … of which solutions (A000170)",
            totals(),
            permutations,
            Computation::SolutionsOfPermutations,
        ),
        table(
            "Column by column: solutions (A000170)",
            totals(),
            Sizes { quick: 10, all: 12 },
            Computation::Listed(Method::Columns),
        ),
        table(
            "Backtracking: solutions (A000170)",
            totals(),
            backtracking,
            Computation::Listed(Method::Backtracking),
        ),
        table(
            "Backtracking: solutions by the column in row 1 (A059963)",
            sequence("A059963"),
            backtracking,
            Computation::ByFirstRow,
        ),
        table(
            "The backtrack tree: nodes by level (Knuth, The Art of Computer Programming, 7.2.2; A319284)",
            sequence("A319284"),
            Sizes { quick: 10, all: 12 },
            Computation::Profile,
        ),
        table(
            "Backtracking: queens placed until the first solution (Pearson; A140450)",
            sequence("A140450"),
            Sizes { quick: 17, all: 27 },
            Computation::Tentative,
        ),
    ]
}
