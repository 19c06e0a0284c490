//! Flags from NQUEENS_* variables and a TOML file, and `nqueens config`, which shows them.
//!
//! A flag that is set there is inserted into the command line before that is parsed, if the command
//! has such a flag and the user has given neither it nor one that conflicts with it. The parser
//! treats it like any other flag.
//!
//! The `env` feature of clap does not do this: it reads one variable per flag and cannot prefer
//! NQUEENS_COMMAND_FLAG to NQUEENS_FLAG, nor a file after both.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Subcommand};
use etcetera::BaseStrategy;
use serde::Serialize;
use toml::{Table, Value};

use super::solution_output::is_style;
use super::{Exit, Failure, atomic_file, json_line, print};

/// Show the flags that variables, the configuration file or defaults set.
///
/// The first of these sources that sets a flag decides its value: the command line;
/// NQUEENS_COMMAND_FLAG; NQUEENS_FLAG; the table [command] of the configuration file; the top level
/// of that file; the built-in default. The configuration file is --config FILE, or NQUEENS_CONFIG,
/// or nqueens/config.toml in the user's configuration directory.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Show(ShowArgs),
}

/// Print every flag that has a value, with the value and its source.
#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The command, for example count or submit count (default: all commands).
    command: Vec<String>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The maximum size of a configuration file, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// The values of a flag and their source.
struct Setting {
    values: Vec<String>,
    /// The name of a variable, the path of a file, or "built in".
    origin: String,
    /// The position of the source in the order of precedence.
    rank: u8,
}

/// The sources of flags other than the command line.
pub(super) struct Sources {
    file: Option<(PathBuf, Table)>,
    variable: fn(&str) -> Option<String>,
}

fn invalid_file(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    let message = format!("invalid configuration file {}: {why}", path.display());
    Failure::new(Exit::File, message)
}

/// Returns the value of an environment variable, unless it is empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.is_empty())
}

/// Returns a word in the spelling of variables.
fn upper(word: &str) -> String {
    word.to_ascii_uppercase().replace('-', "_")
}

/// Returns whether a flag can be set outside the command line.
fn can_be_set(arg: &Arg) -> bool {
    !arg.is_positional() && !matches!(arg.get_id().as_str(), "help" | "version" | "config")
}

/// Returns the flags of a command with their names.
fn flags(command: &clap::Command) -> impl Iterator<Item = (&str, &Arg)> {
    command
        .get_arguments()
        .filter(|arg| can_be_set(arg))
        .filter_map(|arg| Some((arg.get_long()?, arg)))
}

