//! Letters as strokes, for PNGs: the renderer has no fonts, so that a picture looks the same on
//! every machine. In an SVG, letters are text, which readers can select and screen readers read.

/// A letter is drawn on a grid: its strokes are polylines, separated by spaces, of points with one
/// digit for x and one for y. Capitals stand on the baseline y = 2 and reach to 8, small letters to
/// 6, descenders down to 0. Each entry has a letter, its width and its strokes.
const LETTERS: &[(char, u8, &str)] = &[
    (' ', 1, ""),
    ('!', 0, "0804 0202"),
    ('"', 1, "0706 1716"),
    ('#', 4, "1218 3238 0444 0646"),
    ('$', 4, "473818070615354443321203 2129"),
    ('%', 4, "0248 0808 4242"),
    ('&', 4, "420607182837360403122244"),
    ('\'', 0, "0706"),
    ('(', 1, "18060412"),
    (')', 1, "08161402"),
    ('*', 2, "0626 1517"),
    ('+', 4, "0545 2327"),
    (',', 0, "0201"),
    ('-', 2, "0424"),
    ('.', 0, "0202"),
    ('/', 3, "0238"),
    ('0', 4, "123243473818070312"),
    ('1', 4, "062822 0242"),
    ('2', 4, "07183847460242"),
    ('3', 4, "07183847463525 354443321203"),
    ('4', 4, "32380444"),
    ('5', 4, "480805354443321203"),
    ('6', 4, "473818070312324344351504"),
    ('7', 4, "084812"),
    ('8', 4, "150607183847463515 1504031232434435"),
    ('9', 4, "031232434738180706153546"),
    (':', 0, "0202 0606"),
    (';', 0, "0201 0606"),
    ('<', 3, "360432"),
    ('=', 4, "0646 0444"),
    ('>', 3, "063402"),
    ('?', 4, "07183847462524 2222"),
    ('A', 4, "022842 1434"),
    ('B', 4, "02083847463505 3544433202"),
    ('C', 4, "4738180703123243"),
    ('D', 4, "02082846442202"),
    ('E', 4, "48080242 0535"),
    ('F', 4, "480802 0535"),
    ('G', 4, "47381807031232434525"),
    ('H', 4, "0208 4248 0545"),
    ('I', 0, "0208"),
    ('J', 3, "3833221203"),
    ('K', 4, "0208 480542"),
    ('L', 3, "080232"),
    ('M', 4, "0208254842"),
    ('N', 4, "02084248"),
    ('O', 4, "123243473818070312"),
    ('P', 4, "02083847463505"),
    ('Q', 4, "123243473818070312 2442"),
    ('R', 4, "02083847463505 2542"),
    ('S', 4, "473818070615354443321203"),
    ('T', 4, "0848 2228"),
    ('U', 4, "080312324348"),
    ('V', 4, "082248"),
    ('W', 6, "0812365268"),
    ('X', 4, "0842 0248"),
    ('Y', 4, "082548 2522"),
    ('Z', 4, "08480242"),
    ('[', 1, "18080212"),
    ('\\', 3, "0832"),
    (']', 1, "08181202"),
    ('^', 2, "061826"),
    ('_', 4, "0141"),
    ('`', 1, "0817"),
    ('a', 3, "3526160503122233 3632"),
    ('b', 3, "0802 0516263533221203"),
    ('c', 3, "3526160503122233"),
    ('d', 3, "3832 3526160503122233"),
    ('e', 3, "04343526160503122233"),
    ('f', 2, "281712 0626"),
    ('g', 3, "3526160503122233 3631201001"),
    ('h', 3, "0802 0516263532"),
    ('i', 0, "0602 0808"),
    ('j', 1, "161100 1818"),
    ('k', 3, "0802 360432"),
    ('l', 1, "080312"),
    ('m', 4, "0602 05162522 25364542"),
    ('n', 3, "0602 0516263532"),
    ('o', 3, "051626353322120305"),
    ('p', 3, "0600 0516263533221203"),
    ('q', 3, "3630 3526160503122233"),
    ('r', 2, "0602 051626"),
    ('s', 3, "35261605142433221203"),
    ('t', 2, "181322 0626"),
    ('u', 3, "0603122233 3632"),
    ('v', 4, "062246"),
    ('w', 4, "0612253246"),
    ('x', 3, "0632 0236"),
    ('y', 4, "0622 46221000"),
    ('z', 3, "06360232"),
    ('{', 1, "18080212"),
    ('|', 0, "0008"),
    ('}', 1, "08181202"),
    ('~', 3, "05162435"),
    ('²', 2, "0718270525"),
    ('·', 0, "0505"),
    ('×', 3, "0336 0633"),
    ('–', 3, "0434"),
    ('—', 4, "0444"),
    ('…', 4, "0202 2222 4242"),
    ('→', 4, "0545 364534"),
    ('−', 4, "0545"),
];

