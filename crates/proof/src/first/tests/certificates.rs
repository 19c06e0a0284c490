//! Tests which certificates are accepted, and how much work a check may do.

use super::*;
use crate::check as check_certificate;
use crate::{check_with_threads as check_certificate_with_threads, open};

/// Creates a certificate with one thread and with three, which must not differ.
fn certificate(
    n: usize,
    solution: Option<&[usize]>,
    refutations: &[Refutation],
) -> Result<Vec<u8>, ProofError> {
    let [one, three] = [1, 3].map(|threads| {
        certificate_within(n, solution, refutations, threads, &mut Meter::new(None))
    });
    assert_eq!(one.is_ok(), three.is_ok(), "n = {n}: {one:?}, {three:?}");
    if let (Ok(one), Ok(three)) = (&one, &three) {
        assert_eq!(one, three, "n = {n}");
    }
    one
}

#[test]
fn certificates_prove_the_first_solutions_of_small_boards() {
    for (n, search) in (0..=10).flat_map(|n| SEARCHES.map(|search| (n, search()))) {
        let (first, refutations) = searched_by(n, &search);
        let sealed = certificate(n, first.as_deref(), &refutations).expect("it is valid");
        let proved = check_certificate(&sealed).expect("it is valid");
        assert_eq!((proved.kind, proved.n, proved.solution), (Kind::First, n, first), "n = {n}");
    }
    assert_eq!(searched(3).0, None);
}

#[test]
fn no_other_solution_and_no_missing_refutation_is_accepted() {
    for n in [4, 6, 7, 8] {
        let all = all(n, &[]);
        for other in &all[1..] {
            let many = vec![Refutation::search(); n * n];
            for number in 0..n * n {
                assert!(certificate(n, Some(other), &many[..number]).is_err(), "{other:?}");
            }
        }
        assert!(certificate(n, None, &[Refutation::search()]).is_err());
        let refutations = searched(n).1;
        assert!(certificate(n, Some(&all[0]), &refutations[1..]).is_err());
    }
}

#[test]
fn an_altered_certificate_proves_the_same_or_nothing_even_with_a_new_checksum() {
    let mut random = fastrand::Rng::with_seed(1);
    for n in [3, 5, 8, 9] {
        let (first, refutations) = searched(n);
        let refutations: Vec<Refutation> = refutations
            .iter()
            .map(|search| {
                Refutation::dual_bound(&multipliers(n, &mut random), random.bool(), search)
            })
            .collect();
        let certificate = certificate(n, first.as_deref(), &refutations).expect("it is valid");
        let (_, _, proof) = open(&certificate).expect("it is valid");
        let mut reader = Reader::new(proof);
        let stated = reader.number().expect("the work that it states");
        for _ in 0..5000 {
            let mut altered = proof.to_vec();
            if random.bool() {
                let mut writer = Writer::new();
                writer.number(random.u64(..=stated));
                writer.bytes(reader.rest());
                altered = writer.finish();
            }
            for _ in 0..random.usize(1..4) {
                let place = random.usize(0..altered.len());
                match random.u8(0..3) {
                    0 => altered[place] ^= 1 << random.u8(0..8),
                    1 => altered.truncate(place.max(1)),
                    _ => altered.insert(place, random.u8(..)),
                }
            }
            let [proved, by_three] = [1, 3]
                .map(|threads| check_with_threads(n, &altered, threads, &mut Meter::default()));
            assert_eq!(proved, by_three, "n = {n}");
            if let Ok(proved) = proved {
                assert_eq!(proved.solution, first, "n = {n}");
            }
        }
    }
}

#[test]
fn no_input_makes_the_checker_panic() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..20_000 {
        let bytes: Vec<u8> =
            (0..random.usize(0..60)).map(|_| random.u8(..) >> random.u8(0..8)).collect();
        // The certificate states the work limit; here it is small.
        let mut proof = vec![0xff, 0x07];
        proof.extend(bytes);
        let (n, threads) = (random.usize(0..=12), random.usize(1..=2));
        let _ = check_with_threads(n, &proof, threads, &mut Meter::default());
    }
    assert!(check_with_threads(129, &[0, 0, 0], 1, &mut Meter::default()).is_err());
}

