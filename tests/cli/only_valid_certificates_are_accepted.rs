//! `nqueens check` accepts the certificates of earlier versions and those written now, and refuses
//! every file that does not prove its claim.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fastrand::Rng;
use nqueens::proof::first::Refutation;
use nqueens::proof::{self, Kind, ProofError};
use nqueens::solver::Unobserved;
use nqueens::solver::first;
use serde_json::{Value, json};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nqueens"));
    command.args(arguments).stdin(Stdio::null()).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the program writes UTF-8")
}

/// A temporary folder, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("nqueens-proof-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for temporary files");
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a readable path").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the output of `check --json`, which must accept the file.
fn accepted(path: &str) -> Value {
    let output = run(&["check", path, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Asserts that `check` refuses the file with this exit code and one line that contains `word`.
fn assert_refused(path: &str, code: i32, word: &str) {
    let output = run(&["check", path]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(output.stdout.is_empty() && message.lines().count() == 1, "{message}");
    assert!(message.contains(word), "{word}: {message}");
}

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

/// Returns the first solution and its certificate.
fn certified(n: usize) -> (Option<Vec<usize>>, Vec<u8>) {
    let found = first::first_solution(n, first::Options::default(), &mut Unobserved, &mut |_| {});
    assert!(found.finished);
    let refutations = found.refutations(n);
    let certificate = proof::first::certificate(n, found.solution.as_deref(), &refutations);
    (found.solution, certificate.expect("the engine's certificates are accepted"))
}

/// Returns the board sizes of the stored certificates of a kind, each of which must be accepted.
/// They are named kind-n.proof or kind-n-what.proof. Some take seconds, so several are checked at a
/// time.
fn kept_sizes(prefix: &str, kind: Kind) -> Vec<usize> {
    let entries = fs::read_dir(kept("")).expect("the folder of certificates");
    let paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a readable folder").path()).collect();
    let proved_size = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let n = name.strip_prefix(prefix)?.split(['-', '.']).next().expect("a size");
        let certificate = fs::read(path).expect("a readable file");
        assert!(certificate.len() <= 1 << 20, "{name} is too large for the repository");
        let proved = proof::check(&certificate).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((proved.kind, proved.n.to_string().as_str()), (kind, n));
        Some(proved.n)
    };
    let mut sizes: Vec<usize> = std::thread::scope(|scope| {
        let checks: Vec<_> = paths.iter().map(|path| scope.spawn(|| proved_size(path))).collect();
        checks.into_iter().filter_map(|check| check.join().expect("all are accepted")).collect()
    });
    sizes.sort_unstable();
    sizes
}

#[test]
fn stored_certificates_prove_first_solutions() {
    let sizes = kept_sizes("first-", Kind::First);
    assert!(sizes.contains(&62), "{sizes:?}");
}

#[test]
fn stored_certificates_of_every_format_prove_most_beautiful_solutions() {
    // With prices of the first kind; with prices that fill diagonals; from before records of full
    // diagonals existed; and a large one.
    assert_eq!(kept_sizes("beautiful-", Kind::Beautiful), [13, 13, 80, 144]);
}

#[test]
fn a_written_certificate_is_accepted_and_its_statement_is_printed() {
    let scratch = Scratch::new("written");
    for (n, code) in [("0", 0), ("1", 0), ("2", 3), ("3", 3), ("8", 0), ("26", 0)] {
        let path = scratch.path(&format!("{n}.proof"));
        let first = run(&["first", n, "--certificate", &path, "--json", "--quiet"]);
        assert_eq!(first.status.code(), Some(code), "{}", text(&first.stderr));
        let first: Value = serde_json::from_slice(&first.stdout).expect("one JSON object");
        assert_eq!((&first["certificate"], &first["proven"]), (&json!(path), &json!(true)));
        let report = accepted(&path);
        assert_eq!((&report["kind"], &report["n"]), (&json!("first"), &first["n"]));
        assert_eq!((&report["solution"], &report["proven"]), (&first["solution"], &json!(true)));
        assert!(
            report["work"].is_string()
                && report["bytes"].is_number()
                && report["elapsed_s"].is_number()
        );
    }
    let check = run(&["check", &scratch.path("8.proof")]);
    assert!(text(&check.stdout).contains("first solution for n = 8 is 1 5 8 6 3 7 2 4"));
    let check = run(&["check", &scratch.path("3.proof")]);
    assert!(text(&check.stdout).contains("no solution for n = 3"));
}

#[test]
fn invalid_files_are_unreadable_and_certificates_that_prove_nothing_are_refused() {
    let scratch = Scratch::new("refused");
    let path = scratch.path("file");
    assert_refused(&path, 7, "cannot be read");
    for content in [&b""[..], b"8\n", b"NQPROOF"] {
        fs::write(&path, content).expect("a file");
        assert_refused(&path, 7, "not a certificate");
    }
    let (solution, certificate) = certified(10);
    let solution = solution.expect("a solution");
    let mut altered = certificate.clone();
    altered[20] ^= 1;
    fs::write(&path, &altered).expect("a file");
    assert_refused(&path, 6, "checksum");
    let (kind, n, proof) = proof::open(&certificate).expect("intact");
    // Another solution with the same refutations.
    let mirrored: Vec<u8> = solution.iter().map(|&column| (n - 1 - column) as u8).collect();
    let place = proof
        .windows(n)
        .position(|columns| columns.iter().map(|&c| usize::from(c)).eq(solution.iter().copied()));
    let mut proof = proof.to_vec();
    proof[place.expect("the solution stands there")..][..n].copy_from_slice(&mirrored);
    fs::write(&path, proof::seal(kind, n, &proof)).expect("a file");
    assert_refused(&path, 6, "");
    let mut other_version = certificate;
    other_version[8] = 99;
    fs::write(&path, &other_version).expect("a file");
    assert_refused(&path, 7, "format 99");
}

#[test]
fn altered_certificates_prove_the_same_or_nothing() {
    for (n, mutations) in [(3, 500), (12, 2000), (16, 2000), (24, 500)] {
        let (solution, certificate) = certified(n);
        let (kind, _, proof) = proof::open(&certificate).expect("intact");
        let seed = 62 + n as u64;
        let mut random = Rng::with_seed(seed);
        let mut refused = 0;
        for mutation in 0..mutations {
            let mut altered = proof.to_vec();
            for _ in 0..random.usize(1..4) {
                let place = random.usize(0..altered.len());
                match random.u8(0..4) {
                    0 => altered[place] ^= 1 << random.u8(0..8),
                    1 => altered[place] = random.u8(..),
                    2 => drop(altered.remove(place)),
                    _ => altered.insert(place, random.u8(..)),
                }
                if altered.is_empty() {
                    altered.push(0);
                }
            }
            match proof::check(&proof::seal(kind, n, &altered)) {
                Ok(proved) => {
                    assert_eq!(
                        proved.solution, solution,
                        "n = {n}, seed {seed}, mutation {mutation}"
                    )
                }
                Err(
                    ProofError::Damaged(_)
                    | ProofError::Refused(_)
                    | ProofError::TooMuchWork(_)
                    | ProofError::UnknownStep { .. },
                ) => {
                    refused += 1;
                }
                Err(other) => panic!("n = {n}, seed {seed}, mutation {mutation}: {other}"),
            }
        }
        assert!(refused > mutations / 4, "n = {n}: only {refused} of {mutations} were refused");
    }
}

#[test]
fn a_run_resumes_from_earlier_refutations() {
    let scratch = Scratch::new("resume");
    let state = scratch.path("run");
    let stopped = run(&[
        "first",
        "57",
        "--resume",
        &state,
        "--time-limit",
        "0.3s",
        "--threads",
        "1",
        "--json",
    ]);
    assert!(matches!(stopped.status.code(), Some(0 | 4)), "{}", text(&stopped.stderr));
    let on = run(&["first", "34", "--resume", &state]);
    assert_eq!(on.status.code(), Some(7), "{}", text(&on.stderr));
    assert!(text(&on.stderr).contains("n = 57, not n = 34"), "{}", text(&on.stderr));
    let path = scratch.path("proof");
    let finished = run(&["first", "57", "--resume", &state, "--certificate", &path, "--json"]);
    assert_eq!(finished.status.code(), Some(0), "{}", text(&finished.stderr));
    let finished: Value = serde_json::from_slice(&finished.stdout).expect("one JSON object");
    assert_eq!(accepted(&path)["solution"], finished["solution"]);
    let again = run(&["first", "57", "--resume", &state, "--json"]);
    assert!(text(&again.stderr).contains("resuming after"), "{}", text(&again.stderr));
    let again: Value = serde_json::from_slice(&again.stdout).expect("one JSON object");
    assert_eq!(again["solution"], finished["solution"]);
    fs::write(&state, b"nonsense").expect("a file");
    let refused = run(&["first", "57", "--resume", &state]);
    assert_eq!(refused.status.code(), Some(7));
    let nowhere = run(&["first", "8", "--certificate", &scratch.path("no/file")]);
    assert_eq!((nowhere.status.code(), nowhere.stdout.len()), (Some(7), 0));
}

#[test]
fn a_most_beautiful_run_resumes_from_earlier_records() {
    let scratch = Scratch::new("resume-beautiful");
    let state = scratch.path("run");
    let stopped = run(&[
        "beautiful",
        "64",
        "--resume",
        &state,
        "--time-limit",
        "0.4s",
        "--threads",
        "1",
        "--json",
    ]);
    assert!(matches!(stopped.status.code(), Some(0 | 4)), "{}", text(&stopped.stderr));
    let on = run(&["beautiful", "34", "--resume", &state]);
    assert_eq!(on.status.code(), Some(7), "{}", text(&on.stderr));
    assert!(text(&on.stderr).contains("n = 64, not n = 34"), "{}", text(&on.stderr));
    let path = scratch.path("proof");
    let finished = run(&["beautiful", "64", "--resume", &state, "--certificate", &path, "--json"]);
    assert_eq!(finished.status.code(), Some(0), "{}", text(&finished.stderr));
    let finished: Value = serde_json::from_slice(&finished.stdout).expect("one JSON object");
    assert_eq!(accepted(&path)["solution"], finished["solution"]);
    let again = run(&["beautiful", "64", "--resume", &state, "--json"]);
    assert!(text(&again.stderr).contains("resuming after"), "{}", text(&again.stderr));
    let again: Value = serde_json::from_slice(&again.stdout).expect("one JSON object");
    assert_eq!(again["solution"], finished["solution"]);
    let mut damaged = fs::read(&state).expect("the state");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&state, damaged).expect("a file");
    let refused = run(&["beautiful", "64", "--resume", &state]);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(7), 0));
    assert!(
        text(&refused.stderr).contains("the checkpoint is damaged"),
        "{}",
        text(&refused.stderr)
    );
    let ilp = run(&["beautiful", "6", "--method", "ilp", "--resume", &state]);
    assert_eq!(ilp.status.code(), Some(2), "{}", text(&ilp.stderr));
}