impl Sources {
    /// Reads the configuration file that `--config`, NQUEENS_CONFIG or the user's configuration
    /// directory names.
    pub(super) fn find(command: &clap::Command, arguments: &[OsString]) -> Result<Self, Failure> {
        let named =
            config_argument(arguments).or_else(|| variable("NQUEENS_CONFIG").map(PathBuf::from));
        let default_path = || {
            Some(etcetera::choose_base_strategy().ok()?.config_dir().join("nqueens/config.toml"))
        };
        let is_required = named.is_some();
        // /dev/null is the usual way to select no file.
        let path = named.or_else(default_path).filter(|path| path != Path::new("/dev/null"));
        let Some(path) = path else { return Ok(Self { file: None, variable }) };
        let text = match atomic_file::read_text(&path, LARGEST_FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_required => {
                return Ok(Self { file: None, variable });
            }
            text => text.map_err(|error| invalid_file(&path, &error))?,
        };
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            invalid_file(&path, &error.to_string().lines().collect::<Vec<_>>().join(" "))
        })?;
        check_table(command, &[], &table).map_err(|why| invalid_file(&path, &why))?;
        Ok(Self { file: Some((path, table)), variable })
    }

    /// Returns the setting of a flag of the command with these names.
    fn setting(&self, names: &[&str], flag: &str) -> Option<Setting> {
        let own = format!("NQUEENS_{}_{}", upper(&names.join("_")), upper(flag));
        for (rank, name) in [(0, own), (1, format!("NQUEENS_{}", upper(flag)))] {
            if let Some(value) = (self.variable)(&name) {
                return Some(Setting { values: vec![value], origin: name, rank });
            }
        }
        let (path, table) = self.file.as_ref()?;
        let own = names.iter().try_fold(table, |table, name| table.get(*name)?.as_table());
        let own = own.and_then(|own| own.get(flag));
        let rank = if own.is_some() { 2 } else { 3 };
        let values = values(own.or_else(|| table.get(flag)).filter(|value| !value.is_table())?)?;
        Some(Setting { values, origin: path.display().to_string(), rank })
    }

    /// Inserts the flags of other sources into the command line. Returns it, and whether any were
    /// inserted.
    pub(super) fn complete(
        &self,
        command: &clap::Command,
        arguments: Vec<OsString>,
    ) -> (Vec<OsString>, bool) {
        let (leaf, names, at) = leaf(command, &arguments);
        if names.is_empty() {
            return (arguments, false);
        }
        let given: BTreeSet<&str> = arguments[at..]
            .iter()
            .map_while(|word| word.to_str().filter(|word| *word != "--"))
            .filter_map(|word| word.strip_prefix("--"))
            .map(|flag| flag.split_once('=').map_or(flag, |(flag, _)| flag))
            .collect();
        let is_given = |arg: &Arg| arg.get_long().is_some_and(|flag| given.contains(flag));
        let conflicts = |one: &Arg, other: &Arg| {
            leaf.get_arg_conflicts_with(one)
                .iter()
                .any(|conflict| conflict.get_id() == other.get_id())
        };
        let mut set: Vec<(u8, &Arg, Vec<OsString>)> = flags(leaf)
            .filter(|(_, arg)| !is_given(arg))
            .filter_map(|(flag, arg)| {
                let setting = self.setting(&names, flag)?;
                // A style of --board conflicts with the same flags as --draw; a command that draws
                // nothing ignores it.
                let is_style = flag == "board" && setting.values.iter().all(|v| is_style(v));
                let draw = || leaf.get_arguments().find(|arg| arg.get_long() == Some("draw"));
                let rules = if is_style { draw()? } else { arg };
                Some((setting.rank, rules, words(flag, arg, &setting.values)))
            })
            .filter(|(_, _, words)| !words.is_empty())
            .collect();
        // Of two flags that conflict, the one of higher precedence is used.
        set.sort_by_key(|&(rank, ..)| rank);
        let mut inserted: Vec<OsString> = Vec::new();
        let mut taken: Vec<&Arg> = leaf.get_arguments().filter(|arg| is_given(arg)).collect();
        for (_, arg, words) in set {
            if taken.iter().any(|other| conflicts(arg, other) || conflicts(other, arg)) {
                continue;
            }
            inserted.extend(words);
            taken.push(arg);
        }
        let any = !inserted.is_empty();
        let mut completed = arguments;
        completed.splice(at..at, inserted);
        (completed, any)
    }
}

/// Returns the values of an entry of the file; `None` if it cannot be the value of a flag.
fn values(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Integer(number) => Some(vec![number.to_string()]),
        Value::Float(number) => Some(vec![number.to_string()]),
        Value::Boolean(flag) => Some(vec![flag.to_string()]),
        Value::Array(values) => values.iter().map(values_of_one).collect(),
        Value::Datetime(_) | Value::Table(_) => None,
    }
}

fn values_of_one(value: &Value) -> Option<String> {
    match values(value)?.as_slice() {
        [one] if !value.is_array() => Some(one.clone()),
        _ => None,
    }
}

/// Returns the words of a flag with these values on the command line.
fn words(flag: &str, arg: &Arg, values: &[String]) -> Vec<OsString> {
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        let wanted =
            values.last().is_some_and(|value| matches!(&value[..], "true" | "1" | "yes" | "on"));
        return if wanted { vec![format!("--{flag}").into()] } else { Vec::new() };
    }
    values.iter().map(|value| format!("--{flag}={value}").into()).collect()
}

/// Returns the file that `--config` names.
fn config_argument(arguments: &[OsString]) -> Option<PathBuf> {
    let mut words = arguments.iter().take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        if word == "--config" {
            return words.next().map(PathBuf::from);
        }
        if let Some(path) = word.to_str().and_then(|word| word.strip_prefix("--config=")) {
            return Some(path.into());
        }
    }
    None
}

/// Returns the command that is called with the name of the program, for example "nqueens submit
/// count".
pub(super) fn called(command: &clap::Command, arguments: &[OsString]) -> String {
    let (_, names, _) = leaf(command, arguments);
    [&["nqueens"], names.as_slice()].concat().join(" ")
}

