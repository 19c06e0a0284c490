//! Tests of pictures: their words, and the pixels of PNGs.

use resvg::{tiny_skia, usvg};

use super::tests::drawn;
use super::{Drawing, Look, MAX_PNG, Picture, PictureFormat};
use crate::board::{Norm, Piece, Placement, Problem, Square};

fn placement(piece: Piece, columns: &[usize]) -> Placement {
    Placement::check_solution(&Problem::empty(piece, columns.len()), columns).expect("a solution")
}

fn svg(picture: &Picture<'_>) -> String {
    let mut out = Vec::new();
    picture.write(PictureFormat::Svg, &mut out).expect("memory can be written");
    String::from_utf8(out).expect("text")
}

fn png(picture: &Picture<'_>) -> tiny_skia::Pixmap {
    let mut out = Vec::new();
    picture.write(PictureFormat::Png, &mut out).expect("memory can be written");
    tiny_skia::Pixmap::decode_png(&out).expect("a PNG")
}

/// Returns the number of elements with this tag.
fn count(document: &str, tag: &str) -> usize {
    let tree = usvg::roxmltree::Document::parse(document).expect("well-formed XML");
    tree.descendants().filter(|element| element.has_tag_name(tag)).count()
}

#[test]
fn the_svg_is_well_formed_and_has_a_title_and_one_piece_per_row() {
    for (piece, columns) in [
        (Piece::Queen, vec![1]),
        (Piece::Queen, vec![2, 4, 1, 3]),
        (Piece::Rook, (1..=26).collect()),
        (Piece::Rook, (1..=27).collect()),
        (Piece::Rook, (1..=100).collect()),
    ] {
        let document = drawn(Drawing::Svg, piece, &columns);
        assert_eq!(document.lines().count(), 1);
        let tree = usvg::roxmltree::Document::parse(&document).expect("well-formed XML");
        let root = tree.root_element();
        let n = columns.len();
        assert_eq!(root.attribute("role"), Some("img"));
        let names: Vec<&str> = root.children().take(2).map(|e| e.tag_name().name()).collect();
        assert_eq!(names, ["title", "desc"]);
        assert_eq!(count(&document, "use"), n);
        assert!(document.contains(&format!(" on a board of size {n}</text>")), "{document}");
        assert!(document.contains(">Fingerprint: "), "{document}");
        assert_eq!(document.contains("on row,column: "), n <= 32);
        // Row numbers and letters, one of each for each line of the board.
        assert_eq!(document.contains(">a</text>"), n <= 26);
        assert_eq!(document.contains(">z</text>"), n == 26);
    }
    let words = drawn(Drawing::Svg, Piece::Queen, &[2, 4, 1, 3]);
    assert!(words.contains("Pieces on row,column: 1,2 2,4 3,1 4,3."), "{words}");
    assert!(words.contains("<title>4 queens on a board of size 4</title>"), "{words}");
    assert!(words.contains("Fingerprint: 10 10 10 10<"), "{words}");
}

#[test]
fn the_png_is_dark_exactly_on_the_squares_of_queens() {
    let columns = [1usize, 3, 0, 2];
    let picture = png(&Picture::of(&placement(Piece::Queen, &columns)));
    // The frame is the first dark line from the left at the height of the middle of row 1.
    let dark_at = |x: u32, y: u32| picture.pixel(x, y).is_some_and(|p| p.red() < 0x40);
    let light = |x: u32, y: u32| picture.pixel(x, y).is_some_and(|p| p.red() == 0xf0);
    let top =
        (0..picture.height()).find(|&y| light(picture.width() / 2 - 100, y)).expect("a board");
    let left = (0..picture.width()).find(|&x| light(x, top + 5)).expect("a board");
    let dark = |row: usize, col: usize| {
        let inside = |at: usize| (at * 64 + 6) as u32..(at * 64 + 56) as u32;
        let pixels = inside(row).flat_map(|y| inside(col).map(move |x| (x, y)));
        pixels.filter(|&(x, y)| dark_at(left + x, top + y)).count()
    };
    for (row, &queen) in columns.iter().enumerate() {
        for col in 0..4 {
            let pixels = dark(row, col);
            assert_eq!(pixels > 300, col == queen, "row {row}, column {col}: {pixels}");
            assert!(col == queen || pixels == 0, "row {row}, column {col}: {pixels}");
        }
    }
}

