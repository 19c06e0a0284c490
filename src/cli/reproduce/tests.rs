//! Tests of the comparison with right and wrong published values.

use super::computation::Computation;
use super::row::Values;
use super::source::Comparison;
use super::*;
use crate::board::Piece;

fn args() -> Args {
    Args { source: None, quick: true, threads: ThreadsArg::default(), json: true, quiet: true }
}

/// Compares the number of solutions of 8 queens with each of these values.
fn compared_with(published: &[u128]) -> (Vec<ReportTable>, Option<Abort>) {
    let comparison = |value: &u128| Comparison {
        n: 8,
        published: Values(vec![*value]),
        computation: Computation::Total(Piece::Queen),
        quick: true,
    };
    let comparisons = published.iter().map(comparison).collect();
    compare(&args(), vec![Table { title: "A000170".into(), comparisons }]).expect("nothing printed")
}

#[test]
fn a_wrong_published_value_gives_the_difference_and_the_exit_code_6() {
    let (tables, abort) = compared_with(&[92, 93, 90]);
    let outcome = Outcome::of(&tables);
    assert_eq!(outcome, Outcome { equal: 1, differ: 2, unproven: 0 });
    let verdicts: Vec<Verdict> = tables[0].rows.iter().map(|row| row.verdict.clone()).collect();
    let differs = |words: &str| Verdict::Differs(words.into());
    assert_eq!(verdicts, [Verdict::Equal, differs("-1"), differs("+2")]);
    let failure = outcome.exit(abort, 3).expect_err("two differ");
    assert_eq!(failure.exit, Exit::CheckFailed);
    assert_eq!(failure.message, "2 of 3 published values differ from ours");
}

#[test]
fn equal_values_end_with_success() {
    let (tables, abort) = compared_with(&[92]);
    assert_eq!(Outcome::of(&tables).exit(abort, 1), Ok(Exit::Done));
}

#[test]
fn a_difference_weighs_more_than_an_interruption_and_that_more_than_a_missing_proof() {
    let exit = |outcome: Outcome, abort| match outcome.exit(abort, 9) {
        Ok(exit) => exit,
        Err(failure) => failure.exit,
    };
    let (good, unproven) =
        (Outcome { equal: 3, ..Outcome::default() }, Outcome { unproven: 1, ..Outcome::default() });
    let differ = Outcome { differ: 1, ..unproven };
    assert_eq!(exit(differ, Some(Abort::Interrupted)), Exit::CheckFailed);
    assert_eq!(exit(unproven, Some(Abort::Interrupted)), Exit::Interrupted);
    assert_eq!((exit(unproven, None), exit(good, None)), (Exit::Unproven, Exit::Done));
}

#[test]
fn every_source_has_quick_values_and_more_without_the_flag() {
    for source in Source::ALL {
        assert_eq!(source.name().parse(), Ok(source));
        let (quick, all) = (count(&source.tables(true)), count(&source.tables(false)));
        assert!(0 < quick && quick < all, "{source}: {quick} {all}");
        assert!(source.measured_s(true) < 30.0 && source.measured_s(false) < 900.0);
        for table in source.tables(false) {
            assert!(!table.comparisons.is_empty() && !table.title.is_empty(), "{source}");
        }
    }
}

#[test]
fn small_published_values_are_computed_again() {
    for source in Source::ALL {
        let mut tables = source.tables(true);
        for table in &mut tables {
            table.comparisons.retain(|comparison| comparison.n <= 8 || comparison.n == 70);
        }
        let (tables, abort) = compare(&args(), tables).expect("nothing printed");
        let outcome = Outcome::of(&tables);
        assert_eq!(outcome.exit(abort, count_rows(&tables)), Ok(Exit::Done), "{tables:?}");
        assert!(outcome.equal >= 6, "{source}: {outcome:?}");
    }
}
