//! The memory that the values of a JSON text take. It can be eighty times the text: each object has room for eleven
//! members from its first one on.

/// Bytes of memory that the values of one body may take. A list of 2,700,000 numbers takes as much, or 400,000 objects.
pub(crate) const VALUES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes of a text up to which its values cannot take more than [`VALUES_BYTES_MAX`].
const SMALL_BYTES_MAX: usize = VALUES_BYTES_MAX / OBJECT_BYTES;
/// Bytes of an object with one to eleven members.
const OBJECT_BYTES: usize = 640;
/// Bytes of a list that is not empty.
const LIST_BYTES: usize = 128;
/// Bytes of each further value of a list or an object, with its name; lists and objects grow to twice their size.
const FURTHER_VALUE_BYTES: usize = 96;

/// Whether the values of `text` take more than [`VALUES_BYTES_MAX`]; an estimate from its brackets and commas. Cost:
/// O(bytes), about a nanosecond each.
pub(crate) fn is_too_large(text: &[u8]) -> bool {
    text.len() > SMALL_BYTES_MAX && values_bytes(text) > VALUES_BYTES_MAX
}

fn values_bytes(text: &[u8]) -> usize {
    let mut bytes = text.len();
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        bytes += match byte {
            b'{' => OBJECT_BYTES,
            b'[' => LIST_BYTES,
            b',' => FURTHER_VALUE_BYTES,
            b'"' => {
                skip_string(&mut rest);
                0
            }
            _ => 0,
        };
    }
    bytes
}

/// Goes behind the end of a string whose first quote was read.
fn skip_string(rest: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => return,
            b'\\' => _ = rest.next(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_commas_within_strings_are_no_values() {
        let plain = br#"{"a": "x"}"#;
        let tricky = br#"{"a": ",[{\",{\\"}"#;
        assert_eq!(values_bytes(plain) - plain.len(), OBJECT_BYTES);
        assert_eq!(values_bytes(tricky) - tricky.len(), OBJECT_BYTES);
        assert_eq!(
            values_bytes(br#""\"#),
            2,
            "a text that ends within a string"
        );
    }

    #[test]
    fn texts_of_small_objects_are_too_large_and_texts_of_long_strings_are_not() {
        let objects = format!("[{}]", vec![r#"{"":0}"#; 400_000].join(","));
        assert!(is_too_large(objects.as_bytes()));
        let numbers = format!("[{}]", vec!["0"; 2_800_000].join(","));
        assert!(is_too_large(numbers.as_bytes()));
        let strings = format!(
            "[{}]",
            vec![format!("\"{}\"", "{,".repeat(500)); 16_000].join(",")
        );
        assert!(!is_too_large(strings.as_bytes()));
    }
}
