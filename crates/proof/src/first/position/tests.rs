use super::*;

/// Returns the lines of a square.
fn lines_through(n: usize, square: usize) -> [usize; 4] {
    let (row, col) = (square / n, square % n);
    [row, n + col, 2 * n + col + n - 1 - row, 4 * n - 1 + row + col]
}

/// Compares a position with the squares of its queens and those that were eliminated.
fn assert_equals(position: &Position, queens: &[usize], eliminated: &[usize]) {
    let n = position.n();
    let is_taken =
        |line: usize| queens.iter().any(|&queen| lines_through(n, queen).contains(&line));
    let taken: Vec<bool> = (0..6 * n - 2).map(is_taken).collect();
    let mut candidates = vec![Vec::new(); 6 * n - 2];
    for square in 0..n * n {
        let of = lines_through(n, square);
        let is_candidate = of.iter().all(|&line| !taken[line]) && !eliminated.contains(&square);
        assert_eq!(position.is_candidate(square), is_candidate, "n = {n}, square {square}");
        if is_candidate {
            of.iter().for_each(|&line| candidates[line].push(square));
        }
    }
    for (line, candidates) in candidates.into_iter().enumerate() {
        assert_eq!(position.is_taken(line), taken[line], "n = {n}, line {line}");
        assert_eq!(position.is_usable(line), !candidates.is_empty(), "n = {n}, line {line}");
        assert_eq!(position.lines[line].count(), candidates.len(), "n = {n}, line {line}");
        let found: Vec<usize> = position.candidates_on(line).collect();
        assert_eq!(found, candidates, "n = {n}, line {line}");
    }
}

#[test]
fn a_position_has_the_candidates_that_are_neither_attacked_nor_eliminated() {
    let mut random = fastrand::Rng::with_seed(11);
    for n in [1, 8, 63, 64, 65, 127, 128] {
        let prefix: Vec<usize> = [0, 2].into_iter().filter(|_| n >= 4).collect();
        let mut queens: Vec<usize> =
            prefix.iter().enumerate().map(|(row, &col)| row * n + col).collect();
        let mut eliminated = Vec::new();
        let mut position = Position::new(n, &prefix);
        let mut marks = Vec::new();
        for _ in 0..40 {
            let candidates: Vec<usize> = position.candidate_squares().collect();
            let kind = random.u8(0..8);
            if kind == 0 || candidates.is_empty() {
                let Some((mark, queens_then, eliminated_then)) = marks.pop() else { continue };
                position.backtrack_to(&mark);
                queens.truncate(queens_then);
                eliminated.truncate(eliminated_then);
            } else {
                marks.push((position.mark(), queens.len(), eliminated.len()));
                let square = candidates[random.usize(0..candidates.len())];
                if kind == 1 {
                    position.place(square);
                    queens.push(square);
                } else {
                    position.eliminate(square);
                    eliminated.push(square);
                }
            }
            assert_equals(&position, &queens, &eliminated);
        }
    }
}
