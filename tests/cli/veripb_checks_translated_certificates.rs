//! Certificates are translated into proofs that VeriPB verifies, and VeriPB accepts no false claim.
//!
//! The tests that run VeriPB need its path in `VERIPB`, which CI sets. Without it they are
//! skipped, and say so.

use std::fs;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fastrand::Rng;
use nqueens::board::{Norm, Piece, Square, first_attack, is_solution};
use nqueens::proof::first::{self, Line, Multipliers, Refutation};
use nqueens::proof::veripb::write_claim;
use nqueens::proof::{Beauty, Kind, check};
use serde_json::Value;

use crate::support::program::{Scratch, nqueens, run, text};

/// Returns the sorted names of the files in a folder.
fn names(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path("")).expect("a readable folder");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// Writes a certificate by these arguments, with one thread.
fn prove(arguments: &[&str], path: &str) {
    let output = run(&[arguments, &["--threads", "1", "--certificate", path]].concat());
    // The exit code is 3 if there is no solution.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", text(&output.stderr));
}

/// Translates a certificate. Returns the result as JSON.
fn translate(certificate: &str, out: &str) -> Value {
    let output = run(&["check", certificate, "--veripb", out, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn kept(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join(name).to_str().expect("a readable path").to_owned()
}

/// Returns the path of VeriPB, or says that the test is skipped.
fn veripb() -> Option<String> {
    let path = std::env::var("VERIPB").ok().filter(|path| !path.is_empty());
    if path.is_none() {
        let _ = writeln!(stderr(), "skipped: VERIPB does not name VeriPB");
    }
    path
}

/// Returns what VeriPB has verified: `UNSATISFIABLE`, `SATISFIABLE`, or nothing.
fn verified(veripb: &str, formula: &str, proof: &str) -> Option<String> {
    let output = Command::new(veripb).args([formula, proof]).stdin(Stdio::null()).output();
    let output = output.expect("VeriPB starts");
    // VeriPB only warns of an assumption that it did not check.
    let written = [text(&output.stdout), text(&output.stderr)];
    if written.iter().any(|text| text.contains("unchecked")) {
        return None;
    }
    let mut lines = written[0].lines();
    let found = lines.find_map(|line| line.strip_prefix("s VERIFIED ")).map(str::to_owned);
    found.filter(|_| output.status.success())
}

/// Asserts that VeriPB verifies a certificate, and that its answer is a solution.
fn assert_verified(veripb: &str, certificate: &str, out: &str) {
    let report = translate(certificate, out);
    let claim = verified(veripb, &format!("{out}.opb"), &format!("{out}.pbp"));
    assert_eq!(claim.as_deref(), Some("UNSATISFIABLE"), "{certificate}");
    let (formula, proof) = (format!("{out}.sat.opb"), format!("{out}.sat.pbp"));
    assert_eq!(Path::new(&formula).exists(), !report["solution"].is_null(), "{certificate}");
    if !report["solution"].is_null() {
        let solution = verified(veripb, &formula, &proof);
        assert_eq!(solution.as_deref(), Some("SATISFIABLE"), "{certificate}");
    }
}

#[test]
fn a_translation_has_its_files_or_none() {
    let scratch = Scratch::new("files");
    let (first, none) = (scratch.file("8.proof"), scratch.file("3.proof"));
    prove(&["first", "8"], &first);
    prove(&["first", "3"], &none);
    let report = translate(&first, &scratch.file("eight"));
    let proof = fs::read_to_string(scratch.file("eight.pbp")).expect("the proof");
    assert_eq!(report["veripb"]["lines"], proof.lines().count());
    assert_eq!(report["veripb"]["bytes"], proof.len());
    translate(&none, &scratch.file("three"));
    translate(&none, &scratch.file("packed.gz"));
    let files = [
        "3.proof",
        "8.proof",
        "eight.opb",
        "eight.pbp",
        "eight.sat.opb",
        "eight.sat.pbp",
        "packed.opb.gz",
        "packed.pbp.gz",
        "three.opb",
        "three.pbp",
    ];
    assert_eq!(names(&scratch), files);
    let output = run(&["check", &first, "--veripb", &scratch.file("eight")]);
    assert!(text(&output.stdout).contains("translated for VeriPB in"), "{output:?}");
    assert!(run(&["check", &first, "--json"]).stdout.windows(6).all(|word| word != b"veripb"));
    let mut damaged = fs::read(&first).expect("the certificate");
    damaged[20] ^= 1;
    fs::write(scratch.file("damaged"), damaged).expect("a file");
    for (arguments, code, words) in [
        (&["8.proof", "--veripb", "few", "--veripb-limit", "100"][..], 4, "100 lines"),
        (&["8.proof", "--veripb", "no/few"], 7, "no/few"),
        (&["damaged", "--veripb", "few"], 6, "damaged"),
        (&["8.proof", "--veripb", "few", "--veripb-limit", "0"], 2, "--veripb-limit"),
        (&["8.proof", "--veripb-limit", "9"], 2, "--veripb"),
    ] {
        let arguments = [&["check"][..], arguments].concat();
        let output = nqueens(&arguments).current_dir(scratch.path("")).output();
        let output = output.expect("the program starts");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(words) && output.stdout.is_empty(), "{arguments:?}: {message}");
        let mut names = names(&scratch);
        names.retain(|name| name != "damaged");
        assert_eq!(names, files, "{arguments:?}");
    }
}

#[test]
fn the_formulas_equal_those_of_an_independent_program() {
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        let _ = writeln!(stderr(), "skipped: there is no python3");
        return;
    }
    let second = |arguments: &[String]| {
        let mut command = Command::new("python3");
        let output = command.arg(kept("tests/veripb/formulas.py")).args(arguments).output();
        let output = output.expect("Python starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        output.stdout
    };
    let mut random = Rng::with_seed(24);
    for n in [1, 2, 3, 4, 5, 8, 13] {
        // Formulas do not need solutions, so random placements test them, too.
        let columns: Vec<usize> = (0..n).map(|_| random.usize(0..n)).collect();
        for columns in [None, Some(&columns[..])] {
            let words: Vec<String> = match columns {
                None => vec!["none".into(), n.to_string()],
                Some(columns) => columns.iter().map(|column| (column + 1).to_string()).collect(),
            };
            for (kind, turning) in [("first", false), ("beautiful", false), ("symmetric", true)] {
                // The first solution has nothing to do with norms.
                let (of, norms) =
                    if kind == "first" { (Kind::First, 1) } else { (Kind::Beautiful, 3) };
                for (number, norm) in Norm::ALL.into_iter().enumerate().take(norms) {
                    let mut ours = Vec::new();
                    write_claim(of, n, Beauty { norm, turning }, columns, &mut ours)
                        .expect("memory can be written");
                    let arguments = [kind.to_string(), number.to_string()];
                    let theirs = second(&[&arguments[..], &words[..]].concat());
                    assert_eq!(text(&ours), text(&theirs), "{kind} {norm} {words:?}");
                }
            }
        }
    }
}

#[test]
fn veripb_verifies_first_solutions() {
    let Some(veripb) = veripb() else { return };
    let scratch = Scratch::new("first");
    let (certificate, out) = (scratch.file("proof"), scratch.file("out"));
    for n in 1..=35 {
        prove(&["first", &n.to_string()], &certificate);
        assert_verified(&veripb, &certificate, &out);
        let _ =
            (fs::remove_file(format!("{out}.sat.opb")), fs::remove_file(format!("{out}.sat.pbp")));
    }
    for n in [57, 60, 62, 68, 72] {
        let certificate = kept(&format!("tests/certificates/first-{n}.proof"));
        assert_verified(&veripb, &certificate, &out);
    }
}

/// Returns a random tree with at most this number of further levels; `listed` is set if sets of
/// diagonals are listed above it. It refutes every position that has no completion, unless it
/// eliminates a square where that is not possible.
fn random_tree(n: usize, depth: usize, listed: bool, random: &mut Rng) -> Refutation {
    if depth == 0 {
        return Refutation::search();
    }
    let kind = random.u8(0..7);
    let mut below = |listed: bool| random_tree(n, depth - 1, listed, random);
    match kind {
        0 => Refutation::search(),
        1 => {
            let children: Vec<Refutation> = (0..n).map(|_| below(listed)).collect();
            let row = random.usize(0..n);
            let squares = (row * n..row * n + n).zip(children).collect::<Vec<_>>();
            Refutation::branch(n, Line::Row(row), &squares)
        }
        2 | 3 => {
            let then = below(listed);
            let mut bound = Multipliers::none(n);
            let largest = [1, 100, 100_000][random.usize(0..3)];
            bound.columns.iter_mut().for_each(|y| *y = random.i64(-largest..=largest));
            for diagonals in [&mut bound.diagonals, &mut bound.antidiagonals] {
                diagonals.iter_mut().for_each(|y| *y = random.i64(0..=largest));
            }
            if kind == 2 {
                Refutation::dual_bound(&bound, random.u8(0..4) > 0, &then)
            } else {
                Refutation::elimination(&bound, &[random.usize(0..n * n)], &then)
            }
        }
        _ if listed => {
            let [unused, used] = [below(true), below(true)];
            let number = random.usize(0..2 * n - 1);
            let line = [Line::Diagonal(number), Line::Antidiagonal(number)][random.usize(0..2)];
            Refutation::cases(n, line, &unused, &used)
        }
        _ => Refutation::listed_sets(&below(true)),
    }
}

#[test]
fn veripb_verifies_listed_sets_of_diagonals() {
    let Some(veripb) = veripb() else { return };
    let scratch = Scratch::new("lists");
    let (certificate, out) = (scratch.file("proof"), scratch.file("out"));
    // The engine lists sets for these.
    for n in [44, 50, 58] {
        prove(&["first", &n.to_string()], &certificate);
        assert_verified(&veripb, &certificate, &out);
        let proof = fs::read_to_string(format!("{out}.pbp")).expect("the proof");
        assert!(proof.lines().any(|line| line.starts_with("del range")), "n = {n}");
    }
    let mut random = Rng::with_seed(30);
    for case in 0..60 {
        let n = random.usize(8..=20);
        let solution = solutions(n, 1).pop().expect("a solution");
        let is_free = |row: usize, column: usize| {
            let above = solution[..row].iter().enumerate();
            let mut queens: Vec<Square> = above.map(|(row, &col)| Square::new(row, col)).collect();
            queens.push(Square::new(row, column));
            first_attack(Piece::Queen, n, &queens).is_none()
        };
        let squares = (0..n).flat_map(|row| (0..solution[row]).map(move |column| (row, column)));
        let tree = |(row, column): (usize, usize)| {
            let prefix = [&solution[..row], &[column]].concat();
            loop {
                let tree = random_tree(n, 5, false, &mut random);
                if first::check_refutation(n, &prefix, &tree, u64::MAX).is_ok() {
                    return tree;
                }
            }
        };
        let trees: Vec<Refutation> =
            squares.filter(|&(row, column)| is_free(row, column)).map(tree).collect();
        let proved = first::certificate(n, Some(&solution), &trees);
        let proved = proved.unwrap_or_else(|error| panic!("case {case}: {error}"));
        fs::write(&certificate, proved).expect("a file");
        assert_verified(&veripb, &certificate, &out);
    }
}

#[test]
fn veripb_verifies_most_beautiful_solutions() {
    let Some(veripb) = veripb() else { return };
    let scratch = Scratch::new("beautiful");
    let (certificate, out) = (scratch.file("proof"), scratch.file("out"));
    let mut cases: Vec<Vec<String>> = Vec::new();
    for n in (1..=24).chain([32]) {
        cases.push(vec![n.to_string()]);
    }
    for n in [3, 7] {
        // No solution; and none because of the residue of n.
        cases.push(vec![n.to_string(), "--symmetric".into()]);
    }
    for arguments in cases {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        prove(&[&["beautiful"][..], &arguments].concat(), &certificate);
        assert_verified(&veripb, &certificate, &out);
        let _ =
            (fs::remove_file(format!("{out}.sat.opb")), fs::remove_file(format!("{out}.sat.pbp")));
    }
    // Every norm, doubly symmetric solutions, prices, and a board without a solution; and first
    // solutions whose searches remember refuted positions.
    let data = fs::read_dir(kept("crates/proof/tests/data")).expect("a readable folder");
    let data = data.map(|entry| entry.expect("an entry").path());
    let more = ["beautiful-13-prices", "beautiful-13-prices-that-fill"];
    let more = more.map(|name| PathBuf::from(kept(&format!("tests/certificates/{name}.proof"))));
    let mut checked = 0;
    for (number, path) in data.chain(more).enumerate() {
        let out = scratch.file(&format!("kept{number}"));
        assert_verified(&veripb, path.to_str().expect("a readable path"), &out);
        checked += 1;
    }
    assert!(checked > 15, "{checked}");
}

/// Returns the first solutions of a board in lexicographic order, by the plain definition.
fn solutions(n: usize, most: usize) -> Vec<Vec<usize>> {
    fn extend(n: usize, most: usize, above: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        if above.len() == n {
            assert!(is_solution(Piece::Queen, above));
            found.push(above.clone());
        }
        for column in 0..n {
            let attacked =
                above.iter().rev().zip(1..).any(|(&other, distance)| {
                    other == column || other.abs_diff(column) == distance
                });
            if above.len() < n && found.len() < most && !attacked {
                above.push(column);
                extend(n, most, above, found);
                above.pop();
            }
        }
    }
    let mut found = Vec::new();
    extend(n, most, &mut Vec::new(), &mut found);
    found
}

/// A true claim with its proof, and false ones about the same board.
struct Forgery {
    scratch: Scratch,
    formula: String,
    /// The lines of the true proof.
    lines: Vec<String>,
    false_claims: Vec<FalseClaim>,
}

struct FalseClaim {
    name: &'static str,
    /// The path of its formula.
    formula: String,
    /// The line of a proof that states the number of constraints.
    header: String,
}

impl Forgery {
    /// Creates the claim of the command, and the claims that other solutions are first or most
    /// beautiful, or that there is no solution.
    fn new(command: &str, n: usize) -> Self {
        let scratch = Scratch::new(&format!("forge-{command}-{n}"));
        let (certificate, out) = (scratch.file("proof"), scratch.file("true"));
        prove(&[command, &n.to_string()], &certificate);
        translate(&certificate, &out);
        let proved = check(&fs::read(&certificate).expect("a file")).expect("a proof");
        let beauty = proved.beauty.unwrap_or_default();
        let best = proved.solution.expect("a solution");
        let fingerprint = |columns: &[usize]| beauty.norm.fingerprint(columns);
        let mut worse = solutions(n, 200);
        worse.retain(|columns| match proved.kind {
            Kind::First => *columns > best,
            Kind::Beautiful => fingerprint(columns) > fingerprint(&best),
        });
        if proved.kind == Kind::Beautiful {
            worse.sort_by_key(|columns| fingerprint(columns));
        }
        let claims = [("the next one", worse.first()), ("the last one", worse.last())];
        let false_claims =
            claims.into_iter().chain([("no solution", None)]).map(|(name, columns)| {
                let columns = columns.map(Vec::as_slice);
                let mut formula = Vec::new();
                write_claim(proved.kind, n, beauty, columns, &mut formula).expect("memory");
                let constraints = text(&formula).lines().filter(|line| !line.starts_with('*'));
                let count: u32 =
                    constraints.map(|line| if line.contains(" = ") { 2 } else { 1 }).sum();
                let path = scratch.file(&format!("{name}.opb"));
                fs::write(&path, formula).expect("a file");
                FalseClaim { name, formula: path, header: format!("f {count};") }
            });
        let false_claims = false_claims.collect();
        let proof = fs::read_to_string(format!("{out}.pbp")).expect("the proof");
        let lines = proof.lines().map(str::to_owned).collect();
        Self { formula: format!("{out}.opb"), lines, false_claims, scratch }
    }

    /// Returns whether VeriPB verifies that `formula` has no solution, by these lines.
    fn is_accepted(&self, veripb: &str, formula: &str, lines: &[String]) -> bool {
        let proof = self.scratch.file("forged.pbp");
        fs::write(&proof, lines.join("\n") + "\n").expect("a file");
        verified(veripb, formula, &proof).as_deref() == Some("UNSATISFIABLE")
    }

    fn mutated(&self, random: &mut Rng, changes: usize) -> Vec<String> {
        let mut lines = self.lines.clone();
        for _ in 0..changes {
            let place = random.usize(2..lines.len() - 4);
            match random.u8(0..3) {
                0 => drop(lines.remove(place)),
                1 => {
                    let other = random.usize(2..lines.len() - 4);
                    lines.swap(place, other);
                }
                _ => {
                    let line = &lines[place];
                    let words: Vec<&str> = line.split(' ').collect();
                    let numbers: Vec<usize> = (0..words.len())
                        .filter(|&word| words[word].parse::<u64>().is_ok())
                        .collect();
                    if let Some(&word) = random.choice(&numbers) {
                        let value: u64 = words[word].parse().expect("a number");
                        let mut words: Vec<String> =
                            words.iter().map(|word| word.to_string()).collect();
                        let more = if value == 0 { 1 } else { random.u64(0..2) * 2 };
                        words[word] = (value + more).saturating_sub(1).to_string();
                        lines[place] = words.join(" ");
                    }
                }
            }
        }
        lines
    }
}

/// Returns ten kinds of forged proofs of a false claim from the lines of a true proof.
fn forged(lines: &[String], claim: &FalseClaim) -> [(&'static str, Vec<String>); 10] {
    let with = |body: &[String], rest: &[&str]| {
        let header = [lines[0].clone(), claim.header.clone()];
        let rest: Vec<String> = rest.iter().map(|line| line.to_string()).collect();
        [&header[..], body, &rest].concat()
    };
    let own = |body: &[&str]| body.iter().map(|line| line.to_string()).collect::<Vec<_>>();
    let body = &lines[2..lines.len() - 4];
    let [output, end] = ["output NONE;", "end pseudo-Boolean proof;"];
    let unsatisfiable = [output, "conclusion UNSAT;", end];
    let by_propagation = ["rup >= 1;", output, "conclusion UNSAT;", end];
    let redundant = own(&["red 1 ~x1_1 >= 1;", "red 1 x1_1 >= 1;"]);
    let empty = own(&["pbc >= 1 : subproof", "qed pbc : -1;"]);
    [
        ("the proof of the true claim", lines.to_vec()),
        ("with the number of constraints adapted", with(body, &[])),
        ("with its conclusion, too", with(&lines[2..], &[])),
        ("a contradiction by propagation alone", with(&[], &by_propagation)),
        ("no steps", with(&[], &unsatisfiable)),
        ("a conclusion from a constraint", with(&[], &[output, "conclusion UNSAT : 1;", end])),
        ("a redundant constraint that is none", with(&redundant, &by_propagation)),
        ("a proof by contradiction without one", with(&empty, &unsatisfiable)),
        ("an assumption", with(&own(&["a >= 1;"]), &unsatisfiable)),
        ("the conclusion NONE", with(body, &[output, "conclusion NONE;", end])),
    ]
}

#[test]
fn veripb_refuses_false_claims() {
    let Some(veripb) = veripb() else { return };
    for (command, n) in [("first", 8), ("first", 10), ("beautiful", 8)] {
        let forgery = Forgery::new(command, n);
        let lines = &forgery.lines;
        assert!(forgery.is_accepted(&veripb, &forgery.formula, lines), "the true claim");
        for claim in &forgery.false_claims {
            for (kind, forged) in forged(lines, claim) {
                let accepted = forgery.is_accepted(&veripb, &claim.formula, &forged);
                assert!(!accepted, "{command} {n}, {}: {kind}", claim.name);
            }
        }
        // A queen on another square is no solution.
        let base = forgery.scratch.file("true");
        let proof = fs::read_to_string(format!("{base}.sat.pbp")).expect("the proof");
        let moved = proof.replacen(" ~x1_", " x1_", 1);
        assert_ne!(moved, proof);
        fs::write(format!("{base}.sat.pbp"), moved).expect("a file");
        let found = verified(&veripb, &format!("{base}.sat.opb"), &format!("{base}.sat.pbp"));
        assert_eq!(found, None, "{command} {n}");
    }
}

#[test]
fn changed_proofs_prove_no_false_claim() {
    let Some(veripb) = veripb() else { return };
    let mut random = Rng::with_seed(5);
    let (mut refused, mut accepted) = (0, 0);
    for (command, n) in [("first", 8), ("first", 12), ("beautiful", 8), ("beautiful", 10)] {
        let forgery = Forgery::new(command, n);
        for case in 0..50 {
            let changes = 1 + case % 3;
            let mutated = forgery.mutated(&mut random, changes);
            // The formula is the true one, so whatever is accepted is true.
            if forgery.is_accepted(&veripb, &forgery.formula, &mutated) {
                accepted += 1;
            } else {
                refused += 1;
            }
            let claim = random.choice(&forgery.false_claims).expect("three claims");
            let mut mutated = forgery.mutated(&mut random, changes);
            mutated[1].clone_from(&claim.header);
            let of_false = forgery.is_accepted(&veripb, &claim.formula, &mutated);
            assert!(!of_false, "{command} {n}, case {case}: {}", claim.name);
        }
    }
    assert!(refused > 100 && refused + accepted == 200, "{refused} refused, {accepted} accepted");
}
