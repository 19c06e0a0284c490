//! `nqueens-check` and the library give the same result for every file. The tests of the package
//! `nqueens` compare `nqueens check` with the library in the same way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nqueens_proof::veripb::translate;
use nqueens_proof::{Meter, StepLimit, check_within};

use crate::mutations::{Folder, Mutations, kept};

fn run(arguments: &[&str], files: &[PathBuf]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nqueens-check"));
    command.args(arguments).args(files).output().expect("the program starts")
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8");
    text.lines().map(str::to_owned).collect()
}

/// Asserts that the program and the library give the same results for two or more files.
fn assert_agrees(files: &[(PathBuf, Vec<u8>)], limit: u64) {
    let paths: Vec<PathBuf> = files.iter().map(|(path, _)| path.clone()).collect();
    let output = run(&["--max-work", &limit.to_string()], &paths);
    let (mut proved, mut errors, mut code) = (Vec::new(), Vec::new(), 0);
    for (path, bytes) in files {
        let path = path.display();
        match check_within(bytes, &mut StepLimit::AtMost(limit).meter()) {
            Ok(statement) => {
                let work = statement.work;
                proved.push(format!("{path}: {statement} ({work} steps, {} bytes)", bytes.len()));
            }
            Err(error) => {
                errors.push(format!("nqueens-check: {path}: {error}"));
                code = code.max(error.class().exit_code());
            }
        }
    }
    assert_eq!(lines(&output.stdout), proved);
    assert_eq!(lines(&output.stderr), errors);
    assert_eq!(output.status.code(), Some(code.into()));
}

#[test]
fn stored_and_changed_certificates_are_accepted_by_both_or_by_neither() {
    const FILES_PER_RUN: usize = 200;
    let folder = Folder::new("check");
    let write = |name: &str, bytes: Vec<u8>| {
        let path = folder.0.join(name);
        fs::write(&path, &bytes).expect("a file");
        (path, bytes)
    };
    let kept: Vec<_> = kept().into_iter().map(|kept| write(&kept.name, kept.bytes)).collect();
    assert_agrees(&kept, 40_000);
    let mutations = Mutations::new();
    for seeds in Mutations::seeds(10_000).chunks(FILES_PER_RUN) {
        let files: Vec<_> = seeds
            .iter()
            .map(|&seed| write(&format!("{seed}.proof"), mutations.get(seed).bytes))
            .collect();
        // With one file the lines have no name.
        if files.len() > 1 {
            assert_agrees(&files, Mutations::LIMIT);
        }
        files.iter().for_each(|(path, _)| fs::remove_file(path).expect("the file"));
    }
}

