//! One solution, all solutions, fingerprints and pictures.

use std::ops::ControlFlow;
use std::time::Duration;

use nqueens::board::{Norm, Piece, Placement, Problem};
use nqueens::render::{Look, Picture, PictureFormat};
use nqueens::solver::classical::{self, AnswerSink, Ending};
use nqueens::solver::{DefaultMethods, FirstAttempt, cp};
use nqueens::symmetry::{Group, Orbit};

use crate::failure::{Failure, FailureClass};
use crate::observer::{FirstSolution, Observer, Progress, Throttle};

/// A method that finds one solution or all solutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A method of the literature; the seed of local search is in the options.
    Classical(classical::Method),
    /// Constraint programming.
    Cp,
}

impl Method {
    /// Returns the method of [`solve`] with a name.
    ///
    /// # Errors
    /// No such method has this name.
    pub fn for_solving(name: &str) -> Result<Self, Failure> {
        use classical::Method::{Backtracking, Formula, LocalSearch};
        let moves = classical::Method::USUAL_MOVES;
        Self::named(name, [Formula, Backtracking, LocalSearch { seed: 1, moves }])
    }

    /// Returns the method of [`list`] with a name.
    ///
    /// # Errors
    /// No such method has this name.
    pub fn for_listing(name: &str) -> Result<Self, Failure> {
        use classical::Method::{Backtracking, BruteForce, Columns};
        Self::named(name, [Backtracking, Columns, BruteForce])
    }

    /// Returns the method with a name: one of these, or constraint programming.
    fn named(name: &str, methods: [classical::Method; 3]) -> Result<Self, Failure> {
        if name == Self::Cp.name() {
            return Ok(Self::Cp);
        }
        let found = methods.into_iter().find(|method| method.name() == name);
        found.map(Self::Classical).ok_or_else(|| {
            let names = methods.map(classical::Method::name).join(", ");
            Failure::usage(format!("'{name}' is not a method; choose {names} or cp"))
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Classical(method) => method.name(),
            Self::Cp => "cp",
        }
    }

    /// Checks that the method can be used for a board.
    ///
    /// # Errors
    /// The method cannot be used.
    pub fn suits(self, problem: &Problem) -> Result<(), Failure> {
        match self {
            Self::Classical(method) => method.suits(problem).map_err(Failure::usage),
            Self::Cp => suits_cp(problem),
        }
    }
}

/// The options of [`solve`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SolveOptions {
    /// The method; `None` for those that the command line chooses.
    pub method: Option<Method>,
    /// The seed of local search; `None` for 1.
    pub seed: Option<u64>,
    /// The time limit.
    pub time_limit: Option<Duration>,
}

/// Finds one solution of a board.
///
/// # Errors
/// No solution exists, none was found, or the method does not suit the board.
pub fn solve(
    problem: &Problem,
    options: &SolveOptions,
    observer: &mut dyn Observer,
) -> Result<Placement, Failure> {
    let throttle = &mut Throttle::new(observer, options.time_limit);
    let found = match (options.method, options.seed) {
        (Some(Method::Classical(classical::Method::LocalSearch { moves, .. })), seed) => {
            let method = classical::Method::LocalSearch { seed: seed.unwrap_or(1), moves };
            by_classical(problem, method, u64::MAX, throttle)?
        }
        (_, Some(_)) => return Err(Failure::usage("a seed needs the method local-search")),
        (Some(Method::Classical(method)), None) => {
            by_classical(problem, method, u64::MAX, throttle)?
        }
        (Some(Method::Cp), None) => by_cp(problem, throttle)?,
        (None, None) => by_default(problem, throttle)?,
    };
    match found {
        Found::Solution(placement) => Ok(placement),
        Found::None => {
            let reason = problem.conflict().map_or(String::new(), |(a, b)| {
                format!(": the pieces placed on {a} and {b} attack each other")
            });
            let message = format!("no solution exists{reason}");
            Err(Failure::new(FailureClass::NoSolution, message))
        }
        Found::Stopped if throttle.is_interrupted() => Err(Failure::interrupted()),
        Found::Stopped => {
            let message =
                "no solution found, nothing proven: stopped before the proof was complete";
            Err(Failure::new(FailureClass::Unproven, message))
        }
        Found::GaveUp => {
            let message = "no solution found, which does not prove that none exists";
            Err(Failure::new(FailureClass::Unproven, message))
        }
    }
}

/// The result of a method.
enum Found {
    Solution(Placement),
    /// Proven: no solution exists.
    None,
    GaveUp,
    /// Stopped by the time limit or the observer.
    Stopped,
}

fn by_default(problem: &Problem, throttle: &mut Throttle<'_>) -> Result<Found, Failure> {
    let DefaultMethods { first, then_cp } = DefaultMethods::of(problem);
    let found = match first {
        FirstAttempt::Cp => return by_cp(problem, throttle),
        FirstAttempt::Classical(method, most) => by_classical(problem, method, most, throttle)?,
    };
    if matches!(found, Found::GaveUp) && then_cp { by_cp(problem, throttle) } else { Ok(found) }
}

