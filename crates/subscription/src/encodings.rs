//! The encodings of a value in the formats of the doors: each is made once, by whoever first needs it, and shared.
//!
//! The formats belong to the doors; here they are only types that name them.

use bytes::Bytes;
use std::any::TypeId;
use std::sync::OnceLock;

/// The encodings of one value that were made so far. Reading takes no lock; a first encoding keeps others
/// who need the same one waiting for as long as it takes.
#[derive(Debug, Default)]
pub struct Encodings {
    first: OnceLock<Box<Entry>>,
}

#[derive(Debug)]
struct Entry {
    format: TypeId,
    bytes: Bytes,
    others: Encodings,
}

impl Encodings {
    /// The encoding in the format that `F` names, made by `encode` if there is none yet. Cost: O(formats
    /// in use), and once that of `encode`.
    pub fn get_or_encode<F: 'static>(&self, encode: impl FnOnce() -> Bytes) -> &Bytes {
        let format = TypeId::of::<F>();
        let (mut encode, mut encodings) = (Some(encode), self);
        loop {
            let entry = encodings.first.get_or_init(|| {
                let encode = encode.take().expect("whoever fills an entry stops at it");
                Box::new(Entry {
                    format,
                    bytes: encode(),
                    others: Self::default(),
                })
            });
            if entry.format == format {
                return &entry.bytes;
            }
            encodings = &entry.others;
        }
    }

    /// The encoding in the format that `F` names, if it was made.
    #[must_use]
    pub fn get<F: 'static>(&self) -> Option<&Bytes> {
        let mut encodings = self;
        loop {
            let entry = encodings.first.get()?;
            if entry.format == TypeId::of::<F>() {
                return Some(&entry.bytes);
            }
            encodings = &entry.others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Encodings;
    use bytes::Bytes;
    use std::cell::Cell;

    struct Short;
    struct Long;

    #[test]
    fn each_format_is_encoded_once() {
        let made = Cell::new(0);
        let make = |text: &'static str| {
            made.set(made.get() + 1);
            Bytes::from_static(text.as_bytes())
        };
        let encodings = Encodings::default();
        assert_eq!(encodings.get::<Short>(), None);
        for _ in 0..2 {
            assert_eq!(encodings.get_or_encode::<Short>(|| make("s")), "s");
            assert_eq!(encodings.get_or_encode::<Long>(|| make("long")), "long");
        }
        assert_eq!(made.get(), 2);
        assert_eq!(
            encodings.get::<Long>().map(|bytes| &bytes[..]),
            Some(&b"long"[..])
        );
    }
}
