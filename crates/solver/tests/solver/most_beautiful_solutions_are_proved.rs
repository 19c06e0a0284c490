//! The exact engine for the most beautiful queens agrees with exhaustive search on small boards and
//! with the known fingerprints on larger ones; its certificates are accepted; no altered
//! certificate proves anything false.
//!
//! `records/published/beautiful_fingerprints.csv`: exhaustive search up to n = 21, beyond that
//! Fischetti and Salvagnin, arXiv 1907.08246.

use nqueens_proof::board::{Norm, Piece, is_solution};
use nqueens_proof::{self as proof, Kind, ProvedStatement, bytes::Writer};
use nqueens_solver::ResumeError;
use nqueens_solver::Unobserved;
use nqueens_solver::Verdict;
use nqueens_solver::beautiful::resume;
use nqueens_solver::beautiful::{
    Exact, Query, Stage, all_equally_beautiful, most_beautiful_exactly, resume_most_beautiful,
};
use proptest::prelude::*;

use crate::support::{StopAfter, solutions};

/// Returns whether a quarter turn leaves the solution as it is.
fn is_invariant(columns: &[usize]) -> bool {
    columns.iter().enumerate().all(|(row, &column)| columns[column] == columns.len() - 1 - row)
}

fn query(n: usize, norm: Norm, turning: bool) -> Query {
    Query { n, norm, turning, threads: 2 }
}

/// Returns the rows of the table: n, the number of optima if it is known, the fingerprint.
fn known() -> Vec<(usize, Option<usize>, Vec<u64>)> {
    let table = include_str!("../../../../records/published/beautiful_fingerprints.csv");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let fingerprint =
            fields[2].split_whitespace().map(|cost| cost.parse().expect("a cost")).collect();
        (fields[0].parse().expect("n"), fields[1].parse().ok(), fingerprint)
    };
    table.lines().skip(1).map(row).collect()
}

/// Asserts that a run has proved its answer, and returns what its certificate proves.
fn proved(exact: &Exact, case: &str) -> ProvedStatement {
    assert_eq!(exact.answer.verdict, Verdict::Proven, "{case}");
    proof::check(exact.certificate.as_ref().expect("a certificate")).expect(case)
}

fn assert_known(sizes: impl Fn(usize) -> bool) {
    let mut compared = 0;
    for (n, optima, fingerprint) in known().into_iter().filter(|(n, ..)| sizes(*n)) {
        let query = query(n, Norm::Euclidean, false);
        let exact = most_beautiful_exactly(query, &mut Unobserved);
        let proved = proved(&exact, &format!("n = {n}"));
        let columns = exact.answer.found.expect("a solution");
        assert!(is_solution(Piece::Queen, &columns));
        assert_eq!(Norm::Euclidean.fingerprint(&columns), fingerprint, "n = {n}");
        assert_eq!(
            (proved.kind, proved.n, proved.solution),
            (Kind::Beautiful, n, Some(columns.clone()))
        );
        if let Some(optima) = optima {
            let all = all_equally_beautiful(query, &columns, &mut Unobserved).expect("not stopped");
            assert_eq!(all.len(), optima, "n = {n}");
        }
        compared += 1;
    }
    assert!(compared > 0);
}

#[test]
fn small_boards_agree_with_exhaustive_search_for_every_norm_and_symmetry() {
    for n in 0..=9 {
        let solutions = solutions(n);
        for norm in Norm::ALL {
            for turning in [false, true] {
                let case = format!("n = {n}, {norm}, turning: {turning}");
                let allowed: Vec<_> =
                    solutions.iter().filter(|columns| !turning || is_invariant(columns)).collect();
                let best = allowed.iter().map(|columns| norm.fingerprint(columns)).min();
                let exact = most_beautiful_exactly(query(n, norm, turning), &mut Unobserved);
                let proved = proved(&exact, &case);
                let found = exact.answer.found;
                assert_eq!(
                    found.as_deref().map(|columns| norm.fingerprint(columns)),
                    best,
                    "{case}"
                );
                assert_eq!(proved.solution, found, "{case}");
                if let Some(columns) = found {
                    let optima: Vec<Vec<usize>> = allowed
                        .into_iter()
                        .filter(|columns| Some(norm.fingerprint(columns)) == best)
                        .cloned()
                        .collect();
                    let all =
                        all_equally_beautiful(query(n, norm, turning), &columns, &mut Unobserved);
                    assert_eq!(all.expect("not stopped"), optima, "{case}");
                }
            }
        }
    }
}

