//! Several boards in one picture.

use std::io::{self, Write};

use super::picture::{Picture, PictureFormat};
use super::raster;

/// The maximum number of boards of a sheet.
pub const MAX_SHEET: usize = 100;
/// The space around the boards, and the font size of the title, for a board of this width.
const MARGIN: f64 = 0.04;
const TITLE: f64 = 0.06;
/// The largest side of a PNG, in pixels.
const PNG_SIDE: f64 = 4096.0;

/// The pictures of several boards of one size, in rows, below a title.
#[derive(Debug)]
pub struct Sheet<'a> {
    title: String,
    pictures: Vec<Picture<'a>>,
}

impl<'a> Sheet<'a> {
    /// Creates a sheet of at most [`MAX_SHEET`] pictures; further ones are left out. The title must
    /// not contain characters with a meaning in XML.
    pub fn new(title: impl Into<String>, mut pictures: Vec<Picture<'a>>) -> Self {
        pictures.truncate(MAX_SHEET);
        Self { title: title.into(), pictures }
    }

    /// Writes the sheet, with a line feed at the end of an SVG.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write(&self, format: PictureFormat, out: &mut impl Write) -> io::Result<()> {
        if format == PictureFormat::Svg {
            return self.svg(out).map(|_| ());
        }
        let mut document = Vec::new();
        let side = self.svg(&mut document)?;
        let document = String::from_utf8(document).map_err(io::Error::other)?;
        raster::write_png(&document, (PNG_SIDE / side).min(2.0) as f32, out)
    }

    /// Writes the document, and returns its larger side.
    fn svg(&self, out: &mut impl Write) -> io::Result<f64> {
        let sizes = self.pictures.iter().map(Picture::size);
        let (width, height) =
            sizes.fold((0.0_f64, 0.0_f64), |(w, h), size| (w.max(size.0), h.max(size.1)));
        let width = width.max(400.0);
        let columns = (self.pictures.len() as f64).sqrt().ceil().max(1.0) as usize;
        let rows = self.pictures.len().div_ceil(columns);
        let (margin, em) = (MARGIN * width, TITLE * width);
        let top = margin + 1.5 * em;
        let whole_width = columns as f64 * (width + margin) + margin;
        let whole_height = top + rows as f64 * (height + margin) + margin;
        write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole_width:.0}\" height=\"{whole_height:.0}\" \
             viewBox=\"0 0 {whole_width:.0} {whole_height:.0}\" role=\"img\" \
             font-family=\"system-ui, sans-serif\"><title>{title}</title>\
             <rect width=\"100%\" height=\"100%\" fill=\"#fdfcf9\"/>\
             <text x=\"{margin:.1}\" y=\"{:.1}\" font-size=\"{em:.1}\" fill=\"#222222\" \
             font-weight=\"600\">{title}</text>",
            margin + em,
            title = self.title,
        )?;
        for (i, picture) in self.pictures.iter().enumerate() {
            let x = margin + (i % columns) as f64 * (width + margin);
            let y = top + (i / columns) as f64 * (height + margin);
            write!(out, "<g transform=\"translate({x:.1} {y:.1})\">")?;
            picture.write_inside(out)?;
            write!(out, "</g>")?;
        }
        writeln!(out, "</svg>")?;
        Ok(whole_width.max(whole_height))
    }
}

#[cfg(test)]
mod tests {
    use resvg::{tiny_skia, usvg};

    use super::*;
    use crate::board::{Piece, Placement, Problem};

    fn rooks(n: usize) -> Placement {
        let columns: Vec<usize> = (0..n).collect();
        Placement::check_solution(&Problem::empty(Piece::Rook, n), &columns).expect("rooks")
    }

    fn written(sheet: &Sheet<'_>, format: PictureFormat) -> Vec<u8> {
        let mut out = Vec::new();
        sheet.write(format, &mut out).expect("memory can be written");
        out
    }

    #[test]
    fn a_sheet_has_a_title_and_all_boards_up_to_the_maximum() {
        let board = rooks(4);
        for (boards, drawn) in [(0, 0), (1, 1), (12, 12), (101, MAX_SHEET)] {
            let sheet = Sheet::new("rooks", vec![Picture::of(&board); boards]);
            let document = String::from_utf8(written(&sheet, PictureFormat::Svg)).expect("text");
            let tree = usvg::roxmltree::Document::parse(&document).expect("well-formed XML");
            let uses = tree.descendants().filter(|node| node.has_tag_name("use")).count();
            assert_eq!(uses, 4 * drawn);
            assert_eq!(
                tree.root_element().first_element_child().and_then(|t| t.text()),
                Some("rooks")
            );
        }
    }

    #[test]
    fn the_largest_sheets_are_pngs_of_limited_size() {
        for (n, boards) in [(8, 100), (100, 4)] {
            let board = rooks(n);
            let sheet = Sheet::new("rooks", vec![Picture::of(&board); boards]);
            let png = written(&sheet, PictureFormat::Png);
            let pixels = tiny_skia::Pixmap::decode_png(&png).expect("a PNG");
            let side = pixels.width().max(pixels.height());
            assert!((1000..=PNG_SIDE as u32 + 1).contains(&side), "{side}");
        }
    }
}
