//! Filters of tests in `.config/nextest.toml` and `test.sh`, which name tests by text: whoever renames one is told
//! here.

use super::{root, rust_files};
use std::collections::BTreeSet;

/// Names of files and folders, modules and functions below a folder.
fn names(below: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (path, text) in rust_files(below) {
        names.extend(path.trim_end_matches(".rs").split('/').map(str::to_owned));
        names.extend(words_after(&text, "fn "));
        names.extend(words_after(&text, "mod "));
        // Tests that a macro makes for each engine are in its list only.
        names.extend(text.lines().filter_map(|line| {
            let listed = line.trim().strip_suffix(',')?;
            let name = listed.rsplit("::").next()?;
            is_name(name).then(|| name.to_owned())
        }));
    }
    names
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn words_after<'t>(text: &'t str, keyword: &'t str) -> impl Iterator<Item = String> + 't {
    text.split(keyword).skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        rest[..end.unwrap_or(rest.len())].to_owned()
    })
}

/// Folder and name of each alternative in these filters: `binary(doors) & test(/^alike::/)` gives `tests/doors`,
/// `alike`.
fn alternatives(filters: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in filters
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
    {
        let mut folder = "";
        for part in line.split('|').flat_map(|part| part.split('&')) {
            if part.contains("binary(whole)") {
                folder = "tests/whole";
            } else if part.contains("binary(doors)") {
                folder = "tests/doors";
            } else if part.contains("binary_id(taskledger-projections") {
                folder = "projections/tests";
            }
            // What stands before is no name of a test.
            let text = part.rsplit("test(").next().unwrap_or_default();
            if !line.contains("test(") || text.contains("binary") || text.contains("package(") {
                continue;
            }
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let words = words.filter(|word| word.len() > 1 && *word != "not");
            found.extend(words.map(|word| (folder.to_owned(), word.to_owned())));
        }
    }
    found
}

/// Those that no test has.
fn unknown(filters: &str) -> Vec<String> {
    let names = |folder: &str| match folder {
        "" => &names("tests") | &names("projections/tests"),
        folder => names(folder),
    };
    let mut known = std::collections::BTreeMap::new();
    let unknown = alternatives(filters).into_iter().filter(|(folder, word)| {
        let names = known.entry(folder.clone()).or_insert_with(|| names(folder));
        // A name may be cut short at its end, and at its beginning where it says so.
        let word = word.trim_start_matches('_');
        !names
            .iter()
            .any(|name| name.starts_with(word) || name.ends_with(word))
    });
    unknown
        .map(|(folder, word)| format!("{folder}: {word}"))
        .collect()
}

#[test]
fn every_group_of_tests_names_tests_that_exist() {
    let path = root().join(".config/nextest.toml");
    let filters = std::fs::read_to_string(path).expect("the settings can be read");
    assert!(alternatives(&filters).len() > 50, "the filters are found");
    assert_eq!(unknown(&filters), [""; 0], "in .config/nextest.toml");
}

#[test]
fn a_test_that_was_renamed_is_missed() {
    let filters =
        "filter = 'binary(doors) & test(/^(alike|no_such_module::(kill|no_such_test))::/)'";
    let expected = ["tests/doors: no_such_module", "tests/doors: no_such_test"];
    assert_eq!(unknown(filters), expected);
    // A name counts only in the tests that the filter is about.
    let elsewhere = "filter = 'binary(doors) & test(critical_path)'";
    assert_eq!(unknown(elsewhere), ["tests/doors: critical_path"]);
}

/// Names of the test programs of packages, of the files `tests/NAME.rs` and `tests/NAME/main.rs`.
fn programs() -> BTreeSet<String> {
    let files = ["crates", "domain", "projections", "tests"]
        .into_iter()
        .flat_map(rust_files)
        .filter(|(path, _)| !path.contains("/src/"));
    let names = files.filter_map(|(path, _)| {
        let (_, file) = path.split_once("tests/")?;
        let name = file
            .strip_suffix("/main.rs")
            .or_else(|| file.strip_suffix(".rs"))?;
        is_name(name).then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn the_quick_tests_leave_out_one_program() {
    let path = root().join("test.sh");
    let script = std::fs::read_to_string(path).expect("the script can be read");
    assert!(script.contains("--lib --bins --test '[!w]*' --test 'w[!h]*' "));

    let programs = programs();

    let is_there = |name: &str| programs.contains(name);
    assert!(is_there("core") && is_there("doors") && is_there("wire"));
    let left_out: Vec<_> = programs
        .iter()
        .filter(|name| name.starts_with("wh") || *name == "w")
        .collect();
    assert_eq!(left_out, ["whole"]);
}
