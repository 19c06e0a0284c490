//! The `nqueens` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    nqueens::cli::main(std::env::args_os())
}
