//! The agent card, by which an agent describes itself.

mod security;

pub use security::{OAuthFlow, SecurityRequirement, SecurityScheme};

use crate::read::{Object, Wire};
use crate::write::Members;
use serde_json::{Map, Value};

/// The card of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCard {
    /// Name of the agent, for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Where and how it is called, the preferred way first.
    pub supported_interfaces: Vec<AgentInterface>,
    /// Who offers it.
    pub provider: Option<AgentProvider>,
    /// The version of the agent.
    pub version: String,
    /// Where more is written.
    pub documentation_url: Option<String>,
    /// What it can do beyond calls.
    pub capabilities: AgentCapabilities,
    /// How callers authenticate themselves.
    pub security_schemes: Vec<(String, SecurityScheme)>,
    /// Which of the ways is asked for; one of these does.
    pub security_requirements: Vec<SecurityRequirement>,
    /// Media types that it takes.
    pub default_input_modes: Vec<String>,
    /// Media types that it gives.
    pub default_output_modes: Vec<String>,
    /// What it can do.
    pub skills: Vec<AgentSkill>,
    /// Signatures of the card, one for each key.
    pub signatures: Vec<AgentCardSignature>,
    /// A picture.
    pub icon_url: Option<String>,
}

impl AgentCard {
    /// The members that are signed: the card without its signatures, and without what is unset or has its default
    /// value. Clients make the same of the card that they have read, whatever of that it spelled out.
    #[must_use]
    pub fn to_be_signed(&self) -> Value {
        let mut members = self.write();
        members.remove("signatures");
        if let Some(list) = members
            .get_mut("capabilities")
            .and_then(|it| it.get_mut("extensions"))
            .and_then(Value::as_array_mut)
        {
            for extension in list.iter_mut().filter_map(Value::as_object_mut) {
                extension.retain(|name, value| name != "required" || *value != Value::Bool(false));
            }
        }
        without_empty(Value::Object(members)).unwrap_or(Value::Object(Map::new()))
    }
}

/// The same without empty texts, lists and objects. Cost: O(size); cards are ours, or were read with the depth that
/// a parser allows.
fn without_empty(value: Value) -> Option<Value> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::Array(list) => {
            let list: Vec<_> = list.into_iter().filter_map(without_empty).collect();
            (!list.is_empty()).then_some(Value::Array(list))
        }
        Value::Object(map) => {
            let kept = map.into_iter();
            let kept = kept.filter_map(|(name, value)| Some((name, without_empty(value)?)));
            let map: Map<_, _> = kept.collect();
            (!map.is_empty()).then_some(Value::Object(map))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value),
    }
}

impl Wire for AgentCard {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let name = from.required_text("name");
        let description = from.required_text("description");
        let supported_interfaces = from.required_many("supportedInterfaces");
        let provider = from.one("provider");
        let version = from.required_text("version");
        let documentation_url = from.text("documentationUrl");
        let capabilities = from.required("capabilities");
        let security_schemes = from.by_name("securitySchemes");
        let security_requirements = from.many("securityRequirements");
        let default_input_modes = from.texts("defaultInputModes");
        let default_output_modes = from.texts("defaultOutputModes");
        let skills = from.many("skills");
        let signatures = from.many("signatures");
        let icon_url = from.text("iconUrl");
        Some(Self {
            name: name?,
            description: description?,
            supported_interfaces,
            provider,
            version: version?,
            documentation_url,
            capabilities: capabilities?,
            security_schemes,
            security_requirements,
            default_input_modes,
            default_output_modes,
            skills,
            signatures,
            icon_url,
        })
    }

    fn write(&self) -> Map<String, Value> {
        let schemes: Map<String, Value> = self
            .security_schemes
            .iter()
            .map(|(name, scheme)| (name.clone(), scheme.to_json()))
            .collect();
        // Every list is written: some readers take an absent one for none at all.
        Members::new()
            .with("name", &*self.name)
            .with("description", &*self.description)
            .all("supportedInterfaces", &self.supported_interfaces)
            .one("provider", self.provider.as_ref())
            .with("version", &*self.version)
            .text("documentationUrl", self.documentation_url.as_deref())
            .one("capabilities", Some(&self.capabilities))
            .with("securitySchemes", schemes)
            .all("securityRequirements", &self.security_requirements)
            .with("defaultInputModes", self.default_input_modes.clone())
            .with("defaultOutputModes", self.default_output_modes.clone())
            .all("skills", &self.skills)
            .all("signatures", &self.signatures)
            .text("iconUrl", self.icon_url.as_deref())
            .done()
    }
}

