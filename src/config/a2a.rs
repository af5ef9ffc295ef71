//! How Agent2Agent is served.

use crate::engine::executor::ConformanceExecutor;
use crate::transport::a2a::{CardTexts, INPUT_MODES, Options, TextSkill};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::sync::Arc;
use taskledger_a2a::Edition;
use taskledger_a2a::signing::CardKey;

/// Settings of Agent2Agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct A2aConfig {
    /// Edition of A2A 1.0 whose statuses and media type are used where 1.0.0 and 1.0.1 differ
    #[arg(
        id = "a2a_edition",
        long = "a2a-edition",
        value_name = "EDITION",
        env = "TASKLEDGER_A2A_EDITION",
        default_value_t = Edition::default()
    )]
    pub edition: Edition,

    /// Executor, or method of workers, that runs A2A messages without tasks, with their text as the input `text` and
    /// parts that are not text as `parts`; without it, they are answered with the inputs that are expected
    #[arg(
        id = "a2a_text_method",
        long = "a2a-text-method",
        value_name = "METHOD",
        env = "TASKLEDGER_A2A_TEXT_METHOD"
    )]
    pub text_method: Option<String>,

    /// Media type of parts of A2A messages that the text method takes, such as `image/*`; can be repeated
    #[arg(
        id = "a2a_input_mode",
        long = "a2a-input-mode",
        value_name = "TYPE",
        env = "TASKLEDGER_A2A_INPUT_MODE",
        value_delimiter = ',',
        value_parser = media_type,
        default_values_t = INPUT_MODES.map(str::to_owned),
        requires = "a2a_text_method"
    )]
    pub input_modes: Vec<String>,

    /// Have the text method run all A2A messages: data in them never runs as tasks or workflows
    #[arg(
        id = "a2a_text_only",
        long = "a2a-text-only",
        env = "TASKLEDGER_A2A_TEXT_ONLY",
        requires = "a2a_text_method"
    )]
    pub text_only: bool,

    /// File (JSON) with what the A2A card says: `name`, `description`, `version`, `documentationUrl`, `iconUrl`,
    /// `provider` and, for the text method, `skill`
    #[arg(
        id = "a2a_card",
        long = "a2a-card",
        value_name = "FILE",
        env = "TASKLEDGER_A2A_CARD"
    )]
    pub card: Option<PathBuf>,

    /// For the official conformance kit of A2A only: messages without tasks make the server behave as the kit tells
    /// it to
    #[arg(
        id = "a2a_conformance_executor",
        long = "a2a-conformance-executor",
        env = "TASKLEDGER_A2A_CONFORMANCE_EXECUTOR",
        value_parser = clap::builder::FalseyValueParser::new(),
        hide = true
    )]
    pub conformance: bool,

    /// Ed25519 or P-256 key (PEM) that signs the A2A card; can be repeated, so that one can be replaced while clients
    /// know the other
    #[arg(
        id = "a2a_signing_key",
        long = "a2a-signing-key",
        value_name = "FILE",
        env = "TASKLEDGER_A2A_SIGNING_KEY",
        value_delimiter = ','
    )]
    pub signing_keys: Vec<PathBuf>,

    /// URI of an extension that A2A clients must announce in `A2A-Extensions`; can be repeated
    #[arg(
        id = "a2a_required_extension",
        long = "a2a-required-extension",
        value_name = "URI",
        env = "TASKLEDGER_A2A_REQUIRED_EXTENSION",
        value_delimiter = ',',
        value_parser = extension
    )]
    pub required_extensions: Vec<String>,

    /// Serve A2A 0.3 too: methods such as `message/send`, paths below `/a2a/rest/v1`, gRPC `a2a.v1`, and a card
    /// that both versions understand
    #[arg(id = "a2a_0_3", long = "a2a-0.3", env = "TASKLEDGER_A2A_0_3")]
    pub v03: bool,

    /// Whether changes of A2A tasks are reported to URLs that callers name
    #[arg(
        id = "a2a_push",
        long = "a2a-push",
        value_name = "on|off",
        env = "TASKLEDGER_A2A_PUSH",
        value_enum,
        default_value = "on",
        hide_possible_values = true
    )]
    pub push: Switch,
}

/// Whether something is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// It is.
    #[default]
    On,
    /// It is not.
    Off,
}

/// A URI as it stands in a header, in a list with commas.
fn extension(text: &str) -> Result<String, String> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b',');
    let has_scheme = text
        .split_once(':')
        .is_some_and(|(scheme, _)| !scheme.is_empty());
    match is_plain && has_scheme {
        true => Ok(text.to_owned()),
        false => Err("a URI is expected, such as `https://example.com/extensions/x/v1`".to_owned()),
    }
}

/// A media type, or the beginning of several with a `*` behind it.
fn media_type(text: &str) -> Result<String, String> {
    let is_token = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-*".contains(&byte);
        !text.is_empty() && text.bytes().all(is_plain)
    };
    let parts = text.split_once('/');
    match parts.is_some_and(|(kind, name)| is_token(kind) && is_token(name)) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("a media type is expected, such as `image/png` or `image/*`".to_owned()),
    }
}

impl A2aConfig {
    /// The part that concerns the door, with what the card says, these keys and the descriptions of OIDC issuers.
    #[must_use]
    pub fn options(
        &self,
        (card, keys): (CardTexts, Vec<CardKey>),
        discovery_urls: Arc<[Arc<str>]>,
    ) -> Options {
        let text = self.text_method.as_deref().map(|method| {
            let mut skill = TextSkill::new(method);
            skill.alone = self.text_only;
            if !self.input_modes.is_empty() {
                let modes = self.input_modes.iter();
                skill.input_modes = modes.map(|it| Arc::from(&**it)).collect();
            }
            skill
        });
        Options {
            edition: self.edition,
            text,
            card,
            conformance: self.conformance.then(|| ConformanceExecutor::NAME.into()),
            keys: keys.into(),
            discovery_urls,
            required_extensions: self
                .required_extensions
                .iter()
                .map(|it| Arc::from(&**it))
                .collect(),
            refuses_push: self.push == Switch::Off,
            v03: self.v03,
        }
    }
}
