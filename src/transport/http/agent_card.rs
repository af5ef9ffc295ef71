//! The agent card, by which the server describes itself to other agents. spec: interface / Agent Card Discovery

use crate::transport::jsonrpc::{Changes, Method};
use serde::Serialize;

/// The agent card, with exactly the members of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentCard {
    /// The product.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Where calls go.
    pub url: String,
    /// The product's version.
    pub version: &'static str,
    /// What it can do beyond calls.
    pub capabilities: Capabilities,
    /// One skill for each method.
    pub skills: Vec<Skill>,
}

/// The optional capabilities of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Whether executions can be followed as a stream.
    pub streaming: bool,
    /// Whether executions can be reported to a URL.
    pub push_notifications: bool,
}

/// One method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skill {
    /// The method's name.
    pub id: &'static str,
    /// A short title for people.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Words to find it by.
    pub tags: &'static [&'static str],
}

impl AgentCard {
    /// The card of a server at `url` with these methods, and with streams or without.
    #[must_use]
    pub fn new<C>(url: String, methods: &[Method<C>], streaming: bool) -> Self {
        Self {
            name: "taskledger",
            description: "Durable orchestration and execution of task trees for agents",
            url,
            version: env!("CARGO_PKG_VERSION"),
            capabilities: Capabilities {
                streaming,
                // Callbacks of executions and webhooks are delivered by the same worker.
                push_notifications: methods.iter().any(|m| m.changes == Changes::Webhooks),
            },
            skills: methods
                .iter()
                .map(|method| Skill {
                    id: method.name,
                    name: method.title,
                    description: method.summary,
                    tags: method.tags,
                })
                .collect(),
        }
    }

    /// The card's text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a card has only texts and booleans")
    }
}
