//! The names that source speaks: identifiers, and paths from the root of a crate on, however they are written: in
//! groups, behind `self` and `super`, under another name, in an attribute, or out of an import.
//!
//! Source is read as `xtask rooms` reads it: as text, without a compiler, and without code for tests.

#[path = "../../../xtask/src/rooms/source.rs"]
#[allow(dead_code, reason = "`xtask rooms` reads more of it")]
mod source;
#[path = "../../../xtask/src/rooms/tokens.rs"]
mod tokens;

use source::{Names, Source};
use std::collections::BTreeSet;
use tokens::Token;

/// Imports of imports that are followed.
const HOPS_MAX: usize = 16;
/// The crate itself, as its program calls it.
const OWN: &str = "taskledger";
/// What stands for all names of a module.
const ALL: &str = "*";

/// All identifiers of a text without its comments, words within literals included.
pub(super) fn identifiers(code: &str) -> BTreeSet<&str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        .collect()
}

/// Names, marks and `::`, without comments; a text is `"`.
pub(super) fn words(code: &str) -> Vec<String> {
    spelt(&tokens::of(code))
}

fn spelt(tokens: &[Token]) -> Vec<String> {
    let words = tokens.iter().map(|token| match token {
        Token::Name(name) => name.clone(),
        Token::Path => "::".to_owned(),
        Token::Mark(mark) => mark.to_string(),
        Token::Text(_) => "\"".to_owned(),
    });
    words.collect()
}

/// Whether a word is a name or a keyword.
pub(super) fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Where the group ends that opens here; that of a word is the word.
pub(super) fn close(words: &[String], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, word) in words.iter().enumerate().skip(open) {
        match word.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    words.len()
}

/// The paths that a file of `src` names, each from `crate`, or from the name of another crate on. All names of a module
/// are `*` behind it; a module that is imported or renamed as a whole is its own path. What begins with a name that
/// nobody imported stays as it is written.
pub(super) fn paths(file: &str, text: &str) -> BTreeSet<Names> {
    let source = source::read(text);
    let tokens = tokens::of(text);
    let reader = Reader {
        module: module_of(file),
        source: &source,
    };
    let mut found = BTreeSet::new();
    for import in &source.imports {
        let mut paths = reader.absolute(&import.within, &import.path, HOPS_MAX);
        if import.name == ALL {
            paths.iter_mut().for_each(|path| path.push(ALL.to_owned()));
        }
        found.extend(paths);
    }
    for used in &source.paths {
        found.extend(reader.absolute(&used.within, &used.path, HOPS_MAX));
    }
    let words = spelt(&tokens);
    let beside = attributes(&words).flat_map(in_attribute);
    let beside = beside.chain(global(&words));
    let beside = beside.chain(texts(&tokens)).chain(taken_in(&words));
    for path in beside {
        found.extend(reader.absolute(&[], &path, HOPS_MAX));
    }
    found
}

/// The module of a file below `src`.
fn module_of(file: &str) -> Names {
    let inner = file.strip_prefix("src/").unwrap_or(file);
    let inner = inner.trim_end_matches(".rs");
    let mut names: Names = inner.split('/').map(str::to_owned).collect();
    let stands_for_its_folder = |name: &String| ["lib", "main", "mod"].contains(&name.as_str());
    if names.last().is_some_and(stands_for_its_folder) {
        names.pop();
    }
    names
}

struct Reader<'a> {
    module: Names,
    source: &'a Source,
}

impl Reader<'_> {
    /// What a path may mean that is written in a module in braces, `within` that of the file.
    fn absolute(&self, within: &[String], path: &[String], hops: usize) -> Vec<Names> {
        let (Some((first, rest)), Some(hops)) = (path.split_first(), hops.checked_sub(1)) else {
            return Vec::new();
        };
        let here = [self.module.as_slice(), within].concat();
        match first.as_str() {
            "crate" | OWN => return vec![from_root(Names::new(), rest)],
            "self" => return vec![from_root(here, rest)],
            "super" => return vec![from_root(here, path)],
            _ => {}
        }
        let imports = self.source.imports.iter().filter(|import| {
            import.within == within && import.name == *first && import.path.first() != Some(first)
        });
        let begins = imports.flat_map(|import| self.absolute(within, &import.path, hops));
        let imported: Vec<Names> = begins
            .map(|begin| [begin.as_slice(), rest].concat())
            .collect();
        if !imported.is_empty() {
            return imported;
        }
        let child = [within, std::slice::from_ref(first)].concat();
        let mut declared = self.source.declared.iter();
        let is_child = declared.any(|child| child.within == within && child.name == *first)
            || self.source.inline.contains(&child);
        match is_child {
            true => vec![from_root(here, path)],
            false => vec![path.to_vec()],
        }
    }
}

