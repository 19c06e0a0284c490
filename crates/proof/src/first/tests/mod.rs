//! Tests of refutations and of certificates of first solutions, against the plain definition.

mod certificates;
mod listed_sets;
mod refutations;

use super::*;

/// Finds every completion of `prefix`, by the plain definition.
fn completions(n: usize, prefix: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    if prefix.len() == n {
        found.push(prefix.clone());
        return;
    }
    for column in 0..n {
        prefix.push(column);
        if is_free(n, prefix) {
            completions(n, prefix, found);
        }
        prefix.pop();
    }
}

fn all(n: usize, prefix: &[usize]) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    completions(n, &mut prefix.to_vec(), &mut found);
    found
}

fn peaceful_prefix(n: usize, random: &mut fastrand::Rng) -> Vec<usize> {
    let mut prefix = Vec::new();
    for _ in 0..random.usize(0..n) {
        let free: Vec<usize> =
            (0..n).filter(|&column| is_free(n, &[&prefix[..], &[column]].concat())).collect();
        let Some(&column) = random.choice(&free) else { break };
        prefix.push(column);
    }
    prefix
}

fn multipliers(n: usize, random: &mut fastrand::Rng) -> Multipliers {
    let size = random.choice([1, 10, 1000, LARGEST_MULTIPLIER - 1]).unwrap_or(1);
    let sparse = random.u8(0..4);
    let mut values = |from: i64, number: usize| -> Vec<i64> {
        let value = |_| if random.u8(0..4) < sparse { 0 } else { random.i64(from..=size) };
        (0..number).map(value).collect()
    };
    Multipliers {
        columns: values(-size, n),
        diagonals: values(0, 2 * n - 1),
        antidiagonals: values(0, 2 * n - 1),
    }
}

/// Returns some random blocks of rows.
fn blocks(n: usize, random: &mut fastrand::Rng) -> Vec<Vec<usize>> {
    let block =
        |random: &mut fastrand::Rng| (0..random.usize(0..=n)).map(|_| random.usize(0..n)).collect();
    (0..random.usize(0..=n.min(3))).map(|_| block(random)).collect()
}

/// Returns random weights of rows and columns.
fn weights(n: usize, random: &mut fastrand::Rng) -> Vec<u32> {
    (0..2 * n).map(|_| random.choice([0, 1, 2, 100, u32::MAX]).unwrap_or(1)).collect()
}

/// Returns a random tree, over any squares and lines.
fn tree(n: usize, depth: usize, random: &mut fastrand::Rng) -> Refutation {
    match random.u8(0..if depth == 0 { 1 } else { 9 }) {
        0 if random.bool() => in_blocks(random.u8(6..=7), &blocks(n, random)),
        0 if random.bool() => Refutation::search_by_weight(&blocks(n, random), &weights(n, random)),
        0 if random.bool() => {
            Refutation::search_with_memory(&blocks(n, random), &weights(n, random))
        }
        0 => SEARCHES[random.usize(0..3)](),
        6 => {
            let then = tree(n, depth - 1, random);
            let squares: Vec<usize> =
                (0..random.usize(0..=2 * n)).map(|_| random.usize(0..n * n)).collect();
            Refutation::elimination(&multipliers(n, random), &squares, &then)
        }
        7 => Refutation::listed_sets(&tree(n, depth - 1, random)),
        8 => {
            let [unused, used] = [(); 2].map(|()| tree(n, depth - 1, random));
            Refutation::cases(n, any_diagonal(n, random), &unused, &used)
        }
        kind @ 1..=3 => {
            let then = tree(n, depth - 1, random);
            Refutation::dual_bound(&multipliers(n, random), kind > 1, &then)
        }
        _ => {
            let at = random.usize(0..n);
            let lines =
                [Line::Row(at), Line::Column(at), Line::Diagonal(at), Line::Antidiagonal(at)];
            let line = random.choice(lines).unwrap_or(Line::Row(0));
            let listed = random.usize(0..=n);
            let square = |random: &mut fastrand::Rng| match line {
                Line::Row(row) => row * n + random.usize(0..n),
                Line::Column(column) => random.usize(0..n) * n + column,
                _ => random.usize(0..n * n),
            };
            let children: Vec<(usize, Refutation)> =
                (0..listed).map(|_| (square(random), tree(n, depth - 1, random))).collect();
            Refutation::branch(n, line, &children)
        }
    }
}

/// Returns a random diagonal or antidiagonal.
fn any_diagonal(n: usize, random: &mut fastrand::Rng) -> Line {
    let diagonal = random.usize(0..2 * n - 1);
    if random.bool() { Line::Diagonal(diagonal) } else { Line::Antidiagonal(diagonal) }
}

/// The kinds of exhaustive search without parameters.
const SEARCHES: [fn() -> Refutation; 3] = [
    Refutation::search,
    || Refutation::from_bytes(vec![5]),
    || Refutation::search_by_weight(&[], &[]),
];

/// Creates a search in blocks of rows, by rows only (6) or by columns too (7).
fn in_blocks(byte: u8, blocks: &[Vec<usize>]) -> Refutation {
    let mut bytes = Refutation::search_by_weight(blocks, &[]).as_bytes().to_vec();
    bytes[0] = byte;
    Refutation::from_bytes(bytes)
}

/// Returns the first solution, and a search for each refutation.
fn searched(n: usize) -> (Option<Vec<usize>>, Vec<Refutation>) {
    searched_by(n, &Refutation::search())
}

/// Returns the first solution, and `search` for each refutation.
fn searched_by(n: usize, search: &Refutation) -> (Option<Vec<usize>>, Vec<Refutation>) {
    let first = all(n, &[]).into_iter().next();
    let number = first.as_ref().map_or(1, |columns| {
        let free = |row: usize, column: usize| is_free(n, &[&columns[..row], &[column]].concat());
        (0..n).map(|row| (0..columns[row]).filter(|&column| free(row, column)).count()).sum()
    });
    (first, vec![search.clone(); number])
}

fn sealed(n: usize) -> Vec<u8> {
    let (first, refutations) = searched(n);
    certificate(n, first.as_deref(), &refutations).expect("it is valid")
}
