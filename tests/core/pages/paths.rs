//! Files and folders that the pages for maintainers name in backticks exist.
//!
//! A path begins at the root of the repository, or is the end of one: `flow/event.rs`. `{a,b}` stands for each of its
//! words; `*`, and a part with a word in capitals such as `NAME`, for any name with the same ending.

use super::{page, root};
use std::path::{Path, PathBuf};
use taskledger_testkit::pages::Page;

/// The pages that say which files to open.
const PAGES: [&str; 4] = [
    "ARCHITECTURE.md",
    "docs/adding-a-task-field.md",
    "docs/contributing.md",
    "docs/maintaining.md",
];
/// Endings of the files that they name. By its ending a name without a folder is known to be one of a file.
const ENDINGS: [&str; 13] = [
    "dict", "json", "md", "proto", "py", "rs", "sh", "sql", "svg", "toml", "ts", "yaml", "yml",
];
/// Words that stand for any name.
const PLACEHOLDERS: [&str; 5] = ["GROUP", "METHOD", "NAME", "NNNN", "PURPOSE"];
/// What looks like a path of the repository and is none, and why.
const OTHERS: [(&str, &str); 4] = [
    ("target/book", "the book is made there"),
    ("target/clients", "packages for tests are installed there"),
    ("target/tools", "tools are installed there"),
    ("text/event-stream", "a media type"),
];
/// Folders whose files are not ours.
const FOREIGN: [&str; 4] = [".git", ".venv", "dist", "node_modules"];
/// Fewer paths than the pages name, so that a test that finds none fails.
const PATHS_MIN: usize = 500;

/// The path of a file or folder, part by part.
type Parts = Vec<String>;

/// All files and folders below a folder, without what is built.
fn all_below(folder: &Path) -> Vec<Parts> {
    let mut found = Vec::new();
    let mut left: Vec<(PathBuf, Parts)> = vec![(folder.to_owned(), Vec::new())];
    while let Some((folder, parts)) = left.pop() {
        let is_package = folder.join("Cargo.toml").is_file();
        for entry in std::fs::read_dir(&folder).expect("folders can be read") {
            let entry = entry.expect("folders can be read");
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_built = is_package && name == "target";
            if is_built || FOREIGN.contains(&name.as_str()) {
                continue;
            }
            let mut parts = parts.clone();
            parts.push(name);
            // Links are not followed.
            if entry.file_type().expect("entries have a type").is_dir() {
                left.push((entry.path(), parts.clone()));
            }
            found.push(parts);
        }
    }
    found
}

/// Whether a text in backticks is a path: it has a folder, or the ending of a file.
fn is_path(text: &str) -> bool {
    let is_of_paths = |c: char| c.is_ascii_alphanumeric() || "_.-/{},*".contains(c);
    let is_other = OTHERS.iter().any(|(other, _)| *other == text);
    let ending = text.trim_end_matches('}').rsplit_once('.');
    let has_ending =
        ending.is_some_and(|(name, ending)| !name.is_empty() && ENDINGS.contains(&ending));
    let is_absolute = text.starts_with('/');
    (text.contains('/') || has_ending) && text.chars().all(is_of_paths) && !is_absolute && !is_other
}

/// The paths that one with braces stands for: `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    if let Some((before, rest)) = path.split_once('{')
        && let Some((words, after)) = rest.split_once('}')
    {
        let paths = words
            .split(',')
            .map(|word| format!("{before}{word}{after}"));
        return paths.flat_map(|path| expanded(&path)).collect();
    }
    vec![path.to_owned()]
}

/// Whether a part of a path stands for this name.
fn stands_for(part: &str, name: &str) -> bool {
    if part != "*" && !PLACEHOLDERS.iter().any(|word| part.contains(word)) {
        return part == name;
    }
    let ending = Path::new(part).extension();
    ending.is_none() || ending == Path::new(name).extension()
}

/// Whether a path exists. If its first part is at the root, it begins there.
fn exists(path: &str, all: &[Parts]) -> bool {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let is_at_root = |part: &&str| {
        all.iter()
            .any(|other| other.len() == 1 && other[0] == **part)
    };
    let begins_at_root = parts.first().is_some_and(is_at_root);
    all.iter().any(|other| {
        let Some(before) = other.len().checked_sub(parts.len()) else {
            return false;
        };
        let mut pairs = parts.iter().zip(&other[before..]);
        (before == 0 || !begins_at_root) && pairs.all(|(part, name)| stands_for(part, name))
    })
}

/// The paths that a page names, with their lines.
fn paths(page: &Page) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in page.prose() {
        let code = text.split('`').skip(1).step_by(2);
        let paths = code.filter(|text| is_path(text)).flat_map(expanded);
        found.extend(paths.map(|path| (line, path)));
    }
    found
}

#[test]
fn every_path_in_the_pages_for_maintainers_exists() {
    let all = all_below(root());
    let (mut count, mut missing) = (0, Vec::new());
    for name in PAGES {
        for (line, path) in paths(&page(name)) {
            count += 1;
            if !exists(&path, &all) {
                missing.push(format!("{name}:{line}: there is no `{path}`"));
            }
        }
    }
    assert!(count > PATHS_MIN, "only {count} paths were found");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn what_is_listed_as_no_path_is_in_a_page() {
    let pages = PAGES.map(page);
    for (other, why) in OTHERS {
        let quoted = format!("`{other}`");
        let is_named = pages.iter().any(|page| page.text.contains(&quoted));
        assert!(is_named && !why.is_empty(), "no page has {quoted}");
    }
}

#[test]
fn paths_are_told_from_other_code_and_expanded() {
    let page = Page {
        name: "a.md".to_owned(),
        text: "`tasks.get`, `POST /`, `/ws`, `.proto`, `text/event-stream`, `a::b`\n\n\
               `a.rs` and `src/{a,b/c}/`, `{d,e}.rs`\n"
            .to_owned(),
    };
    let found = paths(&page);
    let found: Vec<_> = found.iter().map(|(n, path)| (*n, path.as_str())).collect();
    assert_eq!(
        found,
        [
            (3, "a.rs"),
            (3, "src/a/"),
            (3, "src/b/c/"),
            (3, "d.rs"),
            (3, "e.rs")
        ]
    );
}

#[test]
fn a_path_that_does_not_exist_is_noticed() {
    let all: Vec<Parts> = [
        "tests",
        "src",
        "src/flow",
        "src/flow/event.rs",
        "src/flow/tests",
        "src/flow/tests/a.rs",
    ]
    .into_iter()
    .map(|path| path.split('/').map(str::to_owned).collect())
    .collect();
    for good in [
        "src/flow/event.rs",
        "flow/event.rs",
        "event.rs",
        "src/flow/",
        "src/*/event.rs",
        "flow/NAME.rs",
        "flow/tests/a.rs",
    ] {
        assert!(exists(good, &all), "{good}");
    }
    for bad in [
        "src/flow/gone.rs",
        "gone/event.rs",
        "gone.rs",
        "src/event.rs",
        "src/gone/NAME.rs",
        "flow/NAME.sql",
        "a/src/flow/event.rs",
        // It begins at the root, and is not there.
        "tests/a.rs",
    ] {
        assert!(!exists(bad, &all), "{bad}");
    }
}