/// A path as it is read in a module, its leading `super`s included.
fn from_root(mut module: Names, path: &[String]) -> Names {
    let up = path.iter().take_while(|name| *name == "super").count();
    module.truncate(module.len().saturating_sub(up));
    let mut names = vec!["crate".to_owned()];
    names.append(&mut module);
    names.extend_from_slice(&path[up..]);
    names
}

/// What stands between the brackets of each attribute.
fn attributes(words: &[String]) -> impl Iterator<Item = &[String]> {
    let begins = words.windows(3).enumerate().filter_map(|(at, three)| {
        let behind = 1 + usize::from(three[1] == "!");
        (three[0] == "#" && three[behind] == "[").then_some(at + behind)
    });
    begins.map(move |at| &words[at..close(words, at)])
}

/// The paths of several names in an attribute.
fn in_attribute(words: &[String]) -> Vec<Names> {
    let mut found = vec![Names::new()];
    for (at, word) in words.iter().enumerate().filter(|(_, word)| is_name(word)) {
        match found.last_mut() {
            Some(path) if at > 0 && words[at - 1] == "::" => path.push(word.clone()),
            Some(_) | None => found.push(vec![word.clone()]),
        }
    }
    found.retain(|path| path.len() > 1);
    found
}

/// Paths that are texts, as `serde` takes them.
fn texts(tokens: &[Token]) -> impl Iterator<Item = Names> {
    tokens.iter().filter_map(|token| match token {
        Token::Text(text) => {
            let mut begins = ["crate::", "self::", "super::"].iter();
            let is_path = begins.any(|begin| text.starts_with(begin))
                && text
                    .chars()
                    .all(|c| c.is_alphanumeric() || c == '_' || c == ':');
            is_path.then(|| text.split("::").map(str::to_owned).collect())
        }
        Token::Name(_) | Token::Path | Token::Mark(_) => None,
    })
}

/// Paths outside of imports that begin with `::`, which stands before the name of a crate.
fn global(words: &[String]) -> impl Iterator<Item = Names> {
    const BEFORE: [&str; 11] = [
        "as", "dyn", "else", "for", "if", "impl", "in", "match", "mut", "return", "where",
    ];
    let begins = words.iter().enumerate().filter(move |(at, word)| {
        let before = |steps: usize| at.checked_sub(steps).map_or("", |at| words[at].as_str());
        // Behind a type stands a name in it, behind an arrow a path.
        let is_arrow = before(1) == ">" && ["-", "="].contains(&before(2));
        let is_behind_type = before(1) == ">" || is_name(before(1)) && !BEFORE.contains(&before(1));
        *word == "::" && (is_arrow || !is_behind_type)
    });
    begins.map(move |(at, _)| {
        let behind = words[at + 1..].chunks(2);
        let path = behind.take_while(|pair| is_name(&pair[0]));
        let mut goes_on = true;
        let path = path.take_while(|pair| {
            std::mem::replace(&mut goes_on, pair.get(1).is_some_and(|word| word == "::"))
        });
        path.map(|pair| pair[0].clone()).collect()
    })
}

/// What `extern crate` takes in; `self` is the crate itself.
fn taken_in(words: &[String]) -> impl Iterator<Item = Names> {
    let taken = words
        .windows(3)
        .filter(|three| three[..2] == ["extern", "crate"]);
    taken.map(|three| match three[2].as_str() {
        "self" => vec!["crate".to_owned()],
        named => vec![named.to_owned()],
    })
}

