//! Comments are read beside code: their lines are as long as those of prose, and no longer.

use super::rust_files;

/// Characters of a line that is a comment. Code is wrapped by `rustfmt`, which leaves comments alone.
const COMMENT_CHARS_MAX: usize = 120;

/// Numbers of lines with nothing but a comment that is too long. One word that cannot be broken may be.
fn too_long(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    let long = lines.filter(|(_, line)| {
        let words = line.split_whitespace().count();
        line.trim_start().starts_with("//") && line.chars().count() > COMMENT_CHARS_MAX && words > 2
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
fn a_comment_that_is_too_long_is_found_and_a_long_address_is_not() {
    let words = "word ".repeat(30);
    let address = format!("// https://example.com/{}", "a".repeat(120));
    let text = format!("// {words}\n{address}\nlet text = \"{words}\";\n//! short");
    assert_eq!(too_long(&text), [1]);
}