#[test]
fn a_small_certificate_of_unbounded_work_ends_at_the_checkers_limit() {
    const LIMIT: u64 = 20_000;
    let heavy = Multipliers { columns: vec![1; LARGEST], ..Multipliers::none(LARGEST) };
    // Claims that the knapsacks eliminate every square of the board.
    let squares: Vec<usize> = (0..LARGEST * LARGEST).collect();
    let everything = Refutation::search();
    let trees = [
        everything.clone(),
        Refutation::from_bytes(vec![5]),
        in_blocks(6, &[(0..64).collect()]),
        in_blocks(7, &[(0..64).collect(), vec![99]]),
        Refutation::search_by_weight(&[], &[u32::MAX; 2 * LARGEST]),
        (0..900).fold(everything.clone(), |then, _| Refutation::dual_bound(&heavy, true, &then)),
        Refutation::elimination(&heavy, &squares, &everything),
        Refutation::branch(LARGEST, Line::Row(64), &[(64 * LARGEST, everything)]),
    ];
    let trees = trees.iter().enumerate();
    for ((number, tree), threads) in trees.flat_map(|tree| [1, 2].map(|threads| (tree, threads))) {
        let mut writer = Writer::new();
        // The stated work limit does not bind the checker.
        writer.number(u64::MAX);
        writer.byte(0);
        writer.bytes(tree.as_bytes());
        let sealed = seal(Kind::First, LARGEST, &writer.finish());
        assert!(number > 0 || sealed.len() == 56);
        let mut meter = Meter::new(Some(LIMIT));
        let checked = check_certificate_with_threads(&sealed, threads, &mut meter);
        // A square that cannot be eliminated ends the check sooner.
        let is_ended = checked == Err(ProofError::LimitReached(LIMIT));
        assert!(
            is_ended || number == 6 && matches!(checked, Err(ProofError::Refused(_))),
            "{number}"
        );
        // Only a little more work than that was done.
        assert!(meter.work() < LIMIT + 1_000_000, "{number}: {}", meter.work());
    }
}

#[test]
fn a_check_needs_exactly_the_work_that_it_reports() {
    let certificate = sealed(8);
    let mut steps = Vec::new();
    for threads in [1, 2] {
        let within = |mut meter: Meter<'_>| {
            check_certificate_with_threads(&certificate, threads, &mut meter)
                .map(|proved| proved.work)
        };
        let work = within(Meter::new(None)).expect("it is valid");
        steps.push(work);
        assert_eq!(within(Meter::new(Some(work))), Ok(work));
        let less = within(Meter::new(Some(work - 1)));
        assert_eq!(less, Err(ProofError::LimitReached(work - 1)));
        let stopped = within(Meter::new(None).stopped_by(&|| true));
        assert_eq!(stopped, Err(ProofError::Stopped));
    }
    assert_eq!(steps[0], steps[1]);
}

#[test]
fn several_threads_end_a_check_when_the_meter_does() {
    let (first, refutations) = searched(10);
    let within =
        |meter: &mut Meter<'_>| certificate_within(10, first.as_deref(), &refutations, 3, meter);
    assert_eq!(within(&mut Meter::new(None).stopped_by(&|| true)), Err(ProofError::Stopped));
    let mut meter = Meter::new(None);
    assert!(within(&mut meter).is_ok());
    let work = meter.work();
    assert!(work > 1, "{work}");
    assert_eq!(within(&mut Meter::new(Some(1))), Err(ProofError::LimitReached(1)));
    assert!(within(&mut Meter::new(Some(work))).is_ok());
}

/// Checks the refutations of a first solution one by one.
fn checked(n: usize, first: &[usize], refutations: &[Refutation]) -> CheckedRefutationSet {
    let prefixes = smaller_prefixes(n, Some(first)).expect("a solution");
    let mut all = CheckedRefutationSet::new(n);
    for (prefix, refutation) in prefixes.filter(|prefix| is_free(n, prefix)).zip(refutations) {
        let meter = &mut Meter::default();
        let one = CheckedRefutation::new(n, &prefix, refutation.clone(), u64::MAX, meter);
        all.insert(one.expect("it is valid"));
    }
    all
}

