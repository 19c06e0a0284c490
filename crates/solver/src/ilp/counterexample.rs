//! Counterexample searches: plain searches, in integers, that confirm or refute the claims of a
//! floating-point solver.
//!
//! Each is an exhaustive search for a counterexample (an earlier solution, a heavier one, a larger
//! set, a smaller fingerprint). Where that takes more than [`BUDGET`] nodes the result is
//! [`ClaimCheck::Undecided`], and nothing is claimed. The searches share only the definition of the
//! board with the methods that they check.

use std::collections::BTreeSet;

use crate::progress::{Progress, ProgressSink};
use nqueens_proof::board::{Piece, Problem, Square};

/// Node limit of a search: some seconds. The first solution for n = 30 takes 56 million.
pub const BUDGET: u64 = 400_000_000;

/// The largest supported board: a row is one mask.
pub const LARGEST: usize = 128;

/// The result of checking a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimCheck<T> {
    /// There is no counterexample.
    Confirmed,
    /// A counterexample.
    Refuted(T),
    /// The search reached its node limit or was stopped, or the board is too large.
    Undecided,
}

/// The end of a search.
enum SearchEnd<T> {
    Exhausted,
    Found(T),
    GivenUp,
}

impl<T> From<SearchEnd<T>> for ClaimCheck<T> {
    fn from(end: SearchEnd<T>) -> Self {
        match end {
            SearchEnd::Exhausted => Self::Confirmed,
            SearchEnd::Found(found) => Self::Refuted(found),
            SearchEnd::GivenUp => Self::Undecided,
        }
    }
}

/// Counts nodes and reports to the progress sink from time to time.
struct Meter<'a> {
    sink: &'a mut dyn ProgressSink,
    nodes: u64,
}

impl Meter<'_> {
    /// Counts a node. Returns whether the search may continue.
    fn step(&mut self) -> bool {
        self.nodes += 1;
        let due = self.nodes.is_multiple_of(1 << 20);
        self.nodes < BUDGET && !(due && self.sink.report(&Progress::default()).is_break())
    }
}

/// The rows of a board, searched from the top, columns from the left. Attacked squares are masks
/// that are shifted from row to row.
struct Rows {
    /// Allowed squares by row; for a row with a placed piece, only its square.
    allowed: Vec<u128>,
    diagonals: bool,
}

#[derive(Clone, Copy, Default)]
struct Attacked {
    columns: u128,
    falling_right: u128,
    falling_left: u128,
}

impl Rows {
    fn new(problem: &Problem) -> Option<Self> {
        let n = problem.n();
        if n > LARGEST {
            return None;
        }
        let mut allowed: Vec<u128> =
            vec![u128::MAX.checked_shr((LARGEST - n) as u32).unwrap_or(0); n];
        for square in problem.blocked() {
            allowed[square.row] &= !(1 << square.col);
        }
        for square in problem.placed() {
            allowed[square.row] &= 1 << square.col;
        }
        Some(Self { allowed, diagonals: problem.piece() == Piece::Queen })
    }

    fn free(&self, row: usize, attacked: Attacked) -> u128 {
        self.allowed[row] & !(attacked.columns | attacked.falling_right | attacked.falling_left)
    }

    /// Returns the squares attacked on the next row if this row has a piece on `bit`, or no piece
    /// if `bit` is 0.
    fn below(&self, attacked: Attacked, bit: u128) -> Attacked {
        let on_diagonals = if self.diagonals { bit } else { 0 };
        Attacked {
            columns: attacked.columns | bit,
            falling_right: (attacked.falling_right | on_diagonals) << 1,
            falling_left: (attacked.falling_left | on_diagonals) >> 1,
        }
    }
}

/// Iterates over the columns of a mask from the left, each with its bit.
fn columns(mut mask: u128) -> impl Iterator<Item = (usize, u128)> {
    std::iter::from_fn(move || {
        let bit = mask & mask.wrapping_neg();
        mask ^= bit;
        (bit != 0).then(|| (bit.trailing_zeros() as usize, bit))
    })
}

/// Checks that `claim` is the lexicographically first solution of `problem`, or that there is none
/// if it is `None`. A counterexample is an earlier solution.
pub fn first(
    problem: &Problem,
    claim: Option<&[usize]>,
    sink: &mut dyn ProgressSink,
) -> ClaimCheck<Vec<usize>> {
    let Some(rows) = Rows::new(problem) else { return ClaimCheck::Undecided };
    let mut meter = Meter { sink, nodes: 0 };
    earlier(&rows, claim, &mut Vec::new(), Attacked::default(), &mut meter).into()
}