/// Whether a path is one of those that are allowed, or lies within one.
pub(super) fn is_within(path: &str, allowed: &[&str]) -> bool {
    allowed.iter().any(|one| {
        let rest = path.strip_prefix(one);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}

fn written(file: &str, text: &str) -> Vec<String> {
    let paths = paths(file, text).into_iter();
    paths.map(|path| path.join("::")).collect()
}

#[test]
fn paths_are_the_same_however_they_are_written() {
    let path = "crate::store::rows::Row";
    for text in [
        "use crate::store::rows::Row;",
        "use crate::{store::{rows::{Row}}};",
        "use crate::store::rows::Row as Other;",
        "pub(crate) use super::super::store::rows::Row;",
        "use super::super::{store::rows::Row};",
        "mod inner { use super::super::super::store::rows::Row; }",
        "fn f(row: &Option<crate::store::rows::Row>) {}",
        "fn f() { let row = super::super::store::rows::Row { id }; }",
        "fn f() { g::<crate::store::rows::Row>() }",
        "macro_rules! m { () => { $crate::store::rows::Row } }",
        "use taskledger::store::rows::Row;",
        "#[serde(with = \"crate::store::rows::Row\")] struct S;",
        "#[arg(value_parser = crate::store::rows::Row)] struct S;",
    ] {
        assert_eq!(written("src/door/a.rs", text), [path], "{text}");
    }
    for text in [
        "use crate::store; fn f() { store::rows::Row::new() }",
        "use crate::store as kept; fn f() { kept::rows::Row::new() }",
        "use super::super::store::{self as kept}; fn f() { kept::rows::Row::new() }",
        "use super::super as root; use root::store; fn f() { store::rows::Row::new() }",
    ] {
        let found = written("src/door/a.rs", text);
        assert!(found.contains(&format!("{path}::new")), "{text}: {found:?}");
        let is_whole = |path: &String| path == "crate" || path == "crate::store";
        assert!(found.iter().any(is_whole), "{text}: {found:?}");
    }
}

#[test]
fn globs_and_whole_crates_are_paths_too() {
    for (text, expected) in [
        ("use crate::store::*;", "crate::store::*"),
        ("use crate::{clock::{self, *}};", "crate::clock::*"),
        ("use super::super::*;", "crate::*"),
        ("use crate as root;", "crate"),
        ("extern crate self as root;", "crate"),
        ("extern crate taskledger_log as log;", "taskledger_log"),
        ("use taskledger_log as log;", "taskledger_log"),
        ("use ::taskledger_log::{self as log};", "taskledger_log"),
        ("use taskledger_log::rows::*;", "taskledger_log::rows::*"),
        (
            "fn f(row: &::taskledger_log::Row) {}",
            "taskledger_log::Row",
        ),
        ("fn f() -> ::taskledger_log::Row {}", "taskledger_log::Row"),
        ("impl ::taskledger_log::Log for A {}", "taskledger_log::Log"),
    ] {
        let found = written("src/door/a.rs", text);
        assert!(found.contains(&expected.to_owned()), "{text}: {found:?}");
    }
}

#[test]
fn a_path_is_read_in_the_module_of_its_file() {
    for (file, text, expected) in [
        ("src/door.rs", "use self::a::B;", "crate::door::a::B"),
        ("src/door.rs", "mod a; pub use a::B;", "crate::door::a::B"),
        ("src/door.rs", "use super::store::Row;", "crate::store::Row"),
        ("src/door/mod.rs", "use super::store;", "crate::store"),
        ("src/door/a/b.rs", "use super::C;", "crate::door::a::C"),
        ("src/lib.rs", "mod a; use a::B;", "crate::a::B"),
        (
            "src/door/a.rs",
            "mod b { use super::C; }",
            "crate::door::a::C",
        ),
        ("src/door/a.rs", "use std::fmt::Write;", "std::fmt::Write"),
    ] {
        assert_eq!(written(file, text), [expected], "{file}: {text}");
    }
}

#[test]
fn comments_literals_and_code_for_tests_name_nothing() {
    for text in [
        "// use crate::store::Row;",
        "/* use crate::store::Row; */",
        "const TEXT: &str = \"see crate::store::Row\";",
        "#[cfg(test)]\nmod tests { use crate::store::Row; }",
    ] {
        assert_eq!(written("src/door/a.rs", text), [""; 0], "{text}");
    }
}

#[test]
fn what_lies_within_a_name_is_allowed_with_it() {
    assert!(is_within("tokens::New", &["tokens::New"]));
    assert!(is_within("Kind::User", &["Kind"]));
    assert!(!is_within("Kinds", &["Kind"]));
    assert!(!is_within("tokens", &["tokens::New"]));
    assert!(!is_within("*", &["Kind"]));
    assert!(!is_within("", &["Kind"]));
}
