//! Regular expressions of ECMA 262, which JSON Schema names (draft-07 6.3.3), for the compiler of this program.

/// What `.` matches: all but the line terminators of ECMA 262, of which the compiler knows the first only.
const DOT: &str = "[^\n\r\u{2028}\u{2029}]";
/// The class `[^]`, any character. The compiler takes its `]` for a character.
const ANY_WRITTEN: &str = "[^]";
/// The same in a spelling that the compiler understands and authors do not use.
const ANY: &str = r"[\s\S\s]";
/// `\b` in a class, a backspace, likewise. It may also be an end of a range.
const BACKSPACE: &str = r"\u0008\u0008";

/// The pattern in the syntax of the compiler, with the meaning that ECMA 262 gives it. Cost: O(length).
pub(super) fn of_author(pattern: &str) -> String {
    let mut written = String::with_capacity(pattern.len());
    let (mut rest, mut is_escaped, mut is_in_class) = (pattern, false, false);
    while let Some(c) = rest.chars().next() {
        if !is_escaped && !is_in_class && rest.starts_with(ANY_WRITTEN) {
            written.push_str(ANY);
            rest = &rest[ANY_WRITTEN.len()..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '.' if !is_escaped && !is_in_class => written.push_str(DOT),
            'b' if is_escaped && is_in_class => {
                written.pop();
                written.push_str(BACKSPACE);
            }
            _ => written.push(c),
        }
        match c {
            '[' if !is_escaped => is_in_class = true,
            ']' if !is_escaped => is_in_class = false,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    written
}

/// Whether a class has no end. Cost: O(length).
pub(super) fn has_open_class(pattern: &str) -> bool {
    let (mut is_escaped, mut is_in_class) = (false, false);
    for c in pattern.chars() {
        match c {
            '[' if !is_escaped => is_in_class = true,
            ']' if !is_escaped => is_in_class = false,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    is_in_class
}

/// The pattern as its author wrote it.
pub(super) fn as_written(pattern: &str) -> String {
    let pattern = pattern.replace(DOT, ".").replace(ANY, ANY_WRITTEN);
    pattern.replace(BACKSPACE, r"\b")
}

#[cfg(test)]
mod tests {
    use super::super::pattern_price::steps_per_byte;
    use super::*;

    #[test]
    fn a_dot_is_replaced_where_it_is_no_character() {
        for (pattern, expected) in [
            ("^a.b$", "^aDOTb$"),
            (r"a\.b", r"a\.b"),
            (r"a\\.b", r"a\\DOTb"),
            ("[.a].", "[.a]DOT"),
            (r"[\].].", r"[\].]DOT"),
            (r"\[.", r"\[DOT"),
        ] {
            assert_eq!(
                of_author(pattern),
                expected.replace("DOT", DOT),
                "{pattern}"
            );
            assert_eq!(as_written(&of_author(pattern)), pattern);
        }
    }

    #[test]
    fn any_character_and_a_backspace_are_written_as_the_compiler_takes_them() {
        for (pattern, expected) in [
            ("^[^]*$", "^ANY*$"),
            ("[^][^]]", "ANYANY]"),
            (r"[\b]", r"[BS]"),
            (r"[^a\b-\t]\b", r"[^aBS-\t]\b"),
            (r"[\\b]", r"[\\b]"),
            (r"\[^]", r"\[^]"),
            ("[a[^]", "[a[^]"),
            (r"[\]^]", r"[\]^]"),
        ] {
            let expected = expected.replace("ANY", ANY).replace("BS", BACKSPACE);
            assert_eq!(of_author(pattern), expected, "{pattern}");
            assert_eq!(as_written(&of_author(pattern)), pattern);
        }
    }

    #[test]
    fn a_pattern_costs_what_its_text_costs() {
        for pattern in ["[^]", "[^]{99}", "[^](a{99}){10}]", r"[\b]{99}", ".{99}"] {
            let written = steps_per_byte(&of_author(pattern));
            assert_eq!(written, steps_per_byte(pattern), "{pattern}");
        }
    }

    #[test]
    fn a_class_is_open_until_its_bracket() {
        for open in ["[", "[^", "a[b", r"[\]", "[^][", "[a[b"] {
            assert!(has_open_class(open), "{open}");
        }
        for closed in ["", "[^]", "[a]", r"\[", "[[]", "]", r"[\[]"] {
            assert!(!has_open_class(closed), "{closed}");
        }
    }
}