#[test]
fn fingerprints_and_numbers_of_optima_equal_those_of_the_table() {
    assert_known(|n| n <= 48);
}

#[test]
fn large_fingerprints_equal_those_of_the_table() {
    assert_known(|n| n > 48);
}

#[test]
fn the_fingerprint_does_not_depend_on_the_number_of_threads() {
    for threads in [1, 2, 5] {
        let query = Query { threads, ..query(43, Norm::Euclidean, false) };
        let exact = most_beautiful_exactly(query, &mut Unobserved);
        proved(&exact, "a valid proof");
        let fingerprint = exact.answer.found.map(|columns| Norm::Euclidean.fingerprint(&columns));
        assert_eq!(
            fingerprint.expect("a solution")[..4],
            [1768, 1768, 1768, 1764],
            "{threads} threads"
        );
    }
}

#[test]
fn doubly_symmetric_optima_are_invariant_under_quarter_turns() {
    for (n, exists) in
        [(12, true), (13, true), (14, false), (15, false), (16, true), (17, true), (20, true)]
    {
        let exact = most_beautiful_exactly(query(n, Norm::Euclidean, true), &mut Unobserved);
        proved(&exact, &format!("n = {n}"));
        assert_eq!(exact.answer.found.is_some(), exists, "n = {n}");
        assert!(
            exact
                .answer
                .found
                .is_none_or(|columns| is_solution(Piece::Queen, &columns) && is_invariant(&columns))
        );
    }
    // The optimum for n = 16 is symmetric anyway.
    let best = known().into_iter().find(|row| row.0 == 16).expect("a row").2;
    let exact = most_beautiful_exactly(query(16, Norm::Euclidean, true), &mut Unobserved);
    assert_eq!(exact.answer.found.map(|columns| Norm::Euclidean.fingerprint(&columns)), Some(best));
}

#[test]
fn a_stopped_run_proves_nothing_and_returns_a_solution() {
    let mut with_solution = 0;
    for reports in [1, 2, 5, 20, 100, 400] {
        let exact =
            most_beautiful_exactly(query(45, Norm::Euclidean, false), &mut StopAfter(reports));
        assert_ne!(exact.answer.verdict, Verdict::Proven);
        assert!(exact.certificate.is_none());
        if let Some(columns) = exact.answer.found {
            with_solution += 1;
            assert!(is_solution(Piece::Queen, &columns));
        }
    }
    assert!(with_solution >= 3);
}

#[test]
fn a_run_that_is_stopped_repeatedly_ends_with_the_same_answer() {
    for (n, norm, turning) in [
        (9, Norm::Euclidean, false),
        (48, Norm::Euclidean, false),
        (19, Norm::Manhattan, false),
        (20, Norm::Euclidean, true),
    ] {
        let query = query(n, norm, turning);
        let whole = most_beautiful_exactly(query, &mut Unobserved);
        let (mut state, mut reports, mut stops) = (None, 4, 0);
        let exact = loop {
            let begun = state
                .as_deref()
                .map(|state| resume::read(&query, state).expect("its own checkpoint"));
            let mut last = None;
            let mut keep = |stage: &Stage<'_>| last = Some(stage.checkpoint());
            let exact = resume_most_beautiful(query, begun, &mut StopAfter(reports), &mut keep);
            if exact.answer.verdict == Verdict::Proven {
                break exact;
            }
            // A killed run leaves its last checkpoint; a stopped one returns its own.
            stops += 1;
            state = if stops % 2 == 0 { last.or(state) } else { exact.checkpoint.or(state) };
            reports += 1 + reports / 8;
        };
        assert!(stops > 1, "n = {n}: {stops} stops");
        let fingerprint =
            |exact: &Exact| norm.fingerprint(exact.answer.found.as_ref().expect("a solution"));
        assert_eq!(fingerprint(&exact), fingerprint(&whole), "n = {n}");
        assert_eq!(proved(&exact, "a valid proof").solution, exact.answer.found);
        // The final checkpoint leaves nothing to do.
        let end =
            resume::read(&query, &exact.checkpoint.expect("a state")).expect("its own checkpoint");
        let again = resume_most_beautiful(query, Some(end), &mut Unobserved, &mut |_| {});
        assert_eq!((again.answer.nodes, again.certificate), (0, exact.certificate));
    }
}

