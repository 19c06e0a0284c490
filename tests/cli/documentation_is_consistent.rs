//! The links of the documentation are valid, its index is complete, and its exit codes are those of
//! the program. (A test in `src/cli/mod.rs` checks that its command lines are valid.)

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns every page with its text.
fn pages() -> BTreeMap<PathBuf, String> {
    let folders = ["", "docs", "deploy", "benches", "records"].map(|folder| root().join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("it is there"));
    let paths = files.map(|file| file.expect("it can be read").path());
    let pages = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let pages: BTreeMap<_, _> =
        pages.map(|path| (path.clone(), fs::read_to_string(&path).expect("UTF-8"))).collect();
    assert!(pages.len() > 15, "pages are missing: {:?}", pages.keys());
    pages
}

/// Returns every text between `before` and `after`.
fn between<'a>(text: &'a str, before: &'a str, after: char) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(move |rest| rest.split(after).next())
}

/// Returns a page without its code blocks.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// Returns the anchors of the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

#[test]
fn every_link_has_a_target() {
    let pages = pages();
    let mut wrong = Vec::new();
    let mut followed = 0;
    for (path, text) in &pages {
        let text = prose(text);
        for link in between(&text, "](", ')').chain(between(&text, "src=\"", '"')) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = path.parent().expect("it is in a folder");
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            let there = target.canonicalize().is_ok_and(|target| {
                anchor.is_empty()
                    || pages.iter().any(|(page, text)| {
                        page.canonicalize().is_ok_and(|page| page == target)
                            && anchors(text).contains(anchor)
                    })
            });
            if !there {
                wrong.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(followed > 40, "only {followed} links were found");
}

#[test]
fn every_page_is_in_the_index() {
    let index = fs::read_to_string(root().join("docs/README.md")).expect("the index");
    let linked: BTreeSet<&str> = between(&index, "](", ')').collect();
    for path in pages().keys().filter(|path| path.parent() == Some(&root().join("docs"))) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        assert!(
            name == "README.md" || linked.contains(name),
            "docs/README.md does not mention {name}"
        );
    }
}

#[test]
fn the_exit_codes_are_those_of_the_program() {
    let source = fs::read_to_string(root().join("src/cli/exit.rs")).expect("the source");
    let (_, variants) = source.split_once("pub enum Exit {").expect("the exit codes");
    let (variants, _) = variants.split_once("\n}").expect("their end");
    let code = |line: &str| line.trim().strip_suffix(',')?.split_once(" = ")?.1.parse::<u8>().ok();
    let of_the_program: BTreeSet<u8> = variants.lines().filter_map(code).collect();
    let page = fs::read_to_string(root().join("docs/exit-codes.md")).expect("the page");
    let row = |line: &str| line.strip_prefix("| ")?.split(' ').next()?.parse::<u8>().ok();
    let documented: Vec<u8> = page.lines().filter_map(row).collect();
    assert_eq!(documented, of_the_program.into_iter().collect::<Vec<_>>());
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_nqueens"))
        .arg("--help")
        .output()
        .expect("it starts");
    let help = String::from_utf8(output.stdout).expect("UTF-8");
    let (_, codes) = help.split_once("Exit codes:").expect("help has them");
    for code in documented {
        assert!(codes.contains(&format!(" {code} ")), "--help does not list exit code {code}");
    }
}
