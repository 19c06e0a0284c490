//! A 0-1 program as plain data: variables, rows and an objective.
//!
//! All coefficients are integers, so that the claims of a solver can be checked without rounding.

/// The direction of optimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Minimisation.
    Minimise,
    /// Maximisation.
    Maximise,
}

/// The relation between the left side of a row and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// At most the bound.
    AtMost,
    /// Equal to the bound.
    Equal,
    /// At least the bound.
    AtLeast,
}

/// The domain of a variable, which may be fixed in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// 0 or 1.
    Free,
    /// 0.
    Zero,
    /// 1.
    One,
}

impl Domain {
    /// Returns the least and the greatest value.
    pub const fn bounds(self) -> (i64, i64) {
        match self {
            Self::Free => (0, 1),
            Self::Zero => (0, 0),
            Self::One => (1, 1),
        }
    }
}

/// A 0-1 variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in model files.
    pub name: String,
    /// Coefficient in the objective.
    pub cost: i64,
    /// Domain of the variable.
    pub domain: Domain,
}

/// A linear row: Σ coefficient × variable, compared with a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Name in model files.
    pub name: String,
    /// Variables (indices of columns, each at most once) with their coefficients.
    pub terms: Vec<(usize, i64)>,
    /// The relation to the bound.
    pub relation: Relation,
    /// The bound, on the right side.
    pub bound: i64,
}

impl Row {
    /// Creates the row Σ `columns`, all with coefficient 1, compared with `bound`.
    pub fn sum(
        name: impl Into<String>,
        columns: impl IntoIterator<Item = usize>,
        relation: Relation,
        bound: i64,
    ) -> Self {
        let terms = columns.into_iter().map(|column| (column, 1)).collect();
        Self { name: name.into(), terms, relation, bound }
    }

    /// Returns the bounds of the left side.
    pub(crate) fn bounds(&self) -> (f64, f64) {
        let bound = self.bound as f64;
        match self.relation {
            Relation::AtMost => (f64::NEG_INFINITY, bound),
            Relation::Equal => (bound, bound),
            Relation::AtLeast => (bound, f64::INFINITY),
        }
    }

    /// Returns whether 0-1 `values` satisfy the row.
    pub fn holds(&self, values: &[bool]) -> bool {
        let sum: i128 =
            self.terms.iter().map(|&(j, a)| i128::from(values[j]) * i128::from(a)).sum();
        match self.relation {
            Relation::AtMost => sum <= self.bound.into(),
            Relation::Equal => sum == self.bound.into(),
            Relation::AtLeast => sum >= self.bound.into(),
        }
    }
}

/// A 0-1 program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Name in model files.
    pub name: String,
    /// Direction of the objective.
    pub direction: Direction,
    /// The variables.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Model {
    /// Sets the direction of the objective and the cost of every variable.
    pub fn set_objective(&mut self, direction: Direction, cost: impl Fn(usize) -> i64) {
        self.direction = direction;
        for (j, column) in self.columns.iter_mut().enumerate() {
            column.cost = cost(j);
        }
    }

    /// Returns the objective at `values`.
    pub fn objective(&self, values: &[bool]) -> i128 {
        self.columns.iter().zip(values).map(|(c, &on)| i128::from(on) * i128::from(c.cost)).sum()
    }

    /// Returns whether 0-1 `values` satisfy every row and every domain.
    pub fn is_feasible(&self, values: &[bool]) -> bool {
        let decided = |(column, &on): (&Column, &bool)| match column.domain {
            Domain::Free => true,
            Domain::Zero => !on,
            Domain::One => on,
        };
        values.len() == self.columns.len()
            && self.columns.iter().zip(values).all(decided)
            && self.rows.iter().all(|row| row.holds(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_feasible_if_it_satisfies_rows_and_domains() {
        let column = |domain| Column { name: String::new(), cost: 3, domain };
        let model = Model {
            name: "m".into(),
            direction: Direction::Maximise,
            columns: vec![column(Domain::Free), column(Domain::One), column(Domain::Zero)],
            rows: vec![
                Row::sum("a", [0, 1], Relation::AtLeast, 1),
                Row {
                    name: "b".into(),
                    terms: vec![(0, 2), (1, -1)],
                    relation: Relation::AtMost,
                    bound: 0,
                },
            ],
        };
        assert!(model.is_feasible(&[false, true, false]));
        assert!(!model.is_feasible(&[true, true, false]), "row b");
        assert!(!model.is_feasible(&[false, false, false]), "decided, and row a");
        assert!(!model.is_feasible(&[false, true, true]), "decided");
        assert!(!model.is_feasible(&[false, true]), "a value is missing");
        assert_eq!(model.objective(&[true, true, false]), 6);
    }
}
