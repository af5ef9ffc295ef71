//! Parses ages as people write them.

use std::time::Duration;

/// The least age: repetitions of calls, subscribers that reconnect and people who look at what just
/// ended find it.
pub const AGE_MIN: Duration = Duration::from_secs(3600);
/// The greatest age: a hundred years, so that times before it can be told.
pub const AGE_MAX: Duration = Duration::from_secs(36_500 * 86_400);

/// Reads `30d`, `12h`, `90m` or `3600s`.
///
/// # Errors
/// What would be accepted.
pub fn age(text: &str) -> Result<Duration, String> {
    let expected = "expected a whole number of days, hours, minutes or seconds from `1h` to `36500d`, \
                    such as `30d`, `12h`, `90m` or `3600s`";
    let unit = |(at, unit): (usize, char)| {
        let seconds = match unit {
            'd' => 86_400,
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        Some((at, seconds))
    };
    let parsed = text.char_indices().last().and_then(unit);
    let seconds = parsed.and_then(|(at, unit)| {
        let digits = &text[..at];
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        let count: u64 = digits.parse().ok().filter(|_| plain)?;
        count.checked_mul(unit)
    });
    seconds
        .map(Duration::from_secs)
        .filter(|age| (AGE_MIN..=AGE_MAX).contains(age))
        .ok_or_else(|| expected.to_owned())
}

#[cfg(test)]
mod tests {
    use super::age;
    use std::time::Duration;

    #[test]
    fn an_age_has_a_number_and_a_unit() {
        for (text, seconds) in [
            ("30d", 2_592_000),
            ("1h", 3600),
            ("90m", 5400),
            ("3600s", 3600),
            ("36500d", 3_153_600_000),
        ] {
            assert_eq!(age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_what_is_accepted() {
        for text in [
            "",
            "d",
            "30",
            "30 d",
            "+30d",
            "-1d",
            "1.5d",
            "59m",
            "0d",
            "36501d",
            "3w",
            "99999999999999999999d",
            "213503982334601d",
        ] {
            let refused = age(text).unwrap_err();
            assert!(refused.contains("`30d`"), "{text}: {refused}");
        }
    }
}
