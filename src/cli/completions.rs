//! `nqueens completions`.

use super::{Exit, Failure, command, print};

/// Print a completion script for a shell to stdout.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "nqueens", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
