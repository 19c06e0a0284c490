//! `nqueens man`.

use super::{Exit, Failure, command, print};

/// Print the man page of the program or of a command.
///
/// The page is in roff; nqueens man | man -l - shows it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The command (default: the program itself).
    #[arg(value_name = "COMMAND")]
    page: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let mut program = command();
    program.build();
    let page = match &args.page {
        None => program,
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
            Failure::usage(format!(
                "there is no command '{name}'; choose one of {}",
                names.join(", ")
            ))
        })?,
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff).expect("writing to memory does not fail");
    print(&String::from_utf8_lossy(&roff))?;
    Ok(Exit::Done)
}
