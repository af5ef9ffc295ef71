//! Output of a program, kept within bounds: the beginning up to a cap, the last few bytes for
//! error texts, and a count of everything. Shown without the secrets of the attempt, those that would be cut
//! included: a little more is kept than shown.

use std::borrow::Cow;
use taskledger_domain::payload::json_length;
use taskledger_sealing::Scrubber;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes of the end of the output that are kept for an error text.
const END_BYTES_MAX: usize = 2 * 1024;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// The captured output of a program.
#[derive(Debug)]
pub struct Captured {
    kept: Vec<u8>,
    end: Vec<u8>,
    total: u64,
    bytes_max: usize,
    scrubber: Scrubber,
}

impl Captured {
    /// Keeps so many bytes of the beginning.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self::scrubbed(bytes_max, Scrubber::default())
    }

    /// Keeps so many bytes of the beginning, and shows none of the secrets that `scrubber` knows.
    #[must_use]
    pub fn scrubbed(bytes_max: usize, scrubber: Scrubber) -> Self {
        Self {
            kept: Vec::new(),
            end: Vec::new(),
            total: 0,
            bytes_max,
            scrubber,
        }
    }

    /// Reads `source` to its end. What was read stays here when the future is dropped.
    pub async fn fill(&mut self, source: Option<impl AsyncRead + Unpin>) {
        self.fill_while(|_| true, source).await;
    }

    /// The same, but only until more has come than is kept; then nobody reads it any more.
    pub async fn fill_until_full(&mut self, source: Option<impl AsyncRead + Unpin>) {
        self.fill_while(|it| !it.is_truncated(), source).await;
    }

    async fn fill_while(
        &mut self,
        goes_on: impl Fn(&Self) -> bool,
        source: Option<impl AsyncRead + Unpin>,
    ) {
        let Some(mut source) = source else { return };
        let mut chunk = vec![0; CHUNK_BYTES];
        // A pipe that cannot be read has ended as far as we are concerned.
        while goes_on(self)
            && let Ok(length @ 1..) = source.read(&mut chunk).await
        {
            self.take(&chunk[..length]);
        }
    }

    /// Adds what was read elsewhere.
    pub fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.bytes_max + self.scrubber.reach() - self.kept.len();
        self.kept.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.end.extend_from_slice(bytes);
        let end_bytes_max = END_BYTES_MAX + self.scrubber.reach();
        let surplus = self.end.len().saturating_sub(end_bytes_max);
        self.end.drain(..surplus);
    }

    /// Bytes that came, kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The beginning as it came, secrets included.
    pub fn kept(&self) -> &[u8] {
        &self.kept[..self.kept.len().min(self.bytes_max)]
    }

    /// Whether more has come than is kept.
    pub fn is_truncated(&self) -> bool {
        self.total > self.kept().len() as u64
    }

    /// The beginning, as text that takes at most `json_bytes_max` bytes in JSON, and whether
    /// something is missing. Bytes that are no UTF-8 become U+FFFD.
    pub fn text(&self, json_bytes_max: usize) -> (String, bool) {
        let kept = self.scrubber.part(&self.kept, 0..self.kept().len());
        let mut text = String::from_utf8_lossy(&kept).into_owned();
        let mut truncated = self.is_truncated();
        if truncated && text.ends_with('\u{fffd}') {
            text.pop(); // a character that was cut in two
        }
        let mut json_bytes = 2;
        let fitting = text.char_indices().find_map(|(at, character)| {
            json_bytes += json_length(character);
            (json_bytes > json_bytes_max).then_some(at)
        });
        if let Some(at) = fitting {
            text.truncate(at);
            truncated = true;
        }
        (text, truncated)
    }

    /// The last bytes as text without surrounding blanks.
    pub fn end_text(&self) -> String {
        let start = self.end.len().saturating_sub(END_BYTES_MAX);
        let end = self.scrubber.part(&self.end, start..self.end.len());
        let text: Cow<'_, str> = String::from_utf8_lossy(&end);
        let whole = self.total <= END_BYTES_MAX as u64;
        let text = if whole {
            &text[..]
        } else {
            text.trim_start_matches('\u{fffd}')
        };
        text.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Captured, END_BYTES_MAX};

    async fn captured(bytes: &[u8], bytes_max: usize) -> Captured {
        let mut captured = Captured::new(bytes_max);
        captured.fill(Some(bytes)).await;
        captured
    }

    #[tokio::test]
    async fn the_beginning_is_kept_and_everything_is_counted() {
        let bytes = vec![b'x'; 100_000];
        let all = captured(&bytes, 100_000).await;
        assert_eq!((all.total(), all.text(usize::MAX).1), (100_000, false));
        let some = captured(&bytes, 99_999).await;
        let (text, truncated) = some.text(usize::MAX);
        assert_eq!(
            (some.total(), text.len(), truncated),
            (100_000, 99_999, true)
        );
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_become_marks() {
        let (text, truncated) = captured(b"a\xffb", 10).await.text(usize::MAX);
        assert_eq!((text.as_str(), truncated), ("a\u{fffd}b", false));
        let (text, truncated) = captured("aä".as_bytes(), 2).await.text(usize::MAX);
        assert_eq!((text.as_str(), truncated), ("a", true));
    }

    #[tokio::test]
    async fn the_json_text_is_bounded_whatever_the_characters() {
        for bytes in [
            &b"\x01\x02\x03\x04"[..],
            b"\"\\\n\t\"\\",
            b"plain text",
            "äöü€".as_bytes(),
            b"\xff\xfe\x80",
        ] {
            let captured = captured(bytes, 100).await;
            for bytes_max in 2..40 {
                let (text, truncated) = captured.text(bytes_max);
                let json = serde_json::to_string(&text).unwrap();
                assert!(json.len() <= bytes_max, "{json}");
                assert_eq!(truncated, text != String::from_utf8_lossy(bytes));
            }
        }
    }

    #[tokio::test]
    async fn the_end_is_kept_for_errors() {
        let text = format!("{}the end\n", "x".repeat(10 * END_BYTES_MAX));
        let end = captured(text.as_bytes(), 5).await.end_text();
        assert!(end.ends_with("xthe end") && end.len() < END_BYTES_MAX);
        assert_eq!(captured(b" short\n", 5).await.end_text(), "short");
    }
}
