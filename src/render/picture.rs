//! Pictures of boards. An SVG is one line, its size is proportional to the number of pieces, and
//! its title and description say in words what it shows; a PNG is rendered from it.

use std::io::{self, Write};

use super::attacks::{MAX_ATTACKS, attackers, attacking_pairs};
use super::figures::{MOST_FIGURES, bright, shape};
use super::layout::{ATTACK, CROSS, Entry, FRAME, Layout, MOST_COORDINATES, SIDE, Sample};
use super::rings::Rings;
use super::{DrawingError, MAX_PNG, counted, raster};
use crate::board::{Norm, Piece, Placement, Problem, Square};

/// The maximum number of squares that the description lists.
const MOST_IN_WORDS: usize = 32;
/// The side of a PNG in pixels up to which its squares are enlarged.
const PNG_SIDE: usize = 2048;
/// The minimum and maximum side of a square in a PNG, in pixels.
const PNG_SQUARE: (usize, usize) = (4, 64);
/// The maximum number of attacks that are drawn.
const MOST_ATTACKS: usize = 200;
/// The colours of squares that are attacked 0, 1, 2, 3, and 4 or more times.
const HEAT: [&str; 5] = ["#ffffff", "#fdebd0", "#f8cd9c", "#f0a868", "#e2803f"];

/// The style of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Light and dark squares.
    #[default]
    Chequered,
    /// Rings of equal cost around the centre of the board, one for each cost of a piece.
    Rings(Norm),
    /// Squares coloured by the number of pieces that attack them, with lines between pieces that
    /// attack each other. For boards up to [`MAX_ATTACKS`].
    Attacks,
}

/// The file format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// SVG on one line.
    Svg,
    /// PNG.
    Png,
}

#[derive(Clone, Copy, Debug)]
enum Pieces<'a> {
    Placement(&'a Placement),
    Squares(&'a [Square]),
}

/// A board to be drawn, with a caption: its size, the number of pieces, and the fingerprint of a
/// solution.
#[derive(Clone, Debug)]
pub struct Picture<'a> {
    piece: Piece,
    rows: usize,
    cols: usize,
    pieces: Pieces<'a>,
    count: usize,
    title: Option<String>,
    placed: &'a [Square],
    blocked: &'a [Square],
    look: Look,
}

impl<'a> Picture<'a> {
    /// Creates the picture of a placement.
    pub fn of(placement: &'a Placement) -> Self {
        let n = placement.n();
        let count = placement.pieces();
        Self::new(placement.piece(), n, n, Pieces::Placement(placement), count)
    }

    /// Creates the picture of pieces on 0-based `squares` of a board, which may attack each other.
    pub fn of_squares(piece: Piece, rows: usize, cols: usize, squares: &'a [Square]) -> Self {
        Self::new(piece, rows, cols, Pieces::Squares(squares), squares.len())
    }

    const fn new(piece: Piece, rows: usize, cols: usize, pieces: Pieces<'a>, count: usize) -> Self {
        let (placed, blocked): (&[Square], &[Square]) = (&[], &[]);
        Self {
            piece,
            rows,
            cols,
            pieces,
            count,
            title: None,
            placed,
            blocked,
            look: Look::Chequered,
        }
    }

    /// Marks the placed and the blocked squares of a problem.
    #[must_use]
    pub fn deciding(self, problem: &'a Problem) -> Self {
        Self { placed: problem.placed(), blocked: problem.blocked(), ..self }
    }

    /// Sets the title, which must not contain characters with a meaning in XML. By default it is
    /// the number of pieces and the size of the board.
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Sets the style.
    #[must_use]
    pub fn with_look(self, look: Look) -> Self {
        Self { look, ..self }
    }

    /// Checks whether the picture of a board of this size can be a PNG.
    ///
    /// # Errors
    /// Returns an error if a side is 0 or larger than [`MAX_PNG`].
    pub const fn fits_png(rows: usize, cols: usize) -> Result<(), DrawingError> {
        let most = if rows > cols { rows } else { cols };
        if rows == 0 || cols == 0 || most > MAX_PNG { Err(DrawingError::Png) } else { Ok(()) }
    }

    /// Writes the picture, with a line feed at the end of an SVG.
    ///
    /// # Errors
    /// The writer fails; an error of [`Self::fits_png`] has kind `Unsupported`.
    pub fn write(&self, format: PictureFormat, out: &mut impl Write) -> io::Result<()> {
        match format {
            PictureFormat::Svg => self.svg(out),
            PictureFormat::Png => self.png(out),
        }
    }

