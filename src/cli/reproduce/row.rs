//! A published value beside ours.

use std::time::Duration;

use serde::Serialize;

use crate::cli::solution_output::spaced;
use crate::report::{duration, grouped};

/// A published or a computed value: one number, or the terms of a row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values(pub(super) Vec<u128>);

impl Values {
    /// Returns the value as text: decimal digits, with a space between two terms.
    fn full(&self) -> String {
        spaced(&self.0)
    }

    /// Returns the value for the table: the first and the last terms of a long list.
    pub(super) fn short(&self) -> String {
        const MOST: usize = 9;
        const FIRST: usize = 5;
        const LAST: usize = 2;
        match &self.0[..] {
            [number] => grouped(*number),
            terms if terms.len() <= MOST => self.full(),
            terms => {
                format!("{} … {}", spaced(&terms[..FIRST]), spaced(&terms[terms.len() - LAST..]))
            }
        }
    }

    /// Returns the difference of `self` from the published value, in words; `None` if they are
    /// equal.
    fn difference_from(&self, published: &Self) -> Option<String> {
        match (&self.0[..], &published.0[..]) {
            (ours, theirs) if ours == theirs => None,
            ([ours], [theirs]) => {
                let sign = if ours > theirs { '+' } else { '-' };
                Some(format!("{sign}{}", grouped(ours.abs_diff(*theirs))))
            }
            (ours, theirs) if ours.len() != theirs.len() => {
                Some(format!("{} terms, not {}", ours.len(), theirs.len()))
            }
            (ours, theirs) => {
                let first = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs)?;
                Some(format!("term {}: {}, not {}", first + 1, ours[first], theirs[first]))
            }
        }
    }
}

/// The result of a computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    /// The value is computed, and proved where the published value is an optimum.
    Computed(Values),
    /// The best value found is not proved.
    Unproven(Option<Values>),
}

/// The verdict on a published value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Equal,
    /// The values differ, in words.
    Differs(String),
    /// Our value is not proved.
    Unproven,
}

impl Verdict {
    fn of(ours: &Ours, published: &Values) -> Self {
        match ours {
            Ours::Computed(values) => {
                values.difference_from(published).map_or(Self::Equal, Self::Differs)
            }
            Ours::Unproven(_) => Self::Unproven,
        }
    }
}

/// A row: a published value beside ours.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    n: usize,
    published: String,
    /// `None` if no value was found.
    ours: Option<String>,
    method: &'static str,
    equal: bool,
    /// The difference in words; absent if the values are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
    elapsed_s: f64,
    #[serde(skip)]
    pub(super) verdict: Verdict,
    /// The cells of the table.
    #[serde(skip)]
    cells: [String; 5],
}

impl Row {
    pub(super) fn new(
        n: usize,
        published: &Values,
        ours: &Ours,
        method: &'static str,
        elapsed: Duration,
    ) -> Self {
        let verdict = Verdict::of(ours, published);
        let value = match ours {
            Ours::Computed(values) => Some(values),
            Ours::Unproven(values) => values.as_ref(),
        };
        let difference = match &verdict {
            Verdict::Equal => None,
            Verdict::Differs(difference) => Some(difference.clone()),
            Verdict::Unproven => Some("not proven".to_owned()),
        };
        let cells = [
            n.to_string(),
            published.short(),
            value.map_or_else(|| "—".to_owned(), Values::short),
            method.to_owned(),
            duration(elapsed),
        ];
        Self {
            n,
            published: published.full(),
            ours: value.map(Values::full),
            method,
            equal: verdict == Verdict::Equal,
            difference,
            elapsed_s: elapsed.as_secs_f64(),
            verdict,
            cells,
        }
    }

    /// Returns the line of the table.
    pub(super) fn line(&self, widths: Widths) -> String {
        let difference = self.difference.as_ref().map(|difference| format!("✗ {difference}"));
        widths.line(&self.cells, difference.as_deref().unwrap_or("✓"))
    }
}