#[test]
fn decided_squares_are_marked_and_explained() {
    let at = Square::new;
    let problem = Problem::new(Piece::Queen, 4, vec![at(0, 1)], vec![at(0, 0), at(3, 3)]);
    let problem = problem.expect("squares on the board");
    let solution = Placement::check_solution(&problem, &[1, 3, 0, 2]).expect("a completion");
    let plain = Picture::of(&solution);
    let marked = plain.clone().deciding(&problem);
    for words in [">placed in advance<", ">blocked<", "Blocked on row,column: 1,1 4,4."] {
        assert!(svg(&marked).contains(words), "{words}");
        assert!(!svg(&plain).contains(words), "{words}");
    }
    let grey = |picture: &tiny_skia::Pixmap| {
        let pixels = picture.pixels().iter();
        pixels.filter(|p| (p.red(), p.green(), p.blue()) == (0x9a, 0x9a, 0x9a)).count()
    };
    assert_eq!(grey(&png(&plain)), 0);
    assert!(grey(&png(&marked)) > 2000);
}

#[test]
fn there_is_a_ring_for_each_cost_and_a_line_of_the_legend_for_each_ring() {
    let columns = [0, 2, 4, 1, 3];
    let solution = placement(Piece::Queen, &columns);
    for norm in Norm::ALL {
        let document = svg(&Picture::of(&solution).with_look(Look::Rings(norm)));
        let mut costs = norm.fingerprint(&columns);
        costs.dedup();
        let tree = usvg::roxmltree::Document::parse(&document).expect("well-formed XML");
        let rings = tree.descendants().filter(|e| e.has_attribute("stroke-opacity"));
        assert_eq!(rings.count(), costs.len(), "{norm}");
        for cost in costs {
            assert!(document.contains(&format!(">cost {cost}: ")), "{norm}: {document}");
        }
        assert_eq!(count(&document, "use"), 5);
    }
    let words = svg(&Picture::of(&placement(Piece::Queen, &[1, 3, 0, 2]))
        .with_look(Look::Rings(Norm::Euclidean)));
    assert!(words.contains("4 at 10."), "{words}");
}

#[test]
fn attacks_are_numbers_and_lines() {
    let squares = [(0, 0), (1, 1), (2, 3)].map(|(row, col)| Square::new(row, col));
    let picture = Picture::of_squares(Piece::Queen, 4, 4, &squares).with_look(Look::Attacks);
    let document = svg(&picture);
    assert!(document.contains(">two pieces attack each other<"), "{document}");
    assert!(document.contains("d=\"M20 20L60 60\""), "{document}");
    assert!(document.contains("<title>3 queens on a board of size 4, and the attacked squares<"));
    let peaceful = placement(Piece::Queen, &[1, 3, 0, 2]);
    let document = svg(&Picture::of(&peaceful).with_look(Look::Attacks));
    assert!(!document.contains("attack each other"), "{document}");
    let large = vec![Square::new(0, 0)];
    let large = Picture::of_squares(Piece::Queen, 257, 257, &large).with_look(Look::Attacks);
    assert!(large.write(PictureFormat::Svg, &mut Vec::new()).is_err());
}

#[test]
fn boards_above_24_have_dots() {
    for (n, dots) in [(24, false), (25, true)] {
        let columns: Vec<usize> = (0..n).collect();
        let document = svg(&Picture::of(&placement(Piece::Rook, &columns)));
        assert_eq!(document.contains("<circle cx=\"20\" cy=\"20\""), dots, "{n}");
    }
}

#[test]
fn the_smallest_and_the_largest_png_decode() {
    assert!(png(&Picture::of(&placement(Piece::Queen, &[0]))).width() >= 64);
    let columns: Vec<usize> = (0..MAX_PNG).collect();
    let largest = png(&Picture::of(&placement(Piece::Rook, &columns)));
    assert!((4096..=4500).contains(&largest.width()), "{}", largest.width());
    for (rows, cols) in [(0, 0), (MAX_PNG + 1, 1), (1, MAX_PNG + 1)] {
        let picture = Picture::of_squares(Piece::Queen, rows, cols, &[]);
        let error = picture.write(PictureFormat::Png, &mut Vec::new()).expect_err("no PNG");
        assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    }
}
