//! The commands. Data goes to stdout, everything else to stderr; a mistake of the user's is one line and a
//! documented exit code.

mod batch;
mod beautiful;
mod bench;
mod chart;
mod check;
mod checks;
mod cluster;
mod compare;
mod completions;
mod config;
mod coordinator;
mod count;
mod dashboard;
mod devices;
mod estimate;
mod exit;
mod first;
mod greedy;
mod ilp;
mod interrupt;
mod job_report;
mod job_state;
mod jobs;
mod ledger;
mod list;
mod logs;
mod man;
mod max_work;
mod merge;
mod optimum_output;
mod placements;
mod plan;
mod problem;
mod proof_report;
mod remote;
mod report;
mod revoke;
mod run_unit;
mod selftest;
mod solution_output;
mod solve;
mod solver;
mod status;
mod stream;
mod submit;
mod terminal;
mod token;
mod top;
mod worker;
mod workers;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

pub use exit::{Exit, Failure};

use crate::atomic_file;
use crate::cluster::protocol::v1::JobState;

/// Counts placements of n non-attacking queens exactly, on every core of this machine.
#[derive(Debug, Parser)]
#[command(version, after_help = exit::TABLE, arg_required_else_help = true)]
struct Cli {
    /// Read flags from this TOML file; nqueens config show tells what they come to.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Count(count::Args),
    Solve(solve::Args),
    First(first::Args),
    Beautiful(beautiful::Args),
    Check(check::Args),
    Compare(compare::Args),
    List(list::Args),
    Placements(placements::Args),
    Greedy(greedy::Args),
    Devices(devices::Args),
    Estimate(estimate::Args),
    Bench(bench::Args),
    Selftest(selftest::Args),
    Ledger(ledger::Args),
    Coordinator(coordinator::Args),
    Cluster(cluster::Args),
    Submit(submit::Args),
    Jobs(jobs::Args),
    Status(status::Args),
    Top(top::Args),
    /// Hand out no more units of a job for now.
    Pause(job_state::Args),
    /// Let a job go on, and try units again that were set aside.
    Resume(job_state::Args),
    /// Give a job up. Submitting it again lets it go on.
    Cancel(job_state::Args),
    Plan(plan::Args),
    RunUnit(run_unit::Args),
    Merge(merge::Args),
    Slurm(batch::SlurmArgs),
    Kubernetes(batch::KubernetesArgs),
    Htcondor(batch::HtcondorArgs),
    Worker(worker::Args),
    Workers(workers::Args),
    /// Let a worker finish what it has in hand and give it nothing more until it restarts.
    Drain(workers::One),
    /// Let a worker out of quarantine.
    Release(workers::One),
    Token(token::Args),
    Revoke(revoke::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs the program with `arguments`, the first of which is its name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let exit = match run(arguments) {
        Ok(exit) => exit,
        Err(failure) => {
            note(&failure.message);
            failure.exit
        }
    };
    ExitCode::from(exit as u8)
}

fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<Exit, Failure> {
    let command = command();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let sources = match config::Sources::find(&command, &arguments) {
        Ok(sources) => sources,
        // Whoever asks for help gets it, whatever a file is like.
        Err(failure) => {
            return match Cli::try_parse_from(arguments) {
                Err(error) if is_help(&error) => refuse(&error),
                _ => Err(failure),
            };
        }
    };
    let (arguments, from_elsewhere) = sources.complete(&command, arguments);
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            return refuse(&error).map_err(|mut failure| {
                if from_elsewhere {
                    failure.message +=
                        " (flags from NQUEENS_* and a file included: see nqueens config show)";
                }
                failure
            });
        }
    };
    match cli.command {
        Command::Count(args) => count::run(&args),
        Command::Solve(args) => solve::run(&args),
        Command::First(args) => first::run(&args),
        Command::Beautiful(args) => beautiful::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::List(args) => list::run(&args),
        Command::Placements(args) => placements::run(&args),
        Command::Greedy(args) => greedy::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Estimate(args) => estimate::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Selftest(args) => selftest::run(&args),
        Command::Ledger(args) => ledger::run(&args),
        Command::Coordinator(args) => coordinator::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Submit(args) => submit::run(&args),
        Command::Jobs(args) => jobs::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::RunUnit(args) => run_unit::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Slurm(args) => batch::slurm(&args),
        Command::Kubernetes(args) => batch::kubernetes(&args),
        Command::Htcondor(args) => batch::htcondor(&args),
        Command::Status(args) => status::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Pause(args) => job_state::run(&args, JobState::Paused),
        Command::Resume(args) => job_state::run(&args, JobState::Running),
        Command::Cancel(args) => job_state::run(&args, JobState::Cancelled),
        Command::Worker(args) => worker::run(&args),
        Command::Workers(args) => workers::run(&args),
        Command::Drain(args) => workers::drain(&args),
        Command::Release(args) => workers::release(&args),
        Command::Token(args) => token::run(&args),
        Command::Revoke(args) => revoke::run(&args),
        Command::Config(args) => config::run(&args, &sources),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}