#[test]
fn a_run_can_resume_after_any_record() {
    let (mut records, mut in_trials) = (0, 0);
    for (n, norm) in
        [(8, Norm::Euclidean), (12, Norm::Euclidean), (16, Norm::Euclidean), (10, Norm::Manhattan)]
    {
        let asked = query(n, norm, false);
        let proof = unsealed(n, norm, false);
        let claim = 3 + n;
        for length in claim..=proof.len() {
            // Between two records.
            let Ok(begun) = proof::beautiful::check_partial(n, &proof[..length]) else { continue };
            records += 1;
            in_trials += u32::from(begun.trial.is_some());
            let exact = resume_most_beautiful(asked, Some(begun), &mut Unobserved, &mut |_| {});
            let columns = proved(&exact, "a valid proof").solution.expect("a solution");
            let best = check_proof(n, &proof).expect("a valid proof").solution.expect("a solution");
            assert_eq!(
                norm.fingerprint(&columns),
                norm.fingerprint(&best),
                "n = {n}, {length} bytes"
            );
        }
    }
    assert!(records > 100 && in_trials > 10, "{records} records, {in_trials} of them in trials");
}

#[test]
fn only_a_complete_checkpoint_of_the_same_query_is_accepted() {
    let asked = query(12, Norm::Euclidean, false);
    let state = most_beautiful_exactly(asked, &mut Unobserved).checkpoint.expect("a state");
    assert!(resume::read(&asked, &state).is_ok());
    for place in 0..state.len() {
        let mut altered = state.clone();
        altered[place] ^= 1;
        assert!(resume::read(&asked, &altered).is_err(), "byte {place}");
        assert!(resume::read(&asked, &state[..place]).is_err(), "the first {place} bytes");
    }
    let others = [
        query(13, Norm::Euclidean, false),
        query(12, Norm::Manhattan, false),
        query(12, Norm::Euclidean, true),
    ];
    for other in others {
        assert!(
            matches!(resume::read(&other, &state), Err(ResumeError::WrongQuery { .. })),
            "{other:?}"
        );
    }
}

#[test]
fn a_prefix_of_records_is_accepted_only_if_each_of_them_proves_something() {
    for n in [6, 8, 9] {
        let proof = unsealed(n, Norm::Euclidean, false);
        let begun = proof::beautiful::check_partial(n, &proof).expect("it is a proof");
        assert!(begun.trial.is_none());
        // The proof does not hold for another solution.
        let rest = &proof[3 + n..];
        for columns in solutions(n) {
            let mut claim = proof::beautiful::claim(Norm::Euclidean, false, Some(&columns));
            claim.bytes(rest);
            let as_good = Norm::Euclidean.fingerprint(&columns)
                == Norm::Euclidean.fingerprint(&begun.solution);
            assert_eq!(proof::beautiful::check_partial(n, &claim.finish()).is_ok(), as_good);
        }
    }
}

/// Returns the bytes of a proof without the seal.
fn unsealed(n: usize, norm: Norm, turning: bool) -> Vec<u8> {
    let exact = most_beautiful_exactly(query(n, norm, turning), &mut Unobserved);
    let certificate = exact.certificate.expect("a certificate");
    proof::open(&certificate).expect("a sealed proof").2.to_vec()
}

/// Asserts that the statement of an altered proof is true: the solution is the best of its kind.
fn assert_true(n: usize, proof: &[u8], proved: &ProvedStatement) {
    let norm = Norm::ALL[usize::from(proof[0])];
    let turning = proof[1] == 1;
    let best = solutions(n)
        .into_iter()
        .filter(|columns| !turning || is_invariant(columns))
        .map(|columns| norm.fingerprint(&columns))
        .min();
    assert_eq!(
        proved.solution.as_deref().map(|columns| norm.fingerprint(columns)),
        best,
        "{proof:?}"
    );
}

fn check_proof(n: usize, proof: &[u8]) -> Result<ProvedStatement, proof::ProofError> {
    proof::check(&proof::seal(Kind::Beautiful, n, proof))
}

