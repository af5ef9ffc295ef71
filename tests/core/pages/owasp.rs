//! The page on the OWASP Top 10 names tests that exist: a risk whose test was renamed or removed is noticed.

use super::{page, root};
use std::collections::BTreeSet;
use std::path::Path;

/// Folders in which tests may be.
const WITH_TESTS: [&str; 5] = ["crates", "domain", "projections", "src", "tests"];
/// Risks of the list.
const RISKS: usize = 10;

/// What stands between backticks, with `{a,b}` as each of both.
fn quoted(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.flat_map(spread).collect()
}

fn spread(text: &str) -> Vec<String> {
    let Some((before, (inside, after))) = text
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return vec![text.to_owned()];
    };
    let each = inside.split(',').map(|it| format!("{before}{it}{after}"));
    each.flat_map(|it| spread(&it)).collect()
}

/// A claim that is the name of a test.
fn is_test(text: &str) -> bool {
    let in_words = text.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    in_words && text.split('_').count() > 3
}

/// The functions in files of Rust below `folder`.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in folder.read_dir().expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = std::fs::read_to_string(&path).expect("source is text");
            let named = text.split("fn ").skip(1);
            let named = named.filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(named.map(str::to_owned));
        }
    }
}

#[test]
fn each_risk_names_files_and_tests_that_exist() {
    let page = page("docs/guides/owasp.md");
    let mut known = BTreeSet::new();
    for folder in WITH_TESTS {
        functions(&root().join(folder), &mut known);
    }
    let risks: Vec<&str> = page.text.split("\n## API").skip(1).collect();
    assert_eq!(risks.len(), RISKS);
    for risk in risks {
        let title = risk.lines().next().unwrap_or_default();
        let (mut folder, mut tests) = (root().to_owned(), 0);
        for name in quoted(risk) {
            if name.ends_with(".rs") || name.ends_with('/') {
                let (whole, beside) = (root().join(&name), folder.join(&name));
                assert!(whole.exists() || beside.exists(), "API{title}: {name}");
                if whole.exists() {
                    // Other files may be named as they are in this folder, or beside this file.
                    let of_file = whole.parent().unwrap_or(root()).to_owned();
                    folder = if whole.is_dir() { whole } else { of_file };
                }
                tests += usize::from(name.contains("test"));
            } else if is_test(&name) {
                assert!(known.contains(&name), "API{title}: no test `{name}`");
            }
        }
        assert!(tests > 0, "API{title} names no tests");
    }
}

#[test]
fn a_name_of_a_test_and_a_list_of_files_are_recognised() {
    assert!(is_test("a_token_in_a_url_is_seen"));
    assert!(!is_test("users_any") && !is_test("https"));
    assert_eq!(quoted("x `a/{b,c}.rs` y `d`"), ["a/b.rs", "a/c.rs", "d"]);
}