/// Searches for a solution before `claim`, which is `None` once `chosen` comes before it.
fn earlier(
    rows: &Rows,
    claim: Option<&[usize]>,
    chosen: &mut Vec<usize>,
    attacked: Attacked,
    meter: &mut Meter<'_>,
) -> SearchEnd<Vec<usize>> {
    if !meter.step() {
        return SearchEnd::GivenUp;
    }
    let row = chosen.len();
    if row == rows.allowed.len() {
        // The claim itself is no counterexample.
        return if claim.is_some() {
            SearchEnd::Exhausted
        } else {
            SearchEnd::Found(chosen.clone())
        };
    }
    for (column, bit) in columns(rows.free(row, attacked)) {
        let claim = match claim {
            Some(claim) if column > claim[row] => break,
            Some(claim) => (column == claim[row]).then_some(claim),
            None => None,
        };
        chosen.push(column);
        let end = earlier(rows, claim, chosen, rows.below(attacked, bit), meter);
        chosen.pop();
        if !matches!(end, SearchEnd::Exhausted) {
            return end;
        }
    }
    SearchEnd::Exhausted
}

/// Checks that these are all solutions of `problem`. A counterexample is a missing solution.
pub fn complete(
    problem: &Problem,
    found: &BTreeSet<Vec<usize>>,
    sink: &mut dyn ProgressSink,
) -> ClaimCheck<Vec<usize>> {
    let Some(rows) = Rows::new(problem) else { return ClaimCheck::Undecided };
    let mut meter = Meter { sink, nodes: 0 };
    missing(&rows, found, &mut Vec::new(), Attacked::default(), &mut meter).into()
}

fn missing(
    rows: &Rows,
    found: &BTreeSet<Vec<usize>>,
    chosen: &mut Vec<usize>,
    attacked: Attacked,
    meter: &mut Meter<'_>,
) -> SearchEnd<Vec<usize>> {
    if !meter.step() {
        return SearchEnd::GivenUp;
    }
    if chosen.len() == rows.allowed.len() {
        return if found.contains(chosen) {
            SearchEnd::Exhausted
        } else {
            SearchEnd::Found(chosen.clone())
        };
    }
    for (column, bit) in columns(rows.free(chosen.len(), attacked)) {
        chosen.push(column);
        let end = missing(rows, found, chosen, rows.below(attacked, bit), meter);
        chosen.pop();
        if !matches!(end, SearchEnd::Exhausted) {
            return end;
        }
    }
    SearchEnd::Exhausted
}

/// Checks that no solution of `problem` has a sum of weights above `claim`, or that there is no
/// solution if it is `None`. `weights` are those of the squares, row by row; a counterexample is a
/// heavier solution.
pub fn heaviest(
    problem: &Problem,
    weights: &[i64],
    claim: Option<i128>,
    sink: &mut dyn ProgressSink,
) -> ClaimCheck<Vec<usize>> {
    let n = problem.n();
    let Some(rows) = Rows::new(problem) else { return ClaimCheck::Undecided };
    // Upper bounds on the weight of the rows from a given one on.
    let mut most = vec![0i128; n + 1];
    for row in (0..n).rev() {
        let best = weights[row * n..(row + 1) * n].iter().max().copied().unwrap_or(0);
        most[row] = most[row + 1] + i128::from(best);
    }
    let mut meter = Meter { sink, nodes: 0 };
    let task = Heavier { rows: &rows, weights, most: &most, claim };
    task.search(&mut Vec::new(), 0, Attacked::default(), &mut meter).into()
}

struct Heavier<'a> {
    rows: &'a Rows,
    weights: &'a [i64],
    most: &'a [i128],
    claim: Option<i128>,
}

impl Heavier<'_> {
    fn search(
        &self,
        chosen: &mut Vec<usize>,
        weight: i128,
        attacked: Attacked,
        meter: &mut Meter<'_>,
    ) -> SearchEnd<Vec<usize>> {
        if !meter.step() {
            return SearchEnd::GivenUp;
        }
        let (row, n) = (chosen.len(), self.rows.allowed.len());
        if self.claim.is_some_and(|claim| weight + self.most[row] <= claim) {
            return SearchEnd::Exhausted;
        }
        if row == n {
            return SearchEnd::Found(chosen.clone());
        }
        for (column, bit) in columns(self.rows.free(row, attacked)) {
            chosen.push(column);
            let weight = weight + i128::from(self.weights[row * n + column]);
            let end = self.search(chosen, weight, self.rows.below(attacked, bit), meter);
            chosen.pop();
            if !matches!(end, SearchEnd::Exhausted) {
                return end;
            }
        }
        SearchEnd::Exhausted
    }
}