/// Returns the command that is called, its names, and the position after them.
pub(super) fn leaf<'a>(
    command: &'a clap::Command,
    arguments: &[OsString],
) -> (&'a clap::Command, Vec<&'a str>, usize) {
    let (mut leaf, mut names, mut at) = (command, Vec::new(), 1);
    let mut place = 1;
    while let Some(word) = arguments.get(place).and_then(|word| word.to_str()) {
        if word == "--config" {
            place += 2;
            continue;
        }
        if word.starts_with("--config=") {
            place += 1;
            continue;
        }
        let Some(next) = leaf.find_subcommand(word) else { break };
        leaf = next;
        names.push(next.get_name());
        place += 1;
        at = place;
    }
    (leaf, names, at.min(arguments.len()))
}

/// Checks that every entry of a table is a subcommand or a flag of the command with these names.
fn check_table(command: &clap::Command, names: &[&str], table: &Table) -> Result<(), String> {
    let called =
        |words: &[&str]| ["nqueens"].iter().chain(words).copied().collect::<Vec<_>>().join(" ");
    for (key, value) in table {
        if let Some(entries) = value.as_table() {
            let Some(subcommand) =
                command.get_subcommands().find(|command| command.get_name() == key)
            else {
                return Err(format!("there is no command '{}'", called(&[names, &[key]].concat())));
            };
            check_table(subcommand, &[names, &[key]].concat(), entries)?;
            continue;
        }
        let has = |command: &clap::Command| flags(command).any(|(flag, _)| flag == key);
        let known = if names.is_empty() { any_command(command, &has) } else { has(command) };
        if !known {
            let whose = if names.is_empty() {
                "no command".to_owned()
            } else {
                called(names) + " does not"
            };
            let verb = if names.is_empty() { "has" } else { "have" };
            return Err(format!("{whose} {verb} a flag --{key}"));
        }
        if values(value).is_none() {
            return Err(format!(
                "invalid value of '{key}'; use a string, a number, true, false or a list of these"
            ));
        }
    }
    Ok(())
}

fn any_command(command: &clap::Command, has: &dyn Fn(&clap::Command) -> bool) -> bool {
    has(command) || command.get_subcommands().any(|command| any_command(command, has))
}

/// A flag in the output.
#[derive(Debug, Serialize)]
struct Shown {
    command: String,
    flag: String,
    values: Vec<String>,
    from: String,
}

#[derive(Debug, Serialize)]
struct Report {
    /// The configuration file that was read.
    file: Option<String>,
    settings: Vec<Shown>,
}

/// Runs `nqueens config`.
pub(super) fn run(args: &Args, sources: &Sources) -> Result<Exit, Failure> {
    let What::Show(args) = &args.what;
    let mut command = super::command();
    command.build();
    let mut wanted = &command;
    for name in &args.command {
        wanted = wanted.find_subcommand(name).ok_or_else(|| {
            Failure::usage(format!(
                "there is no command '{}'; nqueens --help lists the commands",
                args.command.join(" ")
            ))
        })?;
    }
    let names: Vec<&str> = args.command.iter().map(String::as_str).collect();
    let mut settings = Vec::new();
    collect(wanted, &names, sources, &mut settings);
    let file = sources.file.as_ref().map(|(path, _)| path.display().to_string());
    if args.json {
        let report = Report { file, settings };
        print(&json_line(&report))?;
        return Ok(Exit::Done);
    }
    let mut text = match file {
        Some(file) => format!("file: {file}\n"),
        None => "no configuration file\n".to_owned(),
    };
    let named: Vec<String> = settings
        .iter()
        .map(|s| format!("{} --{} {}", s.command, s.flag, s.values.join(" ")))
        .collect();
    let width = named.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (name, shown) in named.iter().zip(&settings) {
        text += &format!("{name:<width$}  {}\n", shown.from);
    }
    print(&text)?;
    Ok(Exit::Done)
}

