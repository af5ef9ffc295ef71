//! Comments are read beside code: their lines are as long as those of prose, and no longer, and they say what the code
//! does not.

use super::names::{close, is_name, words};
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

/// Lines that say less than nothing, or that look for a member of JSON in its text.
fn hollow_lines(text: &str) -> Vec<&str> {
    let is_hollow = |line: &&str| {
        let says = line.strip_prefix("/// ");
        says.is_some_and(|says| says == "The task." || says.starts_with("See the module"))
            || line.contains(r#".contains("\""#)
    };
    text.lines().map(str::trim).filter(is_hollow).collect()
}

/// Lines of source behind a line of documentation, within which the name stands that it is about. Attributes are
/// shorter.
const LINES_TO_NAME_MAX: usize = 24;
/// Words of the longest name; documentation with more of them says more.
const NAME_WORDS_MAX: usize = 8;
/// Words that add nothing to a name.
const ARTICLES: [&str; 4] = ["a", "an", "its", "the"];
/// What may stand before the name of an item.
const BEFORE_NAMES: [&str; 13] = [
    "async", "const", "default", "enum", "extern", "fn", "mod", "mut", "static", "struct", "trait",
    "type", "unsafe",
];
/// Where documentation is the help of an option, a value or a command. Its first line has no full stop.
const HELP: [&str; 3] = ["crates/cli/", "src/cli/", "src/config/"];

/// Documentation of one line that is the name of what stands below it, and nothing else.
fn repeated_names(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(said) = line.strip_prefix("/// ") else {
            continue;
        };
        let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("///"));
        let goes_on = is_doc(at + 1) || (at > 0 && is_doc(at - 1));
        let Some(said) = plain_words(said).filter(|said| !goes_on && said.len() <= NAME_WORDS_MAX)
        else {
            continue;
        };
        let end = lines.len().min(at + 1 + LINES_TO_NAME_MAX);
        if said == words_of_name(&name_of_item(&lines[at + 1..end].join("\n"))) {
            found.push(*line);
        }
    }
    found
}

/// The words of a text in small letters without an article in front; `None` for one that has marks of code in it.
fn plain_words(said: &str) -> Option<Vec<String>> {
    let is_plain = |c: char| c.is_alphanumeric() || " `'_-.".contains(c);
    if !said.chars().all(is_plain) {
        return None;
    }
    let said = said.to_lowercase();
    let words = said.split(|c: char| !c.is_alphanumeric());
    let mut words = words.filter(|word| !word.is_empty()).peekable();
    words.next_if(|word| ARTICLES.contains(word));
    Some(words.map(str::to_owned).collect())
}

/// The words of a name in small letters: `ReadModels` and `read_models` are `read`, `models`.
fn words_of_name(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && was_small) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c != '_') {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What the item, field or variant is called with which a text begins, behind attributes.
fn name_of_item(text: &str) -> String {
    let words = words(text);
    let is = |at: usize, mark: &str| words.get(at).is_some_and(|word| word == mark);
    let mut at = 0;
    while is(at, "#") {
        at = close(&words, at + 1) + 1;
    }
    if is(at, "pub") {
        at += 1;
        if is(at, "(") {
            at = close(&words, at) + 1;
        }
    }
    let stands_before = |at: usize| {
        let next = words.get(at + 1).is_some_and(|next| is_name(next));
        BEFORE_NAMES.iter().any(|before| is(at, before)) && next
    };
    while stands_before(at) {
        at += 1;
    }
    words.get(at).cloned().unwrap_or_default()
}

#[test]
fn comments_say_something_and_members_are_read() {
    let mut faults = Vec::new();
    for below in ["src", "crates", "domain/src", "projections/src"] {
        for (path, text) in rust_files(below) {
            if path.contains("/tests/") || path.ends_with("/tests.rs") {
                continue;
            }
            let product = text.split("\n#[cfg(test)]").next().unwrap_or_default();
            let is_help = HELP.iter().any(|folder| path.starts_with(folder));
            let names = repeated_names(product).into_iter();
            let names = names.filter(|line| line.ends_with('.') || !is_help);
            let lines = hollow_lines(product).into_iter().chain(names);
            faults.extend(lines.map(|line| format!("{path}: {line}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_line_that_says_nothing_is_found() {
    for bad in [
        "    /// The task.",
        "/// See the module. One per server.",
        r#"    schemas.contains("\"wiring\"")"#,
    ] {
        assert_eq!(hollow_lines(bad).len(), 1, "{bad}");
    }
    let good = r#"    /// The task that asks.
        name.contains("x")"#;
    assert!(hollow_lines(good).is_empty());
}

#[test]
fn documentation_that_repeats_a_name_is_found() {
    for bad in [
        "    /// The attempt.\n    attempt: u32,",
        "    /// Its status.\n    pub status: Status,",
        "    /// Status\n    pub(crate) status: Status,",
        "/// A read model.\npub(in crate::a) struct ReadModel;",
        "    /// The read models.\n    ReadModels(Vec<Model>),",
        "/// Members.\nconst MEMBERS: [&str; 2] = [];",
        "/// The exit code.\npub const fn exit_code(self) -> u8 {",
        "/// Sends.\npub async fn sends() {",
        "    /// `start_at`.\n    StartAt,",
        "    /// JSON-RPC.\n    JsonRpc,",
        "    /// The type.\n    r#type: Type,",
        "    /// Why.\n    #[serde(default)]\n    why: Why,",
        "    /// Why.\n    #[error(\n        \"[{why}\"\n    )]\n    #[doc(hidden)]\n    Why,",
        "#[must_use]\n/// Why.\nfn why() -> Why {",
    ] {
        assert_eq!(repeated_names(bad).len(), 1, "{bad}");
    }
    for good in [
        "/// The attempt that has ended.\nattempt: u32,",
        "/// The attempt.\n///\n/// # Errors\n/// None.\nfn attempt() {}",
        "/// Counts from one.\n/// The attempt.\nattempt: u32,",
        "/// The name of a secret.\nstruct NameOfSecret;",
        "/// `{enum: [..]}`.\nstruct Enum;",
        "//! The attempt.\nfn attempt() {}",
        "/// The attempt.\nstatus: Status,\nattempt: u32,",
    ] {
        assert_eq!(repeated_names(good), [""; 0], "{good}");
    }
}
