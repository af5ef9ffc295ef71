//! The names that source speaks: identifiers, and paths into other crates however they are grouped.

use std::collections::BTreeSet;

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    &text[..end.unwrap_or(text.len())]
}

/// All identifiers of a text without its comments, words within literals included.
pub(super) fn identifiers(code: &str) -> BTreeSet<&str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        .collect()
}

/// The crates of this repository that a text names.
pub(super) fn own_crates(code: &str) -> BTreeSet<&str> {
    let mut all = identifiers(code);
    all.retain(|name| name.starts_with("taskledger_"));
    all
}

/// The paths into a crate that a text names: `store::TokenRow`, also out of groups. A crate that is named without a
/// path, to be renamed or taken in whole, is `*`.
pub(super) fn paths_into(code: &str, of: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(of) {
        let before = code[..at].chars().next_back();
        let behind = &code[at + of.len()..];
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') || !word(behind).is_empty() {
            continue;
        }
        match behind.trim_start().strip_prefix("::") {
            Some(tree) => _ = read_tree(tree, "", &mut found),
            None => _ = found.insert("*".to_owned()),
        }
    }
    found
}

/// Reads a tree of a `use`, or a path; what stands behind it.
fn read_tree<'t>(text: &'t str, prefix: &str, found: &mut BTreeSet<String>) -> &'t str {
    let text = text.trim_start();
    let Some(mut group) = text.strip_prefix('{') else {
        let name = word(text);
        let path = format!("{prefix}{name}");
        let behind = &text[name.len()..];
        if let Some(inner) = behind.strip_prefix("::") {
            return read_tree(inner, &format!("{path}::"), found);
        }
        // A glob, or a type argument.
        let is_glob = name.is_empty() && behind.starts_with('*');
        found.insert(match is_glob {
            true => format!("{prefix}*"),
            false => path.trim_end_matches("::").to_owned(),
        });
        return behind.trim_start_matches('*');
    };
    loop {
        group = group.trim_start();
        if let Some(behind) = group.strip_prefix('}') {
            return behind;
        }
        if group.is_empty() {
            return group;
        }
        let behind = read_tree(group, prefix, found).trim_start();
        // Behind a name may stand another one for it.
        let end = behind.find([',', '}']).unwrap_or(behind.len());
        group = behind[end..].trim_start_matches(',');
    }
}

/// Whether a path is one of those that are allowed, or lies within one.
pub(super) fn is_within(path: &str, allowed: &[&str]) -> bool {
    allowed.iter().any(|one| {
        let rest = path.strip_prefix(one);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}

#[test]
fn paths_are_found_in_groups_and_under_other_names() {
    let text = "use taskledger_auth::{Kind, store::{AuditRow as Row, TokenRow}, tokens};
        fn f(x: taskledger_auth::jwt::Key) -> taskledger_auth::store::Owner { g() }
        use taskledger_auth::caller::*;
        use taskledger_auth as other; use taskledger_authority::Not; use my_taskledger_auth::Not;";
    let found: Vec<_> = paths_into(text, "taskledger_auth").into_iter().collect();
    assert_eq!(
        found,
        [
            "*",
            "Kind",
            "caller::*",
            "jwt::Key",
            "store::AuditRow",
            "store::Owner",
            "store::TokenRow",
            "tokens"
        ]
    );
    let own: Vec<_> = own_crates(text).into_iter().collect();
    assert_eq!(own, ["taskledger_auth", "taskledger_authority"]);
}

#[test]
fn what_lies_within_a_name_is_allowed_with_it() {
    assert!(is_within("tokens::New", &["tokens::New"]));
    assert!(is_within("Kind::User", &["Kind"]));
    assert!(!is_within("Kinds", &["Kind"]));
    assert!(!is_within("tokens", &["tokens::New"]));
    assert!(!is_within("*", &["Kind"]));
}
