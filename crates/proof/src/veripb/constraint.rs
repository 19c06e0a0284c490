//! Pseudo-Boolean constraints and formulas, and their notation in the OPB format.

use std::fmt;
use std::io::{self, Write};

/// A 0-1 variable. Rows, columns and diagonals are 0-based here, and 1-based in the notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Variable {
    /// A queen stands in this row and column: `x3_1`.
    Queen(u16, u16),
    /// A queen stands on the diagonal c - r + n - 1: `d7`.
    Diagonal(u16),
    /// A queen stands on the antidiagonal r + c: `a7`.
    Antidiagonal(u16),
    /// The first row that differs from the given solution is this one: `f3`.
    FirstRow(u16),
    /// All levels before this one have as many queens as in the given solution: `s3`. Levels are
    /// 0-based in the notation.
    SameBefore(u16),
    /// The first level that differs from the given solution is this one, and it has fewer queens:
    /// `g3`.
    FewerOn(u16),
    /// The diagonals that are used are this set of a list: `u3`. Sets are 0-based here, and 1-based
    /// in the notation, as are thresholds.
    Set(u32),
    /// The squares of the diagonals that are used sum to at least this threshold: `q3`.
    SquaresAtLeast(u32),
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Queen(row, column) => write!(f, "x{}_{}", row + 1, column + 1),
            Self::Diagonal(diagonal) => write!(f, "d{}", diagonal + 1),
            Self::Antidiagonal(antidiagonal) => write!(f, "a{}", antidiagonal + 1),
            Self::FirstRow(row) => write!(f, "f{}", row + 1),
            Self::SameBefore(level) => write!(f, "s{level}"),
            Self::FewerOn(level) => write!(f, "g{level}"),
            Self::Set(set) => write!(f, "u{}", set + 1),
            Self::SquaresAtLeast(threshold) => write!(f, "q{}", threshold + 1),
        }
    }
}

impl Variable {
    /// Returns the variable of a queen on `square`, row · n + column.
    pub(crate) const fn queen(n: usize, square: usize) -> Self {
        Self::Queen((square / n) as u16, (square % n) as u16)
    }

    /// Returns the literal that is true if the variable is.
    pub(crate) const fn positive(self) -> Literal {
        Literal { variable: self, negated: false }
    }

    /// Returns the literal that is true if the variable is false.
    pub(crate) const fn negative(self) -> Literal {
        Literal { variable: self, negated: true }
    }
}

/// A variable or its negation: `x3_1` or `~x3_1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    pub(crate) variable: Variable,
    pub(crate) negated: bool,
}

impl Literal {
    /// Returns the literal that is true if this one is false.
    pub(crate) const fn contrary(self) -> Self {
        Self { negated: !self.negated, ..self }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variable, negated } = self;
        if *negated { write!(f, "~{variable}") } else { variable.fmt(f) }
    }
}

/// A linear constraint on literals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constraint {
    /// Coefficients, which are positive, with their literals.
    pub(crate) terms: Vec<(i128, Literal)>,
    /// Set if the sum equals the degree; otherwise it is at least the degree.
    pub(crate) equal: bool,
    pub(crate) degree: i128,
}

impl Constraint {
    /// Returns "at least one of these literals is true"; without literals, a contradiction.
    pub(crate) fn clause(literals: impl IntoIterator<Item = Literal>) -> Self {
        Self::at_least(1, literals)
    }

    /// Returns "at least `degree` of these literals are true".
    pub(crate) fn at_least(degree: usize, literals: impl IntoIterator<Item = Literal>) -> Self {
        let terms = literals.into_iter().map(|literal| (1, literal)).collect();
        Self { terms, equal: false, degree: degree as i128 }
    }

    /// Returns "exactly one of these variables is true".
    pub(crate) fn exactly_one(variables: impl IntoIterator<Item = Variable>) -> Self {
        Self { equal: true, ..Self::clause(variables.into_iter().map(Variable::positive)) }
    }

    /// Returns the constraint "`condition` implies this one", which is not an equation.
    pub(crate) fn implied_by(mut self, condition: Literal) -> Self {
        if self.degree > 0 {
            self.terms.insert(0, (self.degree, condition.contrary()));
        }
        self
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (coefficient, literal) in &self.terms {
            write!(f, "{coefficient} {literal} ")?;
        }
        write!(f, "{} {}", if self.equal { "=" } else { ">=" }, self.degree)
    }
}

/// A conjunction of constraints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Formula {
    pub(crate) constraints: Vec<Constraint>,
}

impl Formula {
    /// Adds a constraint. Returns its number, from 0 on.
    pub(crate) fn push(&mut self, constraint: Constraint) -> usize {
        self.constraints.push(constraint);
        self.constraints.len() - 1
    }

    /// Returns the identifier that VeriPB gives to each constraint, and the number of identifiers.
    /// An equation has two: ≥ and, after it, ≤.
    pub(crate) fn identifiers(&self) -> (Vec<u64>, u64) {
        let mut next = 1;
        let of = |constraint: &Constraint| {
            let identifier = next;
            next += if constraint.equal { 2 } else { 1 };
            identifier
        };
        let identifiers = self.constraints.iter().map(of).collect();
        (identifiers, next - 1)
    }

    /// Writes the formula in the OPB format.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let terms = self.constraints.iter().flat_map(|constraint| &constraint.terms);
        let mut variables: Vec<Variable> = terms.map(|(_, literal)| literal.variable).collect();
        variables.sort_unstable();
        variables.dedup();
        let (variables, constraints) = (variables.len(), self.constraints.len());
        writeln!(out, "* #variable= {variables} #constraint= {constraints}")?;
        self.constraints.iter().try_for_each(|constraint| writeln!(out, "{constraint} ;"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_written_in_opb() {
        let (x, f) = (Variable::Queen(2, 0), Variable::FirstRow(4));
        let mut formula = Formula::default();
        formula.push(Constraint::exactly_one([x, Variable::Queen(1, 1)]));
        let both = Constraint::at_least(2, [x.positive(), Variable::Diagonal(0).negative()]);
        formula.push(both.implied_by(f.positive()));
        assert_eq!(formula.identifiers(), (vec![1, 3], 3));
        let mut out = Vec::new();
        formula.write(&mut out).expect("memory can be written");
        let expected = "* #variable= 4 #constraint= 2\n\
                        1 x3_1 1 x2_2 = 1 ;\n2 ~f5 1 x3_1 1 ~d1 >= 2 ;\n";
        assert_eq!(String::from_utf8(out).expect("ASCII"), expected);
        assert_eq!(Constraint::clause([]).to_string(), ">= 1");
    }
}
