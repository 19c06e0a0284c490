//! The choice of a solver for linear and 0-1 integer programs.

use super::{Failure, note};
#[cfg(feature = "highs")]
use crate::solver::ilp::Highs;
use crate::solver::ilp::{BEST_SOLVER, MicroLp, Solver};

/// The flag `--solver`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct SolverChoice {
    /// The solver for linear and 0-1 integer programs: auto (highs if it is built in, otherwise
    /// microlp), highs or microlp.
    #[arg(long, value_name = "SOLVER", default_value = "auto", value_parser = name)]
    solver: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Auto,
    Highs,
    Microlp,
}

fn name(text: &str) -> Result<Name, String> {
    match text {
        "auto" => Ok(Name::Auto),
        "highs" => Ok(Name::Highs),
        "microlp" => Ok(Name::Microlp),
        _ => Err(format!("invalid solver '{text}'; choose auto, highs or microlp")),
    }
}

impl SolverChoice {
    /// Returns the solver. Unless `quiet`, prints a note if auto selects microlp.
    pub(super) fn solver(self, quiet: bool) -> Result<&'static dyn Solver, Failure> {
        match self.solver {
            Name::Auto => {
                if !cfg!(feature = "highs") && !quiet {
                    note(
                        "using microlp, the small solver; build with cargo build --release --features highs for HiGHS",
                    );
                }
                Ok(BEST_SOLVER)
            }
            Name::Microlp => Ok(&MicroLp),
            #[cfg(feature = "highs")]
            Name::Highs => Ok(&Highs),
            #[cfg(not(feature = "highs"))]
            Name::Highs => Err(Failure::new(
                super::Exit::NotAvailable,
                "HiGHS is not built in; build with cargo build --release --features highs, or use --solver microlp",
            )),
        }
    }
}
