//! The output of `nqueens solve`.

use std::ops::ControlFlow;

use serde::Serialize;

use super::{Args, Found, LARGEST, Run, conflict_reason, fits};
use crate::board::{Placement, Problem};
use crate::cli::answer_text::{AnswerText, board_name, is_for_terminal};
use crate::cli::ilp::CutsReport;
use crate::cli::picture_args::{PictureFiles, draw_answer};
use crate::cli::solution_output::{Format, from_one, object};
use crate::cli::stream::Stream;
use crate::cli::{Exit, Failure, note};
use crate::render::Picture;
use crate::report::{counted, duration, grouped};

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    n: usize,
    piece: &'static str,
    solution: Option<Vec<Option<usize>>>,
    /// True if the result is certain: the solution is checked, or it is proven that none exists.
    proven: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<Vec<Option<usize>>>,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    tried: String,
    tried_unit: &'static str,
    elapsed_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    solver: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cuts: Option<CutsReport>,
    /// The reason why it is not proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
}

/// Prints the result of a method, and returns the exit code.
pub(super) fn show(
    run: &Run,
    format: Format,
    problem: &Problem,
    pictures: PictureFiles<'_>,
    args: &Args,
) -> Result<Exit, Failure> {
    let (solution, best) = match &run.found {
        Found::Solution(solution) => (Some(solution), None),
        Found::None => (None, None),
        Found::GaveUp(best) | Found::Interrupted(best) | Found::NotProven(best, _) => {
            (None, best.as_ref())
        }
    };
    let text = is_for_terminal(format, args.quiet).then(|| answer_text(run, problem, best, args));
    let mut stream = Stream::begin();
    let _ = match (format, solution.or(best)) {
        (Format::Json, _) => object(&mut stream, &report(run, problem, solution, best)),
        (Format::Drawn(drawing), shown) if let Some(text) = &text => {
            text.write(&mut stream, drawing, shown)
        }
        (Format::Drawn(drawing), Some(placement)) => {
            let picture = Picture::of(placement).deciding(problem);
            draw_answer(&mut stream, drawing, placement, &picture)
        }
        (Format::Drawn(_), None) => ControlFlow::Continue(()),
    };
    stream.finish()?;
    // The answer is printed even if a file cannot be written.
    if let Some(placement) = solution.or(best) {
        pictures.finish(&Picture::of(placement).deciding(problem))?;
    }
    let (exit, message) = ending(run, problem, best);
    match exit {
        Exit::Done if args.quiet || text.is_some() => Ok(exit),
        Exit::Done => {
            note(&message);
            Ok(exit)
        }
        _ if text.is_some() => Ok(exit),
        _ => Err(Failure::new(exit, message)),
    }
}

/// Returns the exit code, and the result in one line.
fn ending(run: &Run, problem: &Problem, best: Option<&Placement>) -> (Exit, String) {
    let work = work(run).map_or(String::new(), |work| format!("{work}, "));
    let summary = format!("{}: {work}{}", method(run), duration(run.elapsed));
    let best = best.map_or(String::new(), |best| format!("; {}", best_found(problem, best)));
    match &run.found {
        Found::Solution(_) => (Exit::Done, summary),
        Found::None => {
            (Exit::NoSolution, format!("no solution exists{}; {summary}", conflict_reason(problem)))
        }
        Found::GaveUp(_) => (
            Exit::Unproven,
            format!("no solution found, which does not prove that none exists; {summary}{best}"),
        ),
        Found::NotProven(found, doubt) => {
            let shown = if found.is_some() {
                "best found, not proven"
            } else {
                "no solution found, nothing proven"
            };
            (Exit::Unproven, format!("{shown}: {doubt}; {summary}{best}"))
        }
        Found::Interrupted(_) => (Exit::Interrupted, format!("interrupted; {summary}{best}")),
    }
}

