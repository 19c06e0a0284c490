//! The families count every orbit once, and sets, cases and mirror images agree.

use std::collections::BTreeMap;

use super::*;
use crate::decomposition::testing::queens;

/// Returns all solutions of `problem`, each as the column of the queen in each row.
pub(crate) fn solutions(problem: &Problem) -> Vec<Vec<usize>> {
    fn extend(problem: &Problem, columns: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        let (n, row) = (problem.n(), columns.len());
        if row == n {
            return found.push(columns.clone());
        }
        for col in columns_of(open_columns(problem, row, None)) {
            let square = Square::new(row, col);
            let attacks = |(row, col): (usize, &usize)| {
                problem.piece().attacks(n, Square::new(row, *col), square)
            };
            if !columns.iter().enumerate().any(attacks) {
                columns.push(col);
                extend(problem, columns, found);
                columns.pop();
            }
        }
    }
    let mut found = Vec::new();
    extend(problem, &mut Vec::new(), &mut found);
    found
}

fn sets(problem: &Problem) -> Vec<(SetFamily, ColumnSet)> {
    let with_sets = |family: SetFamily| {
        let sets: Vec<ColumnSet> = (0..family.sets()).filter_map(|i| family.set(i)).collect();
        sets.into_iter().map(move |set| (family.clone(), set))
    };
    families(&Arc::new(problem.clone())).expect("queens").into_iter().flat_map(with_sets).collect()
}

/// Returns the families of a problem, each with its mirror image.
fn families_and_images(problem: &Problem) -> Vec<[SetFamily; 2]> {
    let image = Arc::new(problem.mirrored());
    let families = families(&Arc::new(problem.clone())).expect("queens");
    families.into_iter().map(|family| [family.clone(), family.mirrored(&image)]).collect()
}

fn mirrored(solution: &[usize]) -> Vec<usize> {
    solution.iter().map(|col| solution.len() - 1 - col).collect()
}

/// Boards of every kind: all symmetries, some, none; with and without placed squares; columns
/// that only one half can use.
fn boards() -> Vec<Problem> {
    let mut boards: Vec<Problem> = (0..=10).map(|n| queens(n, &[], &[])).collect();
    boards.extend([
        queens(9, &[], &[(4, 4)]),
        queens(8, &[], &[(0, 0), (0, 7), (7, 0), (7, 7)]),
        queens(8, &[], &[(0, 3), (0, 4)]),
        queens(9, &[], &[(0, 3), (0, 5)]),
        queens(8, &[], &[(0, 3), (7, 4)]),
        queens(8, &[], &[(0, 3), (7, 3)]),
        queens(8, &[], &[(2, 5)]),
        queens(9, &[(1, 2)], &[]),
        queens(8, &[(4, 1)], &[]),
        queens(9, &[(4, 2)], &[(0, 0)]),
        queens(10, &[(9, 2), (3, 3)], &[(0, 0)]),
        queens(8, &[], &[(4, 2), (5, 2), (6, 2), (7, 2)]),
        queens(7, &[], &[(0, 2), (1, 2), (2, 2), (0, 4), (1, 4), (2, 4)]),
        queens(5, &[], &[(0, 2), (1, 2), (2, 2), (3, 2), (4, 2)]),
    ]);
    boards
}

#[test]
fn the_weights_of_the_images_of_every_solution_add_up_to_its_orbit() {
    for problem in boards() {
        let sets = sets(&problem);
        let group = Group::of(&problem);
        let mut orbits: BTreeMap<Vec<usize>, (u32, Thirds)> = BTreeMap::new();
        for solution in solutions(&problem) {
            let least = group.elements().map(|g| g.apply_to_columns(&solution)).min();
            let orbit = orbits.entry(least.expect("the identity")).or_default();
            orbit.0 += 1;
            orbit.1 += sets
                .iter()
                .filter(|(family, set)| family.counts(set, &solution))
                .map(|(_, set)| set.weight)
                .sum::<Thirds>();
        }
        for (solution, (size, thirds)) in orbits {
            assert_eq!(thirds, SOLUTION * size, "{problem:?}: {solution:?}");
        }
    }
}

#[test]
fn the_cases_of_a_set_count_what_the_set_counts() {
    for problem in boards() {
        let solutions = solutions(&problem);
        let images: Vec<Vec<usize>> = solutions.iter().map(|of| mirrored(of)).collect();
        for family in families_and_images(&problem) {
            for (family, solutions) in family.iter().zip([&solutions, &images]) {
                for set in (0..family.sets()).filter_map(|rank| family.set(rank)) {
                    let cases = family.cases(&set);
                    assert!(cases.iter().all(|case| case.weight() == set.weight));
                    assert!(family.weights().contains(&set.weight));
                    for solution in solutions {
                        let counted = cases.iter().filter(|case| case.counts(solution)).count();
                        let expected = usize::from(family.counts(&set, solution));
                        assert_eq!(counted, expected, "{problem:?}: {set:?}, {solution:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_mirror_image_of_a_set_counts_the_mirror_images_of_its_solutions() {
    for problem in boards() {
        let solutions = solutions(&problem);
        for [family, image] in families_and_images(&problem) {
            assert_eq!(image.mirrored(&Arc::new(problem.clone())), family);
            for rank in 0..family.sets() {
                let (set, set_image) = (family.set(rank), image.set(rank));
                assert_eq!(set.map(|set| set.weight), set_image.map(|set| set.weight));
                let (Some(set), Some(set_image)) = (set, set_image) else { continue };
                for solution in &solutions {
                    assert_eq!(
                        family.counts(&set, solution),
                        image.counts(&set_image, &mirrored(solution)),
                        "{problem:?}: {set:?}, {solution:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_parts_of_a_set_count_each_of_its_placements_once() {
    for problem in boards() {
        let solutions = solutions(&problem);
        let images: Vec<Vec<usize>> = solutions.iter().map(|of| mirrored(of)).collect();
        for [family, image] in families_and_images(&problem) {
            for rank in 0..family.sets() {
                let Some(set) = family.set(rank) else { continue };
                // Without queens, the set itself is its only part.
                assert_eq!((family.parts(0), family.part(rank, 0, 0)), (1, Some(set)));
                for queens in 1..=2 {
                    let parts: Vec<ColumnSet> = (0..family.parts(queens))
                        .filter_map(|part| family.part(rank, queens, part))
                        .collect();
                    for (solution, mirrored) in solutions.iter().zip(&images) {
                        let counting = |set: &ColumnSet| usize::from(family.counts(set, solution));
                        let counted: usize = parts.iter().map(counting).sum();
                        assert_eq!(counted, counting(&set), "{problem:?}: {set:?}, {solution:?}");
                        for (number, part) in (0..).zip(&parts) {
                            let of_image =
                                image.part(rank, queens, number).expect("the image of the part");
                            assert_eq!(image.counts(&of_image, mirrored), counting(part) == 1);
                            let in_cases =
                                family.cases(part).iter().any(|case| case.counts(solution));
                            assert_eq!(in_cases, counting(part) == 1);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn ranks_and_sets_correspond() {
    let ranked: Vec<u32> = (0..binomial(12, 5)).map(|rank| combination(rank, 5)).collect();
    assert!(ranked.is_sorted() && ranked.iter().all(|bits| bits.count_ones() == 5));
    assert_eq!((ranked[0], ranked.last()), (0b11111, Some(&(0b11111 << 7))));
    assert_eq!(binomial(32, 16), 601_080_390);
    assert_eq!(combination(binomial(32, 16) - 1, 16), 0xffff_0000);
    assert_eq!(deposit(0b1011, 0b1101_1010), 0b0100_1010);
}