#[test]
fn altered_proofs_are_refused_or_still_prove_a_true_statement() {
    let (mut refused, mut accepted) = (0, 0);
    let cases = [(3, false), (5, false), (6, false), (7, false), (8, false), (8, true), (9, false)];
    for (n, turning) in cases {
        let proof = unsealed(n, Norm::Euclidean, turning);
        let mut judge = |altered: &[u8]| match check_proof(n, altered) {
            Ok(proved) => {
                accepted += 1;
                assert_true(n, altered, &proved);
            }
            Err(_) => refused += 1,
        };
        for place in 0..proof.len() {
            for flip in [1, 2, 3, 4, 8, 16, 0x40, 0x80, 0xff] {
                let mut altered = proof.clone();
                altered[place] ^= flip;
                judge(&altered);
            }
            let mut shorter = proof.clone();
            shorter.remove(place);
            judge(&shorter);
            let mut longer = proof.clone();
            longer.insert(place, proof[place]);
            judge(&longer);
            judge(&proof[..place]);
        }
        let mut longer = proof.clone();
        longer.push(7);
        judge(&longer);
    }
    assert!(refused > accepted, "{refused} refused, {accepted} accepted");
}

#[test]
fn a_worse_solution_is_not_proved_by_the_proof_of_the_best() {
    for n in [5, 6, 7, 8] {
        let proof = unsealed(n, Norm::Euclidean, false);
        let best = check_proof(n, &proof).expect("a valid proof").solution.expect("a solution");
        let rest = &proof[3 + n..];
        for columns in solutions(n) {
            let mut claim = proof::beautiful::claim(Norm::Euclidean, false, Some(&columns));
            claim.bytes(rest);
            let checked = check_proof(n, &claim.finish());
            let as_good =
                Norm::Euclidean.fingerprint(&columns) == Norm::Euclidean.fingerprint(&best);
            assert_eq!(checked.is_ok(), as_good, "n = {n}: {columns:?}");
        }
        let mut none = proof::beautiful::claim(Norm::Euclidean, false, None);
        none.bytes(rest);
        assert!(check_proof(n, &none.finish()).is_err());
    }
    // No records at all prove nothing.
    let claim = proof::beautiful::claim(Norm::Euclidean, false, Some(&[1, 3, 0, 2]));
    assert!(check_proof(4, &claim.finish()).is_err());
    let none = proof::beautiful::claim(Norm::Euclidean, false, None);
    assert!(check_proof(0, &none.finish()).is_err());
}

#[test]
fn extreme_numbers_are_refused() {
    let claim = |n: usize| {
        let columns = solutions(n).swap_remove(0);
        proof::beautiful::claim(Norm::Euclidean, false, Some(&columns))
    };
    let records: [&dyn Fn(&mut Writer); 5] = [
        &|w| {
            // Multipliers as large as they come.
            w.byte(4);
            w.size(2);
            w.size(0);
            w.signed(i64::MAX);
            w.size(1);
            w.signed(i64::MIN);
        },
        &|w| {
            w.byte(4);
            w.number(u64::MAX);
        },
        &|w| {
            w.byte(1);
            w.number(u64::MAX);
        },
        &|w| {
            w.byte(6);
            w.size(2);
            w.size(0);
            w.size(0);
        },
        &|w| {
            w.byte(3);
            w.size(10_000);
        },
    ];
    for record in records {
        let mut writer = claim(6);
        record(&mut writer);
        assert!(check_proof(6, &writer.finish()).is_err());
    }
    assert!(check_proof(1 << 40, &[0, 0, 1]).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_prove_a_true_statement(
        n in 0usize..8,
        bytes in proptest::collection::vec(prop_oneof![0u8..8, any::<u8>()], 0..60),
    ) {
        if let Ok(proved) = check_proof(n, &bytes) {
            assert_true(n, &bytes, &proved);
        }
    }

    #[test]
    fn records_in_another_order_prove_nothing_false(
        n in 4usize..9,
        cut in 0.0..1.0f64,
        length in 0.0..1.0f64,
        to in 0.0..1.0f64,
    ) {
        let mut proof = unsealed(n, Norm::Euclidean, false);
        let head = 3 + n;
        let body = proof.len() - head;
        let from = head + (cut * body as f64) as usize;
        let piece: Vec<u8> = proof.drain(from..from + (length * (proof.len() - from) as f64) as usize).collect();
        let place = head + (to * (proof.len() - head) as f64) as usize;
        proof.splice(place..place, piece);
        if let Ok(proved) = check_proof(n, &proof) {
            assert_true(n, &proof, &proved);
        }
    }
}
