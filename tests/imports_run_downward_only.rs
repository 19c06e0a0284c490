//! The rooms of the library stand on floors, and a room imports only from floors below its own.

use std::fs;
use std::path::{Path, PathBuf};

/// Every room of ARCHITECTURE.md, those to come included, with its floor.
const FLOORS: [(&str, u32); 17] = [
    ("board", 0),
    ("symmetry", 1),
    ("known", 1),
    ("preplacement", 2),
    ("tally", 2),
    ("kernel", 3),
    ("optimise", 3),
    ("campaign", 3),
    ("ledger", 3),
    ("engine", 4),
    ("wire", 4),
    ("coordinator", 5),
    ("worker", 5),
    ("dashboard", 5),
    ("cluster", 5),
    ("cli", 6),
    ("lib", 7),
];

/// Neighbours on a floor are blind to each other, but for this: a plan's weight is in the tally's thirds.
const NEIGHBOURS: [(&str, &str); 1] = [("preplacement", "tally")];

fn floor(room: &str) -> u32 {
    let known = FLOORS.iter().find(|(name, _)| *name == room);
    known.unwrap_or_else(|| panic!("room '{room}' stands on no floor: add it here and to ARCHITECTURE.md")).1
}

/// The rooms that a source file names behind `crate::`, comments left out.
fn rooms_named_in(source: &str) -> Vec<String> {
    let code: String =
        source.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join(" ");
    let mut rooms = Vec::new();
    for (at, word) in code.match_indices("crate::") {
        let own_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if !own_word {
            continue;
        }
        let rest = code[at + word.len()..].trim_start();
        if let Some(group) = rest.strip_prefix('{') {
            // The names at the outermost level of the group.
            let (mut depth, mut name_ended, mut name) = (1, false, String::new());
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 1 => {
                        rooms.push(std::mem::take(&mut name));
                        name_ended = false;
                    }
                    ':' => name_ended = true,
                    c if depth == 1 && !name_ended && (c.is_alphanumeric() || c == '_') => name.push(c),
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            rooms.push(name);
        } else {
            rooms.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

fn source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are readable") {
        let path = entry.expect("the sources are readable").path();
        if path.is_dir() {
            source_files(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

fn may_import(from: &str, to: &str) -> bool {
    from == to || floor(to) < floor(from) || NEIGHBOURS.contains(&(from, to))
}

#[test]
fn no_room_imports_from_its_own_floor_or_above() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    source_files(&root, &mut files);
    let mut imports = 0;
    for file in files {
        let inside = file.strip_prefix(&root).expect("found below the root");
        let first = inside.iter().next().expect("a file name").to_string_lossy();
        let room = first.trim_end_matches(".rs");
        if room == "main" {
            continue;
        }
        for named in rooms_named_in(&fs::read_to_string(&file).expect("the sources are readable")) {
            imports += 1;
            assert!(may_import(room, &named), "{} imports from {named}", inside.display());
        }
    }
    assert!(imports > 20, "only {imports} imports were found: the reader is broken");
}

#[test]
fn the_reader_finds_every_way_to_name_a_room() {
    let source = "use crate::board::{Piece, Square};\n// use crate::cli;\nuse crate::{tally::Tally, kernel::{simd, scalar}, known};\n\
                  fn f() -> crate::engine::X { mycrate::ledger() }\npub(in crate::wire) fn g() {}";
    assert_eq!(rooms_named_in(source), ["board", "tally", "kernel", "known", "engine", "wire"]);
}

#[test]
fn upward_and_sideways_imports_are_told_apart_from_downward_ones() {
    assert!(
        may_import("cli", "engine") && may_import("kernel", "tally") && may_import("preplacement", "tally")
    );
    assert!(
        !may_import("board", "symmetry")
            && !may_import("kernel", "ledger")
            && !may_import("tally", "preplacement")
    );
}

#[test]
#[should_panic(expected = "stands on no floor")]
fn a_new_room_must_be_given_a_floor() {
    floor("util");
}
