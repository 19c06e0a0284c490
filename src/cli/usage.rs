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
                "play" | "board" | "web" if called == "nqueens" => {
                    let what = format!("there is no command '{called} {word}'");
                    return format!(
                        "{what}; the board to play with is a web page (docs/play.md); nqueens show \
                         SOLUTION draws a board"
                    );
                }
                _ if called == "nqueens" => synonym(&word)
                    .map(str::to_owned)
                    .or_else(|| nearest(&word, &suggested_commands(command, &word))),
                _ => nearest(&word, &context(ContextKind::SuggestedSubcommand)),
            };
            let meant = meant.map(|meant| format!("{called} {meant}{}", after(arguments, &word)));
            with_guess(format!("there is no command '{called} {word}'"), meant)
        }
        ErrorKind::UnknownArgument => {
            let word = context(ContextKind::InvalidArg).concat();
            if !word.starts_with('-') {
                let what = format!("{called} takes no further argument '{word}'");
                return match one_size_at_a_time(&called, arguments, &word) {
                    Some(hint) => format!("{what}; {hint}"),
                    None => with_guess(what, None),
                };
            }
            let meant = match word.as_str() {
                "-v" if called == "nqueens" => Some("--version".to_owned()),
                _ if called == "nqueens" && is_flag_of_a_command(command, &word) => {
                    let what = format!("{word} is a flag of commands and stands after them");
                    return with_guess(what, None);
                }
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
                Some(why) if flag.contains("<N>") || flag.contains("[N]") => {
                    let hint = one_size_at_a_time(&called, arguments, &value)
                        .or_else(|| size_within(&value).map(|n| format!("did you mean {n}?")));
                    format!(
                        "{flag}: {why}{}",
                        hint.map_or(String::new(), |hint| format!("; {hint}"))
                    )
                }
                Some(why) if why.contains(&value) => format!("{flag}: {why}"),
                // The parsers of the standard library do not repeat the value.
                _ => first_paragraph(error),
            }
        }
        ErrorKind::InvalidValue => first_paragraph(error),
        _ => format!("{}; {help}", first_paragraph(error)),
    }
}

/// Returns the command for a word of everyday language, or of another program.
fn synonym(word: &str) -> Option<&'static str> {
    const SYNONYMS: [(&str, &[&str]); 12] = [
        ("show", &["draw", "print", "display", "view"]),
        ("list", &["all", "enumerate", "solutions"]),
        ("solve", &["find", "solution", "place", "run"]),
        ("count", &["number", "total"]),
        ("bench", &["benchmark", "speed", "perf"]),
        ("selftest", &["test", "self-test"]),
        ("devices", &["gpu", "gpus", "info", "kernels", "cpu"]),
        ("coordinator", &["server", "serve", "start", "master"]),
        ("worker", &["client", "join"]),
        ("verify", &["validate", "valid"]),
        ("top", &["monitor", "watch", "htop"]),
        ("estimate", &["forecast", "predict", "time"]),
    ];
    let found = SYNONYMS.iter().find(|(_, words)| words.contains(&word));
    found.map(|(command, _)| *command)
}

/// Returns the commands that are similar to a word. (The parser suggests none after help.)
fn suggested_commands(command: &clap::Command, word: &str) -> Vec<String> {
    match command.clone().try_get_matches_from(["nqueens", word]) {
        Err(error) => strings(&error, ContextKind::SuggestedSubcommand),
        Ok(_) => Vec::new(),
    }
}

/// Returns the arguments after a word, as they are typed, if a shell needs no quotes for them.
fn after(arguments: &[OsString], word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ",.-_/=:%".contains(c);
    let rest = arguments.iter().skip_while(|argument| *argument != word).skip(1);
    let rest: Option<Vec<&str>> =
        rest.map(|word| word.to_str().filter(|word| word.chars().all(is_plain))).collect();
    rest.unwrap_or_default().iter().map(|word| format!(" {word}")).collect()
}