/// The whole command line, for completions and man pages.
fn command() -> clap::Command {
    Cli::command()
}

/// Whether help or the version was asked for.
fn is_help(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// Help and version are data; every other complaint of the parser becomes one line.
fn refuse(error: &clap::Error) -> Result<Exit, Failure> {
    match error.kind() {
        _ if is_help(error) => {
            print(&error.render().to_string())?;
            Ok(Exit::Done)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Err(Failure::usage("no command was given; nqueens --help lists them"))
        }
        _ => {
            let text = error.render().to_string();
            let lines: Vec<&str> =
                text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
            let message = lines.join(" ");
            let message = message.trim_start_matches("error: ");
            Err(Failure::usage(match error.kind() {
                // The value's own parser says what would be right.
                ErrorKind::ValueValidation | ErrorKind::InvalidValue => message.to_owned(),
                _ => format!("{message}; --help shows what is possible"),
            }))
        }
    }
}

/// Writes data to stdout. A reader that went away is no failure: it has what it wanted.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure {
            exit: Exit::File,
            message: format!("the output cannot be written: {error}"),
        }),
        _ => Ok(()),
    }
}

/// Tells the user something on stderr, in one line. If nobody listens, nobody needs it.
fn note(message: &str) {
    let _ = writeln!(io::stderr(), "nqueens: {message}");
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    /// The words of a shell's line up to the first pipe, redirection, semicolon or comment.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = None;
        for letter in line.chars() {
            let word = words.last_mut().expect("there is always one");
            match (quoted, letter) {
                (Some(quote), _) if letter == quote => quoted = None,
                (None, '\'' | '"') => quoted = Some(letter),
                (None, '|' | '>' | ';' | '#' | '&' | ')') => break,
                (None, ' ') if word.is_empty() => {}
                (None, ' ') => words.push(String::new()),
                _ => word.push(letter),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn every_documented_command_is_understood() {
        /// What stands before a command line of the program.
        const BEFORE: [&str; 6] = [
            "$ nqueens ",
            "# nqueens ",
            " -- nqueens ",
            "do nqueens ",
            "--rm nqueens ",
            "$ cargo run --release -- ",
        ];
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folders = ["", "docs", "deploy"].map(|folder| root.join(folder));
        let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("it is there"));
        let pages = files.map(|file| file.expect("it can be read").path());
        let pages =
            pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
        let token = format!("nqt1.{}.{}", "a".repeat(52), "a".repeat(40));
        let mut understood = 0;
        for page in pages {
            let text = fs::read_to_string(&page).expect("UTF-8");
            // Every second part stands between two lines of three backticks.
            let blocks =
                text.split("```").skip(1).step_by(2).filter(|block| block.starts_with("console"));
            let typed = blocks.flat_map(str::lines).filter_map(|line| {
                BEFORE.iter().find_map(|before| line.split_once(before)).map(|(_, line)| line)
            });
            for line in typed {
                let line = line.replace("nqt1.…", &token).replace("$i", "0");
                let line = [vec!["nqueens".to_owned()], words(&line)].concat();
                if let Err(error) = command().try_get_matches_from(&line) {
                    panic!("{}: {line:?} is not understood: {error}", page.display());
                }
                understood += 1;
            }
        }
        assert!(understood > 40, "only {understood} command lines were found");
    }
}