/// Runs the program where no file can be written.
#[cfg(unix)]
fn run_without_disk_space(arguments: &[&str]) -> std::process::Output {
    let program = env!("CARGO_BIN_EXE_nqueens");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", program]).args(arguments);
    command.env("XDG_CONFIG_HOME", "/nonexistent").output().expect("a shell")
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_written_at_the_end_does_not_hide_the_answer() {
    let scratch = Scratch::new("unwritten");
    for command in ["first", "beautiful"] {
        for flag in ["--resume", "--certificate"] {
            let file = scratch.path(flag);
            let output = run_without_disk_space(&[command, "12", flag, &file, "--quiet", "--json"]);
            assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
            let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
            assert_eq!((&report["proven"], &report["certificate"]), (&true.into(), &Value::Null));
            assert_eq!(report["solution"].as_array().map(Vec::len), Some(12));
            let message = text(&output.stderr);
            assert!(
                message.contains("cannot be written") && message.lines().count() == 1,
                "{message}"
            );
        }
    }
}

/// Asserts that a command ends with this exit code and one line that contains `words`.
fn assert_exits(arguments: &[&str], code: i32, words: &[&str]) {
    let output = run(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty() && message.lines().count() == 1, "{arguments:?}: {message}");
    assert!(words.iter().all(|word| message.contains(word)), "{arguments:?}: {message}");
}

/// Returns a certificate of 56 bytes that makes the checker search the whole board of 128 rows,
/// with no work limit of its own.
fn endless() -> Vec<u8> {
    let mut proof = vec![0xff; 9];
    proof.extend([0x01, 0, 0]);
    proof::seal(Kind::First, 128, &proof)
}

#[test]
fn a_certificate_of_unbounded_work_is_neither_accepted_nor_refused() {
    let scratch = Scratch::new("endless");
    let path = scratch.path("endless.proof");
    assert_eq!(endless().len(), 56);
    fs::write(&path, endless()).expect("a file");
    assert_exits(&["check", &path, "--max-work", "20000"], 4, &["20 000 steps", "--max-work"]);
    // Exactly the stated work is sufficient, and one step less is not.
    let good = scratch.path("good.proof");
    fs::write(&good, certified(10).1).expect("a file");
    let work = accepted(&good)["work"].as_str().expect("a number").to_owned();
    let less = (work.parse::<u64>().expect("a number") - 1).to_string();
    assert_eq!(run(&["check", &good, "--max-work", &work]).status.code(), Some(0));
    assert_eq!(run(&["check", &good, "--max-work", "unlimited"]).status.code(), Some(0));
    assert_exits(&["check", &good, "--max-work", &less], 4, &["--max-work"]);
    assert_exits(&["check", &good, "--max-work", "0"], 2, &["--max-work", "unlimited"]);
    // The same holds for the checkpoints of earlier runs, which are left unchanged.
    let state = scratch.path("first.state");
    let refuted = first::Refutations::from([(vec![0], Refutation::search())]);
    let bytes = first::resume::write(128, &refuted);
    fs::write(&state, &bytes).expect("a file");
    let resume = ["first", "128", "--resume", &state, "--max-work"];
    assert_exits(&[&resume[..], &["20000"]].concat(), 4, &["20 000 steps", "--max-work", &state]);
    let timed = [&resume[..], &["unlimited", "--time-limit", "0.2s"]].concat();
    assert_exits(&timed, 4, &["time limit", &state]);
    assert_eq!(fs::read(&state).expect("the file"), bytes);
    let state = scratch.path("beautiful.state");
    assert_eq!(run(&["beautiful", "12", "--resume", &state, "--quiet"]).status.code(), Some(0));
    let before = fs::read(&state).expect("the file");
    assert_exits(
        &["beautiful", "12", "--resume", &state, "--max-work", "1"],
        4,
        &["1 step;", "--max-work"],
    );
    assert_eq!(fs::read(&state).expect("the file"), before);
    assert_exits(
        &["first", "8", "--method", "cp", "--max-work", "9"],
        2,
        &["--max-work needs --method exact"],
    );
}

#[test]
fn an_unknown_step_is_unreadable_and_not_refused() {
    let scratch = Scratch::new("newer");
    let path = scratch.path("newer.proof");
    fs::write(&path, proof::seal(Kind::First, 8, &[9, 0, 12])).expect("a file");
    assert_refused(&path, 7, "kind 12");
    fs::write(&path, proof::seal(Kind::Beautiful, 3, &[0, 0, 0, 77])).expect("a file");
    assert_refused(&path, 7, "kind 77");
}

#[cfg(unix)]
#[test]
fn a_file_that_is_irregular_or_too_large_is_reported_in_one_line() {
    let scratch = Scratch::new("no-files");
    let folder = scratch.path("folder");
    fs::create_dir_all(&folder).expect("a folder");
    let pipe = scratch.path("folder/pipe.run");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success()));
    let large = scratch.path("large");
    fs::File::create(&large).and_then(|file| file.set_len(2 << 30)).expect("a sparse file");
    for (file, word) in [
        (&*folder, "folder"),
        (&*pipe, "regular file"),
        ("/dev/zero", "regular file"),
        (&*large, "bytes"),
    ] {
        for arguments in [
            &["check", file][..],
            &["first", "8", "--resume", file],
            &["beautiful", "8", "--resume", file],
            &["--config", file, "config", "show"],
            &["merge", file, "."],
            &["solve", "8", "--method", "ilp", "--weights", file],
        ] {
            assert_exits(arguments, 7, &[word, file]);
        }
        // Input files of other solvers have error messages of their own.
        assert_exits(&["run-unit", file, "--index", "0", "--out", &folder], 42, &[word]);
    }
    // The same holds for the results of parts.
    let plan = scratch.path("plan");
    assert_eq!(run(&["plan", "8", "--out", &plan]).status.code(), Some(0));
    assert_exits(&["merge", &plan, &folder], 7, &["regular file"]);
}
