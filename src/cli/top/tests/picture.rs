//! A picture of a terminal.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};

/// Returns a drawing of a terminal.
pub(super) fn svg(buffer: &Buffer) -> String {
    const CELL: (f64, f64) = (8.0, 17.0);
    let colour = |colour: Color| match colour {
        Color::Red => "#f47067",
        Color::Green => "#57ab5a",
        Color::Yellow => "#c69026",
        Color::Blue => "#539bf5",
        Color::Cyan => "#39c5cf",
        Color::DarkGray => "#768390",
        _ => "#d5dbe1",
    };
    let (width, height) = (buffer.area.width, buffer.area.height);
    let (w, h) = (f64::from(width) * CELL.0 + 16.0, f64::from(height) * CELL.1 + 16.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\">\
         <title>nqueens top</title><rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1c2128\"/>\
         <g font-family=\"monospace\" font-size=\"13\" xml:space=\"preserve\">\n"
    );
    for y in 0..height {
        // Adjacent cells of one style are one text element.
        let style = |x: u16| (buffer[(x, y)].fg, buffer[(x, y)].modifier);
        let mut x = 0;
        while x < width {
            let begin = x;
            while x < width && style(x) == style(begin) {
                x += 1;
            }
            let run: String = (begin..x).map(|x| buffer[(x, y)].symbol()).collect();
            let (fg, modifier) = style(begin);
            if run.trim().is_empty() {
                continue;
            }
            let bold = if modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
            let left = 8.0 + f64::from(begin) * CELL.0;
            let top = 8.0 + f64::from(y) * CELL.1;
            let length = f64::from(x - begin) * CELL.0;
            let mut ink = colour(fg);
            if modifier.contains(Modifier::REVERSED) {
                out += &format!(
                    "<rect x=\"{left}\" y=\"{top}\" width=\"{length}\" height=\"{}\" fill=\"{ink}\"/>",
                    CELL.1
                );
                ink = "#1c2128";
            }
            let run = run.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            out += &format!(
                "<text x=\"{left}\" y=\"{}\" textLength=\"{length}\" fill=\"{ink}\"{bold}>{run}</text>\n",
                top + 13.0
            );
        }
    }
    out + "</g></svg>\n"
}
