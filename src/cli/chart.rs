//! Bar charts, and the files that they are written to.

use std::cell::LazyCell;
use std::fmt::Write as _;
use std::io::Write as _;

use super::Failure;
use super::picture_args::PictureFiles;
use crate::bench::Spread;
use crate::render::{PictureFormat, write_png};

/// The help of `--svg` for commands that write a chart.
pub(super) const SVG_HELP: &str = "Write a bar chart to FILE as SVG";
/// The help of `--png` for commands that write a chart.
pub(super) const PNG_HELP: &str = "Write a bar chart to FILE as PNG";

/// Writes the chart that `draw` returns to all files.
pub(super) fn write_chart(
    files: PictureFiles<'_>,
    draw: impl FnOnce() -> String,
) -> Result<(), Failure> {
    /// Pixels for a unit of the chart.
    const SCALE: f32 = 2.0;
    // Without a file, nothing is drawn.
    let chart = LazyCell::new(draw);
    files.finish_with(|format, out| match format {
        PictureFormat::Svg => out.write_all(chart.as_bytes()),
        PictureFormat::Png => write_png(&chart, SCALE, out),
    })
}

/// A bar: its length is the median, with a line from the minimum to the maximum.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    /// The name, to the left of the bar.
    pub(super) name: String,
    /// The value.
    pub(super) value: Spread,
    /// The value in words, to the right of the bar.
    pub(super) label: String,
}

/// Bars below a common heading.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The heading; without one, the bars follow those before.
    pub(super) heading: Option<String>,
    pub(super) bars: Vec<Bar>,
}

/// Above this ratio between the largest and the smallest value, the scale is logarithmic.
const LOG_FROM: f64 = 20.0;

/// Lengths in px.
const MARGIN: f64 = 24.0;
const TOP: f64 = 72.0;
const ROW: f64 = 34.0;
const BAR: f64 = 20.0;
const GAP: f64 = 10.0;
const WIDTH: f64 = 760.0;
/// The minimum width of the bars. A chart with long names is wider.
const LEAST_PLOT: f64 = 240.0;
/// The estimated width of a letter; there is no font to measure.
const LETTER: f64 = 8.0;
/// The same of a letter of the notes.
const SMALL_LETTER: f64 = 6.7;
/// The height of a line of the notes.
const NOTE: f64 = 18.0;

/// Returns the chart as an SVG document; `unit` names what the bars show, and `notes` are lines
/// below them. It has a background of its own, so that it is readable on light and dark pages.
pub(super) fn svg(title: &str, unit: &str, bars: &[Bar], notes: &[String]) -> String {
    let group = Group { heading: None, bars: bars.to_vec() };
    grouped_svg(title, unit, &[group], notes, |value| format!("{value:e}"))
}

/// Like [`svg`], with the bars in groups; `tick` names a value on a logarithmic axis.
pub(super) fn grouped_svg(
    title: &str,
    unit: &str,
    groups: &[Group],
    notes: &[String],
    tick: impl Fn(f64) -> String,
) -> String {
    let bars = || groups.iter().flat_map(|group| &group.bars);
    let letters =
        |text: fn(&Bar) -> &str| bars().map(|b| text(b).chars().count()).max().unwrap_or(0);
    let left = MARGIN + letters(|b| &b.name) as f64 * LETTER + GAP;
    let right = MARGIN + letters(|b| &b.label) as f64 * LETTER + GAP;
    let longest = notes.iter().map(|note| note.chars().count()).max().unwrap_or(0);
    let for_notes = 2.0 * MARGIN + longest as f64 * SMALL_LETTER;
    let plot = (WIDTH.max(for_notes) - left - right).max(LEAST_PLOT);
    let rows: usize =
        groups.iter().map(|group| group.bars.len() + usize::from(group.heading.is_some())).sum();
    let bottom = TOP + ROW * rows as f64;
    let (width, height) = (left + plot + right, bottom + 20.0 + MARGIN + NOTE * notes.len() as f64);
    let scale = Scale::of(bars().map(|b| b.value));
    let x = |value: f64| left + plot * scale.share(value);
    let note = if scale.is_log() { ", logarithmic scale" } else { "" };
    let (title, unit) = (escaped(title), escaped(unit));
    let words = groups.iter().flat_map(Group::sentences);
    let words: String = words.chain(notes.iter().map(|note| format!("{note}. "))).collect();
    let description = escaped(words.trim_end());

    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" font-family=\"system-ui, sans-serif\" \
         font-size=\"14\" fill=\"#222222\">\n\
         <title>{title}</title>\n\
         <desc>{description}</desc>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#f2f2ef\"/>\n\
         <text x=\"{MARGIN}\" y=\"32\" font-size=\"17\" font-weight=\"600\">{title}</text>\n\
         <text x=\"{MARGIN}\" y=\"54\" fill=\"#555555\">{unit}{note}</text>\n"
    );
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    for value in scale.ticks() {
        let (x, label) = (x(value), escaped(&tick(value)));
        line(format!("<path d=\"M{x:.1} {TOP:.1}V{bottom:.1}\" stroke=\"#cfcfca\"/>"));
        line(format!(
            "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"12\" fill=\"#555555\" text-anchor=\"middle\">{label}</text>",
            bottom + 18.0,
        ));
    }
    let mut top = TOP;
    for row in groups.iter().flat_map(Group::rows) {
        let middle = top + ROW / 2.0;
        let base = middle + 5.0;
        top += ROW;
        let bar = match row {
            Row::Bar(bar) => bar,
            Row::Heading(heading) => {
                line(format!(
                    "<text x=\"{MARGIN}\" y=\"{base:.1}\" font-weight=\"600\">{}</text>",
                    escaped(heading)
                ));
                continue;
            }
        };
        let (from, to, end) = (x(bar.value.min), x(bar.value.max), x(bar.value.median));
        line(format!(
            "<text x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{}</text>",
            left - GAP,
            escaped(&bar.name)
        ));
        line(format!(
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"#4a7fb5\"/>",
            middle - BAR / 2.0,
            end - left
        ));
        line(format!(
            "<path d=\"M{from:.1} {middle:.1}H{to:.1}\" stroke=\"#222222\" stroke-width=\"2\"/>"
        ));
        line(format!("<text x=\"{:.1}\" y=\"{base:.1}\">{}</text>", to + GAP, escaped(&bar.label)));
    }
    for (i, note) in notes.iter().enumerate() {
        line(format!(
            "<text x=\"{MARGIN}\" y=\"{:.1}\" font-size=\"12\" fill=\"#555555\">{}</text>",
            bottom + 42.0 + NOTE * i as f64,
            escaped(note)
        ));
    }
    line("</svg>".into());
    out
}

