//! The agent card: what this process serves, and where.

use super::names::{INPUT_MODES, NODES, OUTPUT_MODES, REST_PATH, TASKS, WORKFLOW_SKILL};
use super::options::{CardTexts, Options, TextSkill};
use crate::application::api::workflows::Version;
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_a2a::card::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    SecurityRequirement, SecurityScheme,
};
use taskledger_a2a::headers::SERVED;
use taskledger_a2a::{Edition, Wire, signing, v03};
use taskledger_auth::Scope;

/// Where the JSON-RPC binding is.
pub(in super::super) const RPC_PATH: &str = "/a2a";
/// Where the card is.
pub(in super::super) const CARD_PATH: &str = "/.well-known/agent-card.json";
/// Where the keys are that sign it.
pub(in super::super) const KEYS_PATH: &str = "/.well-known/agent-card-keys.json";

/// The name of the scheme of tokens.
const BEARER: &str = "bearer";
/// The name of the scheme of an OIDC issuer; further ones have a number.
const OIDC: &str = "oidc";
/// Scopes that the operations need.
const SCOPES: [Scope; 2] = [Scope::TasksRead, Scope::TasksRun];

/// What is published of the agent, as texts.
#[derive(Debug, Clone)]
pub(in super::super) struct Cards {
    pub(in super::super) card: String,
    /// The keys with which its signatures are checked.
    pub(in super::super) keys: String,
    /// The card for readers of 0.3, if that is served.
    pub(in super::super) older: Option<String>,
}

/// Writes the cards of a server: the public one, and those for callers with credentials, which name what their caller
/// has saved.
#[derive(Debug, Clone)]
pub(super) struct CardWriter {
    /// The address of the server, without a slash at its end.
    url: String,
    options: Options,
    authenticates: bool,
}

impl CardWriter {
    /// Writes the cards of a server at `url`.
    pub(super) fn new(url: &str, options: &Options, authenticates: bool) -> Self {
        Self {
            url: url.trim_end_matches('/').to_owned(),
            options: options.clone(),
            authenticates,
        }
    }

    /// Whether there are cards for callers with credentials.
    pub(super) const fn has_extended(&self) -> bool {
        self.authenticates
    }

    /// The method that runs messages without tasks.
    pub(super) fn text_method(&self) -> Option<&str> {
        self.options.text.as_ref().map(|it| &*it.method)
    }

    /// A card with its signatures. `described`: what workers have declared of the method for messages without tasks.
    pub(super) fn card(&self, described: Option<&str>, workflows: &[Version]) -> AgentCard {
        let mut card = card(&self.url, &self.options, self.authenticates, described);
        let is_alone = self.options.text.as_ref().is_some_and(|it| it.alone);
        let workflows = workflows.iter().filter(|_| !is_alone);
        card.skills.extend(workflows.map(workflow_skill));
        let keys_url = format!("{}{KEYS_PATH}", self.url);
        let signatures = self
            .options
            .keys
            .iter()
            .map(|key| key.sign(&card, &keys_url));
        card.signatures = signatures.collect();
        card
    }

    /// What is published.
    pub(super) fn published(&self, described: Option<&str>) -> Cards {
        let card = self.card(described, &[]);
        Cards {
            older: (self.options.v03).then(|| v03::card::hybrid(&card).to_string()),
            card: card.to_json().to_string(),
            keys: signing::key_set(&self.options.keys).to_string(),
        }
    }
}

