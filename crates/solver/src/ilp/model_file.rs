//! 0-1 programs as files for other solvers: MPS (free form, fields without blanks), the LP format
//! of CPLEX, and OPB, which solvers and model counters of pseudo-Boolean constraints read.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::str::FromStr;

use super::model::{Direction, Domain, Model, Relation};

/// A format of model files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// MPS.
    Mps,
    /// LP.
    Lp,
    /// OPB.
    Opb,
}

/// The error for a file name that does not determine a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown model file format: '{0}'; the name must end in .mps, .lp or .opb")]
pub struct UnknownFormat(String);

impl Format {
    /// Returns the format given by the extension of a file name.
    ///
    /// # Errors
    /// The extension is none of `.mps`, `.lp` and `.opb`.
    pub fn of(path: &Path) -> Result<Self, UnknownFormat> {
        let extension =
            path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        extension.parse().map_err(|_| UnknownFormat(path.display().to_string()))
    }

    /// Formats the program as text.
    pub fn write(self, model: &Model) -> String {
        let mut out = String::new();
        // Writing to memory does not fail.
        let _ = match self {
            Self::Mps => mps(model, &mut out),
            Self::Lp => lp(model, &mut out),
            Self::Opb => opb(model, &mut out),
        };
        out
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        match text.to_ascii_lowercase().as_str() {
            "mps" => Ok(Self::Mps),
            "lp" => Ok(Self::Lp),
            "opb" => Ok(Self::Opb),
            _ => Err(UnknownFormat(text.to_owned())),
        }
    }
}

fn mps(model: &Model, out: &mut String) -> fmt::Result {
    writeln!(out, "NAME {}", model.name)?;
    writeln!(out, "OBJSENSE")?;
    writeln!(out, "    {}", if model.direction == Direction::Maximise { "MAX" } else { "MIN" })?;
    writeln!(out, "ROWS\n N  objective")?;
    for row in &model.rows {
        let kind = match row.relation {
            Relation::AtMost => 'L',
            Relation::Equal => 'E',
            Relation::AtLeast => 'G',
        };
        writeln!(out, " {kind}  {}", row.name)?;
    }
    let mut entries = vec![Vec::new(); model.columns.len()];
    for row in &model.rows {
        for &(j, coefficient) in &row.terms {
            entries[j].push((row.name.as_str(), coefficient));
        }
    }
    writeln!(out, "COLUMNS\n    MARKER 'MARKER' 'INTORG'")?;
    for (column, entries) in model.columns.iter().zip(entries) {
        // A column has to occur at least once to exist.
        if column.cost != 0 || entries.is_empty() {
            writeln!(out, "    {} objective {}", column.name, column.cost)?;
        }
        for (row, coefficient) in entries {
            writeln!(out, "    {} {row} {coefficient}", column.name)?;
        }
    }
    writeln!(out, "    MARKER 'MARKER' 'INTEND'\nRHS")?;
    for row in model.rows.iter().filter(|row| row.bound != 0) {
        writeln!(out, "    RHS {} {}", row.name, row.bound)?;
    }
    writeln!(out, "BOUNDS")?;
    for column in &model.columns {
        match column.domain {
            Domain::Free => writeln!(out, " BV BOUND {}", column.name)?,
            Domain::Zero => writeln!(out, " FX BOUND {} 0", column.name)?,
            Domain::One => writeln!(out, " FX BOUND {} 1", column.name)?,
        }
    }
    writeln!(out, "ENDATA")
}

/// Writes a program in OPB: an objective to be minimised, if there is one, and constraints. Fixed
/// columns are equations.
fn opb(model: &Model, out: &mut String) -> fmt::Result {
    let fixed = model.columns.iter().filter_map(|column| match column.domain {
        Domain::Free => None,
        Domain::Zero => Some((&column.name, 0)),
        Domain::One => Some((&column.name, 1)),
    });
    let fixed: Vec<_> = fixed.collect();
    let constraints = model.rows.len() + fixed.len();
    writeln!(out, "* #variable= {} #constraint= {constraints}", model.columns.len())?;
    writeln!(out, "* {}", model.name)?;
    if model.columns.iter().any(|column| column.cost != 0) {
        let sign = if model.direction == Direction::Maximise { -1 } else { 1 };
        write!(out, "min:")?;
        for column in model.columns.iter().filter(|column| column.cost != 0) {
            write!(out, " {:+} {}", sign * column.cost, column.name)?;
        }
        writeln!(out, " ;")?;
    }
    for row in &model.rows {
        // Relations are = and >= only.
        let sign = if row.relation == Relation::AtMost { -1 } else { 1 };
        for &(column, coefficient) in &row.terms {
            write!(out, "{:+} {} ", sign * coefficient, model.columns[column].name)?;
        }
        let relation = if row.relation == Relation::Equal { "=" } else { ">=" };
        writeln!(out, "{relation} {} ;", sign * row.bound)?;
    }
    fixed.iter().try_for_each(|(name, value)| writeln!(out, "+1 {name} = {value} ;"))
}

