//! SVG documents as PNGs.

use std::io::{self, Write};
use std::ops::Range;

use resvg::{tiny_skia, usvg};

use super::strokes;

/// The largest side of a PNG in pixels.
const MOST_PIXELS: f32 = 8192.0;

/// Renders an SVG document as a PNG, `scale` times as large. Its text is drawn in strokes: each
/// `<text>` must have the attributes x and y, and may have font-size, fill, font-weight and
/// text-anchor, also on an element around it.
///
/// # Errors
/// Returns an error if the document is not valid, a side would have more than 8192 pixels, or the
/// writer fails.
pub fn write_png(document: &str, scale: f32, out: &mut impl Write) -> io::Result<()> {
    let outlined = outlined(document)?;
    let options = usvg::Options::default();
    let tree = usvg::Tree::from_str(&outlined, &options).map_err(io::Error::other)?;
    let [width, height] =
        [tree.size().width(), tree.size().height()].map(|side| (side * scale).ceil());
    if width.max(height) > MOST_PIXELS {
        return Err(io::Error::other("the picture has too many pixels"));
    }
    let mut pixels = tiny_skia::Pixmap::new(width as u32, height as u32)
        .ok_or_else(|| io::Error::other("a picture without pixels"))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    out.write_all(&pixels.encode_png().map_err(io::Error::other)?)
}

/// Returns the document with paths in place of its text.
fn outlined(document: &str) -> io::Result<String> {
    let tree = usvg::roxmltree::Document::parse(document).map_err(io::Error::other)?;
    let texts = tree.descendants().filter(|node| node.has_tag_name("text"));
    let paths: Vec<(Range<usize>, String)> =
        texts.map(|text| (text.range(), drawn(text))).collect();
    let mut outlined = String::with_capacity(document.len() * 2);
    let mut end = 0;
    for (range, path) in paths {
        outlined += &document[end..range.start];
        outlined += &path;
        end = range.end;
    }
    outlined += &document[end..];
    Ok(outlined)
}

/// Returns the strokes of a text element.
fn drawn(text: usvg::roxmltree::Node<'_, '_>) -> String {
    let inherited = |name: &str| text.ancestors().find_map(|node| node.attribute(name));
    let length = |name: &str, default: f64| {
        inherited(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let words = text.text().unwrap_or("");
    let size = length("font-size", 16.0);
    let back = match inherited("text-anchor") {
        Some("middle") => 0.5,
        Some("end") => 1.0,
        _ => 0.0,
    };
    let left = length("x", 0.0) - back * strokes::width(words) * size;
    let weight = if inherited("font-weight").is_some() { 0.12 } else { 0.085 };
    format!(
        "<path fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2}\" stroke-linecap=\"round\" \
         stroke-linejoin=\"round\" d=\"{}\"/>",
        inherited("fill").unwrap_or("#000000"),
        weight * size,
        strokes::path(words, left, length("y", 0.0), size),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_drawn_in_its_colour_where_it_is_anchored() {
        let document = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"20\" \
                        fill=\"#ff0000\" font-size=\"20\"><text x=\"40\" y=\"18\" \
                        text-anchor=\"end\">H</text></svg>";
        let mut png = Vec::new();
        write_png(document, 1.0, &mut png).expect("a picture");
        let picture = tiny_skia::Pixmap::decode_png(&png).expect("a PNG");
        assert_eq!((picture.width(), picture.height()), (40, 20));
        let red = |x: u32, y: u32| picture.pixel(x, y).is_some_and(|pixel| pixel.red() > 100);
        // The left bar of an H that is 8 units wide and ends at the right border.
        assert!(red(32, 10) && red(36, 10), "the left bar and the crossbar");
        assert!(!red(10, 10) && !red(36, 16));
    }

    #[test]
    fn pictures_that_would_be_too_large_are_an_error() {
        let document = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10000\" height=\"10\"/>";
        let error = write_png(document, 1.0, &mut Vec::new()).expect_err("too wide");
        assert!(error.to_string().contains("too many pixels"));
        assert!(write_png("<svg", 1.0, &mut Vec::new()).is_err());
    }
}
