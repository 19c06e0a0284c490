//! The messages for command lines that are not valid.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::config;

/// Returns the error of the parser for `arguments` as one line, with what was probably meant.
pub(super) fn message(
    command: &clap::Command,
    arguments: &[OsString],
    error: &clap::Error,
) -> String {
    let called = config::called(command, arguments);
    let help = format!("see {called} --help");
    let with_guess = |what: String, meant: Option<String>| match meant {
        Some(meant) => format!("{what} ({help}); did you mean '{meant}'?"),
        None => format!("{what}; {help}"),
    };
    let context = |kind| strings(error, kind);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = context(ContextKind::InvalidSubcommand).concat();
            let meant = match word.as_str() {
                "version" if called == "nqueens" => Some("--version".to_owned()),
                _ if word.parse::<u64>().is_ok() => match called.as_str() {
                    "nqueens" | "nqueens submit" => Some(format!("count {word}")),
                    _ => None,
                },
                _ => nearest(&word, &context(ContextKind::SuggestedSubcommand)),
            };
            let meant = meant.map(|meant| format!("{called} {meant}"));
            with_guess(format!("there is no command '{called} {word}'"), meant)
        }
        ErrorKind::UnknownArgument => {
            let word = context(ContextKind::InvalidArg).concat();
            if !word.starts_with('-') {
                return with_guess(format!("{called} takes no further argument '{word}'"), None);
            }
            let meant = match word.as_str() {
                "-v" if called == "nqueens" => Some("--version".to_owned()),
                _ => nearest(&word, &context(ContextKind::SuggestedArg)),
            };
            with_guess(format!("{called} has no flag '{word}'"), meant)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = context(ContextKind::InvalidArg).join(" ").replace("...", "");
            format!("{called} needs {missing}; {}; {help}", usage(command, arguments))
        }
        // The parser of the value says what is valid.
        ErrorKind::ValueValidation => {
            let flag = context(ContextKind::InvalidArg).concat();
            let value = context(ContextKind::InvalidValue).concat();
            match error.source().map(ToString::to_string) {
                Some(why) if why.contains(&value) => format!("{flag}: {why}"),
                // The parsers of the standard library do not repeat the value.
                _ => first_paragraph(error),
            }
        }
        ErrorKind::InvalidValue => first_paragraph(error),
        _ => format!("{}; {help}", first_paragraph(error)),
    }
}

/// Returns the most similar of the parser's suggestions, which are in ascending order. It must begin
/// like the word, as most mistyped words do.
fn nearest(word: &str, suggested: &[String]) -> Option<String> {
    let begin = |text: &str| text.trim_start_matches('-').chars().next();
    suggested.iter().rev().find(|text| begin(text) == begin(word)).cloned()
}

/// Returns the usage of the command that is called, for example "usage: nqueens count [OPTIONS]
/// <N>".
fn usage(command: &clap::Command, arguments: &[OsString]) -> String {
    let mut command = command.clone();
    command.build();
    let (leaf, ..) = config::leaf(&command, arguments);
    let usage = leaf.clone().render_usage().to_string();
    let words: Vec<&str> = usage.split_whitespace().skip(1).collect();
    format!("usage: {}", words.join(" "))
}

/// Returns the values of an item of the error's context.
fn strings(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Returns the parser's message up to the first empty line, on one line.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines: Vec<&str> =
        text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}