/// A row of the chart.
enum Row<'a> {
    Heading(&'a str),
    Bar(&'a Bar),
}

impl Group {
    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let heading = self.heading.iter().map(|heading| Row::Heading(heading));
        heading.chain(self.bars.iter().map(Row::Bar))
    }

    /// Returns the rows in words.
    fn sentences(&self) -> impl Iterator<Item = String> {
        self.rows().map(|row| match row {
            Row::Heading(heading) => format!("{heading}. "),
            Row::Bar(bar) => format!("{}: {}. ", bar.name, bar.label),
        })
    }
}

/// The scale of the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    /// From 0 to the largest value.
    Linear { largest: f64 },
    /// From one power of ten to another.
    Log { low: i32, high: i32 },
}

impl Scale {
    /// Returns the scale for `values`. Values that are not positive have no length.
    fn of(values: impl Iterator<Item = Spread> + Clone) -> Self {
        let positive = |value: &f64| value.is_finite() && *value > 0.0;
        let ends = values.clone().flat_map(|v| [v.min, v.max]).filter(positive);
        let (least, largest) =
            (ends.clone().fold(f64::INFINITY, f64::min), ends.fold(0.0, f64::max));
        let medians = values.map(|v| v.median).filter(positive);
        let ratio = medians.clone().fold(0.0, f64::max) / medians.fold(f64::INFINITY, f64::min);
        if ratio > LOG_FROM {
            // The shortest bar has at least a tenth of a decade, so that it is visible.
            Self::Log {
                low: (least.log10() - 0.1).floor() as i32,
                high: largest.log10().ceil() as i32,
            }
        } else {
            Self::Linear { largest }
        }
    }

    const fn is_log(self) -> bool {
        matches!(self, Self::Log { .. })
    }

    /// Returns the length of a value as a share of the axis, from 0 to 1.
    fn share(self, value: f64) -> f64 {
        let share = match self {
            Self::Linear { largest } => value / largest,
            Self::Log { low, high } => (value.log10() - f64::from(low)) / f64::from(high - low),
        };
        // A missing value has no length.
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// Returns up to nine powers of ten on a logarithmic axis. A linear axis has no ticks.
    fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear { .. } => Vec::new(),
            Self::Log { low, high } => {
                let step = (high - low) / 8 + 1;
                (low..=high).step_by(step as usize).map(|power| 10f64.powi(power)).collect()
            }
        }
    }
}

