//! What matching a regular expression may cost for each byte of text, estimated from its text.
//!
//! Matching is linear in the text, but at worst (when the tables of the fast matcher overflow) each
//! byte visits each state of the program. A pattern of twelve characters can have a thousand
//! states: `[ab]{999}`. So states are counted the way the compiler makes them. A rough count is
//! enough: the limit on the program's bytes bounds what the estimate may miss.

/// States of a pattern that costs one step for each byte, as the fast matcher does: even its worst
/// case is no worse than that of the next price.
const STATES_SMALL: u64 = 16;
/// States that one step pays for in larger patterns. Most visit one state for each byte; this
/// keeps the worst ones within a few hundred milliseconds.
const STATES_PER_STEP: u64 = 4;
/// States of a class that also has characters outside of ASCII.
const WIDE_CLASS_STATES: u64 = 12;
/// States of a Unicode property such as `\p{L}`.
const PROPERTY_STATES: u64 = 300;

/// At least 1. Cost: O(length of the pattern).
pub(super) fn steps_per_byte(pattern: &str) -> u64 {
    match states(pattern) {
        0..=STATES_SMALL => 1,
        states => states.div_ceil(STATES_PER_STEP),
    }
}

fn states(pattern: &str) -> u64 {
    // For each open group: the states of what is complete, and of the last atom.
    let mut open = vec![(0_u64, 0_u64)];
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        let atom = match character {
            '(' => {
                open.push((0, 0));
                continue;
            }
            ')' => {
                let (done, last) = open.pop().unwrap_or_default();
                if open.is_empty() {
                    open.push((0, 0)); // no valid pattern; the compiler says so
                }
                done.saturating_add(last).saturating_add(2)
            }
            '*' | '+' | '?' => {
                if let Some((done, _)) = open.last_mut() {
                    *done = done.saturating_add(1);
                }
                continue;
            }
            '{' => match repetition(rest.as_str()) {
                Some((times, length)) => {
                    if let Some((_, last)) = open.last_mut() {
                        *last = last.saturating_add(1).saturating_mul(times);
                    }
                    rest = rest.as_str()[length..].chars();
                    continue;
                }
                None => 1,
            },
            '[' => class(&mut rest),
            '\\' => escape(&mut rest),
            '.' => WIDE_CLASS_STATES,
            other => other.len_utf8() as u64,
        };
        if let Some((done, last)) = open.last_mut() {
            *done = done.saturating_add(*last);
            *last = atom;
        }
    }
    open.iter().fold(0, |sum: u64, (done, last)| {
        sum.saturating_add(*done).saturating_add(*last)
    })
}

/// The rest of an escape, after its backslash.
fn escape(rest: &mut std::str::Chars<'_>) -> u64 {
    match rest.next() {
        Some('p' | 'P') => {
            if let Some(name) = rest.as_str().strip_prefix('{') {
                let after = name.find('}').map_or("", |end| &name[end + 1..]);
                *rest = after.chars();
            }
            PROPERTY_STATES
        }
        Some('D' | 'W' | 'S' | 's') => WIDE_CLASS_STATES,
        Some(_) | None => 1,
    }
}

/// The rest of a class, after its bracket.
fn class(rest: &mut std::str::Chars<'_>) -> u64 {
    let mut states = 1;
    let mut first = true;
    while let Some(character) = rest.next() {
        states = states.max(match character {
            ']' if !first => break,
            '^' if first => WIDE_CLASS_STATES,
            '\\' => escape(rest),
            other if !other.is_ascii() => WIDE_CLASS_STATES,
            _ => 1,
        });
        first = false;
    }
    states
}

/// How often at most `{n}`, `{n,}` or `{n,m}` repeats, and its length after the brace.
fn repetition(rest: &str) -> Option<(u64, usize)> {
    let length = rest.find('}')?;
    let (least, most) = match rest[..length].split_once(',') {
        None => (&rest[..length], &rest[..length]),
        Some((least, "")) => (least, least),
        Some(both) => both,
    };
    let (least, most) = (least.parse::<u64>().ok()?, most.parse::<u64>().ok()?);
    Some((least.max(most).max(1), length + 1))
}

#[cfg(test)]
mod tests {
    use super::{states, steps_per_byte};

    #[test]
    fn repetitions_multiply_and_nest() {
        for (pattern, at_least, at_most) in [
            ("", 0, 0),
            ("abc", 3, 3),
            ("[ab]{300}", 300, 700),
            ("(a{10}){10}", 100, 300),
            ("((a{1,100}){1,100}){1,100}", 1_000_000, 5_000_000),
            ("a{5,}", 5, 10),
            ("x{y}", 4, 4),
            (r"\p{L}{2}", 600, 700),
            ("[^a]", 12, 12),
            ("[]a]b", 2, 3),
            (r"[\]]b", 2, 2),
            ("a{18446744073709551615}{9}", u64::MAX, u64::MAX),
        ] {
            let counted = states(pattern);
            assert!(
                (at_least..=at_most).contains(&counted),
                "{pattern}: {counted}"
            );
        }
    }

    #[test]
    fn a_pattern_that_people_write_costs_little() {
        for (pattern, steps) in [("^[a-z]+$", 1), (r"^\S", 1), (r"^\d{4}-\d{2}-\d{2}$", 5)] {
            assert_eq!(steps_per_byte(pattern), steps, "{pattern}");
        }
    }

    #[test]
    fn broken_patterns_have_a_price_too() {
        for pattern in [
            ")))", "(((", "[", "\\", "{", "{1", "a{,3}", "a{3,2}", "*", "(?",
        ] {
            assert!(steps_per_byte(pattern) >= 1, "{pattern}");
        }
    }
}