fn collect(command: &clap::Command, names: &[&str], sources: &Sources, settings: &mut Vec<Shown>) {
    if !names.is_empty() {
        for (flag, arg) in flags(command) {
            let built_in = || {
                let values: Vec<String> = arg
                    .get_default_values()
                    .iter()
                    .map(|value| value.to_string_lossy().into_owned())
                    .collect();
                let has_one = !values.is_empty() && !matches!(arg.get_action(), ArgAction::SetTrue);
                has_one.then_some(Setting { values, origin: "built in".to_owned(), rank: 4 })
            };
            let Some(Setting { mut values, origin: from, .. }) =
                sources.setting(names, flag).or_else(built_in)
            else {
                continue;
            };
            if flag == "token" {
                // A token is secret.
                values = vec!["(a token)".to_owned()];
            }
            let (command, flag) = (names.join(" "), flag.to_owned());
            settings.push(Shown { command, flag, values, from });
        }
    }
    for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
        collect(subcommand, &[names, &[subcommand.get_name()]].concat(), sources, settings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str, variable: fn(&str) -> Option<String>) -> Sources {
        let table: Table = text.parse().expect("TOML");
        check_table(&super::super::command(), &[], &table).expect("known flags");
        Sources { file: Some(("c.toml".into(), table)), variable }
    }

    fn completed(sources: &Sources, words: &str) -> String {
        let arguments: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let (completed, _) = sources.complete(&super::super::command(), arguments);
        completed.iter().map(|word| word.to_str().expect("text")).collect::<Vec<_>>().join(" ")
    }

    const FILE: &str = "threads = 3\njson = true\n[count]\nthreads = 4\nplace = ['1,1', '2,3']\n[submit.count]\npriority = -2\n";

    #[test]
    fn the_source_of_highest_precedence_is_used() {
        let file = sources(FILE, |_| None);
        assert_eq!(
            completed(&file, "nqueens count 8"),
            "nqueens count --place=1,1 --place=2,3 --threads=4 --json 8"
        );
        assert_eq!(completed(&file, "nqueens first 8"), "nqueens first --threads=3 --json 8");
        assert_eq!(
            completed(&file, "nqueens submit count 8"),
            "nqueens submit count --priority=-2 --json 8"
        );
        assert_eq!(
            completed(&file, "nqueens first 8 --threads 1 --json"),
            "nqueens first 8 --threads 1 --json"
        );
        assert_eq!(
            completed(&file, "nqueens first --threads=1 8"),
            "nqueens first --json --threads=1 8"
        );
        let variables = sources(FILE, |name| (name == "NQUEENS_THREADS").then(|| "7".to_owned()));
        assert_eq!(completed(&variables, "nqueens first 8"), "nqueens first --threads=7 --json 8");
        let own = sources(FILE, |name| match name {
            "NQUEENS_THREADS" => Some("7".to_owned()),
            "NQUEENS_FIRST_THREADS" => Some("9".to_owned()),
            "NQUEENS_JSON" => Some("0".to_owned()),
            _ => None,
        });
        assert_eq!(completed(&own, "nqueens first 8"), "nqueens first --threads=9 8");
        assert_eq!(completed(&own, "nqueens --version"), "nqueens --version");
    }

    #[test]
    fn a_flag_on_the_command_line_excludes_those_that_conflict_with_it() {
        let file = sources("coordinator = 'queens.example.org:7878'\n", |_| None);
        let called = "nqueens jobs --data d";
        assert_eq!(completed(&file, called), called);
        assert_eq!(
            completed(&file, "nqueens jobs"),
            "nqueens jobs --coordinator=queens.example.org:7878"
        );
        let nearer = sources("data = 'd'\n", |name| {
            (name == "NQUEENS_JOBS_COORDINATOR").then(|| "queens:1".to_owned())
        });
        assert_eq!(completed(&nearer, "nqueens jobs"), "nqueens jobs --coordinator=queens:1");
    }

    #[test]
    fn unknown_flags_and_commands_are_named() {
        for (text, why) in [
            ("thread = 1", "no command has a flag --thread"),
            ("[count]\nthread = 1", "nqueens count does not have a flag --thread"),
            ("[counts]\nthreads = 1", "there is no command 'nqueens counts'"),
            ("[submit.counts]\nthreads = 1", "there is no command 'nqueens submit counts'"),
            ("threads = 1979-05-27", "invalid value of 'threads'"),
        ] {
            let table: Table = text.parse().expect("TOML");
            let found = check_table(&super::super::command(), &[], &table).expect_err(text);
            assert!(found.contains(why), "{found}");
        }
    }
}
