//! Commands as people type them, right and wrong, and their output.

use crate::support::program::{run, text};

/// A command line without the program's name, its exit code, and words of stdout and of stderr.
type Case = (&'static str, i32, &'static [&'static str], &'static [&'static str]);

const CASES: &[Case] = &[
    // Without a command, or with one that does not exist.
    ("", 2, &[], &["Usage: nqueens", "count ", "no command given", "nqueens --help"]),
    ("8", 2, &[], &["did you mean 'nqueens count 8'?"]),
    ("8 -j 2", 2, &[], &["did you mean 'nqueens count 8 -j 2'?"]),
    ("cuont 8", 2, &[], &["no command 'nqueens cuont'", "did you mean 'nqueens count 8'?"]),
    ("coutn 8", 2, &[], &["did you mean 'nqueens count 8'?"]),
    ("solv 8", 2, &[], &["did you mean 'nqueens solve 8'?"]),
    ("beatiful 8", 2, &[], &["did you mean 'nqueens beautiful 8'?"]),
    ("draw 2 4 1 3", 2, &[], &["did you mean 'nqueens show 2 4 1 3'?"]),
    ("benchmark 14", 2, &[], &["did you mean 'nqueens bench 14'?"]),
    ("test", 2, &[], &["did you mean 'nqueens selftest'?"]),
    ("gpus", 2, &[], &["did you mean 'nqueens devices'?"]),
    ("server", 2, &[], &["did you mean 'nqueens coordinator'?"]),
    ("-j 2 count 8", 2, &[], &["-j is a flag of commands and stands after them"]),
    ("--json count 8", 2, &[], &["--json is a flag of commands and stands after them"]),
    ("help cuont", 2, &[], &["did you mean 'nqueens count'?"]),
    ("queens 8", 2, &[], &["no command 'nqueens queens'", "see nqueens --help"]),
    ("version", 2, &[], &["did you mean 'nqueens --version'?"]),
    ("submit", 2, &[], &["no command given", "nqueens submit --help"]),
    ("submit 8", 2, &[], &["did you mean 'nqueens submit count 8'?"]),
    ("token creat", 2, &[], &["did you mean 'nqueens token create'?"]),
    ("config shwo", 2, &[], &["did you mean 'nqueens config show'?"]),
    ("man cuont", 2, &[], &["'cuont'", "count"]),
    // Help and version.
    ("-h", 0, &["Common commands:", "--help lists all commands"], &[]),
    ("--help", 0, &["Count:", "Solve:", "Campaign:", "Batch:", "This machine:", "130"], &[]),
    ("help", 0, &["Count:", "Batch:"], &[]),
    ("help count", 0, &["Usage: nqueens count", "--threads"], &[]),
    ("count -h", 0, &["-j, --threads", "-q, --quiet"], &[]),
    ("-V", 0, &["nqueens "], &[]),
    ("--version", 0, &["commit ", "features ", "kernels ", "fastest "], &[]),
    ("-v", 2, &[], &["did you mean '--version'?"]),
    // Counts.
    ("count", 2, &[], &["needs <N>", "usage: nqueens count [OPTIONS] [N]"]),
    ("count 8", 0, &["8 queens: 92 solutions", "agrees with OEIS A000170"], &[]),
    ("count 8 -j 2", 0, &["92 solutions"], &[]),
    ("count 8 -j2 -q", 0, &["92 solutions"], &[]),
    ("count 8 --thread 2", 2, &[], &["no flag '--thread'", "did you mean '--threads'?"]),
    ("count 8 --jsn", 2, &[], &["did you mean '--json'?"]),
    ("count 8 8", 2, &[], &["no further argument '8'", "for n in 8 8; do nqueens count $n"]),
    ("count 6..10", 2, &[], &["'6..10'", "for n in $(seq 6 10); do nqueens count $n; done"]),
    ("count 6,8,10", 2, &[], &["it takes one size", "for n in 6 8 10; do nqueens count $n; done"]),
    ("count 6 8 10", 2, &[], &["it takes one size", "for n in 6 8 10; do nqueens count $n; done"]),
    ("estimate 20-24", 2, &[], &["for n in $(seq 20 24); do nqueens estimate $n; done"]),
    ("count 8x8", 2, &[], &["invalid board size '8x8'", "did you mean 8?"]),
    ("count n=8", 2, &[], &["did you mean 8?"]),
    ("count 8 queens", 2, &[], &["no further argument 'queens'", "nqueens count --help"]),
    ("count -8", 2, &[], &["'-8'", "0 to 32"]),
    ("count eight", 2, &[], &["[N]: invalid board size 'eight'", "0 to 32"]),
    ("count 40", 2, &[], &["n = 40", "0 to 32"]),
    ("count 8 --place 1,1", 0, &["4 completions"], &[]),
    ("count 8 --place a1", 0, &["4 completions"], &[]),
    ("count 8 --place a1,g2 -q", 0, &["8 queens: "], &[]),
    ("count 8 --place a1,2", 2, &[], &["'a1,2' is not a square", "2,4, or d2"]),
    ("count 8 --place j1", 2, &[], &["off the board", "1 to 8"]),
    ("count 8 --place a1 --block a1", 2, &[], &["both placed and blocked"]),
    ("count 8 --place 1 1", 2, &[], &["no further argument '1'"]),
    ("count 8 --place 1", 2, &[], &["--place <ROW,COL>: '1' is not a square", "2,4"]),
    ("count 8 --kernel avx", 2, &[], &["avx", "avx2"]),
    ("count 8 --gpu --device cpu", 2, &[], &["--gpu", "--device"]),
    ("count 27 --time-limit 1s --device cpu -q", 130, &[], &["stopped by", "--resume FILE"]),
    ("estimate 12 --seconds 1", 0, &["solutions", "nodes"], &[]),
    ("estimate 8 --piece rook --seconds 0.1", 0, &["40320"], &[]),
    ("estimate 40 --place a1", 2, &[], &["--place is for n up to 32"]),
    ("estimate 12 --time 1", 2, &[], &["no flag '--time'"]),
    ("list 3", 3, &[], &["no solution exists"]),
    ("list 4 -q", 0, &["2 4 1 3\n3 1 4 2\n"], &[]),
    ("list 8 --fundamental -q", 0, &["1 5 8 6 3 7 2 4\n"], &[]),
    ("placements 4", 0, &["1820"], &[]),
    // Solutions.
    ("solve", 2, &[], &["needs <N>"]),
    ("solve 8 -q", 0, &["4 6 8 2 7 1 3 5\n"], &[]),
    ("solve 8 -q --place 1,1", 0, &["1 5 8 6 3 7 2 4\n"], &[]),
    ("solve 8 --piece toroidal -q", 3, &[], &[]),
    ("solve 8 --board", 0, &["♛"], &[]),
    ("solve --board no-such-file", 7, &[], &["the board cannot be read from no-such-file"]),
    ("solve 3", 3, &[], &["no solution exists"]),
    ("first 8 -q", 0, &["1 5 8 6 3 7 2 4"], &[]),
    ("first 8 --block 1,1 -q", 0, &["2 "], &[]),
    ("first 8 --block 1,1 --method cp", 2, &[], &["--block needs --method exact, not cp"]),
    ("first 6..10 -q", 0, &["  6 ", "  7 ", " 10 "], &[]),
    ("first 6,8,10 -q", 0, &["  6 ", "  8 ", " 10 "], &[]),
    ("first 6 8 10 -q", 0, &["  6 ", "  8 ", " 10 "], &[]),
    ("first 10..6", 2, &[], &["invalid range '10..6'", "smaller size first"]),
    ("first 6,,8", 2, &[], &["invalid board size ''"]),
    ("compare 5,6 --limit 5s -q", 0, &["  5  exact", "  6  exact"], &[]),
    ("compare 5 6 --limit 5s -q", 0, &["2 of 2", "shifted geometric mean", "agree"], &[]),
    ("compare 5..6 --limit 5s -q", 0, &["  5  exact", "  6  exact"], &[]),
    ("beautiful 8 -q", 0, &[" "], &[]),
    ("check", 2, &[], &["needs <FILE>", "usage: nqueens check"]),
    ("check no-such-file", 7, &[], &["no-such-file"]),
    ("check 2413", 7, &[], &["nqueens verify checks a solution"]),
    ("--version --json", 0, &["{\"version\":\"", "\"features\":[\"cli\"", "\"kernels\":["], &[]),
    ("--json -V", 0, &["\"commit\":\"", "\"fastest_for_prefixes\":\""], &[]),
    ("play", 2, &[], &["a web page (docs/play.md)"]),
    ("verify 2 4 1 3", 0, &["valid: 4 queens"], &[]),
    ("verify 2413", 0, &["valid: 4 queens"], &[]),
    ("verify 2 4 3 1", 6, &["2,4 and 3,3 attack each other"], &["not valid"]),
    ("verify 8", 6, &["1,8 is off the board"], &["nqueens solve 8 finds a solution"]),
    ("fingerprint 8", 6, &[], &["nqueens solve 8 finds a solution"]),
    ("show 20", 2, &[], &["'20' is no solution but looks like a size", "nqueens solve 20"]),
    ("show 2 4 1 3", 0, &["1  · ♛ · ·", "valid"], &[]),
    ("show", 2, &[], &["needs <SOLUTION|FILE>"]),
    ("fingerprint 2413", 0, &["10 10 10 10", "canonical image     2 4 1 3"], &[]),
    ("greedy 5", 0, &["1\n3\n5\n2\n4\n"], &[]),
    ("reproduce", 0, &["fischetti-salvagnin", "oeis", "textbook"], &[]),
    ("reproduce fischeti", 2, &[], &["fischetti-salvagnin"]),
    // Machines.
    ("devices --no-test", 0, &["scalar"], &[]),
    ("worker", 2, &[], &["needs --join <HOST:PORT>", "usage: nqueens worker"]),
    ("top", 2, &[], &["needs a terminal", "nqueens status --watch"]),
    (
        "status --coordinator 127.0.0.1:1",
        8,
        &[],
        &["cannot reach the coordinator at 127.0.0.1:1", "nqueens coordinator starts one"],
    ),
    ("merge", 2, &[], &["needs <FILE> <DIR|URL>"]),
    ("plan 8", 2, &[], &["needs --out <FILE>"]),
    ("completions", 2, &[], &["needs <SHELL>"]),
];

#[test]
fn typed_commands_do_what_people_expect_or_say_what_would() {
    assert!(CASES.len() >= 100, "{}", CASES.len());
    let mut failed = Vec::new();
    for (typed, code, out, err) in CASES {
        let arguments: Vec<&str> = typed.split_whitespace().collect();
        let output = run(&arguments);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let has_words = out.iter().all(|word| stdout.contains(word))
            && err.iter().all(|word| stderr.contains(word));
        // A refusal prints no data, and one line. Without any command, the help comes before it.
        let is_refusal_clean =
            *code != 2 || (stdout.is_empty() && (typed.is_empty() || stderr.lines().count() == 1));
        let is_silent =
            *code != 0 || !err.is_empty() || !typed.ends_with("-q") || stderr.is_empty();
        if output.status.code() != Some(*code) || !has_words || !is_refusal_clean || !is_silent {
            failed.push(format!(
                "$ nqueens {typed}\nexit code {:?}\nstdout:\n{stdout}\nstderr:\n{stderr}",
                output.status.code()
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Returns the help of a command, and of each of its commands, with their names.
fn helps(names: &[String]) -> Vec<(Vec<String>, String)> {
    let mut words: Vec<&str> = names.iter().map(String::as_str).collect();
    words.push("--help");
    let output = run(&words);
    assert_eq!(output.status.code(), Some(0), "{words:?}");
    let help = text(&output.stdout).to_owned();
    // Commands are indented by two spaces, before the options.
    let listed = help.split("Options:").next().unwrap_or_default();
    let listed = listed.split_once("Usage:").map_or("", |(_, rest)| rest).lines().skip(1);
    let mut found = Vec::new();
    for line in listed.filter_map(|line| line.strip_prefix("  ")) {
        let name: String =
            line.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        let is_command = line[name.len()..].starts_with("  ") || name.len() == 12;
        if is_command && name.len() > 1 && name != "help" {
            found.extend(helps(&[names, &[name]].concat()));
        }
    }
    found.push((names.to_vec(), help));
    found
}

#[test]
fn all_commands_follow_the_same_rules() {
    /// The commands that answer with boards or figures.
    const PICTURES: [&str; 11] = [
        "beautiful",
        "bench",
        "check",
        "compare",
        "fingerprint",
        "first",
        "greedy",
        "list",
        "show",
        "solve",
        "verify",
    ];
    let helps = helps(&[]);
    assert!(helps.len() > 45, "{}", helps.len());
    let mut pictures = Vec::new();
    let mut with_squares = 0;
    for (names, help) in &helps {
        let called = names.join(" ");
        let has = |words: &str| help.contains(words);
        assert!(has("-h, --help"), "{called}");
        for (long, with) in [
            ("--threads <", "-j, --threads <"),
            ("--quiet", "-q, --quiet"),
            ("--log-level", "-v, --verbose"),
            ("--device <", "--gpu"),
            ("--svg <", "--png <"),
            ("--png <", "--svg <"),
            ("--place <", "--block <"),
            // A command that takes several sizes takes ranges and lists.
            ("[N]...", "6,8,10"),
            ("<N>...", "6,8,10"),
        ] {
            assert!(!has(long) || has(with), "{called} has {long}, but not {with}");
        }
        // No line of the help is wider than a page.
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{called}: {line}");
        }
        if has("--svg <") {
            pictures.push(called.clone());
        }
        if has("--place <") {
            let words: Vec<&str> = names.iter().map(String::as_str).collect();
            let output = run(&[&words[..], &["4", "--place", "e0"]].concat());
            assert_eq!(output.status.code(), Some(2), "{called}");
            let message = text(&output.stderr);
            assert!(
                message.contains("'e0' is not a square") && message.contains("or d2"),
                "{message}"
            );
            with_squares += 1;
        }
    }
    pictures.sort();
    assert_eq!(pictures, PICTURES);
    assert!(with_squares >= 11, "{with_squares}");
}

#[test]
fn commands_that_take_several_sizes_take_ranges_lists_and_spaces() {
    for (command, flags) in [("first", &["-q"][..]), ("compare", &["-q", "--limit", "5s"])] {
        let answers = |sizes: &[&str]| {
            let output = run(&[&[command], sizes, flags].concat());
            assert_eq!(output.status.code(), Some(0), "{command} {sizes:?}");
            let lines = text(&output.stdout).lines().map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                // The time differs from run to run.
                (
                    words.first().map(|word| word.to_string()),
                    words.last().map(|word| word.to_string()),
                )
            });
            lines
                .filter(|(first, _)| first.as_ref().is_some_and(|n| n.parse::<u32>().is_ok()))
                .collect::<Vec<_>>()
        };
        let expected = answers(&["4..6"]);
        assert!(expected.len() >= 3);
        for sizes in [&["4,5,6"][..], &["4", "5", "6"], &["4..5", "6"], &["4,5..6"]] {
            assert_eq!(answers(sizes), expected, "{command} {sizes:?}");
        }
    }
}
