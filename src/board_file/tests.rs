use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn at(row: usize, col: usize) -> Square {
    Square::new(row, col)
}

fn board(n: usize, placed: &[Square], blocked: &[Square]) -> BoardFile {
    BoardFile { n, piece: None, placed: placed.to_vec(), blocked: blocked.to_vec() }
}

#[test]
fn each_format_is_recognised_by_its_content() {
    for (text, expected) in [
        ("Q . x .\n. . . .\n\n. . . .\n. . . x", board(4, &[at(0, 0)], &[at(0, 2), at(3, 3)])),
        ("♛ ·\n· ·\n", board(2, &[at(0, 0)], &[])),
        ("Q.\n..", board(2, &[at(0, 0)], &[])),
        ("8/8/8/8/8/8/8/7Q w - - 0 1\n", board(8, &[at(7, 7)], &[])),
        ("2/1q", board(2, &[at(1, 1)], &[])),
        ("1", board(1, &[], &[])),
        ("10/9Q/10/10/10/10/10/10/10/Q9", board(10, &[at(1, 9), at(9, 0)], &[])),
        (
            "letting n =  10\nletting blocks =  [[1, 3], [10,10]]",
            board(10, &[], &[at(0, 2), at(9, 9)]),
        ),
        (
            "language ESSENCE' 1.0\n$ a comment = 3\nletting n = 5\nletting init = [[0, 3],\n[4,4]]",
            board(5, &[at(0, 3), at(4, 4)], &[]),
        ),
        (
            "n =  3\nnumdiags =  2\ndiags = [[1, 1], [1, 0]]",
            board(3, &[], &[at(0, 1), at(1, 2), at(0, 1), at(1, 0)]),
        ),
        ("{\"n\":4,\"blocked\":[[1,2]],\"placed\":[[2,4]]}", board(4, &[at(1, 3)], &[at(0, 1)])),
        (
            "\u{feff} {\"solution\":[null,4,null,3],\"method\":\"x\",\"cuts\":{\"a\":[1]}}",
            board(4, &[at(1, 3), at(3, 2)], &[]),
        ),
        ("{\"n\":4,\"solution\":null}", board(4, &[], &[])),
    ] {
        let mut read = parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let mut expected = expected;
        read.blocked.sort_unstable();
        expected.blocked.sort_unstable();
        assert_eq!(read, expected, "{text:?}");
    }
    let rooks = parse("{\"n\":4,\"piece\":\"rook\"}").expect("a board");
    assert_eq!(rooks.piece, Some(Piece::Rook));
}

#[test]
fn excluded_diagonals_are_those_of_the_description_in_csplib() {
    // AA-Excluded-Diagonals-Info.md, n = 10.
    let sum = parse("n = 10\nnumdiags = 1\ndiags = [[4, 1]]").expect("a board");
    let mut squares = sum.blocked;
    squares.sort_unstable();
    assert_eq!(squares, [at(0, 4), at(1, 3), at(2, 2), at(3, 1), at(4, 0)]);
    let difference = parse("n = 10\nnumdiags = 1\ndiags = [[5, 0]]").expect("a board");
    let mut squares = difference.blocked;
    squares.sort_unstable();
    assert_eq!(squares, [at(0, 4), at(1, 5), at(2, 6), at(3, 7), at(4, 8), at(5, 9)]);
}

