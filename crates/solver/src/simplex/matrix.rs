//! The coefficients of a linear program, by rows and by columns.

/// An index and a coefficient: the index is the column if read by rows, the row if read by columns.
pub(super) type Term = (u32, f64);

/// Compressed storage in one order: the coefficients of each line (row or column) are contiguous.
#[derive(Clone, Debug, Default)]
struct Lines {
    /// Start of each line, followed by the end of the last one.
    starts: Vec<usize>,
    terms: Vec<Term>,
}

impl Lines {
    /// Sorts `entries` (line, index in the line, coefficient) by lines.
    fn new(count: usize, entries: impl Iterator<Item = (u32, u32, f64)> + Clone) -> Self {
        let mut starts = vec![0; count + 1];
        for (line, _, _) in entries.clone() {
            starts[line as usize + 1] += 1;
        }
        for line in 0..count {
            starts[line + 1] += starts[line];
        }
        let mut terms = vec![(0, 0.0); starts[count]];
        let mut next = starts.clone();
        for (line, place, value) in entries {
            let at = &mut next[line as usize];
            terms[*at] = (place, value);
            *at += 1;
        }
        Self { starts, terms }
    }

    fn line(&self, line: usize) -> &[Term] {
        &self.terms[self.starts[line]..self.starts[line + 1]]
    }
}

/// A sparse matrix to which rows and columns can be added. After that it must be
/// [indexed](Self::index) before it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Matrix {
    rows: usize,
    columns: usize,
    /// Row, column, coefficient.
    entries: Vec<(u32, u32, f64)>,
    by_rows: Lines,
    by_columns: Lines,
    indexed: bool,
}

fn small(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 rows and columns")
}

impl Matrix {
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    pub(super) const fn columns(&self) -> usize {
        self.columns
    }

    /// Adds a row with these coefficients (column, coefficient).
    ///
    /// # Panics
    /// If a column does not exist.
    pub(super) fn add_row(&mut self, terms: impl Iterator<Item = (usize, f64)>) {
        let row = small(self.rows);
        for (column, value) in terms {
            assert!(column < self.columns, "there is no column {column}");
            self.entries.push((row, small(column), value));
        }
        self.rows += 1;
        self.indexed = false;
    }

    /// Adds a column with these coefficients (row, coefficient).
    ///
    /// # Panics
    /// If a row does not exist.
    pub(super) fn add_column(&mut self, terms: &[(usize, f64)]) {
        let column = small(self.columns);
        for &(row, value) in terms {
            assert!(row < self.rows, "there is no row {row}");
            self.entries.push((small(row), column, value));
        }
        self.columns += 1;
        self.indexed = false;
    }

    /// Makes the matrix readable after additions.
    pub(super) fn index(&mut self) {
        if !self.indexed {
            self.by_rows = Lines::new(self.rows, self.entries.iter().copied());
            self.by_columns =
                Lines::new(self.columns, self.entries.iter().map(|&(i, j, a)| (j, i, a)));
            self.indexed = true;
        }
    }

    /// Returns the coefficients of a row with their columns.
    pub(super) fn row(&self, row: usize) -> &[Term] {
        self.by_rows.line(row)
    }

    /// Returns the coefficients of a column with their rows.
    pub(super) fn column(&self, column: usize) -> &[Term] {
        self.by_columns.line(column)
    }
}