/// Checks that no non-attacking set of `problem` has more than `claim` pieces. A counterexample is
/// a larger set.
pub fn largest(
    problem: &Problem,
    claim: usize,
    sink: &mut dyn ProgressSink,
) -> ClaimCheck<Vec<Square>> {
    let Some(rows) = Rows::new(problem) else { return ClaimCheck::Undecided };
    if claim >= problem.n() {
        return ClaimCheck::Confirmed; // at most one per row
    }
    let mut meter = Meter { sink, nodes: 0 };
    let placed: Vec<bool> = (0..problem.n())
        .map(|row| problem.placed().iter().any(|square| square.row == row))
        .collect();
    let mut chosen = Vec::new();
    larger(&rows, &placed, problem.n() - claim - 1, 0, &mut chosen, Attacked::default(), &mut meter)
        .into()
}

/// Searches for a set that leaves at most `spare` more rows empty, none of them with a placed
/// piece.
fn larger(
    rows: &Rows,
    placed: &[bool],
    spare: usize,
    row: usize,
    chosen: &mut Vec<Square>,
    attacked: Attacked,
    meter: &mut Meter<'_>,
) -> SearchEnd<Vec<Square>> {
    if !meter.step() {
        return SearchEnd::GivenUp;
    }
    if row == rows.allowed.len() {
        return SearchEnd::Found(chosen.clone());
    }
    for (column, bit) in columns(rows.free(row, attacked)) {
        chosen.push(Square::new(row, column));
        let end = larger(rows, placed, spare, row + 1, chosen, rows.below(attacked, bit), meter);
        chosen.pop();
        if !matches!(end, SearchEnd::Exhausted) {
            return end;
        }
    }
    if spare == 0 || placed[row] {
        return SearchEnd::Exhausted;
    }
    larger(rows, placed, spare - 1, row + 1, chosen, rows.below(attacked, 0), meter)
}

/// Checks that no solution of the empty board of size `n` has a fingerprint below `claim`, or that
/// there is no solution if it is `None`. A counterexample is a solution with a smaller fingerprint.
/// See [`crate::beautiful::fingerprint`].
pub fn most_beautiful(
    n: usize,
    claim: Option<&[u64]>,
    sink: &mut dyn ProgressSink,
) -> ClaimCheck<Vec<usize>> {
    // From the border inward: large costs come first.
    let order = (0..n).map(|k| if k % 2 == 0 { k / 2 } else { n - 1 - k / 2 }).collect();
    let mut search = SmallerFingerprint {
        n,
        order,
        claim,
        columns: vec![None; n],
        used: vec![false; n],
        falling: vec![false; 2 * n],
        rising: vec![false; 2 * n],
        costs: Vec::new(),
        meter: Meter { sink, nodes: 0 },
    };
    search.from(0).into()
}

struct SmallerFingerprint<'a> {
    n: usize,
    order: Vec<usize>,
    claim: Option<&'a [u64]>,
    columns: Vec<Option<usize>>,
    used: Vec<bool>,
    falling: Vec<bool>,
    rising: Vec<bool>,
    /// Costs of the placed queens, in descending order.
    costs: Vec<u64>,
    meter: Meter<'a>,
}

