//! The first and the most beautiful solutions that were proved, from `records`.

use nqueens_proof::board::{Norm, Piece, Placement, Problem};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{RequestError, check_size};

/// The largest board that the page shows.
const LARGEST: usize = 100;

const FIRST: &str = include_str!("../../../records/first.csv");
const BEAUTIFUL: &str = include_str!("../../../records/beautiful.csv");

/// The kind of a recorded solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The lexicographically first solution.
    First,
    /// A most beautiful solution: its fingerprint is the lexicographically smallest.
    Beautiful,
}

impl Kind {
    const fn rows(self) -> &'static str {
        match self {
            Self::First => FIRST,
            Self::Beautiful => BEAUTIFUL,
        }
    }

    /// Returns the cell of the column `placement` for the board size `n`, if it was proved.
    fn placement(self, n: usize) -> Option<&'static str> {
        let mut rows = self.rows().lines();
        let names: Vec<&str> = rows.next()?.split(',').collect();
        let column = |name| names.iter().position(|&found| found == name);
        let (size, placement, status) = (column("n")?, column("placement")?, column("status")?);
        rows.map(|row| row.split(',').collect::<Vec<_>>())
            .find(|row| {
                row.get(size).is_some_and(|found| found.parse() == Ok(n))
                    && row.get(status) == Some(&"proven")
            })
            .and_then(|row| row.get(placement).copied())
    }
}

/// Returns the answer to `record`: `status` is `solution`, `none` (proved that there is none) or
/// `unknown`; a solution has `columns`, counted from 1, and `rings`: each cost of a queen by the
/// Euclidean norm and the number of queens with it, from the largest cost.
pub(crate) fn answer(kind: Kind, n: usize) -> Result<Value, RequestError> {
    check_size("the gallery", n, LARGEST)?;
    // There are two boards without a solution, and most beautiful ones are not recorded for these.
    let Some(cell) = (if matches!(n, 2 | 3) { Some("none") } else { kind.placement(n) }) else {
        return Ok(json!({ "status": "unknown" }));
    };
    if cell == "none" {
        return Ok(json!({ "status": "none" }));
    }
    let columns: Vec<usize> =
        cell.split(' ').filter_map(|word| word.parse::<usize>().ok()?.checked_sub(1)).collect();
    Placement::check_solution(&Problem::empty(Piece::Queen, n), &columns)?;
    let mut rings: Vec<(u64, usize)> = Vec::new();
    for cost in Norm::Euclidean.fingerprint(&columns) {
        match rings.last_mut() {
            Some((last, queens)) if *last == cost => *queens += 1,
            _ => rings.push((cost, 1)),
        }
    }
    let columns: Vec<usize> = columns.iter().map(|col| col + 1).collect();
    Ok(json!({ "status": "solution", "columns": columns, "rings": rings }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_solution_passes_the_checker() {
        let status = |kind, n| answer(kind, n).expect("a valid placement")["status"].clone();
        for kind in [Kind::First, Kind::Beautiful] {
            assert_eq!((status(kind, 2), status(kind, 3)), (json!("none"), json!("none")));
            let solved = (1..=LARGEST).filter(|&n| status(kind, n) == "solution");
            // Some first solutions above n = 77 are not proved yet.
            assert!(solved.count() >= 90, "{kind:?}");
        }
        assert!((4..=77).all(|n| status(Kind::First, n) == "solution"));
        assert!((4..=100).all(|n| status(Kind::Beautiful, n) == "solution"));
    }

    #[test]
    fn the_rings_are_the_fingerprint() {
        let found = answer(Kind::Beautiful, 8).expect("a record");
        assert_eq!(found["rings"], json!([[58, 2], [50, 2], [34, 2], [26, 2]]));
        assert_eq!(
            answer(Kind::First, 8).expect("a record")["columns"],
            json!([1, 5, 8, 6, 3, 7, 2, 4])
        );
    }
}
