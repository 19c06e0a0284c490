//! The lines of a proof in the format of VeriPB 3.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::ops::Range;

use super::constraint::{Constraint, Literal, Variable};
use crate::ProofError;

/// The identifier of a constraint in a proof.
pub(super) type Id = u64;

/// The reason why a proof could not be written.
#[derive(Debug)]
pub(super) enum Interruption {
    LineLimit(u64),
    Io(io::Error),
}

/// A writer of proof lines, which numbers the constraints as VeriPB does.
///
/// Its methods return [`ProofError::Stopped`] after an [`Interruption`], so that the check that
/// drives it ends.
pub(super) struct ProofWriter<'w> {
    out: &'w mut dyn Write,
    last: Id,
    lines: u64,
    bytes: u64,
    most_lines: u64,
    line: String,
    pub(super) interruption: Option<Interruption>,
}

impl<'w> ProofWriter<'w> {
    /// Creates a writer that writes at most this number of lines.
    pub(super) fn new(out: &'w mut dyn Write, most_lines: u64) -> Self {
        let (line, interruption) = (String::new(), None);
        Self { out, last: 0, lines: 0, bytes: 0, most_lines, line, interruption }
    }

    /// Returns the numbers of lines and bytes so far.
    pub(super) const fn size(&self) -> (u64, u64) {
        (self.lines, self.bytes)
    }

    /// Returns the number of further lines that the limit allows.
    pub(super) fn lines_left(&self) -> usize {
        usize::try_from(self.most_lines - self.lines).unwrap_or(usize::MAX)
    }

    /// Ends the proof with an error if this number of further lines would exceed the limit.
    pub(super) fn reserve(&mut self, lines: u64) -> Result<(), ProofError> {
        if self.lines.saturating_add(lines) > self.most_lines { self.exceed() } else { Ok(()) }
    }

    /// Ends the proof with an error, since it would exceed the limit on lines.
    pub(super) fn exceed<T>(&mut self) -> Result<T, ProofError> {
        self.interrupt(Interruption::LineLimit(self.most_lines))
    }

    pub(super) fn interrupt<T>(&mut self, interruption: Interruption) -> Result<T, ProofError> {
        self.interruption = Some(interruption);
        Err(ProofError::Stopped)
    }

    /// Writes a line.
    fn write(&mut self, line: fmt::Arguments<'_>) -> Result<(), ProofError> {
        self.reserve(1)?;
        self.line.clear();
        let _ = self.line.write_fmt(line); // A string accepts everything.
        self.line.push('\n');
        self.lines += 1;
        self.bytes += self.line.len() as u64;
        match self.out.write_all(self.line.as_bytes()) {
            Ok(()) => Ok(()),
            Err(error) => self.interrupt(Interruption::Io(error)),
        }
    }

    /// Counts a constraint that the last line has added.
    const fn added(&mut self) -> Id {
        self.last += 1;
        self.last
    }

    /// Begins the proof for a formula with this number of identifiers.
    pub(super) fn begin(&mut self, identifiers: u64) -> Result<(), ProofError> {
        self.write(format_args!("pseudo-Boolean proof version 3.0"))?;
        self.last = identifiers;
        self.write(format_args!("f {identifiers};"))
    }

    /// Adds a sum.
    pub(super) fn pol(&mut self, sum: &ReversePolish) -> Result<Id, ProofError> {
        self.write(format_args!("pol {};", sum.text))?;
        Ok(self.added())
    }

    /// Adds a constraint that follows by reverse unit propagation.
    pub(super) fn rup(&mut self, constraint: &Constraint) -> Result<Id, ProofError> {
        self.write(format_args!("rup {constraint};"))?;
        Ok(self.added())
    }

    /// Adds, by redundance-based strengthening, a constraint that holds if the new variable has
    /// this value.
    pub(super) fn red(
        &mut self,
        constraint: &Constraint,
        variable: Variable,
        value: bool,
    ) -> Result<Id, ProofError> {
        self.write(format_args!("red {constraint} : {variable} -> {};", u8::from(value)))?;
        Ok(self.added())
    }