impl SmallerFingerprint<'_> {
    /// Returns whether the fingerprint can still become smaller than the claim. More queens only
    /// increase it, entry by entry.
    fn can_be_smaller(&self) -> bool {
        self.claim.is_none_or(|claim| self.costs[..] < claim[..])
    }

    fn from(&mut self, depth: usize) -> SearchEnd<Vec<usize>> {
        if !self.meter.step() {
            return SearchEnd::GivenUp;
        }
        if depth == self.n {
            // Only n = 0 gets here without a check of its costs.
            let solution = || self.columns.iter().flatten().copied().collect();
            return if self.can_be_smaller() {
                SearchEnd::Found(solution())
            } else {
                SearchEnd::Exhausted
            };
        }
        let row = self.order[depth];
        for column in 0..self.n {
            let (falling, rising) = (self.n + column - row, row + column);
            if self.used[column] || self.falling[falling] || self.rising[rising] {
                continue;
            }
            let cost = crate::beautiful::cost(self.n, Square::new(row, column));
            let place = self.costs.partition_point(|&other| other >= cost);
            self.costs.insert(place, cost);
            if self.can_be_smaller() {
                self.set(row, column, true);
                let end = self.from(depth + 1);
                self.set(row, column, false);
                if !matches!(end, SearchEnd::Exhausted) {
                    return end;
                }
            }
            self.costs.remove(place);
        }
        SearchEnd::Exhausted
    }

    fn set(&mut self, row: usize, column: usize, occupied: bool) {
        self.columns[row] = occupied.then_some(column);
        self.used[column] = occupied;
        self.falling[self.n + column - row] = occupied;
        self.rising[row + column] = occupied;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beautiful::fingerprint;
    use crate::progress::Unobserved;
    use nqueens_proof::board::is_solution;

    fn all(n: usize) -> Vec<Vec<usize>> {
        let mut found = vec![Vec::new()];
        for _ in 0..n {
            let longer = found.iter().flat_map(|p: &Vec<usize>| {
                (0..n).map(move |c| p.iter().copied().chain([c]).collect::<Vec<usize>>())
            });
            let non_attacking = |p: &Vec<usize>| {
                let squares: Vec<Square> =
                    p.iter().enumerate().map(|(r, &c)| Square::new(r, c)).collect();
                nqueens_proof::board::first_attack(Piece::Queen, n, &squares).is_none()
            };
            found = longer.filter(non_attacking).collect();
        }
        assert!(found.iter().all(|p| is_solution(Piece::Queen, p)));
        found
    }

    #[test]
    fn only_the_first_solution_is_confirmed_to_be_the_first() {
        for n in 0..=7 {
            let problem = Problem::empty(Piece::Queen, n);
            let solutions = all(n);
            let none = first(&problem, None, &mut Unobserved);
            assert_eq!(none == ClaimCheck::Confirmed, solutions.is_empty(), "n = {n}");
            for (i, solution) in solutions.iter().enumerate() {
                match first(&problem, Some(solution), &mut Unobserved) {
                    ClaimCheck::Confirmed => assert_eq!(i, 0),
                    ClaimCheck::Refuted(earlier) => {
                        assert_eq!((earlier, i > 0), (solutions[0].clone(), true))
                    }
                    ClaimCheck::Undecided => panic!("n = {n} is small"),
                }
            }
        }
    }

    #[test]
    fn a_list_with_a_solution_missing_is_refuted() {
        let problem = Problem::empty(Piece::Queen, 6);
        let mut found: BTreeSet<Vec<usize>> = all(6).into_iter().collect();
        assert_eq!(complete(&problem, &found, &mut Unobserved), ClaimCheck::Confirmed);
        let missing = found.pop_last().expect("n = 6 has solutions");
        assert_eq!(complete(&problem, &found, &mut Unobserved), ClaimCheck::Refuted(missing));
    }

    #[test]
    fn only_the_greatest_weight_is_confirmed() {
        let problem = Problem::empty(Piece::Queen, 6);
        let weights: Vec<i64> = (0..36).map(|k| (k * k * 7 + 3 * k) % 23 - 11).collect();
        let weight =
            |p: &[usize]| p.iter().enumerate().map(|(r, &c)| i128::from(weights[6 * r + c])).sum();
        let best: i128 = all(6).iter().map(|p| weight(p)).max().expect("n = 6 has solutions");
        assert_eq!(
            heaviest(&problem, &weights, Some(best), &mut Unobserved),
            ClaimCheck::Confirmed
        );
        match heaviest(&problem, &weights, Some(best - 1), &mut Unobserved) {
            ClaimCheck::Refuted(heavier) => assert_eq!(weight(&heavier), best),
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            heaviest(&problem, &weights, None, &mut Unobserved),
            ClaimCheck::Refuted(_)
        ));
    }

    #[test]
    fn the_largest_sets_have_the_known_sizes() {
        for (n, queens) in [(0, 0), (1, 1), (2, 1), (3, 2), (4, 4), (5, 5)] {
            let problem = Problem::empty(Piece::Queen, n);
            assert_eq!(
                largest(&problem, queens, &mut Unobserved),
                ClaimCheck::Confirmed,
                "n = {n}"
            );
            if queens > 0 {
                let larger = largest(&problem, queens - 1, &mut Unobserved);
                assert!(
                    matches!(larger, ClaimCheck::Refuted(set) if set.len() >= queens),
                    "n = {n}"
                );
            }
        }
    }

    #[test]
    fn only_the_smallest_fingerprint_is_confirmed() {
        for n in 4..=7 {
            let best = all(n).iter().map(|p| fingerprint(p)).min().expect("a solution");
            for solution in all(n) {
                let claim = fingerprint(&solution);
                match most_beautiful(n, Some(&claim), &mut Unobserved) {
                    ClaimCheck::Confirmed => assert_eq!(claim, best),
                    ClaimCheck::Refuted(other) => assert!(fingerprint(&other) < claim),
                    ClaimCheck::Undecided => panic!("n = {n} is small"),
                }
            }
        }
        assert_eq!(most_beautiful(3, None, &mut Unobserved), ClaimCheck::Confirmed);
        assert_eq!(most_beautiful(0, Some(&[]), &mut Unobserved), ClaimCheck::Confirmed);
    }
}