    fn squares(&self) -> Box<dyn Iterator<Item = Square> + '_> {
        match self.pieces {
            Pieces::Placement(placement) => Box::new(placement.squares()),
            Pieces::Squares(squares) => Box::new(squares.iter().copied()),
        }
    }

    fn png(&self, out: &mut impl Write) -> io::Result<()> {
        Self::fits_png(self.rows, self.cols)
            .map_err(|error| io::Error::new(io::ErrorKind::Unsupported, error))?;
        let mut document = Vec::new();
        self.svg(&mut document)?;
        let (least, largest) = PNG_SQUARE;
        let square = (PNG_SIDE / self.rows.max(self.cols)).clamp(least, largest);
        let document = String::from_utf8(document).map_err(io::Error::other)?;
        raster::write_png(&document, square as f32 / SIDE as f32, out)
    }

    /// Returns the width and the height of the picture, in its units.
    pub(super) fn size(&self) -> (f64, f64) {
        let (_, layout) = self.arranged();
        (layout.width, layout.height)
    }

    /// Returns the rings and the parts around the board.
    fn arranged(&self) -> (Option<Rings>, Layout) {
        let norm = if let Look::Rings(norm) = self.look { norm } else { Norm::Euclidean };
        let rings = match self.look {
            Look::Rings(norm) => Some(Rings::new(norm, self.rows, self.squares())),
            _ => None,
        };
        let mut entries = rings.as_ref().map_or_else(Vec::new, Rings::legend);
        entries.extend(self.legend());
        let paragraphs = self.fingerprint(norm);
        let layout = Layout::new(self.rows, self.cols, &self.title(), &paragraphs, entries);
        (rings, layout)
    }

    fn svg(&self, out: &mut impl Write) -> io::Result<()> {
        let title = self.title();
        let (rings, layout) = self.arranged();
        let (width, height) = (layout.width, layout.height);
        let description = rings.as_ref().map_or_else(String::new, Rings::description);
        write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" font-family=\"system-ui, sans-serif\">\
             <title>{title}</title><desc>{}{description}</desc>\
             <rect width=\"100%\" height=\"100%\" fill=\"#fdfcf9\"/>\
             <g transform=\"translate({:.1} {:.1})\">",
            self.words(),
            layout.left,
            layout.top,
        )?;
        self.content(rings.as_ref(), &layout, out)?;
        writeln!(out, "</svg>")
    }

    /// Writes the picture as a part of another document.
    pub(super) fn write_inside(&self, out: &mut impl Write) -> io::Result<()> {
        let (rings, layout) = self.arranged();
        let (left, top) = (layout.left, layout.top);
        write!(out, "<g transform=\"translate({left:.1} {top:.1})\">")?;
        self.content(rings.as_ref(), &layout, out)
    }

    /// Writes the board and its surroundings. The group of the board has begun.
    fn content(
        &self,
        rings: Option<&Rings>,
        layout: &Layout,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match rings {
            Some(rings) => rings.draw(out)?,
            None => self.board(out)?,
        }
        self.marks(out, CROSS, self.blocked)?;
        self.pieces(out)?;
        self.marks(out, FRAME, self.placed)?;
        write!(out, "</g>")?;
        layout.coordinates(out)?;
        layout.caption(out)
    }

    fn title(&self) -> String {
        let title = self.title.clone().unwrap_or_else(|| {
            let pieces = counted(self.count, self.piece);
            format!("{pieces} on a board of size {}", self.rows)
        });
        match self.look {
            Look::Chequered => title,
            Look::Rings(norm) => format!("{title}, on rings of equal {norm} cost"),
            Look::Attacks => format!("{title}, and the attacked squares"),
        }
    }

    /// Returns the paragraph with the fingerprint, if there is a piece in each row.
    fn fingerprint(&self, norm: Norm) -> Vec<String> {
        /// More costs than three lines of a caption have room for.
        const MOST: usize = 200;
        let Pieces::Placement(placement) = self.pieces else { return Vec::new() };
        let columns: Option<Vec<usize>> = placement.columns().collect();
        let Some(columns) = columns.filter(|columns| !columns.is_empty()) else {
            return Vec::new();
        };
        let costs = norm.fingerprint(&columns);
        let words: Vec<String> = costs.iter().take(MOST).map(u64::to_string).collect();
        let norm = if norm == Norm::Euclidean { String::new() } else { format!(" ({norm})") };
        vec![format!("Fingerprint{norm}: {}", words.join(" "))]
    }

    /// Returns the description without that of the rings.
    fn words(&self) -> String {
        let listed = |what: &str, squares: &mut dyn Iterator<Item = Square>| {
            let words: Vec<String> = squares.map(|square| square.to_string()).collect();
            format!("{what} on row,column: {}. ", words.join(" "))
        };
        let mut words = match self.count {
            0 => "No pieces. ".to_owned(),
            1..=MOST_IN_WORDS => listed("Pieces", &mut self.squares()),
            count if count == self.rows => "One piece in each row. ".to_owned(),
            _ => String::new(),
        };
        for (what, squares) in [("Placed in advance", self.placed), ("Blocked", self.blocked)] {
            if (1..=MOST_IN_WORDS).contains(&squares.len()) {
                words += &listed(what, &mut squares.iter().copied());
            }
        }
        words.trim_end().to_owned()
    }

    fn legend(&self) -> Vec<Entry> {
        let entry = |sample, words: &str| Entry { sample, words: words.to_owned() };
        let mut entries = Vec::new();
        if self.look == Look::Attacks {
            for (count, colour) in HEAT.iter().enumerate() {
                let words = match count {
                    0 => "not attacked".to_owned(),
                    1 => "attacked by 1".to_owned(),
                    4 => "by 4 or more".to_owned(),
                    count => format!("by {count}"),
                };
                entries.push(Entry { sample: Sample::Colour((*colour).to_owned()), words });
            }
            if !self.attacking_pairs().is_empty() {
                entries.push(entry(Sample::Line, "two pieces attack each other"));
            }
        }
        if !self.placed.is_empty() {
            entries.push(entry(Sample::Frame, "placed in advance"));
        }
        if !self.blocked.is_empty() {
            entries.push(entry(Sample::Cross, "blocked"));
        }
        entries
    }

    /// Draws the squares.
    fn board(&self, out: &mut impl Write) -> io::Result<()> {
        let (width, height) = (self.cols as f64 * SIDE, self.rows as f64 * SIDE);
        let two = 2.0 * SIDE;
        // Between dots, dark squares would be confusing.
        let has_dots = self.rows.max(self.cols) > MOST_FIGURES;
        let dark = if has_dots { "#dcbf97" } else { "#b58863" };
        write!(
            out,
            "<defs><pattern id=\"squares\" width=\"{two}\" height=\"{two}\" patternUnits=\"userSpaceOnUse\">\
             <path fill=\"#f0d9b5\" d=\"M0 0H{two}V{two}H0Z\"/>\
             <path fill=\"{dark}\" d=\"M{SIDE} 0H{two}V{SIDE}H{SIDE}ZM0 {SIDE}H{SIDE}V{two}H0Z\"/></pattern></defs>\
             <path fill=\"url(#squares)\" stroke=\"#222222\" stroke-width=\"1\" d=\"M0 0H{width}V{height}H0Z\"/>"
        )?;
        if self.look == Look::Attacks { self.heat(out) } else { Ok(()) }
    }

    /// Colours the squares by the number of pieces that attack them.
    fn heat(&self, out: &mut impl Write) -> io::Result<()> {
        if self.rows > MAX_ATTACKS {
            return Err(io::Error::new(io::ErrorKind::Unsupported, DrawingError::Attacks));
        }
        let squares: Vec<Square> = self.squares().collect();
        let counts = attackers(self.piece, self.rows, &squares);
        let cells = || {
            let rows = counts.iter().enumerate();
            rows.flat_map(|(row, counts)| {
                counts.iter().enumerate().map(move |(col, &k)| (row, col, k))
            })
        };
        for (shade, colour) in HEAT.iter().enumerate() {
            write!(out, "<path fill=\"{colour}\" stroke=\"#c9c2b4\" d=\"")?;
            for (row, col, _) in cells().filter(|cell| cell.2.min(HEAT.len() - 1) == shade) {
                write!(out, "M{} {}h40v40h-40z", col * 40, row * 40)?;
            }
            write!(out, "\"/>")?;
        }
        if self.rows > MOST_COORDINATES {
            return Ok(());
        }
        write!(out, "<g font-size=\"16\" fill=\"#5b3a1e\" text-anchor=\"middle\">")?;
        for (row, col, count) in cells().filter(|cell| cell.2 > 0) {
            if !squares.contains(&Square::new(row, col)) {
                write!(
                    out,
                    "<text x=\"{}\" y=\"{}\">{count}</text>",
                    col * 40 + 20,
                    row * 40 + 26
                )?;
            }
        }
        write!(out, "</g>")
    }

    fn attacking_pairs(&self) -> Vec<(Square, Square)> {
        let squares: Vec<Square> = self.squares().collect();
        attacking_pairs(self.piece, self.rows, &squares, MOST_ATTACKS)
    }

    fn pieces(&self, out: &mut impl Write) -> io::Result<()> {
        let side = self.rows.max(self.cols);
        let shape = match self.look {
            Look::Rings(_) => bright(self.piece, side),
            _ => shape(self.piece, side).to_owned(),
        };
        write!(out, "<defs><g id=\"piece\">{shape}</g></defs><g fill=\"#222222\">")?;
        for Square { row, col } in self.squares() {
            write!(out, "<use href=\"#piece\" x=\"{}\" y=\"{}\"/>", col * 40, row * 40)?;
        }
        write!(out, "</g>")?;
        if self.look == Look::Attacks {
            for (a, b) in self.attacking_pairs() {
                let [x, y, to_x, to_y] = [a.col, a.row, b.col, b.row].map(|place| place * 40 + 20);
                write!(out, "<path {ATTACK} d=\"M{x} {y}L{to_x} {to_y}\"/>")?;
            }
        }
        Ok(())
    }

    fn marks(&self, out: &mut impl Write, mark: &str, squares: &[Square]) -> io::Result<()> {
        for Square { row, col } in squares {
            write!(out, "<g transform=\"translate({} {})\">{mark}</g>", col * 40, row * 40)?;
        }
        Ok(())
    }
}
