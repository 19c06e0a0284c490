//! The commands. Data goes to stdout and everything else to stderr. An error is one line on stderr
//! and a documented exit code.

mod answer_text;
mod args;
mod audit;
mod batch;
mod beautiful;
mod bench;
mod candidate;
mod chart;
mod check;
mod check_args;
mod cluster;
mod compare;
mod completions;
mod config;
mod coordinator;
mod count;
mod cuts;
mod dashboard;
mod deadline;
mod devices;
mod estimate;
mod exit;
mod fingerprint;
mod first;
mod greedy;
mod help;
mod ilp;
mod interrupt;
mod job_state;
mod jobs;
mod join;
mod ledger;
mod list;
mod logs;
mod man;
mod max_work;
mod merge;
mod optimum_output;
mod output_file;
mod picture_args;
mod placements;
mod plan;
mod progress;
mod publish;
mod remote;
mod reproduce;
mod resume_file;
mod revoke;
mod run_unit;
mod selftest;
mod show;
mod solution_output;
mod solve;
mod solver;
mod solver_log;
mod status;
mod stream;
mod submit;
mod terminal;
mod token;
mod top;
mod trace;
mod usage;
mod verify;
mod version;
mod worker;
mod workers;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches as _, Parser, Subcommand};
use serde::Serialize;

pub use exit::{Exit, Failure};

use crate::atomic_file;
use crate::cluster::protocol::v1::JobState;

