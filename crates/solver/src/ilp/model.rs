//! A 0-1 programme as plain data: what to maximise or minimise, over which variables, under which rows.
//!
//! All coefficients are integers, so that whatever a solver claims can be checked without rounding.

/// Whether the objective is to be small or large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// As small as possible.
    Minimise,
    /// As large as possible.
    Maximise,
}

/// How the left side of a row compares with its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// At most the bound.
    AtMost,
    /// The bound exactly.
    Equal,
    /// At least the bound.
    AtLeast,
}

/// What is decided about a variable before anybody solves.
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
    /// The least and the greatest value.
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
    /// Its name in model files.
    pub name: String,
    /// Its coefficient in the objective.
    pub cost: i64,
    /// What is decided about it.
    pub domain: Domain,
}

/// A linear row: Σ coefficient × variable, compared with a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name in model files.
    pub name: String,
    /// Variables (indices of columns, each once) with their coefficients.
    pub terms: Vec<(usize, i64)>,
    /// The comparison.
    pub relation: Relation,
    /// What the sum is compared with.
    pub bound: i64,
}

impl Row {
    /// Σ of the variables with coefficient 1, compared with `bound`.
    pub fn sum(
        name: impl Into<String>,
        columns: impl IntoIterator<Item = usize>,
        relation: Relation,
        bound: i64,
    ) -> Self {
        let terms = columns.into_iter().map(|column| (column, 1)).collect();
        Self { name: name.into(), terms, relation, bound }
    }

    /// Whether 0-1 `values` satisfy it.
    pub fn holds(&self, values: &[bool]) -> bool {
        let sum: i128 = self.terms.iter().map(|&(j, a)| i128::from(values[j]) * i128::from(a)).sum();
        match self.relation {
            Relation::AtMost => sum <= self.bound.into(),
            Relation::Equal => sum == self.bound.into(),
            Relation::AtLeast => sum >= self.bound.into(),
        }
    }
}

/// A 0-1 programme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name in model files.
    pub name: String,
    /// Of the objective.
    pub direction: Direction,
    /// The variables.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Model {
    /// Gives every variable the cost that `cost` says, and the objective a direction.
    pub fn set_objective(&mut self, direction: Direction, cost: impl Fn(usize) -> i64) {
        self.direction = direction;
        for (j, column) in self.columns.iter_mut().enumerate() {
            column.cost = cost(j);
        }
    }

    /// The objective at `values`.
    pub fn objective(&self, values: &[bool]) -> i128 {
        self.columns.iter().zip(values).map(|(c, &on)| i128::from(on) * i128::from(c.cost)).sum()
    }

    /// Whether 0-1 `values` satisfy every row and what is decided about the variables.
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
    fn feasibility_is_judged_row_by_row_and_by_what_is_decided() {
        let column = |domain| Column { name: String::new(), cost: 3, domain };
        let model = Model {
            name: "m".into(),
            direction: Direction::Maximise,
            columns: vec![column(Domain::Free), column(Domain::One), column(Domain::Zero)],
            rows: vec![
                Row::sum("a", [0, 1], Relation::AtLeast, 1),
                Row { name: "b".into(), terms: vec![(0, 2), (1, -1)], relation: Relation::AtMost, bound: 0 },
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
