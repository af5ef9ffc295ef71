//! The text of a token: `tl_<id 16>_<secret 52><checksum 7>`, in lower-case base32 (`a` to `z`, `2` to `7`).
//!
//! The id (80 random bits) is public: it names the token in lists and in the audit log. The secret (256 random
//! bits) is known to its holder alone; what is kept of it is its SHA-256, which needs no slow hash because the
//! secret is random. The checksum (CRC-32 of all that stands before it) lets scanners recognise a token, and
//! tells a slip of the pen from a token that is gone. Nothing here shows a secret in `Debug` or in an error.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq as _;
use taskledger_clock::Clock;

/// Begins every token.
pub const PREFIX: &str = "tl_";
/// Characters of the id: 80 bits.
pub const ID_CHARS: usize = 16;
/// Characters of the secret: 256 bits.
const SECRET_CHARS: usize = 52;
/// Characters of the checksum: 32 bits.
const CHECKSUM_CHARS: usize = 7;
/// Where the secret begins, after the id and `_`.
const SECRET_AT: usize = PREFIX.len() + ID_CHARS + 1;
const CHECKSUM_AT: usize = SECRET_AT + SECRET_CHARS;
/// Characters of a token.
pub const TOKEN_CHARS: usize = CHECKSUM_AT + CHECKSUM_CHARS;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Why a text is no token. Says where, never what stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It begins with something else.
    #[error("a token begins with `{PREFIX}`")]
    Prefix,
    /// It is cut off, or something was added.
    #[error("a token has {TOKEN_CHARS} characters, this text has {0}")]
    Length(usize),
    /// A character that no token has.
    #[error(
        "character {0} of the token is none of `a` to `z` and `2` to `7`, or of the two `_` in it"
    )]
    Character(usize),
    /// At least one character is another than when it was made.
    #[error("the checksum of the token does not match: at least one character is wrong")]
    Checksum,
}

/// The public name of a token.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenId(Arc<str>);

impl TokenId {
    /// The id with this text; `None`: no id looks like that.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == ID_CHARS && text.bytes().all(|byte| value(byte).is_some());
        fits.then(|| Self(Arc::from(text)))
    }

    /// Its text.
    #[must_use]
    pub const fn as_str(&self) -> &Arc<str> {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The SHA-256 of a secret, or of a whole credential.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Computes the digest of this text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Whether both are equal, in a time that does not tell where they differ.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for Digest {
    /// Without its bytes: they are of no use in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

/// A token as its holder has it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    id: TokenId,
    text: Arc<str>,
}

impl fmt::Debug for Token {
    /// Without its secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, ..)", self.id)
    }
}

impl Token {
    /// A fresh one with a fresh id.
    #[must_use]
    pub fn fresh(clock: &dyn Clock) -> Self {
        let random = clock.bytes32();
        let mut id = String::with_capacity(ID_CHARS);
        encode(&random[..10], &mut id);
        Self::of(TokenId(Arc::from(id)), &clock.bytes32())
    }

    /// A fresh secret for a token that there is.
    #[must_use]
    pub fn again(id: &TokenId, clock: &dyn Clock) -> Self {
        Self::of(id.clone(), &clock.bytes32())
    }

    fn of(id: TokenId, secret: &[u8; 32]) -> Self {
        let mut text = String::with_capacity(TOKEN_CHARS);
        text.push_str(PREFIX);
        text.push_str(&id.0);
        text.push('_');
        encode(secret, &mut text);
        let checksum = crc32fast::hash(text.as_bytes());
        encode(&checksum.to_be_bytes(), &mut text);
        Self {
            id,
            text: Arc::from(text),
        }
    }

    /// Reads a token. Cost: one pass over the text; nothing is looked up.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        if !text.starts_with(PREFIX) {
            return Err(Malformed::Prefix);
        }
        let wrong = text.char_indices().position(|(at, c)| match at {
            0..3 => false,
            _ if at == SECRET_AT - 1 => c != '_',
            _ => u8::try_from(c).ok().and_then(value).is_none(),
        });
        // A text of another length is told by its length, unless its beginning is none of a token.
        match wrong {
            Some(at) if at < TOKEN_CHARS => return Err(Malformed::Character(at + 1)),
            Some(_) | None => {}
        }
        if text.len() != TOKEN_CHARS {
            return Err(Malformed::Length(text.chars().count()));
        }
        // The characters of a secret and of a checksum have bits to spare, which are zero in what we make.
        let checksum = crc32fast::hash(&text.as_bytes()[..CHECKSUM_AT]);
        let mut expected = String::with_capacity(CHECKSUM_CHARS);
        encode(&checksum.to_be_bytes(), &mut expected);
        if text[CHECKSUM_AT..] != expected {
            return Err(Malformed::Checksum);
        }
        Ok(Self {
            id: TokenId(Arc::from(&text[PREFIX.len()..SECRET_AT - 1])),
            text: Arc::from(text),
        })
    }

    /// Its public name.
    #[must_use]
    pub const fn id(&self) -> &TokenId {
        &self.id
    }

    /// What is kept of its secret.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.text[SECRET_AT..CHECKSUM_AT])
    }

    /// The whole text, secret included: for its holder alone, shown once.
    #[must_use]
    pub const fn reveal(&self) -> &Arc<str> {
        &self.text
    }
}