/// The widths of the columns of a table. They are known before the first row is computed, so that
/// each row is printed at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Widths([usize; 5]);

/// The heads of the columns.
const HEAD: [&str; 5] = ["n", "published", "ours", "method", "time"];

impl Widths {
    /// Returns the widths for these sizes, published values and methods.
    pub(super) fn of<'a>(rows: impl Iterator<Item = (usize, &'a Values, &'a str)>) -> Self {
        const TIME: usize = 10;
        let mut widths = HEAD.map(str::len);
        widths[4] = TIME;
        for (n, published, method) in rows {
            let letters = published.short().chars().count();
            let of_row = [n.to_string().len(), letters, letters, method.len(), TIME];
            for (width, letters) in widths.iter_mut().zip(of_row) {
                *width = letters.max(*width);
            }
        }
        Self(widths)
    }

    /// Returns the line above the rows.
    pub(super) fn head(self) -> String {
        self.line(&HEAD.map(str::to_owned), "")
    }

    fn line(self, cells: &[String; 5], last: &str) -> String {
        let cells = cells.iter().zip(self.0).map(|(cell, width)| format!("  {cell:<width$}"));
        let line = cells.collect::<String>() + "  " + last;
        line.trim_end().to_owned() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(published: &[u128], ours: Ours) -> Row {
        Row::new(8, &Values(published.to_vec()), &ours, "count", Duration::from_millis(5))
    }

    fn computed(published: &[u128], ours: &[u128]) -> Row {
        row(published, Ours::Computed(Values(ours.to_vec())))
    }

    #[test]
    fn equal_values_have_a_check_mark_and_others_their_difference() {
        let equal = computed(&[92], &[92]);
        assert_eq!((equal.verdict, equal.equal, equal.difference), (Verdict::Equal, true, None));
        let cases: [(&[u128], &[u128], &str); 5] = [
            (&[93], &[92], "-1"),
            (&[0], &[1_000], "+1 000"),
            (&[1, 3, 5], &[1, 3], "2 terms, not 3"),
            (&[1, 3, 5], &[1, 4, 6], "term 2: 4, not 3"),
            (&[u128::MAX], &[0], "-340 282 366 920 938 463 463 374 607 431 768 211 455"),
        ];
        for (published, ours, words) in cases {
            let row = computed(published, ours);
            assert_eq!(row.verdict, Verdict::Differs(words.to_owned()));
            let widths = Widths::of([(8, &Values(published.to_vec()), "count")].into_iter());
            assert!(row.line(widths).ends_with(&format!("  ✗ {words}\n")) && !row.equal);
        }
    }

    #[test]
    fn a_value_that_is_not_proved_is_not_equal() {
        for ours in [None, Some(Values(vec![92]))] {
            let row = row(&[92], Ours::Unproven(ours));
            assert_eq!((row.verdict, row.equal), (Verdict::Unproven, false));
        }
    }

    #[test]
    fn long_lists_are_shortened_in_the_table_only() {
        let terms: Vec<u128> = (1..=12).collect();
        let row = computed(&terms, &terms);
        assert_eq!(row.published, "1 2 3 4 5 6 7 8 9 10 11 12");
        assert_eq!(row.cells[1], "1 2 3 4 5 … 11 12");
        assert_eq!(Values(vec![14_772_512]).short(), "14 772 512");
    }

    #[test]
    fn the_columns_of_a_table_are_aligned() {
        let published = Values(vec![1, 5, 8, 6, 3, 7, 2, 4]);
        let widths = Widths::of([(8, &published, "first"), (10, &published, "cp")].into_iter());
        let row = Row::new(8, &published, &Ours::Computed(published.clone()), "cp", Duration::ZERO);
        let (head, line) = (widths.head(), row.line(widths));
        assert_eq!(head.find("method"), line.find("cp"));
        assert!(line.ends_with("0.000 s     ✓\n"), "{line:?}");
    }
}
