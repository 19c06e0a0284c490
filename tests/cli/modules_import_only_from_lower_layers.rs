//! A module imports only from layers below its own.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// The modules of ARCHITECTURE.md with their layers. `board`, `symmetry` and `proof` are those of
/// `crates/proof`, `solver` that of `crates/solver`.
const LAYERS: [(&str, u32); 32] = [
    ("board", 0),
    ("atomic_file", 0),
    ("cluster::net", 0),
    ("cluster::storage", 1),
    ("symmetry", 1),
    ("oeis", 1),
    ("proof", 1),
    ("render", 1),
    ("board_file", 1),
    ("decomposition", 2),
    ("tally", 2),
    ("kernel", 3),
    ("solver", 3),
    ("checkpoint", 3),
    ("cluster::campaign", 3),
    ("cluster::auth", 3),
    ("executor", 4),
    ("cluster::ledger", 4),
    ("cluster::protocol", 4),
    ("report", 4),
    ("transparency", 4),
    ("fleet", 4),
    ("engine", 5),
    ("cluster::coordinator", 6),
    ("cluster::worker", 6),
    ("cluster::dashboard", 6),
    ("cluster::join", 6),
    ("cluster::publish", 6),
    ("audit", 6),
    ("batch", 6),
    ("bench", 6),
    ("cli", 7),
];

/// The imports that are allowed within a layer: weights of symmetry cases are in the tally's
/// thirds, and reports are made from the protocol's messages.
const NEIGHBOURS: [(&str, &str); 2] = [("decomposition", "tally"), ("report", "cluster::protocol")];

fn layer(module: &str) -> u32 {
    let known = LAYERS.iter().find(|(name, _)| *name == module);
    known
        .unwrap_or_else(|| {
            panic!("module '{module}' is in no layer: add it here and to ARCHITECTURE.md")
        })
        .1
}

/// Returns the modules that a source file names, `depth` modules below the crate's root: what
/// follows `crate::`, or as many `super::` as lead to the root. The root itself counts as a module,
/// since all modules can be reached through it: `*`, `self`, `crate as …`. Comments and literals
/// are ignored.
fn modules_named_in(source: &str, depth: usize) -> Vec<String> {
    let mut modules = Vec::new();
    read_module(source.parse().expect("the sources are Rust"), depth, &mut modules);
    modules
}

fn read_module(tokens: TokenStream, depth: usize, modules: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut rest = tokens.as_slice();
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        match token {
            TokenTree::Ident(word) if word == "mod" => {
                if let [TokenTree::Ident(_), TokenTree::Group(body), after @ ..] = rest {
                    read_module(body.stream(), depth + 1, modules);
                    rest = after;
                }
            }
            TokenTree::Ident(word) if word == "crate" => match after_colons(rest) {
                Some(after) => read_root_path(after, modules),
                None if rest.first().is_some_and(|t| t.to_string() == "as") => {
                    modules.push("crate".into())
                }
                None => {} // pub(crate)
            },
            TokenTree::Ident(word) if word == "super" => {
                let mut base = depth.checked_sub(1).expect("no module is above the root");
                while let Some([TokenTree::Ident(word), after @ ..]) = after_colons(rest) {
                    if word != "super" {
                        break;
                    }
                    base = base.checked_sub(1).expect("no module is above the root");
                    rest = after;
                }
                match after_colons(rest) {
                    Some(after) if base == 0 => read_root_path(after, modules),
                    None if base == 0 && rest.first().is_some_and(|t| t.to_string() == "as") => {
                        modules.push("super".into());
                    }
                    Some([TokenTree::Group(group), after @ ..]) => {
                        read_module(group.stream(), base, modules);
                        rest = after;
                    }
                    _ => {}
                }
            }
            TokenTree::Group(group) => read_module(group.stream(), depth, modules),
            _ => {}
        }
    }
}

/// Returns the tokens after `::`, if that comes next.
fn after_colons(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    match tokens {
        [TokenTree::Punct(a), TokenTree::Punct(b), after @ ..]
            if a.as_char() == ':' && b.as_char() == ':' =>
        {
            Some(after)
        }
        _ => None,
    }
}

/// Adds the modules at the head of a path that starts at the root: one for each path of a group.
fn read_root_path(path: &[TokenTree], modules: &mut Vec<String>) {
    match path.first() {
        Some(TokenTree::Group(group)) => {
            let inside: Vec<TokenTree> = group.stream().into_iter().collect();
            for each in inside.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ',')) {
                read_root_path(each, modules);
            }
        }
        // This module is divided into layered modules.
        Some(head) if head.to_string() == "cluster" => {
            let mut inner = Vec::new();
            if let Some(after) = after_colons(&path[1..]) {
                read_root_path(after, &mut inner);
            }
            modules.extend(inner.into_iter().map(|module| format!("cluster::{module}")));
        }
        Some(head) => modules.push(head.to_string()),
        None => {} // a trailing comma
    }
}

