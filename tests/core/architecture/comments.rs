//! Comments are read beside code: their lines are as long as those of prose, and no longer.

use super::rust_files;

/// Characters of a line that is a comment. Code is wrapped by `rustfmt`, which leaves comments alone.
const COMMENT_CHARS_MAX: usize = 120;

/// Numbers of lines with nothing but a comment that is too long. What cannot be broken may be: one word, or the row of
/// a table.
fn too_long(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    let long = lines.filter(|(_, line)| {
        let mut words = line.split_whitespace().skip(1);
        let is_row = words.next() == Some("|");
        line.trim_start().starts_with("//")
            && line.chars().count() > COMMENT_CHARS_MAX
            && words.next().is_some()
            && !is_row
    });
    long.map(|(at, _)| at + 1).collect()
}

#[test]
fn lines_of_comments_are_at_most_120_characters_long() {
    let mut found = Vec::new();
    for below in [
        "src",
        "crates",
        "domain",
        "projections",
        "tests",
        "bench",
        "fuzz/src",
        "xtask",
    ] {
        for (path, text) in rust_files(below) {
            if !path.contains("/generated/") {
                let lines = too_long(&text).into_iter();
                found.extend(lines.map(|line| format!("{path}:{line}")));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_comment_that_is_too_long_is_found_and_what_cannot_be_broken_is_not() {
    let words = "word ".repeat(30);
    let address = format!("// https://example.com/{}", "a".repeat(120));
    let row = format!("/// | {words} |");
    let text = format!("// {words}\n{address}\n{row}\nlet text = \"{words}\";\n//! short");
    assert_eq!(too_long(&text), [1]);
}
