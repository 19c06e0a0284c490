//! What people type, right and wrong, and what they get.

use crate::support::program::{run, text};

/// A command line without the program's name, its exit code, and words of stdout and of stderr.
type Case = (&'static str, i32, &'static [&'static str], &'static [&'static str]);

const CASES: &[Case] = &[
    // Without a command, or with one that does not exist.
    ("", 2, &[], &["Usage: nqueens", "count ", "no command given", "nqueens --help"]),
    ("8", 2, &[], &["did you mean 'nqueens count 8'?"]),
    ("cuont 8", 2, &[], &["no command 'nqueens cuont'", "did you mean 'nqueens count'?"]),
    ("coutn 8", 2, &[], &["did you mean 'nqueens count'?"]),
    ("solv 8", 2, &[], &["did you mean 'nqueens solve'?"]),
    ("beatiful 8", 2, &[], &["did you mean 'nqueens beautiful'?"]),
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
    ("count 8 8", 2, &[], &["no further argument '8'", "nqueens count --help"]),
    ("count eight", 2, &[], &["[N]: invalid board size 'eight'", "0 to 32"]),
    ("count 40", 2, &[], &["n = 40", "0 to 32"]),
    ("count 8 --place 1,1", 0, &["4 completions"], &[]),
    ("count 8 --place 1 1", 2, &[], &["no further argument '1'"]),
    ("count 8 --place 1", 2, &[], &["--place <ROW,COL>: '1' is not a square", "2,4"]),
    ("count 8 --kernel avx", 2, &[], &["avx", "avx2"]),
    ("count 8 --gpu --device cpu", 2, &[], &["--gpu", "--device"]),
    ("count 27 --time-limit 1s --device cpu -q", 130, &[], &["stopped by", "--resume FILE"]),
    ("estimate 12 --seconds 1", 0, &["solutions", "nodes"], &[]),
    ("estimate 12 --time 1", 2, &[], &["no flag '--time'"]),
    ("list 3", 3, &[], &["no solution exists"]),
    ("list 4 -q", 0, &["2 4 1 3\n3 1 4 2\n"], &[]),
    // Solutions.
    ("solve", 2, &[], &["needs <N>"]),
    ("solve 8 -q", 0, &["4 6 8 2 7 1 3 5\n"], &[]),
    ("solve 8 -q --place 1,1", 0, &["1 5 8 6 3 7 2 4\n"], &[]),
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
    ("compare 5..6 --limit 5s -q", 0, &["  5  exact", "  6  exact"], &[]),
    ("beautiful 8 -q", 0, &[" "], &[]),
    ("check", 2, &[], &["needs <FILE>", "usage: nqueens check"]),
    ("check no-such-file", 7, &[], &["no-such-file"]),
    // Machines.
    ("devices --no-test", 0, &["scalar"], &[]),
    ("worker", 2, &[], &["needs --join <HOST:PORT>", "usage: nqueens worker"]),
    ("merge", 2, &[], &["needs <FILE> <DIR>"]),
    ("plan 8", 2, &[], &["needs --out <FILE>"]),
    ("completions", 2, &[], &["needs <SHELL>"]),
];

#[test]
fn typed_commands_do_what_people_expect_or_say_what_would() {
    assert!(CASES.len() >= 55);
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
