//! First and most beautiful solutions with certificates, and the check of certificates.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::time::Duration;

use nqueens::board::{Norm, Piece, Placement, Problem};
use nqueens::proof::{self, Meter, ProofError, ProvedStatement};
use nqueens::solver::beautiful::{Exact, Query, most_beautiful_exactly};
use nqueens::solver::first::{self, Options};
use nqueens::solver::{Answer, Unproven, Verdict};

use crate::failure::{Failure, FailureClass};
use crate::observer::{Observer, Progress, Throttle};
use crate::request::size;
use crate::solving::checked;

/// A proved optimum.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The solution; `None` if it is proved that there is none.
    pub solution: Option<Placement>,
    /// The certificate, which is checked; `None` if squares were decided.
    pub certificate: Option<Vec<u8>>,
    /// The nodes of all searches.
    pub nodes: u64,
    /// The linear programs solved.
    pub programs: u64,
    /// The wall-clock time.
    pub elapsed: Duration,
}

/// The size of the largest board of [`beautiful`].
const LARGEST_BEAUTIFUL: usize = 250;

fn cores(threads: Option<NonZeroUsize>) -> usize {
    threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from)
}

/// Finds the lexicographically first solution, or the first completion, and proves it.
///
/// # Errors
/// The board is too large, the time limit or the observer ended the run, or the certificate is
/// invalid.
pub fn first(
    problem: &Problem,
    threads: Option<NonZeroUsize>,
    time_limit: Option<Duration>,
    observer: &mut dyn Observer,
) -> Result<Proof, Failure> {
    if problem.piece() != Piece::Queen {
        return Err(Failure::usage("first solutions are those of queens"));
    }
    let n = size(&problem.n().to_string(), first::LARGEST)?;
    let mut throttle = Throttle::new(observer, time_limit);
    if problem.conflict().is_some() {
        let answer = Answer { found: None, verdict: Verdict::Proven, nodes: 0, lps_solved: 0 };
        return proved(problem, answer, None, &throttle);
    }
    let options = Options {
        threads: cores(threads),
        placed: problem.placed().to_vec(),
        blocked: problem.blocked().to_vec(),
        ..Options::default()
    };
    let found = first::first_solution(n, options, &mut throttle, &mut |_| {});
    let refutations = found.refutations(n);
    let (finished, columns) = (found.finished, found.solution.clone());
    let mut answer = Answer::from(found);
    if !finished || !problem.is_empty() {
        return proved(problem, answer, None, &throttle);
    }
    let certificate = within(&mut throttle, None, |meter| {
        let threads = cores(threads);
        proof::first::certificate_within(n, columns.as_deref(), &refutations, threads, meter)
    });
    let certificate = match certificate {
        Err(ProofError::Stopped) => {
            answer.verdict = Verdict::NotProven(Unproven::NotChecked);
            None
        }
        certificate => Some(certificate.map_err(|error| invalid(&error))?),
    };
    proved(problem, answer, certificate, &throttle)
}

/// Finds a most beautiful solution, of all or of the doubly symmetric ones, and proves it.
///
/// # Errors
/// As for [`first`].
pub fn beautiful(
    (n, norm, symmetric): (usize, Norm, bool),
    threads: Option<NonZeroUsize>,
    time_limit: Option<Duration>,
    observer: &mut dyn Observer,
) -> Result<Proof, Failure> {
    let n = size(&n.to_string(), LARGEST_BEAUTIFUL)?;
    let mut throttle = Throttle::new(observer, time_limit);
    let query = Query { n, norm, turning: symmetric, threads: cores(threads) };
    let Exact { mut answer, certificate, .. } = most_beautiful_exactly(query, &mut throttle);
    let mut checked = None;
    if let Some(certificate) = certificate {
        match within(&mut throttle, None, |meter| proof::check_within(&certificate, meter)) {
            Ok(statement) if statement.solution == answer.found => checked = Some(certificate),
            Ok(_) => return Err(invalid(&"it proves a different solution")),
            Err(ProofError::Stopped) => {
                answer.verdict = Verdict::NotProven(Unproven::NotChecked);
            }
            Err(error) => return Err(invalid(&error)),
        }
    }
    proved(&Problem::empty(Piece::Queen, n), answer, checked, &throttle)
}

