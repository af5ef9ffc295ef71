//! Parses the lines in which programs report their progress.

use taskledger_domain::limits::MESSAGE_CHARS_MAX;

/// The progress that a program has reported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Progress {
    /// 0.0 to 1.0.
    pub(super) value: f64,
    /// Cut to what a server takes; absent when the line has none.
    pub(super) message: Option<String>,
}

/// Reads `progress 0.5 message`; `None`: the line is something else.
pub(super) fn progress(line: &str) -> Option<Progress> {
    let rest = line.strip_prefix("progress ")?.trim();
    let (value, message) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let value: f64 = value.parse().ok()?;
    if !(0.0..=1.0).contains(&value) {
        return None;
    }
    let message: String = message.trim().chars().take(MESSAGE_CHARS_MAX).collect();
    Some(Progress {
        value,
        message: (!message.is_empty()).then_some(message),
    })
}

#[cfg(test)]
mod tests {
    use super::progress;

    #[test]
    fn a_line_has_a_number_and_perhaps_a_message() {
        let read = |line: &str| progress(line).map(|p| (p.value, p.message));
        assert_eq!(
            read("progress 0.5 half done"),
            Some((0.5, Some("half done".to_owned())))
        );
        assert_eq!(read("progress 1"), Some((1.0, None)));
        assert_eq!(read("progress   0  "), Some((0.0, None)));
        let long = format!("progress 0 {}", "é".repeat(2000));
        let cut = read(&long).and_then(|(_, message)| message);
        assert_eq!(cut.map(|text| text.chars().count()), Some(1000));
        for other in [
            "",
            "progress",
            "progress half",
            "progress 1.5",
            "progress -0.1",
            "progress NaN",
            "progress: 0.5",
            " progress 0.5",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
