//! Settings of the Agent2Agent door.

use super::names::INPUT_MODES;
use serde::Deserialize;
use std::sync::Arc;
use taskledger_a2a::Edition;
use taskledger_a2a::signing::CardKey;

/// How the protocol is served.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which edition of the specification counts where editions differ.
    pub edition: Edition,
    /// The skill that runs messages without tasks; without one they are answered with what would be taken.
    pub text: Option<TextSkill>,
    /// The executor of the official conformance kit, which then runs messages without tasks.
    pub conformance: Option<Arc<str>>,
    /// What the card says of the agent.
    pub card: CardTexts,
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

/// The skill that runs messages without tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSkill {
    /// The method that runs them.
    pub method: Arc<str>,
    /// Media types of parts that it takes; they may end with `*`.
    pub input_modes: Arc<[Arc<str>]>,
    /// Whether it is the only skill: then data of a message is never tasks.
    pub alone: bool,
}

impl TextSkill {
    /// A method that takes text and JSON, beside the skill that runs tasks.
    #[must_use]
    pub fn new(method: &str) -> Self {
        Self {
            method: method.into(),
            input_modes: INPUT_MODES.map(Arc::from).into(),
            alone: false,
        }
    }
}

/// What the card says of the agent, where the operator has set it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct CardTexts {
    /// The name of the agent.
    pub name: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// The version of the agent, not of the protocol.
    pub version: Option<String>,
    /// The URL of more about it.
    pub documentation_url: Option<String>,
    /// The URL of a picture.
    pub icon_url: Option<String>,
    /// The organization that offers it.
    pub provider: Option<ProviderTexts>,
    /// What the card says of the skill that runs messages without tasks.
    pub skill: SkillTexts,
}

/// The organization that offers an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderTexts {
    /// Its name.
    pub organization: String,
    /// Its home page, for people.
    pub url: String,
}

/// What the card says of a skill, where the operator has set it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct SkillTexts {
    /// A short title.
    pub name: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Words to find it by.
    pub tags: Option<Vec<String>>,
    /// Messages that it takes.
    pub examples: Option<Vec<String>>,
    /// Media types that it gives.
    pub output_modes: Option<Vec<String>>,
}

impl CardTexts {
    /// Reads the members that a file has.
    ///
    /// # Errors
    /// What is wrong, with the place in the file or the member.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        // As a map first: serde takes an array as a struct, member by member.
        let members: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let read = Self::deserialize(serde_json::Value::Object(members));
        let read = read.map_err(|error| error.to_string())?;
        let provider = read.provider.as_ref();
        let texts = [
            ("name", read.name.as_deref()),
            ("description", read.description.as_deref()),
            ("version", read.version.as_deref()),
            ("documentationUrl", read.documentation_url.as_deref()),
            ("iconUrl", read.icon_url.as_deref()),
            (
                "provider.organization",
                provider.map(|it| &*it.organization),
            ),
            ("provider.url", provider.map(|it| &*it.url)),
            ("skill.name", read.skill.name.as_deref()),
            ("skill.description", read.skill.description.as_deref()),
        ];
        let empty = texts
            .iter()
            .find(|(_, text)| text.is_some_and(str::is_empty));
        if let Some((member, _)) = empty {
            return Err(format!(
                "`{member}` is empty, expected a text; leave it out for the default"
            ));
        }
        for (member, url) in &texts {
            let is_url = |url: &str| url::Url::parse(url).is_ok();
            if (member.ends_with("Url") || member.ends_with(".url")) && !url.is_none_or(is_url) {
                return Err(format!("`{member}` is not a URL"));
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_card_are_read_and_faults_name_their_member() {
        let texts = CardTexts::parse(br#"{"name": "Ann", "skill": {"tags": ["art"]}}"#);
        let texts = texts.expect("texts");
        assert_eq!(texts.name.as_deref(), Some("Ann"));
        assert_eq!(texts.skill.tags, Some(vec!["art".to_owned()]));
        for (bad, told) in [
            (
                r#"{"nam": "Ann"}"#,
                "unknown field `nam`, expected one of `name`",
            ),
            (r#"{"name": ""}"#, "`name` is empty"),
            (
                r#"{"name": 7}"#,
                "invalid type: integer `7`, expected a string",
            ),
            (r#"{"skill": {"id": "x"}}"#, "unknown field `id`"),
            (r#"{"iconUrl": "here"}"#, "`iconUrl` is not a URL"),
            (
                r#"{"provider": {"organization": "o"}}"#,
                "missing field `url`",
            ),
            ("[]", "expected a map"),
        ] {
            let refused = CardTexts::parse(bad.as_bytes()).expect_err(bad);
            assert!(refused.contains(told), "{bad}: {refused}");
        }
    }
}
