//! The frames of HTTP/2 (RFC 9113 4.1) in a stream of bytes, by their headers alone, and what each one costs a
//! connection of its [`Overhead`](crate::transport::overhead::Overhead).

/// What a client sends first on a connection of HTTP/2.
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of the header of a frame.
const HEADER_BYTES: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const GOAWAY: u8 = 0x7;
const CONTINUATION: u8 = 0x9;
const PADDED: u8 = 0x8;
const ENHANCE_YOUR_CALM: u32 = 0xb;

/// Bytes that each frame is counted as at least.
pub(super) const FRAME_BYTES: u32 = 64;
/// Bytes that a request adds: the frames that go with it, such as the end of its body, RST_STREAM and PRIORITY.
pub(super) const REQUEST_EARNS_BYTES: u32 = 16 * FRAME_BYTES;
/// Bytes that a frame of an answer adds: clients answer each one with up to two WINDOW_UPDATE and a PING.
const ANSWER_FRAME_EARNS_BYTES: u32 = 4 * FRAME_BYTES;
/// Bytes of an answer that add one byte: clients with small buffers send WINDOW_UPDATE every 4 KiB.
const ANSWER_BYTES_PER_BYTE: u32 = 16;

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    length: u32,
    kind: u8,
    flags: u8,
    pub(super) stream: u32,
}

impl Frame {
    /// What it costs a client to send it. Bodies are limited elsewhere, so frames of them cost only what they carry
    /// less than [`FRAME_BYTES`]. Padding is no body.
    pub(super) fn cost(self) -> u32 {
        match self.kind {
            DATA if self.flags & PADDED == 0 => FRAME_BYTES.saturating_sub(self.length),
            // The header block of a request has a limit of its own.
            HEADERS | CONTINUATION => FRAME_BYTES,
            _ => FRAME_BYTES + self.length,
        }
    }

    /// What it adds for the client when the server sends it: answers do, acknowledgements do not.
    pub(super) fn earns(self) -> u32 {
        match self.kind {
            DATA => ANSWER_FRAME_EARNS_BYTES + self.length / ANSWER_BYTES_PER_BYTE,
            HEADERS => ANSWER_FRAME_EARNS_BYTES,
            _ => 0,
        }
    }
}

/// Finds the frames in bytes that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// Bytes of the payload of the last frame that are still to come.
    payload_bytes: usize,
}

impl FrameReader {
    /// Calls `found` for each frame whose header ends in `bytes`, which follow those of the last call.
    pub(super) fn scan(&mut self, mut bytes: &[u8], mut found: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            let skipped = self.payload_bytes.min(bytes.len());
            self.payload_bytes -= skipped;
            bytes = &bytes[skipped..];
            let taken = (HEADER_BYTES - self.header_bytes).min(bytes.len());
            let (head, rest) = bytes.split_at(taken);
            self.header[self.header_bytes..][..taken].copy_from_slice(head);
            self.header_bytes += taken;
            bytes = rest;
            if self.header_bytes == HEADER_BYTES {
                let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = self.header;
                let length = u32::from_be_bytes([0, l0, l1, l2]);
                self.header_bytes = 0;
                self.payload_bytes = usize::try_from(length).expect("24 bits fit");
                found(Frame {
                    length,
                    kind,
                    flags,
                    // The first bit is reserved.
                    stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
                });
            }
        }
    }

    /// Whether the bytes so far end with a whole frame.
    pub(super) const fn is_between_frames(&self) -> bool {
        self.header_bytes == 0 && self.payload_bytes == 0
    }
}

/// GOAWAY with ENHANCE_YOUR_CALM (RFC 9113 10.5): requests after stream `last` were not handled.
pub(super) fn enhance_your_calm(last: u32) -> [u8; HEADER_BYTES + 8] {
    let mut frame = [0; HEADER_BYTES + 8];
    frame[..4].copy_from_slice(&[0, 0, 8, GOAWAY]);
    frame[9..13].copy_from_slice(&last.to_be_bytes());
    frame[13..].copy_from_slice(&ENHANCE_YOUR_CALM.to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len())
            .expect("it is short")
            .to_be_bytes();
        let mut bytes = length[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn frames_are_found_however_the_bytes_are_cut() {
        let bytes = [
            written(4, 0, 0, &[1; 12]),
            written(DATA, 0, 3, &[2; 300]),
            written(6, 1, 0, &[3; 8]),
            written(DATA, 1, 0x8000_0003, &[]),
        ]
        .concat();
        for cut in 1..bytes.len() {
            let (mut reader, mut found) = (FrameReader::default(), Vec::new());
            for piece in bytes.chunks(cut) {
                reader.scan(piece, |frame| {
                    found.push((frame.kind, frame.length, frame.stream))
                });
            }
            let expected = [(4, 12, 0), (DATA, 300, 3), (6, 8, 0), (DATA, 0, 3)];
            assert_eq!(found, expected, "pieces of {cut} bytes");
            assert!(reader.is_between_frames());
        }
    }

    #[test]
    fn a_reader_within_a_frame_says_so() {
        let bytes = written(DATA, 0, 1, &[0; 4]);
        for end in 1..bytes.len() {
            let mut reader = FrameReader::default();
            reader.scan(&bytes[..end], |_| {});
            assert!(!reader.is_between_frames(), "after {end} bytes");
        }
    }

    #[test]
    fn what_carries_no_body_costs_and_what_carries_one_does_not() {
        let frame = |kind, flags, length| Frame {
            length,
            kind,
            flags,
            stream: 1,
        };
        for kind in [2, 3, 4, 6, 8, 0x77] {
            assert!(frame(kind, 0, 0).cost() >= FRAME_BYTES, "type {kind}");
            assert_eq!(frame(kind, 0, 0).earns(), 0, "type {kind}");
        }
        assert_eq!(frame(DATA, 0, 0).cost(), FRAME_BYTES);
        assert_eq!(frame(DATA, 0, 16_384).cost(), 0);
        assert!(frame(DATA, PADDED, 256).cost() >= FRAME_BYTES);
        assert!(frame(4, 0, 16_384).cost() > 16_384);
        assert!(frame(DATA, 0, 16_384).earns() > frame(DATA, 0, 1).earns());
    }
}