/// Count the placements of n non-attacking queens exactly, and find solutions with proofs.
#[derive(Debug, Parser)]
#[command(version, long_version = version::long(), arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    /// Read flags from this TOML file; nqueens config show lists them.
    #[arg(long, value_name = "FILE", global = true, display_order = 998)]
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
    Show(show::Args),
    Verify(verify::Args),
    Fingerprint(fingerprint::Args),
    Compare(compare::Args),
    Reproduce(reproduce::Args),
    List(list::Args),
    Placements(placements::Args),
    Greedy(greedy::Args),
    Devices(devices::Args),
    Estimate(estimate::Args),
    Audit(audit::Args),
    Bench(bench::Args),
    Selftest(selftest::Args),
    Ledger(ledger::Args),
    Publish(publish::Args),
    Coordinator(coordinator::Args),
    Cluster(cluster::Args),
    Submit(submit::Args),
    Jobs(jobs::Args),
    Status(status::Args),
    Top(top::Args),
    /// Pause a job: stop leasing its units.
    Pause(job_state::Args),
    /// Resume a paused or cancelled job, and retry the units that failed repeatedly.
    Resume(job_state::Args),
    /// Cancel a job; submitting it again resumes it.
    Cancel(job_state::Args),
    Plan(plan::Args),
    RunUnit(run_unit::Args),
    Merge(merge::Args),
    Slurm(batch::SlurmArgs),
    Kubernetes(batch::KubernetesArgs),
    Htcondor(batch::HtcondorArgs),
    Worker(worker::Args),
    Workers(workers::Args),
    /// Drain a worker: let it finish its units, and lease no more to it.
    ///
    /// A worker that is restarted is leased units again.
    Drain(workers::WorkerArgs),
    /// Release a worker from quarantine.
    Release(workers::WorkerArgs),
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
        // Help is printed even if the configuration file is invalid.
        Err(failure) => {
            return match parse(&command, arguments.clone()) {
                Err(error) if is_help(&error) => report_parse_error(&command, &arguments, &error),
                _ => Err(failure),
            };
        }
    };
    let (arguments, has_configured) = sources.complete(&command, arguments);
    let cli = match parse(&command, arguments.clone()) {
        Ok(cli) => cli,
        Err(error) => {
            return report_parse_error(&command, &arguments, &error).map_err(|mut failure| {
                if has_configured {
                    failure.message +=
                        " (with flags from NQUEENS_* variables and the configuration file; see nqueens config show)";
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
        Command::Show(args) => show::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Fingerprint(args) => fingerprint::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::List(args) => list::run(&args),
        Command::Placements(args) => placements::run(&args),
        Command::Greedy(args) => greedy::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Estimate(args) => estimate::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Publish(args) => publish::run(&args),
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

/// Returns the whole command line, for completions and man pages.
fn command() -> clap::Command {
    help::grouped(Cli::command())
}

fn parse(command: &clap::Command, arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command.clone().try_get_matches_from(arguments)?)
}

/// Returns whether the arguments are `--version` and `--json`, in either order.
fn is_version_as_json(arguments: &[OsString]) -> bool {
    let words: Option<Vec<&str>> = arguments.iter().skip(1).map(|word| word.to_str()).collect();
    matches!(
        words.as_deref(),
        Some(["--version" | "-V", "--json"] | ["--json", "--version" | "-V"])
    )
}

/// Returns whether help or the version was requested.
fn is_help(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// Prints help and version as data, and turns every other error of the parser into one line.
/// Without any argument, the short help comes before that line.
fn report_parse_error(
    command: &clap::Command,
    arguments: &[OsString],
    error: &clap::Error,
) -> Result<Exit, Failure> {
    match error.kind() {
        _ if is_version_as_json(arguments) => {
            print(&json_line(&version::version()))?;
            Ok(Exit::Done)
        }
        _ if is_help(error) => {
            print(&error.render().to_string())?;
            Ok(Exit::Done)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            if arguments.len() <= 1 {
                let _ = writeln!(io::stderr(), "{}", command.clone().render_help());
            }
            let called = config::called(command, arguments);
            let message = format!("no command given; {called} --help lists the commands");
            Err(Failure::usage(message))
        }
        _ => Err(Failure::usage(usage::message(command, arguments, error))),
    }
}

/// Writes data to stdout. A closed pipe is not an error: the reader has what it wanted.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(cannot_print(&error)),
        _ => Ok(()),
    }
}

/// Prints a report: as one JSON object if `json`, otherwise as text.
fn print_report(
    json: bool,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    print(&if json { json_line(report) } else { text() })
}

/// Returns a report as one JSON object on a line.
fn json_line(report: &impl Serialize) -> String {
    serde_json::to_string(report).expect("numbers and strings serialise") + "\n"
}

/// Returns the failure of a command whose output cannot be written.
fn cannot_print(error: &io::Error) -> Failure {
    Failure::new(Exit::File, format!("the output cannot be written: {error}"))
}

/// Prints one line on stderr. Errors are ignored: there is no other place to report them.
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

    /// Calls `check` with the names and the definition of each command that can be run.
    fn for_each_command(check: &mut dyn FnMut(&str, &clap::Command)) {
        fn walk(names: &str, command: &clap::Command, check: &mut dyn FnMut(&str, &clap::Command)) {
            for subcommand in command.get_subcommands() {
                walk(&format!("{names} {}", subcommand.get_name()), subcommand, check);
            }
            if !command.has_subcommands() {
                check(names, command);
            }
        }
        walk("nqueens", &command(), check);
    }

    #[test]
    fn flags_of_the_same_name_are_written_in_the_same_way_in_all_commands() {
        const SHORT: [(&str, char); 3] = [("threads", 'j'), ("quiet", 'q'), ("verbose", 'v')];
        let mut commands = 0;
        for_each_command(&mut |names, command| {
            commands += 1;
            let has = |long| command.get_arguments().any(|arg| arg.get_long() == Some(long));
            for arg in command.get_arguments() {
                let expected = SHORT.iter().find(|(long, _)| Some(*long) == arg.get_long());
                assert_eq!(arg.get_short(), expected.map(|(_, short)| *short), "{names} {arg}");
                assert!(arg.get_help().is_some(), "{names} {arg} has no description");
            }
            for (flag, other) in [
                ("device", "gpu"),
                ("place", "block"),
                ("log-level", "verbose"),
                ("format", "json"),
            ] {
                assert!(!has(flag) || has(other), "{names} has --{flag}, but not --{other}");
            }
            assert!(command.get_about().is_some(), "{names} has no description");
        });
        assert!(commands > 40, "{commands}");
    }

    /// Splits a shell command line into words, up to the first pipe, redirection, semicolon or
    /// comment.
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
    fn every_documented_command_is_valid() {
        /// The prefixes of command lines of the program.
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
        let mut checked = 0;
        for page in pages {
            let text = fs::read_to_string(&page).expect("UTF-8");
            // Every second part is between two lines of three backticks.
            let blocks =
                text.split("```").skip(1).step_by(2).filter(|block| block.starts_with("console"));
            let typed = blocks.flat_map(str::lines).filter_map(|line| {
                BEFORE.iter().find_map(|before| line.split_once(before)).map(|(_, line)| line)
            });
            for line in typed {
                let line = line.replace("nqt1.…", &token).replace("$i", "0");
                let line = [vec!["nqueens".to_owned()], words(&line)].concat();
                if let Err(error) = command().try_get_matches_from(&line) {
                    panic!("{}: {line:?} is invalid: {error}", page.display());
                }
                checked += 1;
            }
        }
        assert!(checked > 40, "only {checked} command lines were found");
    }
}
