//! The parts of a picture around the board: margins, coordinates, the caption and the legend.

use std::io::{self, Write};

use super::strokes;

/// The side of a square in the units of the picture.
pub(super) const SIDE: f64 = 40.0;
/// The largest board whose columns have letters, and whose rows have numbers.
pub(super) const MOST_COORDINATES: usize = 26;
/// Letters of browsers may be wider than the strokes by which they are measured.
const WIDER: f64 = 1.1;
/// Colours of letters.
const INK: &str = "#222222";
const PALE_INK: &str = "#5a5a5a";

/// A line of the legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) sample: Sample,
    pub(super) words: String,
}

/// The mark that a line of the legend explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// Squares of this colour.
    Colour(String),
    /// The frame of a square whose piece is placed in advance.
    Frame,
    /// The cross of a blocked square.
    Cross,
    /// The line between two pieces that attack each other.
    Line,
}

/// The size of the picture and of its parts, in its units.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// The font size.
    pub(super) em: f64,
    /// The corner of the board.
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    has_coordinates: bool,
    /// The lines of the caption, with their font sizes and the y of their baselines.
    caption: Vec<(String, f64, f64)>,
    /// The samples and words of the legend, with their places.
    legend: Vec<(Entry, f64, f64)>,
}

impl Layout {
    /// Arranges the board, a caption of a title and further paragraphs, and a legend.
    pub(super) fn new(
        rows: usize,
        cols: usize,
        title: &str,
        paragraphs: &[String],
        entries: Vec<Entry>,
    ) -> Self {
        /// The largest number of lines of a paragraph.
        const MOST_LINES: usize = 3;
        let (board_width, board_height) = (cols as f64 * SIDE, rows as f64 * SIDE);
        // On large boards everything grows with the board.
        let em = (board_width.max(board_height) / 52.0).max(15.0);
        let pad = 0.8 * em;
        let has_coordinates = (1..=MOST_COORDINATES).contains(&rows.max(cols));
        let [before, below] = if has_coordinates { [1.7 * em, 1.5 * em] } else { [0.0, 0.0] };
        let width = (board_width + before + 2.0 * pad).max(20.0 * em);
        let room = width - 2.0 * pad;
        let mut caption = Vec::new();
        let mut y = pad + board_height + below + 0.5 * em;
        for (text, size) in [(title, em)]
            .into_iter()
            .chain(paragraphs.iter().map(|text| (text.as_str(), 0.85 * em)))
        {
            for line in wrapped(text, room / (size * WIDER), MOST_LINES) {
                y += 1.35 * size;
                caption.push((line, size, y));
            }
        }
        let mut legend = Vec::new();
        let (mut x, last) = (pad, entries.len());
        for (i, entry) in entries.into_iter().enumerate() {
            let space = em * (2.3 + 0.85 * WIDER * strokes::width(&entry.words));
            if i == 0 || x + space > width - pad {
                (x, y) = (pad, y + 1.5 * em);
            }
            legend.push((entry, x, y));
            x += space;
        }
        let height = y + if last == 0 { 0.5 * em } else { 0.7 * em } + 0.3 * em;
        let left = before + (width - before - board_width) / 2.0;
        Self { rows, cols, em, left, top: pad, width, height, has_coordinates, caption, legend }
    }

    /// Writes the letters below the columns and the numbers before the rows.
    pub(super) fn coordinates(&self, out: &mut impl Write) -> io::Result<()> {
        if !self.has_coordinates {
            return Ok(());
        }
        let size = 0.9 * self.em;
        write!(out, "<g font-size=\"{size:.1}\" fill=\"{PALE_INK}\" text-anchor=\"end\">")?;
        let x = self.left - 0.5 * self.em;
        for row in 0..self.rows {
            let y = self.top + (row as f64 + 0.5) * SIDE + 0.36 * size;
            write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", row + 1)?;
        }
        write!(out, "</g><g font-size=\"{size:.1}\" fill=\"{PALE_INK}\" text-anchor=\"middle\">")?;
        let y = self.top + self.rows as f64 * SIDE + 1.25 * self.em;
        for (col, letter) in (0..self.cols).zip('a'..='z') {
            let x = self.left + (col as f64 + 0.5) * SIDE;
            write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{letter}</text>")?;
        }
        write!(out, "</g>")
    }

