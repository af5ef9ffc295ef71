//! The card that readers of both versions understand: that of 1.0 with the members of 0.3 beside them.

use super::SERVED;
use crate::card::AgentCard;
use crate::read::Wire;
use serde_json::{Map, Value, json};

/// The version as cards of 0.3 name it.
pub(super) const PROTOCOL_VERSION: &str = "0.3.0";
/// What a scheme is called in 1.0 and in 0.3.
const SCHEMES: [(&str, &str); 5] = [
    ("apiKeySecurityScheme", "apiKey"),
    ("httpAuthSecurityScheme", "http"),
    ("oauth2SecurityScheme", "oauth2"),
    ("openIdConnectSecurityScheme", "openIdConnect"),
    ("mtlsSecurityScheme", "mutualTLS"),
];

/// The card with the members of both versions; its interfaces of 0.3 are those of the older members. Signatures are
/// those of the members of 1.0.
#[must_use]
pub fn hybrid(card: &AgentCard) -> Value {
    let mut members = card.write();
    let spoken = || {
        let interfaces = card.supported_interfaces.iter();
        interfaces.filter(|it| it.protocol_version == SERVED)
    };
    let others: Vec<_> = spoken()
        .map(|it| json!({"url": it.url, "transport": it.protocol_binding}))
        .collect();
    if let Some(first) = spoken().next() {
        members.insert("url".to_owned(), Value::from(&*first.url));
        let transport = Value::from(&*first.protocol_binding);
        members.insert("preferredTransport".to_owned(), transport);
    }
    for (name, value) in [
        ("protocolVersion", PROTOCOL_VERSION.into()),
        ("additionalInterfaces", others.into()),
        (
            "supportsAuthenticatedExtendedCard",
            card.capabilities.extended_agent_card.into(),
        ),
        ("security", security(card)),
    ] {
        members.insert(name.to_owned(), value);
    }
    let schemes = members.get_mut("securitySchemes");
    if let Some(Value::Object(schemes)) = schemes {
        schemes.values_mut().for_each(told_twice);
    }
    Value::Object(members)
}

/// Which schemes are asked for: lists of scopes by the name of a scheme.
fn security(card: &AgentCard) -> Value {
    let requirements = card.security_requirements.iter().map(|it| {
        let schemes = it.schemes.iter();
        let schemes = schemes.map(|(name, scopes)| (name.clone(), scopes.clone().into()));
        Value::Object(schemes.collect())
    });
    requirements.collect()
}

/// A scheme with its members as OpenAPI has them beside those of 1.0.
fn told_twice(scheme: &mut Value) {
    let Value::Object(members) = scheme else {
        return;
    };
    let known = SCHEMES.iter().find(|(name, _)| members.contains_key(*name));
    let Some((name, kind)) = known else {
        return;
    };
    let inner = members.get(*name).and_then(Value::as_object).cloned();
    for (name, value) in inner.unwrap_or_else(Map::new) {
        let name = match &*name {
            "location" => "in".to_owned(),
            _ => name,
        };
        members.insert(name, value);
    }
    members.insert("type".to_owned(), Value::from(*kind));
}
