//! Suggests a known word for one that is not known.

use taskledger_domain::suggestion::suggestion;

/// Letters of a beginning that tells what was meant.
const BEGINNING_MIN: usize = 4;

/// The name that was mistyped, or else the shortest one that begins so.
pub(crate) fn meant<'n>(
    given: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Option<&'n str> {
    let begun = names.clone();
    suggestion(given, names).or_else(|| {
        let is_begun = |name: &&str| given.len() >= BEGINNING_MIN && name.starts_with(given);
        begun.filter(is_begun).min_by_key(|name| name.len())
    })
}

/// `; did you mean ..?`, if that is known.
pub(crate) fn question<'n>(given: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    let question = |name: &str| format!("; did you mean `{name}`?");
    meant(given, names).map_or_else(String::new, question)
}

/// The same for a sentence that lists what is expected, of which `actual` is none: at least [`LISTED_MIN`] names.
pub(crate) fn question_of_list(actual: &str, expected: &str) -> String {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    let words = expected.split(|c| !is_of_name(c));
    let words = words.map(|word| word.trim_end_matches(['.', ':']));
    // Words of the sentence itself are no names.
    let names = words.filter(|word| word.contains(['_', '.', ':']) && *word != actual);
    match names.clone().count() >= LISTED_MIN {
        true => question(actual, names),
        false => String::new(),
    }
}

/// Names in a sentence that is a list.
const LISTED_MIN: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_names_and_beginnings_are_understood() {
        let names = [
            "poll",
            "task_completed",
            "task_completion_rejected",
            "local",
        ];
        for (given, expected) in [
            ("pol", Some("poll")),
            ("loc", Some("local")),
            ("task_compl", Some("task_completed")),
            ("tas", None),
            ("nonsense", None),
        ] {
            assert_eq!(meant(given, names.into_iter()), expected, "{given}");
        }
    }

    #[test]
    fn a_sentence_that_lists_names_tells_which_was_meant() {
        for (actual, expected, question) in [
            (
                "tasks:red",
                "scopes of tasks:read, tasks:write and tasks:run",
                "; did you mean `tasks:read`?",
            ),
            (
                "tokn.create",
                "one of `token.create`, `token.revoke`.",
                "; did you mean `token.create`?",
            ),
            ("lines", "a list of one line", ""),
            ("http:/h", "a URL such as http://h", ""),
        ] {
            assert_eq!(question_of_list(actual, expected), question, "{actual}");
        }
    }
}
