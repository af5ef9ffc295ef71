//! Regular expressions of ECMA 262, which JSON Schema names (draft-07 6.3.3), for the compiler of this program.

/// What `.` matches: all but the line terminators of ECMA 262, of which the compiler knows the first only.
const DOT: &str = "[^\n\r\u{2028}\u{2029}]";

/// A pattern in which `.` means what ECMA 262 says. Cost: O(length).
pub(super) fn of_author(pattern: &str) -> String {
    let mut written = String::with_capacity(pattern.len());
    let (mut is_escaped, mut is_in_class) = (false, false);
    for c in pattern.chars() {
        if c == '.' && !is_escaped && !is_in_class {
            written.push_str(DOT);
            continue;
        }
        match c {
            '[' if !is_escaped => is_in_class = true,
            ']' if !is_escaped => is_in_class = false,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
        written.push(c);
    }
    written
}

/// The pattern as its author wrote it.
pub(super) fn as_written(pattern: &str) -> String {
    pattern.replace(DOT, ".")
}

#[cfg(test)]
mod tests {
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
}