/// Terms per line of an LP file; some readers stop at 255 or 510 characters.
const TERMS_A_LINE: usize = 12;

fn lp(model: &Model, out: &mut String) -> fmt::Result {
    writeln!(out, "\\ {}", model.name)?;
    writeln!(
        out,
        "{}",
        if model.direction == Direction::Maximise { "Maximize" } else { "Minimize" }
    )?;
    let costs: Vec<(usize, i64)> = model
        .columns
        .iter()
        .enumerate()
        .map(|(j, c)| (j, c.cost))
        .filter(|&(_, cost)| cost != 0)
        .collect();
    write!(out, " objective:")?;
    lp_terms(
        model,
        if costs.is_empty() && !model.columns.is_empty() { &[(0, 0)] } else { &costs },
        out,
    )?;
    writeln!(out, "\nSubject To")?;
    for row in &model.rows {
        write!(out, " {}:", row.name)?;
        lp_terms(model, &row.terms, out)?;
        let relation = match row.relation {
            Relation::AtMost => "<=",
            Relation::Equal => "=",
            Relation::AtLeast => ">=",
        };
        writeln!(out, " {relation} {}", row.bound)?;
    }
    writeln!(out, "Bounds")?;
    for column in model.columns.iter().filter(|column| column.domain != Domain::Free) {
        writeln!(out, " {} = {}", column.name, column.domain.bounds().0)?;
    }
    writeln!(out, "Generals")?;
    for column in model.columns.iter().filter(|column| column.domain != Domain::Free) {
        writeln!(out, " {}", column.name)?;
    }
    writeln!(out, "Binaries")?;
    for column in model.columns.iter().filter(|column| column.domain == Domain::Free) {
        writeln!(out, " {}", column.name)?;
    }
    writeln!(out, "End")
}

