//! Parses times and durations of tokens as people write them.

/// Reads `30d`, `12h`, `90m` or `0s` as seconds.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let unit = |last: char| match last {
        'd' => Some(86_400),
        'h' => Some(3_600),
        'm' => Some(60),
        's' => Some(1),
        _ => None,
    };
    let read = || {
        let unit: u64 = unit(text.chars().last()?)?;
        let digits = &text[..text.len() - 1];
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let count: u64 = digits.parse().ok().filter(|_| plain)?;
        count.checked_mul(unit)
    };
    let expected = "expected a whole number of days, hours, minutes or seconds, such as `30d` or `12h`; a year is `365d`";
    read().ok_or_else(|| expected.to_owned())
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn a_time_has_a_number_and_a_unit() {
        for (text, expected) in [
            ("0s", 0),
            ("90m", 5_400),
            ("12h", 43_200),
            ("30d", 2_592_000),
        ] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for bad in [
            "",
            "d",
            "30",
            "-1d",
            "+1d",
            "1.5h",
            "30ü",
            "99999999999999999999d",
        ] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