/// The strokes of a letter that the table lacks: an empty box.
const UNKNOWN: (u8, &str) = (3, "0208383202");

/// The lengths of a grid step and the space between letters, in font sizes.
const X_STEP: f64 = 0.1;
const Y_STEP: f64 = 0.12;
const SPACE: f64 = 0.17;
/// The y of the baseline on the grid.
const BASELINE: f64 = 2.0;

fn letter(wanted: char) -> (f64, &'static str) {
    let known = LETTERS.iter().find(|letter| letter.0 == wanted);
    let (width, strokes) = known.map_or(UNKNOWN, |&(_, width, strokes)| (width, strokes));
    (f64::from(width) * X_STEP, strokes)
}

/// Returns the width of `text` in font sizes.
pub(super) fn width(text: &str) -> f64 {
    text.chars().map(|c| letter(c).0 + SPACE).sum::<f64>()
        - if text.is_empty() { 0.0 } else { SPACE }
}

/// Returns the strokes of `text` as the data of an SVG path; x and y are the left end of the
/// baseline, `size` is the font size.
pub(super) fn path(text: &str, x: f64, y: f64, size: f64) -> String {
    let mut data = String::new();
    let mut left = x;
    for c in text.chars() {
        let (width, strokes) = letter(c);
        for stroke in strokes.split(' ').filter(|stroke| !stroke.is_empty()) {
            let points = stroke.as_bytes().chunks_exact(2).map(|point| {
                let [column, row] = [point[0], point[1]].map(|digit| f64::from(digit - b'0'));
                (left + column * X_STEP * size, y - (row - BASELINE) * Y_STEP * size)
            });
            for (i, (x, y)) in points.enumerate() {
                data += &format!("{}{x:.2} {y:.2}", if i == 0 { 'M' } else { 'L' });
            }
        }
        left += (width + SPACE) * size;
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_ascii_character_but_the_at_sign_has_strokes_within_its_width() {
        for c in ' '..='~' {
            assert_eq!(LETTERS.iter().filter(|l| l.0 == c).count(), usize::from(c != '@'), "{c}");
        }
        for &(c, width, strokes) in LETTERS {
            for stroke in strokes.split(' ').filter(|stroke| !stroke.is_empty()) {
                assert!(stroke.len() >= 4 && stroke.len() % 2 == 0, "{c}: {stroke}");
                let digits = stroke.bytes().collect::<Vec<u8>>();
                assert!(digits.iter().all(u8::is_ascii_digit), "{c}: {stroke}");
                assert!(digits.chunks(2).all(|point| point[0] - b'0' <= width), "{c}: {stroke}");
            }
        }
    }

    #[test]
    fn a_text_is_as_wide_as_its_letters_and_the_spaces_between_them() {
        assert_eq!(width(""), 0.0);
        assert!((width("T") - 0.4).abs() < 1e-9);
        assert!((width("TT") - 0.97).abs() < 1e-9);
        assert_eq!(path("T", 10.0, 20.0, 10.0), "M10.00 12.80L14.00 12.80M12.00 20.00L12.00 12.80");
    }
}