fn lp_terms(model: &Model, terms: &[(usize, i64)], out: &mut String) -> fmt::Result {
    for (i, &(j, coefficient)) in terms.iter().enumerate() {
        if i > 0 && i % TERMS_A_LINE == 0 {
            write!(out, "\n  ")?;
        }
        let sign = if coefficient < 0 { '-' } else { '+' };
        write!(out, " {sign} {} {}", coefficient.unsigned_abs(), model.columns[j].name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ilp::{Formulation, Lines};
    use nqueens_proof::board::{Piece, Problem, Square};

    fn model() -> Model {
        let (placed, blocked) =
            (vec![Square::new(0, 1)], vec![Square::new(2, 2), Square::new(3, 3)]);
        let problem = Problem::new(Piece::Queen, 4, placed, blocked).expect("on the board");
        let mut model = Formulation::Borders.model(&problem, Lines::AtMostOne);
        model.set_objective(Direction::Maximise, |k| k as i64 - 5);
        model
    }

    type Terms = BTreeMap<(String, String), i64>;

    fn terms(model: &Model) -> Terms {
        let costs = model.columns.iter().map(|c| (("objective".into(), c.name.clone()), c.cost));
        let rows = model.rows.iter().flat_map(|row| {
            row.terms.iter().map(|&(j, a)| ((row.name.clone(), model.columns[j].name.clone()), a))
        });
        costs.chain(rows).filter(|(_, a)| *a != 0).collect()
    }

    #[test]
    fn an_mps_file_contains_the_whole_model() {
        let model = model();
        let text = Format::Mps.write(&model);
        let (mut section, mut read, mut bounds, mut relations) =
            ("", Terms::new(), BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if !line.starts_with(' ') {
                section = words[0];
                continue;
            }
            match (section, &words[..]) {
                ("COLUMNS", [_, "'MARKER'", _]) | ("ROWS", ["N", _]) | ("OBJSENSE", ["MAX"]) => {}
                ("ROWS", [kind, name]) => {
                    drop(relations.insert(name.to_string(), kind.to_string()))
                }
                ("COLUMNS", [column, row, value]) => {
                    let value: i64 = value.parse().expect("a number");
                    assert!(read.insert((row.to_string(), column.to_string()), value).is_none());
                }
                ("RHS", [_, _, one]) => assert_eq!(*one, "1"),
                ("BOUNDS", [kind, _, column, value @ ..]) => {
                    let _ = bounds.insert(column.to_string(), (kind.to_string(), value.concat()));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(read, terms(&model));
        assert_eq!(relations.len(), model.rows.len());
        assert!(relations.values().all(|kind| kind == "L"));
        assert_eq!(bounds["x1_2"], ("FX".into(), "1".into()));
        assert_eq!(bounds["x3_3"], ("FX".into(), "0".into()));
        assert_eq!(bounds["x1_1"], ("BV".into(), String::new()));
        assert_eq!(bounds.len(), 16);
    }

    #[test]
    fn an_lp_file_contains_the_whole_model() {
        let model = model();
        let text = Format::Lp.write(&model);
        let joined = text.replace("\n  ", " ");
        let mut read = Terms::new();
        let (head, tail) = joined.split_once("Bounds\n").expect("bounds");
        for line in head.lines().filter(|line| line.contains(':')) {
            let (name, sum) = line.split_once(':').expect("a name");
            let words: Vec<&str> = sum.split_whitespace().collect();
            for term in words.chunks(3).filter(|chunk| matches!(chunk[0], "+" | "-")) {
                let value: i64 = format!("{}{}", term[0], term[1]).parse().expect("a number");
                read.insert((name.trim().into(), term[2].into()), value);
            }
        }
        read.retain(|_, value| *value != 0);
        assert_eq!(read, terms(&model));
        assert!(head.starts_with("\\ 4_queens_borders\nMaximize\n"), "{head}");
        assert!(tail.starts_with(" x1_2 = 1\n x3_3 = 0\n x4_4 = 0\nGenerals\n"), "{tail}");
        assert!(text.lines().all(|line| line.len() < 255));
    }

    #[test]
    fn an_opb_file_has_one_solution_for_each_completion() {
        let at = Square::new;
        for (n, placed, blocked, completions) in [
            (4, vec![], vec![], 2),
            (5, vec![], vec![], 10),
            (5, vec![at(0, 1)], vec![], 2),
            (5, vec![at(0, 1)], vec![at(1, 4)], 1),
            (6, vec![], vec![], 4),
            (6, vec![], vec![at(0, 1)], 3),
        ] {
            let problem = Problem::new(Piece::Queen, n, placed, blocked).expect("on the board");
            let model = Formulation::Diagonals.model(&problem, Lines::Full);
            let text = Format::Opb.write(&model);
            assert!(!text.contains("min:"), "{text}");
            let found = (0..n.pow(n as u32)).filter(|code| {
                let columns: Vec<usize> = (0..n).map(|row| code / n.pow(row as u32) % n).collect();
                let value = |name: &str| {
                    let (row, column) = name[1..].split_once('_').expect("a square");
                    let number = |text: &str| text.parse::<usize>().expect("a number") - 1;
                    i64::from(columns[number(row)] == number(column))
                };
                text.lines().filter(|line| !line.starts_with('*')).all(|line| {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    let (terms, relation) = words.split_at(words.len() - 3);
                    let term = |term: &[&str]| -> i64 {
                        term[0].parse::<i64>().expect("a coefficient") * value(term[1])
                    };
                    let sum: i64 = terms.chunks(2).map(term).sum();
                    let bound: i64 = relation[1].parse().expect("a bound");
                    if relation[0] == "=" { sum == bound } else { sum >= bound }
                })
            });
            assert_eq!(found.count(), completions, "n = {n}");
        }
        let text = Format::Opb.write(&model());
        assert!(text.contains("\nmin: +5 x1_1 +4 x1_2 "), "{text}");
        assert!(text.contains("\n+1 x1_2 = 1 ;\n+1 x3_3 = 0 ;\n"), "{text}");
    }

    #[test]
    fn the_file_extension_determines_the_format() {
        assert_eq!(Format::of(Path::new("a/b.LP")), Ok(Format::Lp));
        assert_eq!(Format::of(Path::new("b.mps")), Ok(Format::Mps));
        assert_eq!(Format::of(Path::new("b.opb")), Ok(Format::Opb));
        for name in ["b", "b.txt", ".lp"] {
            assert!(Format::of(Path::new(name)).is_err(), "{name}");
        }
    }
}