/// Appends bytes in base32 without padding; spare bits of the last character are zero.
fn encode(bytes: &[u8], text: &mut String) {
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(letter(held >> bits));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(letter(held << (5 - bits)));
    }
}

fn letter(value: u32) -> char {
    char::from(ALPHABET[(value & 31) as usize])
}

/// The five bits of a character; `None`: it is none of the alphabet.
fn value(byte: u8) -> Option<u8> {
    match byte {
        b'a'..=b'z' => Some(byte - b'a'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use taskledger_clock::SystemClock;

    fn fresh() -> Token {
        Token::fresh(&SystemClock::default())
    }

    #[test]
    fn a_token_is_read_as_it_was_made() {
        let token = fresh();
        assert_eq!(token.reveal().len(), TOKEN_CHARS);
        assert_eq!(Token::parse(token.reveal()), Ok(token.clone()));
        let again = Token::again(token.id(), &SystemClock::default());
        assert_eq!(again.id(), token.id());
        assert!(!again.digest().matches(&token.digest()));
    }

    #[test]
    fn base32_is_that_of_rfc_4648_in_lower_case() {
        for (bytes, expected) in [
            (&b"f"[..], "my"),
            (b"fo", "mzxq"),
            (b"foo", "mzxw6"),
            (b"foobar", "mzxw6ytboi"),
        ] {
            let mut text = String::new();
            encode(bytes, &mut text);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn what_is_wrong_is_told_and_nothing_of_the_text() {
        let token = fresh();
        let text: &str = token.reveal();
        let upper = text.to_uppercase().replacen("TL_", "tl_", 1);
        for (bad, reason) in [
            (String::new(), Malformed::Prefix),
            ("Bearer x".to_owned(), Malformed::Prefix),
            ("tl_".to_owned(), Malformed::Length(3)),
            (
                text[..TOKEN_CHARS - 1].to_owned(),
                Malformed::Length(TOKEN_CHARS - 1),
            ),
            (format!("{text}a"), Malformed::Length(TOKEN_CHARS + 1)),
            (text.replacen("_", "-", 2), Malformed::Prefix),
            (
                format!("{}1{}", &text[..30], &text[31..]),
                Malformed::Character(31),
            ),
            (
                format!("{}ü{}", &text[..30], &text[32..]),
                Malformed::Character(31),
            ),
            (
                format!("{}a{}", &text[..SECRET_AT - 1], &text[SECRET_AT..]),
                Malformed::Character(SECRET_AT),
            ),
        ] {
            assert_eq!(Token::parse(&bad), Err(reason), "{bad}");
        }
        assert!(matches!(Token::parse(&upper), Err(Malformed::Character(_))));
    }

    #[test]
    fn no_debug_output_holds_a_secret() {
        let token = fresh();
        let secret = &token.reveal()[SECRET_AT..];
        let shown = format!("{token:?} {:?} {:?}", token.digest(), token.id());
        assert!(!shown.contains(&secret[..8]), "{shown}");
        assert!(shown.contains(&**token.id().as_str()));
    }

    proptest! {
        #[test]
        fn one_wrong_character_is_always_found(at in PREFIX.len()..TOKEN_CHARS, shift in 1_usize..32) {
            let token = fresh();
            let mut bytes = token.reveal().as_bytes().to_vec();
            prop_assume!(at != SECRET_AT - 1);
            let now = usize::from(value(bytes[at]).expect("of the alphabet"));
            bytes[at] = ALPHABET[(now + shift) % 32];
            let changed = String::from_utf8(bytes).expect("ASCII");
            prop_assert_eq!(Token::parse(&changed), Err(Malformed::Checksum));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,100}", tail in "[a-z2-7_ü\0]{60,90}") {
            prop_assert!(Token::parse(&text).is_err());
            let near = format!("{PREFIX}{tail}");
            prop_assert!(Token::parse(&near).is_err());
        }
    }
}
