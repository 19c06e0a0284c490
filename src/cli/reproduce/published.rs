//! The published values, read from the files in `records/published/`, which states their sources.

use super::row::Values;

const FIRST_QUEENS: &str = include_str!("../../../records/published/first_queens.csv");
const FINGERPRINTS: &str = include_str!("../../../records/published/beautiful_fingerprints.csv");
const SEQUENCES: &str = include_str!("../../../records/published/sequences.csv");

/// The largest n whose first solution is from OEIS A141843. The others are from Fischetti and
/// Salvagnin.
pub(super) const LARGEST_OF_OEIS: usize = 36;

/// The largest n whose fingerprint is from an exhaustive search, not from a publication.
const LARGEST_SEARCHED: usize = 21;

/// Returns the sizes with a published first solution, and the columns, from 1. A board without a
/// solution has zeros.
pub(super) fn first_solutions() -> impl Iterator<Item = (usize, Values)> {
    rows(FIRST_QUEENS).map(|(n, rest)| (n, terms(rest)))
}

/// Returns the sizes with a published fingerprint of the most beautiful solutions, and the
/// fingerprint.
pub(super) fn fingerprints() -> impl Iterator<Item = (usize, Values)> {
    let published = rows(FINGERPRINTS).filter(|(n, _)| *n > LARGEST_SEARCHED);
    published.map(|(n, rest)| (n, terms(rest.split_once(',').expect("two fields").1)))
}

/// Returns the sizes with known terms of a sequence, and the terms.
pub(super) fn sequence(oeis: &str) -> impl Iterator<Item = (usize, Values)> {
    let of_sequence = move |line: &'static str| line.strip_prefix(oeis)?.strip_prefix(',');
    SEQUENCES.lines().filter_map(of_sequence).map(|line| {
        let (n, rest) = line.split_once(',').expect("three fields");
        (n.parse().expect("n"), terms(rest))
    })
}

/// Returns the rows of a table: n, and the fields behind it.
fn rows(table: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    table.lines().skip(1).map(|line| {
        let (n, rest) = line.split_once(',').expect("two fields");
        (n.parse().expect("n"), rest)
    })
}

fn terms(text: &str) -> Values {
    Values(text.split(' ').map(|term| term.parse().expect("a number")).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::board::{Piece, Placement, Problem};
    use crate::oeis::{Sequence, lookup};

    #[test]
    fn the_tables_are_readable_and_sorted() {
        let first: Vec<usize> = first_solutions().map(|(n, _)| n).collect();
        assert!(first.is_sorted() && first.len() > 40, "{first:?}");
        assert_eq!(fingerprints().map(|(n, _)| n).collect::<Vec<_>>(), [32, 48, 80, 112]);
        let names: BTreeSet<&str> = SEQUENCES
            .lines()
            .skip(1)
            .map(|line| &line[..line.find(',').expect("fields")])
            .collect();
        for name in names {
            let sizes: Vec<usize> = sequence(name).map(|(n, _)| n).collect();
            assert!(sizes.is_sorted() && !sizes.is_empty(), "{name}: {sizes:?}");
        }
    }

    #[test]
    fn published_first_solutions_are_solutions() {
        for (n, Values(columns)) in first_solutions().filter(|(n, _)| ![2, 3].contains(n)) {
            let columns: Vec<usize> = columns.iter().map(|column| *column as usize - 1).collect();
            let board = Problem::empty(Piece::Queen, n);
            assert_eq!(Placement::check_solution(&board, &columns).map(drop), Ok(()), "n = {n}");
        }
    }

    #[test]
    fn the_sequences_end_in_the_number_of_solutions_or_add_up_to_it() {
        let total = |n| lookup(Sequence::Total, n);
        for (n, Values(profile)) in sequence("A319284") {
            assert_eq!((profile.len(), profile.last().copied()), (n + 1, total(n)));
        }
        for (n, Values(by_column)) in sequence("A059963") {
            assert_eq!((by_column.len(), Some(by_column.iter().sum::<u128>())), (n, total(n)));
        }
        for (n, Values(terms)) in sequence("A000312") {
            assert_eq!(terms, [(n as u128).pow(n as u32)]);
        }
    }
}
