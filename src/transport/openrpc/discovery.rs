//! The OpenRPC document in the form in which it is sent.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};

/// The method that answers with the document. Every dispatcher has it.
pub const DISCOVER: &str = "rpc.discover";

/// The document as it is sent.
#[derive(Debug)]
pub struct Discovery {
    /// The JSON text of the document.
    pub text: Box<RawValue>,
    /// A strong entity tag, quotes included: the same for the same text.
    pub etag: String,
}

impl Discovery {
    /// Writes a document.
    #[must_use]
    pub fn new(document: &Value) -> Self {
        /// Bytes of the digest that are shown: enough that two documents never share a tag.
        const TAG_BYTES: usize = 16;
        let text = to_raw_value(document).expect("JSON can always be written");
        let digest = Sha256::digest(text.get().as_bytes());
        let tag: String = digest[..TAG_BYTES]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            text,
            etag: format!("\"{tag}\""),
        }
    }
}
