//! How data files write bytes: `\xNN` is a byte, `\(N,text)` the text N times (`)` ends the text);
//! everything else, other backslashes too, stands for itself. JSON has no use for either.

/// The bytes that `text` writes.
///
/// # Panics
/// When a number in `text` is none: a fault of the data file.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        if let Some((digits, after)) = rest.strip_prefix('x').and_then(|r| r.split_at_checked(2)) {
            bytes.push(u8::from_str_radix(digits, 16).expect("two digits follow `\\x`"));
            rest = after;
        } else if let Some((run, after)) = rest.strip_prefix('(').and_then(|r| r.split_once(')')) {
            let (times, piece) = run.split_once(',').expect("a number and a text");
            let times = times.parse().expect("a number of times");
            bytes.extend_from_slice(piece.repeat(times).as_bytes());
            rest = after;
        } else {
            bytes.push(b'\\');
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

#[test]
fn bytes_and_runs_are_read_and_other_backslashes_stay() {
    assert_eq!(bytes(r"a\n\x00\xfe\(3,[{)b\"), b"a\\n\x00\xfe[{[{[{b\\");
}