fn by_classical(
    problem: &Problem,
    method: classical::Method,
    most: u64,
    throttle: &mut Throttle<'_>,
) -> Result<Found, Failure> {
    let mut sink = FirstSolution { throttle, most, columns: None };
    let outcome = method.run(problem, &mut sink).map_err(Failure::usage)?;
    Ok(match (sink.columns, outcome.ending) {
        (Some(columns), _) => Found::Solution(checked(problem, method.name(), &columns)?),
        (None, Ending::Exhausted) => Found::None,
        (None, Ending::Stopped) if outcome.tried < most => Found::Stopped,
        (None, Ending::GaveUp | Ending::Stopped) => Found::GaveUp,
    })
}

/// Checks that constraint programming supports the board.
fn suits_cp(problem: &Problem) -> Result<(), Failure> {
    if !cp::suits(problem) {
        return Err(Failure::usage(format!(
            "cp supports up to {} rows without a placed piece; choose another method",
            cp::MOST_OPEN_ROWS
        )));
    }
    if !matches!(problem.piece(), Piece::Queen | Piece::Rook) {
        let message = "cp supports only queens and rooks; choose another method";
        return Err(Failure::usage(message));
    }
    Ok(())
}

fn by_cp(problem: &Problem, throttle: &mut Throttle<'_>) -> Result<Found, Failure> {
    suits_cp(problem)?;
    Ok(match cp::find_one(problem, throttle).0 {
        cp::Event::Solution(columns) => Found::Solution(checked(problem, "cp", &columns)?),
        cp::Event::Exhausted => Found::None,
        cp::Event::Stopped => Found::Stopped,
    })
}

/// Checks a solution of a method.
pub(crate) fn checked(
    problem: &Problem,
    method: &str,
    columns: &[usize],
) -> Result<Placement, Failure> {
    let placement = Placement::check_solution(problem, columns);
    placement.map_err(|error| Failure::refused(method, &error))
}

/// Passes the solutions of a board to `answer` one by one, until it breaks. With `fundamental`,
/// only the lexicographically smallest solution of each orbit is passed. Returns whether these were
/// all solutions.
///
/// # Errors
/// The method does not suit the board, or the observer ended the run.
pub fn list(
    problem: &Problem,
    (method, fundamental): (Method, bool),
    observer: &mut dyn Observer,
    answer: &mut dyn FnMut(&Placement) -> ControlFlow<()>,
) -> Result<bool, Failure> {
    method.suits(problem)?;
    let orbits = fundamental.then(|| Group::of(problem));
    let throttle = Throttle::new(observer, None);
    let name = method.name();
    let mut listing = Listing { problem, name, orbits, answer, throttle, refused: None };
    let is_complete = match method {
        Method::Classical(method) => {
            let outcome = method.run(problem, &mut listing).map_err(Failure::usage)?;
            outcome.ending == Ending::Exhausted
        }
        Method::Cp => {
            let mut search = cp::Search::new(problem, cp::Branching::FirstRow);
            loop {
                match search.next(&mut listing.throttle) {
                    cp::Event::Solution(columns) => {
                        if listing.answer(&columns).is_break() {
                            break false;
                        }
                    }
                    cp::Event::Exhausted => break true,
                    cp::Event::Stopped => break false,
                }
            }
        }
    };
    match listing.refused {
        Some(refused) => Err(refused),
        None if listing.throttle.is_interrupted() => Err(Failure::interrupted()),
        None => Ok(is_complete),
    }
}

struct Listing<'a, 'b> {
    problem: &'a Problem,
    name: &'static str,
    orbits: Option<Group>,
    answer: &'a mut dyn FnMut(&Placement) -> ControlFlow<()>,
    throttle: Throttle<'b>,
    refused: Option<Failure>,
}

impl AnswerSink for Listing<'_, '_> {
    fn answer(&mut self, columns: &[usize]) -> ControlFlow<()> {
        let placement = match checked(self.problem, self.name, columns) {
            Ok(placement) => placement,
            Err(refused) => {
                self.refused = Some(refused);
                return ControlFlow::Break(());
            }
        };
        if self.orbits.is_none_or(|orbits| orbits.is_least(columns)) {
            (self.answer)(&placement)?;
        }
        self.throttle.report(Progress::default)
    }

    fn report(&mut self, nodes: u64) -> ControlFlow<()> {
        self.throttle.report(|| Progress { nodes, ..Progress::default() })
    }
}

/// Checks a solution, given the columns of the pieces from 1.
///
/// # Errors
/// It is not a solution.
pub fn placement(piece: Piece, columns: &[usize]) -> Result<Placement, Failure> {
    let invalid = |why: &dyn std::fmt::Display| {
        Failure::new(FailureClass::CheckFailed, format!("not valid: {why}"))
    };
    let from_zero: Option<Vec<usize>> = columns.iter().map(|col| col.checked_sub(1)).collect();
    let from_zero = from_zero.ok_or_else(|| invalid(&"columns are counted from 1, not from 0"))?;
    let problem = Problem::empty(piece, columns.len());
    Placement::check_solution(&problem, &from_zero).map_err(|error| invalid(&error))
}