/// Returns whether any command has this flag.
fn is_flag_of_a_command(command: &clap::Command, word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    command.get_subcommands().flat_map(clap::Command::get_arguments).any(|arg| {
        arg.get_long().is_some_and(|long| name == format!("--{long}"))
            || arg.get_short().is_some_and(|short| name == format!("-{short}"))
    })
}

/// Returns how to run a command for several sizes, if a word has several and the command takes one:
/// `6..10`, `6-10`, `6,8`, or `8` after another size.
fn one_size_at_a_time(called: &str, arguments: &[OsString], word: &str) -> Option<String> {
    const FOR_ONE: [&str; 5] = ["count", "solve", "list", "beautiful", "estimate"];
    let is_size = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = called.rsplit(' ').next().filter(|name| FOR_ONE.contains(name))?;
    let range = word.split_once("..").or_else(|| word.split_once('-'));
    let sizes = match range {
        Some((first, last)) if is_size(first) && is_size(last) => format!("$(seq {first} {last})"),
        _ => {
            let words: Vec<&str> = match word.contains(',') {
                true => word.split(',').collect(),
                false => arguments
                    .iter()
                    .skip_while(|argument| *argument != name)
                    .skip(1)
                    .map_while(|argument| argument.to_str().filter(|text| is_size(text)))
                    .collect(),
            };
            let is_list = words.len() > 1 && words.iter().all(|word| is_size(word));
            is_list.then(|| words.join(" "))?
        }
    };
    Some(format!("it takes one size; in a shell: for n in {sizes}; do {called} $n; done"))
}

/// Returns the size that a word such as `8x8`, `8×8`, `n=8` or `8queens` means.
fn size_within(word: &str) -> Option<u64> {
    let around = |c: char| !c.is_ascii_digit();
    if word.contains(['.', ',', '-', '+']) {
        return None;
    }
    let mut numbers = word.split(around).filter(|part| !part.is_empty());
    let first = numbers.next()?;
    let is_word = matches!(
        word.trim_matches(|c: char| c.is_ascii_digit()),
        "x" | "X" | "×" | "n=" | "N=" | "queens" | "q"
    );
    (is_word && numbers.all(|other| other == first)).then(|| first.parse().ok())?
}

/// Returns the most similar of the parser's suggestions, which are in ascending order. It must
/// begin like the word, as most mistyped words do.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_within_words_are_found() {
        for (word, size) in
            [("8x8", Some(8)), ("8×8", Some(8)), ("n=10", Some(10)), ("8queens", Some(8))]
        {
            assert_eq!(size_within(word), size, "{word}");
        }
        for word in [
            "8x9",
            "eight",
            "-8",
            "8.5",
            "1e1",
            "",
            "x",
            "99999999999999999999x99999999999999999999",
        ] {
            assert_eq!(size_within(word), None, "{word}");
        }
    }

    #[test]
    fn several_sizes_become_a_loop() {
        let of = |line: &str, word: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            one_size_at_a_time("nqueens count", &arguments, word)
        };
        for (line, word, sizes) in [
            ("nqueens count 6..10", "6..10", "$(seq 6 10)"),
            ("nqueens count 6-10", "6-10", "$(seq 6 10)"),
            ("nqueens count 6,8", "6,8", "6 8"),
            ("nqueens count 6 8 10", "8", "6 8 10"),
        ] {
            let hint = of(line, word).expect(line);
            assert!(hint.contains(&format!("for n in {sizes}; do nqueens count $n")), "{hint}");
        }
        for (line, word) in [
            ("nqueens count eight", "eight"),
            ("nqueens count 8 queens", "queens"),
            ("nqueens count 6,,8", "6,,8"),
            ("nqueens count -8", "-8"),
        ] {
            assert_eq!(of(line, word), None, "{line}");
        }
    }

    #[test]
    fn arguments_that_need_quotes_are_not_repeated() {
        let of = |words: &[&str]| {
            let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            after(&arguments, "cuont")
        };
        assert_eq!(of(&["nqueens", "cuont", "8", "-j", "2"]), " 8 -j 2");
        assert_eq!(of(&["nqueens", "cuont", "8", "--place", "1,1 2,3"]), "");
        assert_eq!(of(&["nqueens", "cuont"]), "");
    }
}
