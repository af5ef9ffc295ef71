//! The edition of a folder with compiled zones.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes that are read of a file that names the edition in its first line.
const READ_MAX: u64 = 200;

/// The edition that the files of a folder name: in `tzdata.zi`, the sources, or in `+VERSION`.
pub(crate) fn edition_of(folder: &Path) -> Option<String> {
    let first_line = |name: &str| {
        let mut text = Vec::new();
        let file = File::open(folder.join(name)).ok()?;
        file.take(READ_MAX).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        text.lines().next().map(str::to_owned)
    };
    let of_sources = first_line("tzdata.zi").and_then(|line| {
        line.strip_prefix("# version ")
            .map(|it| it.trim().to_owned())
    });
    let edition = of_sources.or_else(|| first_line("+VERSION").map(|it| it.trim().to_owned()))?;
    (!edition.is_empty()).then_some(edition)
}

/// Whether an edition came after another one. Those that are not a year and letters are newer than none.
pub(crate) fn is_newer(edition: &str, than: &str) -> bool {
    match (order(edition), order(than)) {
        (Some(edition), Some(than)) => edition > than,
        (None, _) | (_, None) => false,
    }
}

/// A year and the letters after it: `2026b` comes after `2026a`, and `2026za` after `2026z`.
fn order(edition: &str) -> Option<(u32, usize, &str)> {
    let (year, rest) = edition.split_at_checked(4)?;
    let letters = rest.find(|c: char| !c.is_ascii_lowercase());
    let letters = &rest[..letters.unwrap_or(rest.len())];
    if !year.bytes().all(|b| b.is_ascii_digit()) || letters.is_empty() {
        return None;
    }
    Some((year.parse().ok()?, letters.len(), letters))
}

#[cfg(test)]
mod tests {
    use super::is_newer;

    #[test]
    fn editions_follow_each_other() {
        for (later, earlier) in [
            ("2026b", "2026a"),
            ("2027a", "2026f"),
            ("2026za", "2026z"),
            ("2026g-0+deb13u1", "2026f"),
        ] {
            assert!(is_newer(later, earlier), "{later} {earlier}");
            assert!(!is_newer(earlier, later), "{later} {earlier}");
        }
        for (edition, than) in [("2026a", "2026a"), ("unknown", "2026a"), ("2027", "2026a")] {
            assert!(!is_newer(edition, than), "{edition} {than}");
        }
    }
}