#[test]
fn what_is_no_board_is_refused_in_one_line() {
    let deep = "[".repeat(200_000);
    let long = format!("{{\"n\":4,\"x\":{deep}");
    let wide =
        format!("n = 5000000 diags = [{}]", "[1, 1], ".repeat(3) + "[4999999, 1], [5000001, 0]");
    for (text, why) in [
        ("", "empty text"),
        ("  \n\t\n", "empty text"),
        ("hello", "JSON, a FEN"),
        ("Q..\n...", "line 1 has 3"),
        ("Q Z\n. .", "'Z'"),
        ("8/8", "rank 1 has 8"),
        ("99999999999999999999999", "each must have 1"),
        ("K/1", "'K' in rank 1"),
        ("{", "invalid JSON"),
        ("{}", "there is no n"),
        ("{\"n\":-1}", "invalid JSON"),
        ("{\"n\":4,\"solution\":[1]}", "1 rows, not n = 4"),
        ("{\"n\":4,\"placed\":[[0,1]]}", "counted from 1"),
        ("{\"n\":4,\"piece\":\"king\"}", "king"),
        ("{\"n\":4}{\"n\":5}", "trailing"),
        ("{\"n\":8,\"palced\":[[1,1]]}", "unknown field 'palced'"),
        ("{\"n\":8,\"diags\":[[3,0]]}", "unknown field 'diags'"),
        ("{\"n\":10000001}", "too large"),
        (&long, "invalid JSON"),
        ("letting n = 99999999999999999999999", "number is too large"),
        ("letting n = 10000001", "too large"),
        ("letting n = x", "a whole number is expected"),
        ("letting blocks = [[1, 2]]", "there is no n"),
        ("letting n = 4 letting blocks = [[1, 2", "the end"),
        ("letting n = 4 letting blocks = [[1]]", "','"),
        ("letting n = 4 letting blocks = [[0, 1]]", "counted from 1"),
        ("letting m = 4", "'m' is not known"),
        ("= 4", "a name"),
        ("n = 4\ndiags = [[7, 1]]", "from 0 to 6"),
        ("n = 4\ndiags = [[1, 2]]", "is 0 or 1"),
        ("n = 0\ndiags = [[0, 1]]", "not a diagonal"),
        (&wide, "more than 10000000 squares"),
        (&deep, "character '['"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(why) && error.lines().count() == 1, "{why}: {error}");
    }
}

/// Writes a board in a format; `None` if the format cannot express it.
fn written(format: usize, read: &BoardFile) -> Option<String> {
    let BoardFile { n, placed, blocked, .. } = read;
    let pairs = |squares: &[Square], from: usize| {
        let pair = |s: &Square| format!("[{}, {}]", s.row + from, s.col + from);
        squares.iter().map(pair).collect::<Vec<_>>().join(", ")
    };
    let letter = |row, col| match at(row, col) {
        square if placed.contains(&square) => 'Q',
        square if blocked.contains(&square) => 'x',
        _ => '.',
    };
    match format {
        0 => Some(format!(
            "{{\"n\":{n},\"placed\":[{}],\"blocked\":[{}]}}",
            pairs(placed, 1),
            pairs(blocked, 1)
        )),
        1 if *n > 0 => {
            let line = |row| (0..*n).map(|col| letter(row, col)).collect::<String>();
            Some((0..*n).map(line).collect::<Vec<_>>().join("\n"))
        }
        2 => Some(format!(
            "letting n = {n}\nletting blocks = [{}]\nletting init = [{}]",
            pairs(blocked, 1),
            pairs(placed, 0)
        )),
        3 if *n > 0 && blocked.is_empty() => {
            let rank = |row| {
                let (mut text, mut empty) = (String::new(), 0);
                for col in 0..*n {
                    if letter(row, col) == 'Q' {
                        if empty > 0 {
                            let _ = write!(text, "{empty}");
                        }
                        (text, empty) = (text + "Q", 0);
                    } else {
                        empty += 1;
                    }
                }
                if empty > 0 { text + &empty.to_string() } else { text }
            };
            // A single rank of queens only is a picture, too.
            Some((0..*n).map(rank).collect::<Vec<_>>().join("/"))
        }
        _ => None,
    }
}

proptest! {
    #[test]
    fn boards_are_read_as_they_were_written(
        n in 1usize..14,
        marks in proptest::collection::vec((0usize..14, 0usize..14, any::<bool>()), 0..30),
        all_queens in any::<bool>(),
    ) {
        let mut expected = board(n, &[], &[]);
        let mut seen = std::collections::BTreeSet::new();
        for (row, col, is_queen) in marks {
            if row < n && col < n && seen.insert(at(row, col)) {
                let squares =
                    if is_queen || all_queens { &mut expected.placed } else { &mut expected.blocked };
                squares.push(at(row, col));
            }
        }
        expected.placed.sort_unstable();
        expected.blocked.sort_unstable();
        for format in 0..4 {
            let Some(text) = written(format, &expected) else { continue };
            let read = parse(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
            prop_assert_eq!(&read, &expected, "{}", text);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[ \\n0-9nQqx./\\[\\]{},:=\"a-z]{0,80}") {
        let _ = parse(&text);
    }
}
