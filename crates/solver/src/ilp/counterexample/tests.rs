//! A claim is confirmed exactly if the plain definition confirms it.

use std::collections::BTreeSet;

use super::*;
use crate::beautiful::fingerprint;
use crate::progress::Unobserved;
use crate::test_support::solutions;
use nqueens_proof::board::{Piece, Problem};

#[test]
fn only_the_first_solution_is_confirmed_to_be_the_first() {
    for n in 0..=7 {
        let problem = Problem::empty(Piece::Queen, n);
        let solutions = solutions(n);
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
    let mut found: BTreeSet<Vec<usize>> = solutions(6).into_iter().collect();
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
    let best: i128 = solutions(6).iter().map(|p| weight(p)).max().expect("n = 6 has solutions");
    assert_eq!(heaviest(&problem, &weights, Some(best), &mut Unobserved), ClaimCheck::Confirmed);
    match heaviest(&problem, &weights, Some(best - 1), &mut Unobserved) {
        ClaimCheck::Refuted(heavier) => assert_eq!(weight(&heavier), best),
        other => panic!("{other:?}"),
    }
    assert!(matches!(heaviest(&problem, &weights, None, &mut Unobserved), ClaimCheck::Refuted(_)));
}

#[test]
fn the_largest_sets_have_the_known_sizes() {
    for (n, queens) in [(0, 0), (1, 1), (2, 1), (3, 2), (4, 4), (5, 5)] {
        let problem = Problem::empty(Piece::Queen, n);
        assert_eq!(largest(&problem, queens, &mut Unobserved), ClaimCheck::Confirmed, "n = {n}");
        if queens > 0 {
            let larger = largest(&problem, queens - 1, &mut Unobserved);
            assert!(matches!(larger, ClaimCheck::Refuted(set) if set.len() >= queens), "n = {n}");
        }
    }
}

#[test]
fn only_the_smallest_fingerprint_is_confirmed() {
    for n in 4..=7 {
        let best = solutions(n).iter().map(|p| fingerprint(p)).min().expect("a solution");
        for solution in solutions(n) {
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