/// Asserts that the program ends with this code and one line that contains `word`.
fn assert_exits(arguments: &[&str], files: &[&Path], code: i32, word: &str) {
    let files: Vec<PathBuf> = files.iter().map(|path| path.to_path_buf()).collect();
    let output = run(arguments, &files);
    let (stdout, stderr) = (lines(&output.stdout), lines(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr:?}");
    let line = if code == 0 { &stdout } else { &stderr };
    assert!(line.iter().any(|line| line.contains(word)), "{arguments:?}: {line:?}");
    assert!(code == 0 || stderr.len() == 1, "{stderr:?}");
}

#[test]
fn each_exit_code_has_its_error_message() {
    let folder = Folder::new("check-codes");
    let path = |name: &str| folder.0.join(name);
    let kept = kept();
    let named = |name: &str| kept.iter().find(|kept| kept.name == name).expect("it is kept");
    let good = path("good.proof");
    fs::write(&good, &named("formats-first-40.proof").bytes).expect("a file");
    let mut changed = named("formats-first-40.proof").bytes.clone();
    changed[100] ^= 1;
    let bad = path("bad.proof");
    fs::write(&bad, &changed).expect("a file");
    let text = path("text");
    fs::write(&text, "40\n").expect("a file");
    let large = path("large");
    fs::File::create(&large).and_then(|file| file.set_len(2 << 30)).expect("a sparse file");

    assert_exits(&[], &[&good], 0, "proved: the lexicographically first solution for n = 40 is ");
    assert_exits(&["--max-work", "unlimited"], &[&good], 0, " steps, 10574 bytes)");
    assert_exits(&["--version"], &[], 0, "nqueens-check ");
    assert_exits(&["--help"], &[], 0, "Exit codes");
    assert_exits(&[], &[], 2, "no certificate is named");
    assert_exits(&["--fast"], &[&good], 2, "unknown flag '--fast'");
    for steps in ["0", "-1", "many", ""] {
        assert_exits(&["--max-work", steps], &[&good], 2, "from 1 on, or unlimited");
    }
    assert_exits(&["--max-work", "1"], &[&good], 4, "more than 1 steps");
    assert_exits(&["--threads", "3"], &[&good], 0, " steps, 10574 bytes)");
    for threads in ["0", "-1", "1025", "two", ""] {
        assert_exits(&["--threads", threads], &[&good], 2, "from 1 to 1024");
    }
    assert_exits(&[], &[&bad], 6, "its checksum is wrong");
    assert_exits(&[], &[&text], 7, "not a certificate");
    assert_exits(&[], &[&large], 7, "more than 1073741824 bytes");
    assert_exits(&[], &[&path("missing")], 7, "cannot be read");
    assert_exits(&[], &[&folder.0], 7, "not a regular file");
    for arguments in [&["--veripb"][..], &["--veripb-limit", "0"], &["--veripb-limit", "many"]] {
        assert_exits(arguments, &[], 2, "--veripb");
    }
    let out = path("out").to_str().expect("a readable path").to_owned();
    assert_exits(&["--veripb", &out], &[&good, &good], 2, "name one FILE");
    assert_exits(&["--veripb", &out, "--veripb-limit", "9"], &[&good], 4, "more than 9 lines");
    assert_exits(&["--veripb", &out], &[&bad], 6, "its checksum is wrong");
    assert_exits(&["--veripb", &format!("{out}/out")], &[&good], 7, "the proof for VeriPB");
    assert!(fs::read_dir(&folder.0).expect("a folder").count() == 4, "no file of a proof is left");
    // The largest code of several files.
    assert_exits(&["--max-work", "1000000"], &[&good, &bad], 6, "its checksum is wrong");
}

#[test]
fn the_translation_is_that_of_the_library() {
    let folder = Folder::new("check-veripb");
    let path = |name: &str| folder.0.join(name).to_str().expect("a readable path").to_owned();
    let kept = kept();
    let certificate = &kept.iter().find(|kept| kept.name == "data-beautiful-8.proof");
    let certificate = &certificate.expect("it is kept").bytes;
    fs::write(path("8.proof"), certificate).expect("a file");
    let (mut formula, mut proof) = (Vec::new(), Vec::new());
    let size = translate(certificate, 10_000, &mut Meter::default(), &mut formula, &mut proof);
    let size = size.expect("a proof");
    let measured = (size.lines as usize, size.bytes as usize);
    assert_eq!((lines(&proof).len(), proof.len()), measured);

    let output = run(&["--veripb", &path("8")], &[path("8.proof").into()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(fs::read(path("8.opb")).expect("a file") == formula);
    assert!(fs::read(path("8.pbp")).expect("a file") == proof);
    let solution = fs::read_to_string(path("8.sat.pbp")).expect("a file");
    assert!(solution.contains("\nconclusion SAT : "), "{solution}");

    let output = run(&["--veripb", &path("8.gz")], &[path("8.proof").into()]);
    if cfg!(feature = "gzip") {
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        for name in ["8.opb", "8.pbp", "8.sat.opb", "8.sat.pbp"] {
            let compressed = fs::read(path(&format!("{name}.gz"))).expect("a file");
            let plain = fs::read(path(name)).expect("a file");
            assert!(compressed.starts_with(&[0x1f, 0x8b]) && compressed.len() < plain.len());
            // The file ends with the length of what is compressed (RFC 1952).
            let length = (plain.len() as u32).to_le_bytes();
            assert!(compressed.ends_with(&length), "{name}");
        }
    } else {
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert!(!Path::new(&path("8.opb.gz")).exists());
    }
}
