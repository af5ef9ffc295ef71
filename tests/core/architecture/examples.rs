//! Examples in the documentation of code are not run: `test.sh` would start rustdoc for each crate to find them. What
//! an example would show is shown by a test.

use super::rust_files;

/// What fences may say that they hold. Without a word rustdoc takes it for code that it runs.
const LANGUAGES: [&str; 4] = ["json", "sh", "text", "toml"];

/// The text of a line of documentation.
fn documentation(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))
}

/// Lines at which rustdoc would find something to run.
fn examples(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut is_open, mut is_after_blank) = (false, false);
    for (i, line) in text.lines().enumerate() {
        let Some(said) = documentation(line) else {
            (is_open, is_after_blank) = (false, true);
            continue;
        };
        if let Some(language) = said.trim_start().strip_prefix("```") {
            if !is_open && !LANGUAGES.contains(&language.trim()) {
                found.push(i + 1);
            }
            is_open = !is_open;
        } else if !is_open && is_after_blank && said.starts_with("     ") {
            // A block by its indentation.
            found.push(i + 1);
        }
        is_after_blank = said.trim().is_empty();
    }
    found
}

#[test]
fn no_documentation_has_an_example_that_nothing_runs() {
    let folders = [
        "src",
        "crates",
        "domain/src",
        "projections/src",
        "bench",
        "xtask",
    ];
    for (path, text) in folders.into_iter().flat_map(rust_files) {
        let found = examples(&text);
        assert!(
            found.is_empty(),
            "{path}: lines {found:?}: make it a test, or say `text`"
        );
    }
}

#[test]
fn examples_are_found_by_their_fences_and_by_their_indentation() {
    let text =
        "//! ```\n//! run();\n//! ```\n/// ```no_run\n/// ```\nfn f() {}\n///\n///     run();\n";
    assert_eq!(examples(text), [1, 4, 8]);
    let text = "//! ```text\n//!     shown\n//! ```\n/// - a list\n///     goes on\n";
    assert_eq!(examples(text), [0; 0]);
}
