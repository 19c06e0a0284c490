//! On a terminal, an answer comes with what is proved, by which method, the time, and what to do
//! next; elsewhere stdout gets the answer alone.
#![cfg(unix)]

use crate::support::{Scratch, run};
use crate::terminal::Terminal;

/// Runs the program in a terminal, and returns the exit code and what is on the screen, as lines.
fn on_a_terminal(arguments: &[&str]) -> (i32, Vec<String>) {
    let terminal = Terminal::new();
    let mut process = terminal.run(arguments, &[]);
    let code = process.wait("end");
    // The last line may still be on its way.
    terminal.print("$ next command");
    terminal.wait_for_text("$ next command");
    let text = terminal.text();
    (code, text.lines().filter(|line| !line.starts_with('$')).map(str::to_owned).collect())
}

#[test]
fn an_answer_has_a_title_the_solution_its_proof_the_method_the_time_and_the_next_step() {
    const ROWS: [&str; 5] = ["solution", "proved", "method", "time", "next"];
    for (arguments, title, solution, proved) in [
        ("solve 8", "8 queens: a solution", "4 6 8 2 7 1 3 5", "no two queens attack each other"),
        ("solve 7 --piece toroidal", "7 toroidal queens: a solution", "1 3 5 7 2 4 6", "no two"),
        ("solve 6 --place b1", "6 queens, 1 placed: a completion", "2 4 6 1 3 5", "no two queens"),
        (
            "first 8",
            "8 queens: the lexicographically first solution",
            "1 5 8 6 3 7 2 4",
            "before it",
        ),
        ("first 8 --method lex-dfs", "8 queens: the lexi", "1 5 8 6 3 7 2 4", "before it"),
        ("beautiful 8", "8 queens: a most beautiful solution", "", "no solution has a smaller"),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let (code, lines) = on_a_terminal(&words);
        let text = lines.join("\n");
        assert_eq!(code, 0, "{arguments}: {text}");
        // A method may name its solver on stderr first.
        let begin = lines.iter().position(|line| line.starts_with(title));
        let lines = &lines[begin.unwrap_or_else(|| panic!("{arguments}: {text}"))..];
        let row = |name: &str| {
            let start = format!("  {name:<19} ");
            lines.iter().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
        };
        for name in ROWS {
            assert!(
                row(name).is_some_and(|value| !value.is_empty()),
                "{arguments}: {name}: {text}"
            );
        }
        assert!(row("solution").is_some_and(|line| line.starts_with(solution)), "{text}");
        assert!(row("proved").is_some_and(|line| line.contains(proved)), "{text}");
        // Elsewhere, the line with the solution stands alone.
        let output = run(&words);
        let alone = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(row("solution"), Some(alone.trim_end().to_owned()), "{arguments}");
    }
}

#[test]
fn boards_without_a_solution_are_explained_with_the_same_exit_codes() {
    for (arguments, code, title, proved) in [
        ("solve 3", 3, "3 queens: no solution exists", "no solution exists"),
        ("first 6 --place 1,1", 3, "6 queens, 1 placed: the lex", "no solution exists"),
        (
            "beautiful 3",
            3,
            "3 queens: a most beautiful solution: none exists",
            "no solution exists",
        ),
        ("list 3", 3, "3 queens: 0 solutions", "no solution exists"),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let expected = run(&words).status.code();
        let (found, lines) = on_a_terminal(&words);
        let text = lines.join("\n");
        assert_eq!((Some(found), found), (expected, code), "{arguments}: {text}");
        assert!(lines[0].starts_with(title) && text.contains(proved), "{arguments}: {text}");
    }
}

#[test]
fn lists_and_checks_end_with_what_they_prove() {
    let scratch = Scratch::new("answers");
    let certificate = &*scratch.file("8.cert");
    assert!(run(&["first", "8", "--certificate", certificate]).status.success());
    let statement = "the lexicographically first solution for n = 8 is 1 5 8 6 3 7 2 4";
    for (arguments, words) in [
        (vec!["list", "5"], ["5 queens: 10 solutions", "these are all solutions"]),
        (vec!["list", "5", "--limit", "3"], ["5 queens: 3 solutions", "there may be more"]),
        (vec!["list", "8", "--fundamental", "--draw"], ["92 solutions, 12 fundamental", "all"]),
        (vec!["check", certificate], ["8.cert: the certificate is valid", statement]),
    ] {
        let (code, lines) = on_a_terminal(&arguments);
        let text = lines.join("\n");
        assert_eq!(code, 0, "{text}");
        for word in words {
            assert!(text.contains(word), "{arguments:?}: {text}");
        }
        let quiet = [&arguments[..], &["--quiet"]].concat();
        if arguments[0] == "list" {
            assert!(!on_a_terminal(&quiet).1.join("\n").contains("proved"));
        }
    }
}