fn best_found(problem: &Problem, best: &Placement) -> String {
    format!(
        "best found: {} of {}",
        grouped(best.pieces() as u128),
        counted(problem.n() as u128, problem.piece().noun())
    )
}

/// Returns the method, with its solver and its seed.
fn method(run: &Run) -> String {
    let solver = run.ilp_outcome.as_ref().map(|ilp| format!(" with {}", ilp.solver));
    let seed = run.seed.map(|seed| format!(" with seed {seed}"));
    format!("{}{}{}", run.method, solver.unwrap_or_default(), seed.unwrap_or_default())
}

/// Returns the weight and what was tried, if there is any.
fn work(run: &Run) -> Option<String> {
    let weight = run.ilp_outcome.as_ref().and_then(|ilp| ilp.weight.as_ref());
    let weight = weight.map(|weight| format!("weight {weight}"));
    let tried =
        (run.tried > 0).then(|| format!("{} {} tried", grouped(run.tried.into()), run.unit));
    let parts: Vec<String> = [weight, tried].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Returns the result for a terminal.
fn answer_text(run: &Run, problem: &Problem, best: Option<&Placement>, args: &Args) -> AnswerText {
    let attack = format!("no two {}s attack each other", problem.piece().noun());
    let proved = match &run.found {
        Found::Solution(_) => format!("it is a solution: {attack}"),
        Found::None => format!("no solution exists{}", conflict_reason(problem)),
        Found::GaveUp(_) => "nothing: the method gave up".to_owned(),
        Found::NotProven(_, doubt) => format!("nothing: {doubt}"),
        Found::Interrupted(_) => "nothing: interrupted".to_owned(),
    };
    let what = match &run.found {
        Found::None => "no solution exists".to_owned(),
        Found::Solution(_) if problem.is_empty() => "a solution".to_owned(),
        Found::Solution(_) => "a completion".to_owned(),
        _ => best.map_or("no solution found".to_owned(), |best| best_found(problem, best)),
    };
    let work = work(run).map_or(String::new(), |work| format!(", {work}"));
    let text = AnswerText::new(format!("{}: {what}", board_name(problem)))
        .row("proved", proved)
        .row("method", method(run) + &work)
        .time(run.elapsed);
    match next_step(run, problem, args) {
        Some(next) => text.row("next", next),
        None => text,
    }
}

/// Returns what can be done after this result.
fn next_step(run: &Run, problem: &Problem, args: &Args) -> Option<&'static str> {
    Some(match &run.found {
        Found::Solution(_) if args.pictures.given().is_some() => {
            "nqueens list lists the other solutions"
        }
        Found::Solution(_) => "--svg FILE writes a picture; nqueens list lists the other solutions",
        Found::None if fits("ilp", problem, LARGEST).is_ok() => {
            "--maximize places as many pieces as possible"
        }
        Found::None => return None,
        _ if args.method.is_some() => "without --method, other methods are tried too",
        _ => "a longer --time-limit, or another --method",
    })
}

fn report(
    run: &Run,
    problem: &Problem,
    solution: Option<&Placement>,
    best: Option<&Placement>,
) -> Report {
    Report {
        n: problem.n(),
        piece: problem.piece().name(),
        solution: solution.map(from_one),
        proven: matches!(run.found, Found::Solution(_) | Found::None),
        best: best.map(from_one),
        method: run.method,
        seed: run.seed,
        tried: run.tried.to_string(),
        tried_unit: run.unit,
        elapsed_s: run.elapsed.as_secs_f64(),
        solver: run.ilp_outcome.as_ref().map(|ilp| ilp.solver),
        weight: run.ilp_outcome.as_ref().and_then(|ilp| ilp.weight.clone()),
        cuts: run.ilp_outcome.as_ref().and_then(|ilp| ilp.cuts.clone()),
        doubt: match &run.found {
            Found::NotProven(_, doubt) => Some(doubt.to_string()),
            _ => None,
        },
    }
}