/// Returns the module of a file; `None` for files that only list modules, and for `main.rs`.
fn module_of(inside: &Path) -> Option<String> {
    let names: Vec<_> = inside.iter().map(|name| name.to_string_lossy()).collect();
    match &names[..] {
        [file] if file == "main.rs" || file == "lib.rs" => None,
        [outer, file] if outer == "cluster" && file == "mod.rs" => None,
        [outer, inner, ..] if outer == "cluster" => {
            Some(format!("cluster::{}", inner.trim_end_matches(".rs")))
        }
        [first, ..] => Some(first.trim_end_matches(".rs").to_owned()),
        [] => None,
    }
}

/// Returns the depth of a source file's module below the root.
fn depth(inside: &Path) -> usize {
    let names_no_module = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| inside.ends_with(name));
    inside.iter().count() - usize::from(names_no_module)
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
    from == to || layer(to) < layer(from) || NEIGHBOURS.contains(&(from, to))
}

#[test]
fn no_module_imports_from_its_own_layer_or_above() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    source_files(&root, &mut files);
    let mut imports = 0;
    for file in files {
        let inside = file.strip_prefix(&root).expect("found below the root");
        let Some(module) = module_of(inside) else { continue };
        let module = &module[..];
        let source = fs::read_to_string(&file).expect("the sources are readable");
        for named in modules_named_in(&source, depth(inside)) {
            imports += 1;
            assert!(may_import(module, &named), "{} imports from {named}", inside.display());
        }
    }
    assert!(imports > 20, "only {imports} imports were found: the parser is wrong");
}

#[test]
fn the_parser_finds_every_way_to_name_a_module() {
    let cases: [(&str, &[&str]); 10] = [
        (
            "use crate::board::{Piece, Square}; use crate::cluster::{net, worker::run};",
            &["board", "cluster::net", "cluster::worker"],
        ),
        (
            "use crate::{tally::{self, Tally}, kernel::{simd, scalar}, known,};",
            &["tally", "kernel", "known"],
        ),
        ("use {crate::board, crate :: {symmetry as s}};", &["board", "symmetry"]),
        (
            "fn f(x: &[crate::engine::X]) { assert!(g(|| crate::cluster::ledger::open())) }",
            &["engine", "cluster::ledger"],
        ),
        (
            "macro_rules! m { () => { $crate::cluster::protocol::X } }\npub(in crate::cli) fn g() {}",
            &["cluster::protocol", "cli"],
        ),
        ("use super::super::kernel; use super::{plan, super::worker};", &["kernel", "worker"]),
        ("mod tests { use super::*; use super::super::super::known::lookup; }", &["known"]),
        ("use crate::*; use crate::{self as root}; use crate as top;", &["*", "self", "crate"]),
        ("use super::super::*; use super::super as top;", &["*", "super"]),
        ("use super::plan::Plan; pub(crate) struct S; fn f() { mycrate::x(); super::g() }", &[]),
    ];
    for (source, modules) in cases {
        assert_eq!(modules_named_in(source, 2), modules, "{source}");
    }
}

#[test]
fn the_parser_ignores_comments_and_literals() {
    let source = "//! crate::a\n/// crate::b\n/* crate::c /* crate::d */ */\n\
                  fn f() { \"https://x\"; g(\"crate::e\", r#\"\"crate::f\"#); } // crate::g\n\
                  const LINK: &str = \"//\"; use crate::board;";
    assert_eq!(modules_named_in(source, 1), ["board"]);
}

#[test]
fn the_depth_of_a_file_is_that_of_its_module() {
    let cases = [("lib.rs", 0), ("known.rs", 1), ("kernel/mod.rs", 1), ("kernel/scalar.rs", 2)];
    for (file, modules) in cases {
        assert_eq!(depth(Path::new(file)), modules, "{file}");
    }
}

#[test]
fn upward_and_sideways_imports_are_distinguished_from_downward_ones() {
    assert!(
        may_import("cli", "engine")
            && may_import("kernel", "tally")
            && may_import("decomposition", "tally")
    );
    assert!(
        !may_import("board", "symmetry")
            && !may_import("kernel", "checkpoint")
            && !may_import("tally", "decomposition")
    );
}

#[test]
#[should_panic(expected = "is in no layer")]
fn a_module_without_a_layer_is_an_error() {
    layer("util");
}