    /// Deletes constraints. This is not possible inside a proof by contradiction.
    pub(super) fn delete(&mut self, ids: Range<Id>) -> Result<(), ProofError> {
        self.write(format_args!("del range {} {};", ids.start, ids.end))
    }

    /// Returns the identifier of the next constraint.
    pub(super) const fn next(&self) -> Id {
        self.last + 1
    }

    /// Begins a proof by contradiction of `constraint`. Returns the identifier of its negation.
    pub(super) fn begin_contradiction(
        &mut self,
        constraint: &Constraint,
    ) -> Result<Id, ProofError> {
        self.write(format_args!("pbc {constraint} : subproof"))?;
        Ok(self.added())
    }

    /// Ends a proof by contradiction, where propagation finds the contradiction. Returns the
    /// identifier of what is proved; all constraints derived inside are deleted.
    pub(super) fn end_contradiction(&mut self) -> Result<Id, ProofError> {
        let contradiction = self.rup(&Constraint::clause([]))?;
        self.write(format_args!("qed pbc : {contradiction};"))?;
        Ok(self.added())
    }

    /// Ends the proof: the formula has no solution. Propagation must find a contradiction.
    pub(super) fn conclude_unsatisfiable(&mut self) -> Result<(), ProofError> {
        let contradiction = self.rup(&Constraint::clause([]))?;
        self.conclude(&format!("UNSAT : {contradiction}"))
    }

    /// Ends the proof: the formula has a solution, in which these literals are true.
    pub(super) fn conclude_satisfiable(
        &mut self,
        literals: impl IntoIterator<Item = Literal>,
    ) -> Result<(), ProofError> {
        let mut conclusion = "SAT :".to_string();
        literals.into_iter().for_each(|literal| {
            let _ = write!(conclusion, " {literal}");
        });
        self.conclude(&conclusion)
    }

    fn conclude(&mut self, conclusion: &str) -> Result<(), ProofError> {
        self.write(format_args!("output NONE;"))?;
        self.write(format_args!("conclusion {conclusion};"))?;
        self.write(format_args!("end pseudo-Boolean proof;"))
    }
}

/// A sum of multiples of constraints, in reverse Polish notation.
#[derive(Clone, Debug, Default)]
pub(super) struct ReversePolish {
    text: String,
}

impl ReversePolish {
    /// Adds `multiplier` times a constraint; the multiplier is not negative.
    pub(super) fn add(&mut self, id: Id, multiplier: i128) {
        self.push(format_args!("{id}"), multiplier);
    }

    /// Adds `multiplier` times "the literal is at least 0".
    pub(super) fn add_literal(&mut self, literal: Literal, multiplier: i128) {
        self.push(format_args!("{literal}"), multiplier);
    }

    fn push(&mut self, operand: fmt::Arguments<'_>, multiplier: i128) {
        if multiplier == 0 {
            return;
        }
        let first = self.text.is_empty();
        let _ = write!(self.text, "{}{operand}", if first { "" } else { " " });
        if multiplier != 1 {
            let _ = write!(self.text, " {multiplier} *");
        }
        if !first {
            self.text.push_str(" +");
        }
    }

    /// Removes a variable by weakening.
    pub(super) fn weaken(&mut self, variable: Variable) {
        let _ = write!(self.text, " {variable} w");
    }

    /// Multiplies the sum.
    pub(super) fn multiply(&mut self, factor: usize) {
        let _ = write!(self.text, " {factor} *");
    }

    /// Divides the sum and rounds up.
    pub(super) fn divide(&mut self, divisor: usize) {
        let _ = write!(self.text, " {divisor} d");
    }

    /// Saturates the sum: no coefficient exceeds the degree.
    pub(super) fn saturate(&mut self) {
        self.text.push_str(" s");
    }

    /// Returns whether nothing was added.
    pub(super) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}