#[test]
fn checked_refutations_are_not_checked_again() {
    for (n, threads) in [(8, 0), (8, 1), (8, 3), (10, 2)] {
        let (first, refutations) = searched(n);
        let first = first.expect("a solution");
        let with = |checked: &CheckedRefutationSet, meter: &mut Meter<'_>| {
            certificate_with_checked(n, Some(&first), &refutations, checked, threads, meter)
        };
        let expected = certificate(n, Some(&first), &refutations).expect("it is valid");
        let all = checked(n, &first, &refutations);
        let [mut without, mut with_half, mut with_all] = [(); 3].map(|()| Meter::new(None));
        assert_eq!(with(&CheckedRefutationSet::new(n), &mut without), Ok(expected.clone()));
        assert_eq!(with(&all, &mut with_all), Ok(expected.clone()));
        let half = checked(n, &first, &refutations[..refutations.len() / 2]);
        assert_eq!(with(&half, &mut with_half), Ok(expected));
        let operations = [&with_all, &with_half, &without].map(Meter::operations);
        assert!(operations.is_sorted_by(|less, more| less < more), "{operations:?}");
    }
}

#[test]
fn a_checked_refutation_counts_only_for_its_board_prefix_and_bytes() {
    let (first, refutations) = searched(8);
    let first = first.expect("a solution");
    // Refutations on the board of size 9.
    let (mut other_board, mut valid) = (CheckedRefutationSet::new(8), 0);
    for prefix in smaller_prefixes(8, Some(&first)).expect("a solution") {
        let search = Refutation::search();
        if let Ok(one) = CheckedRefutation::new(9, &prefix, search, u64::MAX, &mut Meter::default())
        {
            other_board.insert(one);
            valid += 1;
        }
    }
    assert!(other_board.is_empty() && valid > 0, "{valid}");
    let all = checked(8, &first, &refutations);
    // It refutes only what propagation alone refutes.
    let wrong = Refutation::branch(8, Line::Row(7), &[]);
    for number in 0..refutations.len() {
        let mut altered = refutations.clone();
        altered[number] = wrong.clone();
        let meter = &mut Meter::new(None);
        let certificate = certificate_with_checked(8, Some(&first), &altered, &all, 2, meter);
        let alone = certificate_within(8, Some(&first), &altered, 2, &mut Meter::new(None));
        assert_eq!(certificate.is_ok(), alone.is_ok(), "{number}");
        if let (Ok(certificate), Ok(alone)) = (certificate, alone) {
            assert_eq!(certificate, alone, "{number}");
        }
    }
    // Without its refutation the certificate ends too early.
    for number in 0..refutations.len() {
        let mut altered = refutations.clone();
        altered.remove(number);
        let meter = &mut Meter::new(None);
        assert!(certificate_with_checked(8, Some(&first), &altered, &all, 2, meter).is_err());
    }
}

#[test]
fn a_solution_of_another_board_is_refused() {
    let (first, refutations) = searched(6);
    for n in [0, 1, 5, 7] {
        assert!(certificate(n, first.as_deref(), &refutations).is_err(), "n = {n}");
    }
    let longer = [first.expect("n = 6 has one"), vec![0]].concat();
    assert!(certificate(6, Some(&longer), &refutations).is_err());
}

#[test]
fn more_work_than_stated_is_refused() {
    let proved = check_certificate(&sealed(10)).expect("it is valid");
    assert!(proved.work > 0);
    let certificate = sealed(10);
    let (_, n, proof) = open(&certificate).expect("it is valid");
    let mut reader = Reader::new(proof);
    let stated = reader.number().expect("what it states");
    let mut writer = Writer::new();
    writer.number(stated - 1);
    writer.bytes(reader.rest());
    let proof = writer.finish();
    for threads in [1, 3] {
        let checked = check_with_threads(n, &proof, threads, &mut Meter::default());
        assert_eq!(checked, Err(ProofError::TooMuchWork(stated - 1)));
    }
}
