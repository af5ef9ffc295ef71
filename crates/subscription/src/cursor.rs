//! Cursors: the place of a subscriber as a text, which it sends back to continue.
//!
//! Owns: the form of cursors. To others a cursor is opaque: it names a place in this log and proves
//! that the place was really there, by a part of the event's id; what else is in the log, it does not
//! tell. A cursor of another log, or of one that was restored from an older backup, is recognised.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use taskledger_domain::{Position, Recorded, Version};

/// Characters of a cursor at most; longer texts are not looked at.
pub const CURSOR_CHARS_MAX: usize = 64;
/// Says which form the bytes have.
const FORM: u8 = 1;
/// Form, position, version, part, tag, checksum.
const BYTES: usize = 1 + 8 + 8 + 1 + 4 + 2;

/// A place behind a notice. Compares by the order of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cursor {
    /// The event; 0 = before the first one.
    pub position: Position,
    /// Notices of the event that lie before the place, at least 1 unless `position` is 0.
    pub parts: u8,
    /// The event's place in its own stream, which makes finding it there cheap.
    pub version: Version,
    /// The beginning of the event's id.
    pub tag: u32,
}

/// The text is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of this server")]
pub struct NotACursor;

/// A place behind all notices of an event, of which there are two at most: another one than that behind the second
/// notice, which says that this was told.
pub const PARTS_ALL: u8 = 3;
/// A place behind all of them at which, besides, the end of the flow was told: it had happened earlier.
/// Who goes on from there is not told again.
pub const PARTS_AND_END: u8 = PARTS_ALL + 1;

impl Cursor {
    /// Before everything.
    pub const BEGINNING: Self = Self {
        position: 0,
        parts: 0,
        version: 0,
        tag: 0,
    };

    /// The place behind the first `parts` notices of an event.
    #[must_use]
    pub fn behind(recorded: &Recorded, parts: u8) -> Self {
        Self {
            position: recorded.position,
            parts,
            version: recorded.version,
            tag: tag(recorded),
        }
    }

    /// The same place, once the end of the flow was told at it.
    #[must_use]
    pub const fn with_end(self) -> Self {
        Self {
            parts: PARTS_AND_END,
            ..self
        }
    }

    /// Whether it was made from this event.
    #[must_use]
    pub fn names(&self, recorded: &Recorded) -> bool {
        self.position == recorded.position && self.tag == tag(recorded)
    }

    /// Reads what [`std::fmt::Display`] writes.
    ///
    /// # Errors
    /// [`NotACursor`]: changed, cut off, or made by something else.
    pub fn parse(text: &str) -> Result<Self, NotACursor> {
        if text.len() > CURSOR_CHARS_MAX {
            return Err(NotACursor);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| NotACursor)?;
        let bytes: &[u8; BYTES] = bytes.as_slice().try_into().map_err(|_| NotACursor)?;
        let (body, sum) = bytes.split_at(BYTES - 2);
        if bytes[0] != FORM || checksum(body) != sum {
            return Err(NotACursor);
        }
        let long = |at: usize| {
            let bytes: [u8; 8] = body[at..at + 8].try_into().expect("eight bytes");
            u64::from_be_bytes(bytes)
        };
        let tag: [u8; 4] = body[18..22].try_into().expect("four bytes");
        Ok(Self {
            position: long(1),
            version: long(9),
            parts: body[17],
            tag: u32::from_be_bytes(tag),
        })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut bytes = [0; BYTES];
        bytes[0] = FORM;
        bytes[1..9].copy_from_slice(&self.position.to_be_bytes());
        bytes[9..17].copy_from_slice(&self.version.to_be_bytes());
        bytes[17] = self.parts;
        bytes[18..22].copy_from_slice(&self.tag.to_be_bytes());
        let sum = checksum(&bytes[..BYTES - 2]);
        bytes[BYTES - 2..].copy_from_slice(&sum);
        let mut text = [0; CURSOR_CHARS_MAX];
        let len = URL_SAFE_NO_PAD
            .encode_slice(bytes, &mut text)
            .map_err(|_| std::fmt::Error)?;
        f.write_str(std::str::from_utf8(&text[..len]).map_err(|_| std::fmt::Error)?)
    }
}

fn tag(recorded: &Recorded) -> u32 {
    recorded.id.0.as_fields().0
}

/// Keeps typing errors from being places.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let sum = crc32fast::hash(bytes).to_be_bytes();
    [sum[0], sum[1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Cursor = Cursor {
        position: 123_456_789_012,
        parts: 1,
        version: 42,
        tag: 0xdead_beef,
    };

    #[test]
    fn a_cursor_reads_as_it_was_written() {
        for cursor in [PLACE, Cursor::BEGINNING] {
            assert_eq!(Cursor::parse(&cursor.to_string()), Ok(cursor));
        }
    }

    #[test]
    fn a_text_that_was_changed_is_no_cursor() {
        let text = PLACE.to_string();
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("ASCII");
            assert_eq!(Cursor::parse(&changed), Err(NotACursor), "{changed}");
        }
        for bad in [
            "",
            "0",
            "latest",
            "-1",
            "AAAA",
            &text[1..],
            &"A".repeat(2000),
        ] {
            assert_eq!(Cursor::parse(bad), Err(NotACursor), "{bad}");
        }
    }

    #[test]
    fn a_text_holds_nothing_that_a_header_or_a_stream_cannot() {
        let text = PLACE.to_string();
        assert!(
            text.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        );
        assert!(text.len() <= CURSOR_CHARS_MAX);
    }
}
