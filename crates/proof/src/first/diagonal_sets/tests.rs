//! The listed sets equal those that an exhaustive search finds.

use std::collections::BTreeSet;

use super::*;

/// More entries than any list of these tests needs.
const ENOUGH: usize = 1 << 40;

/// Returns the place c - r of a diagonal, or r + c of an antidiagonal.
fn place(n: usize, direction: usize, line: usize) -> i64 {
    if direction == 0 { line as i64 - (n as i64 - 1) } else { line as i64 }
}

/// Returns the sum of the squares of both sets of a pair.
fn total(board: &OpenBoard) -> i64 {
    let lines = board.rows.iter().chain(&board.columns);
    lines.map(|&line| 2 * (line * line) as i64).sum()
}

/// Returns the sets of a direction that have the right number and sum, with the sums of their
/// squares, by the definition.
fn sets_without_partners(board: &OpenBoard, direction: usize) -> Vec<(Diagonals, i64)> {
    let lines: Vec<usize> = board.diagonals[direction].iter().collect();
    let places: Vec<i64> = lines.iter().map(|&line| place(board.n, direction, line)).collect();
    let of = |lines: &[usize]| lines.iter().map(|&line| line as i64).sum::<i64>();
    let sign = if direction == 0 { -1 } else { 1 };
    let sum = of(&board.columns) + sign * of(&board.rows);
    let mut found = Vec::new();
    for set in 0u32..1 << lines.len() {
        let chosen = || (0..lines.len()).filter(|&line| set >> line & 1 == 1);
        if set.count_ones() as usize == board.rows.len()
            && chosen().map(|line| places[line]).sum::<i64>() == sum
        {
            let squares = chosen().map(|line| places[line] * places[line]).sum();
            found.push((chosen().map(|line| lines[line]).collect(), squares));
        }
    }
    found
}

/// Returns the sets of these that have a partner of the other direction, in ascending order.
fn with_partners(sets: &[Vec<(Diagonals, i64)>; 2], total: i64) -> [Vec<Diagonals>; 2] {
    [0, 1].map(|direction| {
        let others = &sets[1 - direction];
        let has_partner =
            |&&(_, squares): &&(_, i64)| others.iter().any(|other| other.1 + squares == total);
        let mut found: Vec<Diagonals> =
            sets[direction].iter().filter(has_partner).map(|&(set, _)| set).collect();
        found.sort_unstable();
        found
    })
}

fn exhaustive(board: &OpenBoard) -> [Vec<Diagonals>; 2] {
    with_partners(&[0, 1].map(|direction| sets_without_partners(board, direction)), total(board))
}

fn listed(board: &OpenBoard) -> DiagonalSets {
    DiagonalSets::list(board, ENOUGH).0.expect("there are few sets")
}

/// Returns the sets of both directions.
fn sets(listed: &DiagonalSets) -> [Vec<Diagonals>; 2] {
    [0, 1].map(|direction| listed.sets(direction).collect())
}

/// Returns this many of the numbers below `below`, in ascending order: a random set, or successive
/// ones.
fn numbers(below: usize, count: usize, random: &mut fastrand::Rng) -> Vec<usize> {
    if random.bool() {
        let first = random.usize(0..=below - count);
        return (first..first + count).collect();
    }
    let mut chosen = random.choose_multiple(0..below, count);
    chosen.sort_unstable();
    chosen
}

/// Returns random open rows and columns and usable diagonals, at most 15 of each direction. Mostly
/// they allow queens that do not attack each other on all these rows.
fn random_board(random: &mut fastrand::Rng) -> OpenBoard {
    let n = if random.u8(0..4) == 0 { random.usize(60..=128) } else { random.usize(5..=9) };
    let count = random.usize(0..=n.min(8));
    let [rows, columns] = [(); 2].map(|()| numbers(n, count, random));
    let lines = |row: usize, column: usize| [column + n - 1 - row, row + column];
    let mut of_columns = columns.clone();
    let mut diagonals = [BTreeSet::new(), BTreeSet::new()];
    for _ in 0..50 {
        random.shuffle(&mut of_columns);
        diagonals = [0, 1].map(|direction| {
            rows.iter().zip(&of_columns).map(|(&r, &c)| lines(r, c)[direction]).collect()
        });
        if diagonals.iter().all(|lines| lines.len() == count) {
            break;
        }
    }
    for lines_of in &mut diagonals {
        let most = random.usize(lines_of.len()..=15);
        for _ in 0..40 {
            if lines_of.len() < most {
                lines_of.insert(match (rows.is_empty(), random.bool()) {
                    (false, true) => {
                        let at =
                            |of: &[usize], random: &mut fastrand::Rng| of[random.usize(..count)];
                        lines(at(&rows, random), at(&columns, random))[random.usize(..2)]
                    }
                    _ => random.usize(..2 * n - 1),
                });
            }
        }
    }
    OpenBoard { n, rows, columns, diagonals: diagonals.map(Diagonals::from_iter) }
}