/// The fingerprint of a solution, and its orbit under rotations and reflections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The costs of the squares, the largest first.
    pub costs: Vec<u64>,
    /// The lexicographically smallest image: the column in each row, from 1.
    pub canonical: Vec<usize>,
    /// The number of different images.
    pub images: usize,
    /// The name of the symmetry: `none`, `point`, `rotation`, `reflection` or `full`.
    pub symmetry: &'static str,
}

/// Returns the fingerprint of a solution.
pub fn fingerprint(placement: &Placement, norm: Norm) -> Fingerprint {
    let columns: Vec<usize> = placement.columns().flatten().collect();
    let Orbit { least, images, symmetry } = Orbit::of(&columns);
    let canonical = least.into_iter().map(|col| col + 1).collect();
    Fingerprint { costs: norm.fingerprint(&columns), canonical, images, symmetry }
}

/// Returns the picture of a solution as SVG: chequered, or on the rings of equal cost of a norm.
pub fn svg(placement: &Placement, rings: Option<Norm>) -> String {
    let look = rings.map_or(Look::Chequered, Look::Rings);
    let mut out = Vec::new();
    let written = Picture::of(placement).with_look(look).write(PictureFormat::Svg, &mut out);
    written.expect("memory can be written");
    String::from_utf8(out).expect("an SVG is text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Unobserved;
    use nqueens::board::Square;

    fn queens(n: usize) -> Problem {
        Problem::empty(Piece::Queen, n)
    }

    #[test]
    fn every_method_finds_a_solution_and_that_there_is_none() {
        for name in ["formula", "backtracking", "local-search", "cp"] {
            let method = Some(Method::for_solving(name).expect("a method"));
            let options = SolveOptions { method, ..SolveOptions::default() };
            let found = solve(&queens(10), &options, &mut Unobserved).expect(name);
            assert!(found.is_solution() && found.n() == 10, "{name}");
        }
        let none = solve(&queens(3), &SolveOptions::default(), &mut Unobserved);
        assert_eq!(none.expect_err("none exists").class, FailureClass::NoSolution);
        let attack = vec![Square::new(0, 0), Square::new(1, 1)];
        let problem = Problem::new(Piece::Queen, 8, attack, vec![]).expect("on the board");
        let none = solve(&problem, &SolveOptions::default(), &mut Unobserved).expect_err("none");
        assert!(none.message.ends_with("1,1 and 2,2 attack each other"), "{none}");
    }

    #[test]
    fn a_time_limit_of_zero_proves_nothing() {
        let problem = Problem::new(Piece::Queen, 40, vec![], vec![Square::new(0, 0)]);
        let options =
            SolveOptions { time_limit: Some(Duration::ZERO), method: Some(Method::Cp), seed: None };
        let problem = problem.expect("on the board");
        // Whether the method looks at the clock before it has a solution is its own affair.
        if let Err(failure) = solve(&problem, &options, &mut Unobserved) {
            assert_eq!(failure.class, FailureClass::Unproven);
        }
    }

    #[test]
    fn every_method_lists_the_same_solutions() {
        let mut lists = Vec::new();
        for name in ["backtracking", "columns", "brute-force", "cp"] {
            let mut found = Vec::new();
            let method = Method::for_listing(name).expect("a method");
            let all = list(&queens(6), (method, false), &mut Unobserved, &mut |placement| {
                found.push(placement.columns().flatten().collect::<Vec<_>>());
                ControlFlow::Continue(())
            });
            assert_eq!(all, Ok(true), "{name}");
            found.sort();
            lists.push(found);
        }
        assert!(lists[0].len() == 4 && lists.iter().all(|found| *found == lists[0]), "{lists:?}");
    }

    #[test]
    fn fundamental_solutions_are_listed_once() {
        let mut found = 0;
        let method = (Method::Cp, true);
        let all = list(&queens(8), method, &mut Unobserved, &mut |_| {
            found += 1;
            if found < 12 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!((all, found), (Ok(false), 12));
    }

    #[test]
    fn only_solutions_have_a_fingerprint() {
        let placement = |columns: &[usize]| super::placement(Piece::Queen, columns);
        let solution = placement(&[2, 4, 1, 3]).expect("a solution");
        let found = fingerprint(&solution, Norm::Euclidean);
        assert_eq!((found.costs, found.images), (vec![10, 10, 10, 10], 2));
        assert_eq!((found.canonical, found.symmetry), (vec![2, 4, 1, 3], "rotation"));
        assert!(svg(&solution, Some(Norm::Euclidean)).starts_with("<svg"));
        for columns in [vec![1, 2, 3, 4], vec![0, 2], vec![9]] {
            let error = placement(&columns).expect_err("not a solution");
            assert!(error.message.starts_with("not valid: "), "{error}");
        }
    }
}