fn card(url: &str, options: &Options, authenticates: bool, described: Option<&str>) -> AgentCard {
    let interface = |url: String, binding: &str, version: &str| AgentInterface {
        url,
        protocol_binding: binding.to_owned(),
        tenant: None,
        protocol_version: version.to_owned(),
    };
    let versions = [SERVED]
        .into_iter()
        .chain(options.v03.then_some(v03::SERVED));
    let interfaces = versions.flat_map(|version| {
        [
            interface(format!("{url}{RPC_PATH}"), "JSONRPC", version),
            interface(authority(url), "GRPC", version),
            interface(format!("{url}{REST_PATH}"), "HTTP+JSON", version),
        ]
    });
    let (security_schemes, security_requirements) = match authenticates {
        false => (Vec::new(), Vec::new()),
        true => security(&options.discovery_urls),
    };
    let is_alone = options.text.as_ref().is_some_and(|it| it.alone);
    let mut skills: Vec<_> = (!is_alone).then(tasks_skill).into_iter().collect();
    let text = options.text.as_ref();
    skills.extend(text.map(|it| text_skill(it, &options.card, described)));
    let conformance = options.conformance.as_deref();
    skills.extend(conformance.map(|it| conformance_skill(it, options.edition)));
    let texts = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect();
    let said = &options.card;
    let or =
        |text: &Option<String>, default: &str| text.clone().unwrap_or_else(|| default.to_owned());
    AgentCard {
        name: or(&said.name, "taskledger"),
        description: or(
            &said.description,
            "Durable orchestration and execution of task trees for agents",
        ),
        supported_interfaces: interfaces.collect(),
        provider: said.provider.as_ref().map(|it| AgentProvider {
            url: it.url.clone(),
            organization: it.organization.clone(),
        }),
        version: or(&said.version, env!("CARGO_PKG_VERSION")),
        documentation_url: said.documentation_url.clone(),
        capabilities: AgentCapabilities {
            streaming: true,
            push_notifications: !options.refuses_push,
            extensions: extensions(&options.required_extensions),
            extended_agent_card: authenticates,
        },
        security_schemes,
        security_requirements,
        default_input_modes: texts(&INPUT_MODES),
        default_output_modes: texts(&OUTPUT_MODES),
        skills,
        signatures: Vec::new(),
        icon_url: said.icon_url.clone(),
    }
}

/// `host:port` of a URL, as channels of gRPC are opened.
fn authority(url: &str) -> String {
    let parsed = url::Url::parse(url).ok();
    let named = parsed
        .as_ref()
        .and_then(|it| Some((it.host_str()?, it.port_or_known_default()?)));
    match named {
        Some((host, port)) => format!("{host}:{port}"),
        None => url.to_owned(),
    }
}

/// A caller shows a token of this server, or one of an issuer that describes itself at one of these URLs.
fn security(
    discovery_urls: &[Arc<str>],
) -> (Vec<(String, SecurityScheme)>, Vec<SecurityRequirement>) {
    let scheme = SecurityScheme::Http {
        description: "A token of this server, or an access token of an issuer that it accepts"
            .to_owned(),
        scheme: "Bearer".to_owned(),
        bearer_format: String::new(),
    };
    let scopes = SCOPES.map(|it| it.as_str().to_owned()).to_vec();
    let requirement = SecurityRequirement {
        schemes: vec![(BEARER.to_owned(), scopes)],
    };
    let (mut schemes, mut requirements) = (vec![(BEARER.to_owned(), scheme)], vec![requirement]);
    for (n, url) in (1..).zip(discovery_urls) {
        let name = match n {
            1 => OIDC.to_owned(),
            _ => format!("{OIDC}-{n}"),
        };
        let scheme = SecurityScheme::OpenIdConnect {
            description: "An access token of this issuer".to_owned(),
            url: url.to_string(),
        };
        schemes.push((name.clone(), scheme));
        // Which of the issuer's scopes are needed depends on what the operator grants by them.
        let schemes = vec![(name, Vec::new())];
        requirements.push(SecurityRequirement { schemes });
    }
    (schemes, requirements)
}

/// This server's extension, and those that clients must use.
fn extensions(required: &[Arc<str>]) -> Vec<AgentExtension> {
    let others = required.iter().filter(|uri| ***uri != *NODES);
    let others = others.map(|uri| AgentExtension {
        uri: uri.to_string(),
        description: "Required of clients by the operator of this server".to_owned(),
        required: true,
        params: None,
    });
    let own = AgentExtension {
        required: required.iter().any(|uri| **uri == *NODES),
        ..nodes_extension()
    };
    std::iter::once(own).chain(others).collect()
}

