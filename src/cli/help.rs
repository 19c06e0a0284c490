//! The help of the whole program: its commands in groups.

use std::fmt::Write as _;

use super::exit;

/// The commands that most users need, for the short help.
const COMMON: &str = "count solve first beautiful list check show estimate bench cluster worker";

/// All commands. Each belongs to one group.
const GROUPS: [(&str, &str); 5] = [
    ("Count", "count estimate list placements audit"),
    ("Solve", "solve first beautiful check verify show fingerprint greedy compare reproduce"),
    (
        "Campaign",
        "cluster coordinator worker submit status top jobs workers pause resume cancel drain \
         release token revoke ledger publish",
    ),
    ("Batch", "plan run-unit merge slurm kubernetes htcondor"),
    ("This machine", "devices bench selftest config completions man help"),
];

const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// Returns the command with its help in groups: `-h` shows the common commands, `--help` all.
pub(super) fn grouped(command: clap::Command) -> clap::Command {
    let mut short = section(&command, "Common commands", COMMON);
    short += "\nnqueens --help lists all commands, and nqueens COMMAND --help describes one.";
    let all: Vec<String> =
        GROUPS.iter().map(|(heading, names)| section(&command, heading, names)).collect();
    command
        .help_template(TEMPLATE)
        .before_help(short)
        .before_long_help(all.join("\n").trim_end().to_owned())
        .after_long_help(exit::TABLE)
}

/// Returns a heading and a line for each of the commands, whose names have spaces between them.
fn section(command: &clap::Command, heading: &str, names: &str) -> String {
    let mut text = format!("{heading}:\n");
    for name in names.split(' ') {
        let about = command.find_subcommand(name).and_then(|found| found.get_about());
        let about = match about {
            Some(about) => about.to_string(),
            // The parser adds this command later.
            None => "Describe a command".to_owned(),
        };
        let _ = writeln!(text, "  {name:<12} {about}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::command();
        let mut names: BTreeSet<&str> = command.get_subcommands().map(|c| c.get_name()).collect();
        names.insert("help");
        for name in GROUPS.iter().flat_map(|(_, names)| names.split(' ')) {
            assert!(names.remove(name), "{name} is in two groups or does not exist");
        }
        assert!(names.is_empty(), "{names:?} are in no group");
        for name in COMMON.split(' ') {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn the_descriptions_fit_on_a_line() {
        for command in
            [grouped(Cli::command()).render_help(), grouped(Cli::command()).render_long_help()]
        {
            for line in command.to_string().lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
        }
    }
}