/// One way to call an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInterface {
    /// The URL at which calls are accepted.
    pub url: String,
    /// How: `JSONRPC`, `GRPC`, `HTTP+JSON`, or a URI.
    pub protocol_binding: String,
    /// What to send as the tenant.
    pub tenant: Option<String>,
    /// The version of the protocol.
    pub protocol_version: String,
}

impl Wire for AgentInterface {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let url = from.required_text("url");
        let protocol_binding = from.required_text("protocolBinding");
        let tenant = from.text("tenant");
        let protocol_version = from.required_text("protocolVersion");
        Some(Self {
            url: url?,
            protocol_binding: protocol_binding?,
            tenant,
            protocol_version: protocol_version?,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("url", &*self.url)
            .with("protocolBinding", &*self.protocol_binding)
            .text("tenant", self.tenant.as_deref())
            .with("protocolVersion", &*self.protocol_version)
            .done()
    }
}

/// The organization that offers an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProvider {
    /// Where they are.
    pub url: String,
    /// Their name.
    pub organization: String,
}

impl Wire for AgentProvider {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let url = from.required_text("url");
        let organization = from.required_text("organization");
        Some(Self {
            url: url?,
            organization: organization?,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("url", &*self.url)
            .with("organization", &*self.organization)
            .done()
    }
}

/// The optional capabilities of an agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentCapabilities {
    /// Whether it answers with streams.
    pub streaming: bool,
    /// Whether it reports changes.
    pub push_notifications: bool,
    /// Which extensions it knows.
    pub extensions: Vec<AgentExtension>,
    /// Whether there is another card for callers with credentials.
    pub extended_agent_card: bool,
}

impl Wire for AgentCapabilities {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        Some(Self {
            streaming: from.flag("streaming").unwrap_or(false),
            push_notifications: from.flag("pushNotifications").unwrap_or(false),
            extensions: from.many("extensions"),
            extended_agent_card: from.flag("extendedAgentCard").unwrap_or(false),
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("streaming", self.streaming)
            .with("pushNotifications", self.push_notifications)
            .all("extensions", &self.extensions)
            .with("extendedAgentCard", self.extended_agent_card)
            .done()
    }
}

/// An extension that an agent knows.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentExtension {
    /// The URI that identifies the extension.
    pub uri: String,
    /// How the agent uses it.
    pub description: String,
    /// Whether clients must know it too.
    pub required: bool,
    /// Free-form members, which the protocol does not interpret.
    pub params: Option<Map<String, Value>>,
}

impl Wire for AgentExtension {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let uri = from.required_text("uri");
        let description = from.text("description").unwrap_or_default();
        let required = from.flag("required").unwrap_or(false);
        let params = from.map("params");
        Some(Self {
            uri: uri?,
            description,
            required,
            params,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("uri", &*self.uri)
            .text("description", Some(&self.description))
            .with("required", self.required)
            .map("params", self.params.as_ref())
            .done()
    }
}

/// Something that an agent can do.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSkill {
    /// Unique within the card.
    pub id: String,
    /// A short title for people; need not be unique.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// What to say to it.
    pub examples: Vec<String>,
    /// Media types that it takes; empty: those of the card.
    pub input_modes: Vec<String>,
    /// Media types that it gives; empty: those of the card.
    pub output_modes: Vec<String>,
    /// What it asks of callers; empty: what the card says.
    pub security_requirements: Vec<SecurityRequirement>,
}

impl Wire for AgentSkill {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let id = from.required_text("id");
        let name = from.required_text("name");
        let description = from.required_text("description");
        let tags = from.texts("tags");
        let examples = from.texts("examples");
        let input_modes = from.texts("inputModes");
        let output_modes = from.texts("outputModes");
        let security_requirements = from.many("securityRequirements");
        Some(Self {
            id: id?,
            name: name?,
            description: description?,
            tags,
            examples,
            input_modes,
            output_modes,
            security_requirements,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("id", &*self.id)
            .with("name", &*self.name)
            .with("description", &*self.description)
            .with("tags", self.tags.clone())
            .with("examples", self.examples.clone())
            .with("inputModes", self.input_modes.clone())
            .with("outputModes", self.output_modes.clone())
            .all("securityRequirements", &self.security_requirements)
            .done()
    }
}

/// A signature of a card: RFC 7515, without the payload.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCardSignature {
    /// The protected header, in base64url.
    pub protected: String,
    /// The signature, in base64url.
    pub signature: String,
    /// The header that is not signed.
    pub header: Option<Map<String, Value>>,
}

impl Wire for AgentCardSignature {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let protected = from.required_text("protected");
        let signature = from.required_text("signature");
        let header = from.map("header");
        Some(Self {
            protected: protected?,
            signature: signature?,
            header,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("protected", &*self.protected)
            .with("signature", &*self.signature)
            .map("header", self.header.as_ref())
            .done()
    }
}
