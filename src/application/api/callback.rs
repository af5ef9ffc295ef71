//! The serialized form of a callback, which is sent between nodes. Its own types do not serialize, so that no secret is
//! written by accident.

use super::webhooks::{Callback, Reported, Secret};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Travelling {
    url: Arc<str>,
    headers: Vec<(Arc<str>, Arc<str>)>,
    secret: Option<Arc<str>>,
    reported: Option<As>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct As {
    name: Option<Arc<str>>,
    scheme: Option<Arc<str>>,
    content_type: Arc<str>,
}

pub(super) fn serialize<S: Serializer>(
    callback: &Option<Callback>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let travelling = callback.as_ref().map(|callback| Travelling {
        url: callback.url.clone(),
        headers: callback
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.0.clone()))
            .collect(),
        secret: callback.secret.as_ref().map(|secret| secret.0.clone()),
        reported: callback.reported.clone().map(|it| As {
            name: it.name,
            scheme: it.scheme,
            content_type: it.content_type,
        }),
    });
    travelling.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Callback>, D::Error> {
    let travelling = Option::<Travelling>::deserialize(deserializer)?;
    Ok(travelling.map(|it| Callback {
        url: it.url,
        headers: it
            .headers
            .into_iter()
            .map(|(name, value)| (name, Secret(value)))
            .collect(),
        secret: it.secret.map(Secret),
        reported: it.reported.map(|it| Reported {
            name: it.name,
            scheme: it.scheme,
            content_type: it.content_type,
        }),
    }))
}
