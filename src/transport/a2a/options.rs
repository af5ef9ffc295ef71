//! Settings of the Agent2Agent door.

use std::sync::Arc;
use taskledger_a2a::Edition;
use taskledger_a2a::signing::CardKey;

/// How the protocol is served.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which edition of the specification counts where editions differ.
    pub edition: Edition,
    /// The method that runs messages without tasks; without one they are answered with what would be taken.
    pub text_method: Option<Arc<str>>,
    /// The executor of the official conformance kit, which then runs messages without tasks.
    pub conformance: Option<Arc<str>>,
    /// The keys that sign the card.
    pub keys: Arc<[CardKey]>,
    /// Where the OIDC issuers whose access tokens are accepted describe themselves.
    pub discovery_urls: Arc<[Arc<str>]>,
    /// Whether changes are not reported to URLs.
    pub refuses_push: bool,
    /// URIs of extensions that clients must announce.
    pub required_extensions: Arc<[Arc<str>]>,
    /// Whether version 0.3 is served beside 1.0.
    pub v03: bool,
}