fn workflow_skill(version: &Version) -> AgentSkill {
    let name = &version.name;
    let example = json!({"workflow": name, "inputs": {}});
    AgentSkill {
        id: format!("{WORKFLOW_SKILL}{name}"),
        name: name.to_string(),
        description: format!(
            "Runs the saved workflow `{name}` (version {}), with the data of a message as its trigger",
            version.version
        ),
        tags: vec!["workflow".to_owned()],
        examples: vec![example.to_string()],
        input_modes: INPUT_MODES.map(str::to_owned).to_vec(),
        output_modes: OUTPUT_MODES.map(str::to_owned).to_vec(),
        security_requirements: Vec::new(),
    }
}

fn nodes_extension() -> AgentExtension {
    let params = json!({
        "metadata": ["nodeId", "parentId", "attempt", "status", "progress", "message"],
        "native": "POST / with JSON-RPC methods such as tasks.create; GET /openrpc.json describes them",
    });
    AgentExtension {
        uri: NODES.to_owned(),
        description: "Ids of single tasks of a run in metadata; with it, streams also report changes of single tasks".to_owned(),
        required: false,
        params: match params {
            Value::Object(map) => Some(map),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        },
    }
}

fn tasks_skill() -> AgentSkill {
    let example = json!({"tasks": [{"name": "greet", "schemas": {"method": "echo_executor"}, "inputs": {"text": "hello"}}]});
    AgentSkill {
        id: TASKS.to_owned(),
        name: "Run tasks".to_owned(),
        description: "Runs the tasks in the data of a message: `tasks`, one task object, or `taskId` of a stored one. Results are artifacts.".to_owned(),
        tags: ["task", "workflow", "orchestration"].map(str::to_owned).to_vec(),
        examples: vec![example.to_string()],
        input_modes: INPUT_MODES.map(str::to_owned).to_vec(),
        output_modes: OUTPUT_MODES.map(str::to_owned).to_vec(),
        security_requirements: Vec::new(),
    }
}

/// The skill for messages without tasks: as the operator describes it, else as workers have declared its method.
fn text_skill(skill: &TextSkill, card: &CardTexts, described: Option<&str>) -> AgentSkill {
    let (method, said) = (&skill.method, &card.skill);
    let name = said.name.clone().unwrap_or_else(|| method.to_string());
    let usual = || format!("Runs a message by `{method}`: its text and its parts are the inputs");
    let described = described.map(str::to_owned);
    let description = said.description.clone().or(described).unwrap_or_else(usual);
    let modes = |modes: &[&str]| modes.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    AgentSkill {
        id: method.to_string(),
        name,
        description,
        tags: said.tags.clone().unwrap_or_else(|| modes(&["text"])),
        examples: said.examples.clone().unwrap_or_else(|| modes(&["hello"])),
        input_modes: skill.input_modes.iter().map(|it| it.to_string()).collect(),
        output_modes: said
            .output_modes
            .clone()
            .unwrap_or_else(|| modes(&OUTPUT_MODES)),
        security_requirements: Vec::new(),
    }
}

/// The skill of the executor for the official conformance kit, which wants any media type to be taken in edition 1.0.0,
/// and unknown ones refused later.
fn conformance_skill(method: &str, edition: Edition) -> AgentSkill {
    let skill = text_skill(&TextSkill::new(method), &CardTexts::default(), None);
    match edition {
        Edition::V1_0_0 => AgentSkill {
            input_modes: vec!["*/*".to_owned()],
            ..skill
        },
        Edition::V1_0_1 => skill,
    }
}

#[cfg(test)]
mod tests {
    use super::SCOPES;
    use crate::application::authorize::UseCase;

    #[test]
    fn the_scopes_are_those_of_the_use_cases() {
        let called = [
            UseCase::StartRun,
            UseCase::CancelRun,
            UseCase::MessageRun,
            UseCase::ReadRun,
            UseCase::ListRuns,
            UseCase::FollowRun,
            UseCase::AwaitRun,
            UseCase::ReportRun,
            UseCase::ReadReports,
        ];
        for use_case in called {
            let scope = use_case.scope().expect("runs belong to somebody");
            assert!(SCOPES.contains(&scope), "{}", use_case.as_str());
        }
        for scope in SCOPES {
            assert!(
                called.iter().any(|it| it.scope() == Some(scope)),
                "{scope:?}"
            );
        }
    }
}