fn invalid(why: &dyn std::fmt::Display) -> Failure {
    let message = format!("internal error: the certificate is invalid: {why}; please report this");
    Failure::new(FailureClass::CheckFailed, message)
}

/// Returns the proof, or the failure of a run that was ended.
fn proved(
    problem: &Problem,
    answer: Answer<Vec<usize>>,
    certificate: Option<Vec<u8>>,
    throttle: &Throttle<'_>,
) -> Result<Proof, Failure> {
    let Answer { found, verdict, nodes, lps_solved } = answer;
    let solution = found.map(|columns| checked(problem, "exact", &columns)).transpose()?;
    if let Verdict::NotProven(doubt) = verdict {
        if throttle.is_interrupted() {
            return Err(Failure::interrupted());
        }
        let shown = match &solution {
            Some(_) => "best found, not proven",
            None => "no solution found, nothing proven",
        };
        let failure = Failure::new(FailureClass::Unproven, format!("{shown}: {doubt}"));
        return Err(Failure { best: solution, ..failure });
    }
    let elapsed = throttle.elapsed();
    Ok(Proof { solution, certificate, nodes, programs: lps_solved, elapsed })
}

/// Runs a check that the throttle can stop, within a number of steps; `None` for no limit.
fn within<T>(
    throttle: &mut Throttle<'_>,
    steps: Option<u64>,
    check: impl FnOnce(&mut Meter<'_>) -> Result<T, ProofError>,
) -> Result<T, ProofError> {
    let throttle = RefCell::new(throttle);
    let is_stopped = || throttle.borrow_mut().report(Progress::default).is_break();
    check(&mut Meter::new(steps).stopped_by(&is_stopped))
}

/// Checks a certificate within a number of steps; `None` for no limit.
///
/// # Errors
/// It is not a certificate, proves nothing, takes too many steps, or the observer ended the check.
pub fn check(
    certificate: &[u8],
    steps: Option<u64>,
    observer: &mut dyn Observer,
) -> Result<ProvedStatement, Failure> {
    let mut throttle = Throttle::new(observer, None);
    let checked = within(&mut throttle, steps, |meter| proof::check_within(certificate, meter));
    checked.map_err(|error| Failure::of_check(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Unobserved;

    #[test]
    fn certificates_prove_what_was_found() {
        let proof = first(&Problem::empty(Piece::Queen, 10), None, None, &mut Unobserved);
        let proof = proof.expect("proves");
        let certificate = proof.certificate.expect("an empty board");
        let statement = check(&certificate, None, &mut Unobserved).expect("it is valid");
        let columns = proof.solution.map(|found| found.columns().flatten().collect::<Vec<_>>());
        assert_eq!(statement.solution, columns);

        let proof = beautiful((8, Norm::Euclidean, false), None, None, &mut Unobserved);
        let certificate = proof.expect("proves").certificate.expect("a certificate");
        assert!(check(&certificate, None, &mut Unobserved).is_ok());
        let ended = check(&certificate, Some(1), &mut Unobserved).expect_err("one step");
        assert_eq!(ended.class, FailureClass::Unproven);
    }

    #[test]
    fn it_is_proved_that_there_is_none() {
        let proof = first(&Problem::empty(Piece::Queen, 3), None, None, &mut Unobserved);
        let proof = proof.expect("proves");
        assert!(proof.solution.is_none() && proof.certificate.is_some());
    }

    #[test]
    fn nothing_is_proved_at_once_for_a_large_board() {
        let limit = Some(Duration::ZERO);
        let ended = first(&Problem::empty(Piece::Queen, 60), None, limit, &mut Unobserved);
        assert_eq!(ended.expect_err("no time").class, FailureClass::Unproven);
    }

    #[test]
    fn text_that_is_no_certificate_is_refused_as_a_file() {
        let refused = check(b"hello", None, &mut Unobserved).expect_err("not a certificate");
        assert_eq!(refused.class, FailureClass::File);
    }
}