/// Returns random diagonals of the board of size `n`, `most` of 8 on average.
fn random_diagonals(n: usize, most: u8, random: &mut fastrand::Rng) -> Diagonals {
    (0..2 * n - 1).filter(|_| random.u8(0..8) < most).collect()
}

#[test]
fn the_listed_sets_equal_those_of_exhaustive_search() {
    let mut random = fastrand::Rng::with_seed(71);
    let (mut some, mut none, mut without_partner) = (0, 0, 0);
    for case in 0..1500 {
        let board = random_board(&mut random);
        let all = [0, 1].map(|direction| sets_without_partners(&board, direction));
        let expected = with_partners(&all, total(&board));
        let listed = listed(&board);
        assert_eq!(sets(&listed), expected, "case {case}: {board:?}");
        assert_eq!(listed.is_empty(), expected[0].is_empty(), "case {case}");
        assert_eq!(expected[0].is_empty(), expected[1].is_empty(), "case {case}");
        let pairs = |set: &&(Diagonals, i64)| {
            all[1].iter().filter(|other| other.1 + set.1 == total(&board)).count()
        };
        let pairs: usize = all[0].iter().map(|set| pairs(&set)).sum();
        assert_eq!(listed.pairs(), pairs, "case {case}: {board:?}");
        for direction in [0, 1] {
            assert_eq!(listed.len(direction), expected[direction].len(), "case {case}");
            for (set, _) in &all[direction] {
                let is_listed = expected[direction].contains(set);
                assert_eq!(listed.contains(direction, *set), is_listed, "case {case}: {set:?}");
            }
            let union = listed.union(direction);
            for line in 0..2 * board.n - 1 {
                let is_used = expected[direction].iter().any(|set| set.contains(line));
                assert_eq!(union.contains(line), is_used, "case {case}: {line}");
            }
            without_partner += all[direction].len() - expected[direction].len();
        }
        *(if pairs > 0 { &mut some } else { &mut none }) += 1;
    }
    assert!(
        some > 800 && none > 50 && without_partner > 10_000,
        "{some} with a pair, {none} without, {without_partner} sets without a partner"
    );
}

#[test]
fn the_possible_sets_equal_those_that_the_definition_leaves() {
    let mut random = fastrand::Rng::with_seed(72);
    let (mut fewer, mut only_partners) = (0, 0);
    for case in 0..3000 {
        let board = random_board(&mut random);
        let n = board.n;
        let full = listed(&board);
        let (mut current, mut expected) = (full.clone(), sets(&full));
        // The sets that are left may be filtered again.
        for _ in 0..2 {
            // Those that some set contains, and sometimes any.
            let chosen = [0, 1].map(|direction| random.choice(current.sets(direction)));
            let or_any = |set: Option<Diagonals>, most: u8, random: &mut fastrand::Rng| {
                let any = random_diagonals(n, most, random);
                set.filter(|_| random.u8(0..8) > 0).map_or(any, |set| set.and(any))
            };
            let taken = chosen.map(|set| or_any(set, 2, &mut random));
            let closed = chosen.map(|set| {
                let any = random_diagonals(n, 2, &mut random);
                set.map_or(any, |set| any.without(set))
            });
            let is_any = random.u8(0..4) == 0;
            let usable = [0, 1].map(|direction| {
                let all: Diagonals = (0..2 * n - 1).collect();
                let taken = if is_any { Diagonals::default() } else { taken[direction] };
                all.without(closed[direction]).without(taken)
            });
            let mut assumed = [AssumedDiagonals::NONE; 2];
            for _ in 0..random.usize(0..4) {
                let (direction, line) = (random.usize(..2), random.usize(..2 * n - 1));
                let of_set = chosen[direction].is_some_and(|set| set.contains(line));
                let used = if random.u8(0..8) == 0 { random.bool() } else { of_set };
                assumed[direction].add(line, used);
            }
            let satisfies = |direction: usize, set: Diagonals| {
                (0..2 * n - 1).all(|line| {
                    let was_open = board.diagonals[direction].contains(line);
                    let is_taken = was_open && taken[direction].contains(line);
                    let is_lost = was_open && !is_taken && !usable[direction].contains(line);
                    let must = is_taken || assumed[direction].used.contains(line);
                    let must_not = is_lost || assumed[direction].unused.contains(line);
                    if set.contains(line) { !must_not } else { !must }
                })
            };
            let squares = |direction: usize, set: Diagonals| {
                set.iter().map(|line| place(n, direction, line).pow(2)).sum::<i64>()
            };
            let left = [0, 1].map(|direction| {
                let of = &expected[direction];
                let left = of.iter().filter(|&&set| satisfies(direction, set));
                left.map(|&set| (set, squares(direction, set))).collect::<Vec<_>>()
            });
            let before = expected.clone();
            expected = with_partners(&left, total(&board));
            current = current.possible(taken, usable, &assumed);
            assert_eq!(sets(&current), expected, "case {case}: {board:?}, {taken:?}, {usable:?}");
            assert_eq!(current.is_empty(), expected[0].is_empty(), "case {case}");
            let some_left = !expected[0].is_empty();
            fewer += u32::from(some_left && expected != before);
            only_partners += u32::from(
                some_left && [0, 1].iter().any(|&of| left[of].len() > expected[of].len()),
            );
        }
    }
    assert!(
        fewer > 200 && only_partners > 100,
        "{fewer} with fewer sets, {only_partners} with sets without a partner"
    );
}