/// Escapes `text` for XML, and replaces characters that XML does not allow.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '<' | '>' | '"' | '\'' => {
                // Writing to a string does not fail.
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, median: f64) -> Bar {
        let value = Spread { median, min: median * 0.9, max: median * 1.2 };
        Bar { name: name.into(), value, label: format!("{median}") }
    }

    /// Returns the elements of a document, and checks that every start tag has an end tag, every
    /// attribute its quotes, and nothing in the text is left that could be a tag or an entity by
    /// mistake.
    fn elements(document: &str) -> Vec<String> {
        let (mut open, mut all) = (Vec::new(), Vec::new());
        let mut rest = document.trim();
        while let Some(tag) = rest.strip_prefix('<') {
            let (tag, behind) = tag.split_once('>').expect("a tag ends");
            assert!(!tag.contains('<'), "{tag}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name));
            } else {
                let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
                let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
                let quoted: Vec<&str> = attributes.split('"').collect();
                assert!(quoted.len() % 2 == 1 && quoted[quoted.len() - 1].is_empty(), "{tag}");
                let mut names: Vec<&str> =
                    quoted.iter().step_by(2).map(|name| name.trim()).collect();
                names.pop();
                assert!(names.iter().all(|name| name.ends_with('=')), "{tag}");
                names.sort_unstable();
                assert!(
                    names.windows(2).all(|pair| pair[0] != pair[1]),
                    "{tag}: an attribute twice"
                );
                all.push(name.to_owned());
                if !empty {
                    open.push(name.to_owned());
                }
            }
            let text = &behind[..behind.find('<').unwrap_or(behind.len())];
            assert!(text.split('&').skip(1).all(|entity| entity.starts_with('#')), "{text}");
            assert!(!text.contains('>') && !text.contains('\u{1}'), "{text}");
            rest = &behind[text.len()..];
        }
        assert!(rest.is_empty() && open.is_empty(), "{rest} {open:?}");
        all
    }

    #[test]
    fn charts_are_well_formed_whatever_the_names_are() {
        let hostile = [
            "<script>",
            "a & b",
            "]]>",
            "\"quoted\" 'twice'",
            "\u{1}\u{ffff}",
            "ñ → 𝄞",
            "",
            "&lt;",
        ];
        let bars: Vec<Bar> =
            hostile.iter().zip(1..).map(|(name, i)| bar(name, f64::from(i))).collect();
        for bars in [&bars[..], &bars[..1], &[]] {
            let document = svg("<n> & \"queens\"", "a > b", bars, &["<note>".into()]);
            let elements = elements(&document);
            assert_eq!(elements[0], "svg");
            assert_eq!(elements.iter().filter(|name| *name == "rect").count(), 1 + bars.len());
            assert!(!document.contains("<script>"));
        }
    }

    #[test]
    fn names_and_values_are_escaped_in_the_chart() {
        let document = svg("title", "unit", &[bar("a<b", 7.0)], &["a note".into()]);
        for words in
            [">a&#60;b</text>", ">7</text>", ">title</text>", ">unit</text>", ">a note</text>"]
        {
            assert!(document.contains(words), "{words}: {document}");
        }
    }

    #[test]
    fn the_scale_is_logarithmic_only_for_values_far_apart() {
        let near = Scale::of([bar("", 1.0), bar("", 20.0)].iter().map(|b| b.value));
        assert_eq!(near, Scale::Linear { largest: 24.0 });
        assert!(svg("", "", &[bar("", 1.0), bar("", 21.0)], &[]).contains("logarithmic"));
        assert!(!svg("", "", &[bar("", 1.0), bar("", 20.0)], &[]).contains("logarithmic"));
        let far = Scale::of([bar("", 2e6), bar("", 3e8)].iter().map(|b| b.value));
        assert_eq!(far, Scale::Log { low: 6, high: 9 });
        assert_eq!(far.ticks(), [1e6, 1e7, 1e8, 1e9]);
        let logarithmic = svg("", "", &[bar("", 2e6), bar("", 3e8)], &[]);
        assert!(logarithmic.contains(">1e6</text>") && logarithmic.contains(">1e9</text>"));
        assert!((far.share(1e8) - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_shortest_bar_of_a_logarithmic_chart_is_visible() {
        let even = |median: f64| Spread { median, min: median, max: median };
        let scale = Scale::of([even(1000.0), even(1e6)].into_iter());
        assert!(scale.share(1000.0) > 0.02 && scale.share(1e6) == 1.0, "{scale:?}");
    }

    #[test]
    fn values_without_a_length_do_not_break_the_chart() {
        let even = |median: f64| Spread { median, min: median, max: median };
        for values in [vec![0.0, 0.0], vec![0.0, 5.0, 500.0], vec![f64::NAN, f64::INFINITY, 3.0]] {
            let bars =
                values.iter().map(|&v| Bar { name: "a".into(), value: even(v), label: "v".into() });
            let document = svg("title", "unit", &bars.collect::<Vec<_>>(), &[]);
            elements(&document);
            assert!(!document.contains("NaN") && !document.contains("inf"), "{document}");
        }
    }

    #[test]
    fn a_group_has_a_heading_above_its_bars_and_ticks_have_their_own_names() {
        let group = |heading: &str, bars: &[Bar]| Group {
            heading: Some(heading.into()),
            bars: bars.to_vec(),
        };
        let groups =
            [group("a & b", &[bar("one", 1.0)]), group("c", &[bar("two", 2.0), bar("three", 9e3)])];
        let note = ["a note".to_owned()];
        let document = grouped_svg("title", "unit", &groups, &note, |value| format!("<{value}>"));
        assert_eq!(elements(&document).iter().filter(|name| *name == "rect").count(), 4);
        let place = |text: &str| document.find(&format!(">{text}</text>")).expect(text);
        let places = ["a &#38; b", "one", "c", "two", "three", "a note"].map(place);
        assert!(places.is_sorted() && document.contains(">&#60;10&#62;</text>"), "{document}");
        let words = "<desc>a &#38; b. one: 1. c. two: 2. three: 9000. a note.</desc>";
        assert!(document.contains(words), "{document}");
    }
}