    /// Writes the caption and the legend.
    pub(super) fn caption(&self, out: &mut impl Write) -> io::Result<()> {
        let (pad, em) = (0.8 * self.em, self.em);
        for (line, size, y) in &self.caption {
            let weight = if *size < em {
                format!("fill=\"{PALE_INK}\"")
            } else {
                format!("fill=\"{INK}\" font-weight=\"600\"")
            };
            write!(
                out,
                "<text x=\"{pad:.1}\" y=\"{y:.1}\" font-size=\"{size:.1}\" {weight}>{line}</text>"
            )?;
        }
        for (entry, x, y) in &self.legend {
            let (side, above) = (1.1 * em, y - 0.85 * em);
            write!(
                out,
                "<g transform=\"translate({x:.1} {above:.1}) scale({:.4})\">",
                side / SIDE
            )?;
            sample(&entry.sample, out)?;
            let (x, size) = (x + 1.5 * em, 0.85 * em);
            let words = &entry.words;
            write!(
                out,
                "</g><text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.1}\" fill=\"{INK}\">{words}</text>"
            )?;
        }
        Ok(())
    }
}

/// The mark of a piece that was placed in advance, on a square at the origin: a frame.
pub(super) const FRAME: &str =
    "<path fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"4\" d=\"M3 3H37V37H3Z\"/>";
/// The mark of a blocked square: a grey square with a cross.
pub(super) const CROSS: &str = "<path fill=\"#9a9a9a\" d=\"M0 0H40V40H0Z\"/>\
    <path stroke=\"#4a4a4a\" stroke-width=\"4\" stroke-linecap=\"round\" d=\"M10 10 30 30M30 10 10 30\"/>";
/// The stroke of the line between two pieces that attack each other.
pub(super) const ATTACK: &str =
    "stroke=\"#c1121f\" stroke-width=\"5\" stroke-linecap=\"round\" stroke-opacity=\"0.85\"";

fn sample(sample: &Sample, out: &mut impl Write) -> io::Result<()> {
    match sample {
        Sample::Colour(colour) => write!(
            out,
            "<path fill=\"{colour}\" stroke=\"#8a8a8a\" stroke-width=\"1.5\" d=\"M1 1H39V39H1Z\"/>"
        ),
        Sample::Frame => write!(out, "<path fill=\"#f0d9b5\" d=\"M0 0H40V40H0Z\"/>{FRAME}"),
        Sample::Cross => write!(out, "{CROSS}"),
        Sample::Line => write!(out, "<path {ATTACK} d=\"M2 20H38\"/>"),
    }
}

/// Returns `text` in lines of at most `room` font sizes, at most `most` of them: if there are more,
/// the last one ends with an ellipsis. A longer word has a line for itself.
fn wrapped(text: &str, room: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_full = lines.len() == most;
        match lines.last_mut() {
            Some(line)
                if strokes::width(&format!("{line} {word}{}", if is_full { " …" } else { "" }))
                    <= room =>
            {
                *line += " ";
                *line += word;
            }
            Some(line) if is_full => {
                *line += " …";
                break;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_wrapped_and_end_with_an_ellipsis() {
        let words = vec!["1234"; 30].join(" ");
        let lines = wrapped(&words, 12.0, 3);
        assert_eq!(lines.len(), 3);
        assert!(lines[2].ends_with(" …") && !lines[1].contains('…'), "{lines:?}");
        assert!(lines.iter().all(|line| strokes::width(line) <= 12.0), "{lines:?}");
        assert_eq!(wrapped("one two", 12.0, 3), ["one two"]);
        let all: String = wrapped(&words, 12.0, 100).join(" ");
        assert_eq!(all, words);
    }

    #[test]
    fn the_board_and_its_margins_are_inside_the_picture() {
        for (rows, cols) in [(0, 0), (1, 1), (8, 8), (26, 26), (27, 27), (4, 9), (1000, 1000)] {
            let entry = Entry { sample: Sample::Frame, words: "placed in advance".into() };
            let layout = Layout::new(rows, cols, "a title", &["words".into()], vec![entry; 5]);
            let right = layout.left + cols as f64 * SIDE;
            let bottom = layout.top + rows as f64 * SIDE;
            assert!(layout.left >= 0.0 && right <= layout.width, "{rows}, {cols}");
            assert!(layout.caption.iter().all(|line| line.2 > bottom && line.2 < layout.height));
            assert!(layout.legend.iter().all(|entry| entry.2 < layout.height));
        }
    }
}