#[test]
fn the_greatest_weights_equal_those_of_all_sets() {
    let mut random = fastrand::Rng::with_seed(73);
    let (mut some, mut none) = (0, 0);
    for case in 0..1000 {
        let board = random_board(&mut random);
        let (listed, expected) = (listed(&board), exhaustive(&board));
        let most: i64 = random.choice([0, 1, 100, 1 << 40]).unwrap_or(0);
        let weights: Vec<i64> = (0..2 * board.n - 1).map(|_| random.i64(-most..=most)).collect();
        for (direction, sets) in expected.iter().enumerate() {
            let weight = |set: &Diagonals| {
                (0..weights.len()).filter(|&l| set.contains(l)).map(|l| weights[l]).sum::<i64>()
            };
            let any = sets.iter().map(weight).max();
            let with = |line| sets.iter().filter(|set| set.contains(line)).map(weight).max();
            let with: Vec<Option<i64>> = (0..weights.len()).map(with).collect();
            let greatest = listed.greatest_weights(direction, &weights);
            assert_eq!(greatest, any.map(|any| (any, with)), "case {case}: {board:?}");
            let heaviest = listed.heaviest(direction, &weights);
            assert_eq!(heaviest.map(|(weight, _)| weight), any, "case {case}: {board:?}");
            if let Some((of_set, set)) = heaviest {
                assert!(sets.contains(&set) && weight(&set) == of_set, "case {case}: {board:?}");
            }
            *(if any.is_some() { &mut some } else { &mut none }) += 1;
        }
    }
    assert!(some > 1000 && none > 50, "{some} with a set, {none} without");
}

#[test]
fn too_few_entries_give_an_error_and_never_a_part_of_the_sets() {
    let mut random = fastrand::Rng::with_seed(74);
    let (mut complete, mut errors) = (0, 0);
    for case in 0..400 {
        let board = random_board(&mut random);
        let expected = exhaustive(&board);
        let mut before = false;
        for most_entries in (0..12).map(|power| (1 << power) - 1 + random.usize(..=1 << power)) {
            match DiagonalSets::list(&board, most_entries).0 {
                Ok(listed) => {
                    assert_eq!(sets(&listed), expected, "case {case}: {most_entries}, {board:?}");
                    complete += 1;
                    before = true;
                }
                Err(TooManySets) => {
                    assert!(!before, "case {case}: fewer entries were enough, {most_entries}");
                    errors += 1;
                }
            }
        }
    }
    assert!(complete > 1000 && errors > 1000, "{complete} complete, {errors} errors");
}

#[test]
fn a_board_without_open_rows_has_the_pair_of_empty_sets() {
    let mut random = fastrand::Rng::with_seed(75);
    for n in [1, 2, 8, 64, 65, 128] {
        let some = [(); 2].map(|()| random_diagonals(n, 4, &mut random));
        for diagonals in [[Diagonals::default(); 2], some, [some[0], Diagonals::default()]] {
            let board = OpenBoard { n, rows: Vec::new(), columns: Vec::new(), diagonals };
            let listed = listed(&board);
            assert_eq!(sets(&listed), [(); 2].map(|()| vec![Diagonals::default()]), "{board:?}");
            assert!(!listed.is_empty() && listed.pairs() == 1, "{board:?}");
            assert_eq!(listed.heaviest(0, &vec![1; 2 * n - 1]), Some((0, Diagonals::default())));
            let none = vec![None; 2 * n - 1];
            assert_eq!(listed.greatest_weights(1, &vec![1; 2 * n - 1]), Some((0, none)));
            // A diagonal that must be used is in no set.
            let mut assumed = [AssumedDiagonals::NONE; 2];
            assumed[1].add(0, true);
            let all: Diagonals = (0..2 * n - 1).collect();
            assert!(listed.possible([Diagonals::default(); 2], [all; 2], &assumed).is_empty());
        }
    }
}

#[test]
fn diagonals_are_sets_of_numbers_below_256() {
    let mut random = fastrand::Rng::with_seed(76);
    for _ in 0..500 {
        let [a, b] = [(); 2].map(|()| {
            (0..random.usize(0..40)).map(|_| random.usize(0..256)).collect::<BTreeSet<usize>>()
        });
        let [of_a, of_b] = [&a, &b].map(|set| set.iter().copied().collect::<Diagonals>());
        let equal = |set: Diagonals, expected: BTreeSet<usize>| {
            assert!(set.iter().eq(expected.iter().copied()), "{set:?}, {expected:?}");
            assert_eq!(set.is_empty(), expected.is_empty());
            for number in 0..256 {
                assert_eq!(set.contains(number), expected.contains(&number), "{number}");
            }
        };
        equal(of_a, a.clone());
        equal(of_a.or(of_b), &a | &b);
        equal(of_a.and(of_b), &a & &b);
        equal(of_a.without(of_b), &a - &b);
    }
}
