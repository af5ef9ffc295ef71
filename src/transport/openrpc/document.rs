//! Builds the OpenRPC document from the method table.

use super::about::{self, About, Example};
use super::parameter::param;
use super::{DISCOVER, errors, schemas, scopes, socket};
use crate::application::context::IDEMPOTENCY_KEY_CHARS_MAX;
use crate::transport::jsonrpc::methods::webhooks::callback;
use crate::transport::jsonrpc::reader::Question;
use crate::transport::jsonrpc::stream_request::begins_run;
use crate::transport::jsonrpc::{Changes, Method};
use serde_json::{Map, Value, json};

/// The document of a server with these methods. `url`: where calls go, if somewhere.
#[must_use]
pub fn document<C>(methods: &[Method<C>], url: Option<&str>) -> Value {
    let mut described: Vec<Value> = methods
        .iter()
        .map(|m| method(&Entry::of(m), &m.about))
        .collect();
    described.push(method(&DISCOVER_ENTRY, &about::discover()));
    let mut document = json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "taskledger",
            "version": env!("CARGO_PKG_VERSION"),
            "description": env!("CARGO_PKG_DESCRIPTION"),
            "license": {
                "name": env!("CARGO_PKG_LICENSE"),
                "url": "https://www.apache.org/licenses/LICENSE-2.0",
            },
        },
        "methods": described,
        "components": {
            "schemas": schemas::components(),
            "errors": errors::components(),
        },
        "x-envelope": envelope(true, true),
        "x-socket": socket::described(),
        "x-examples-set-up": about::set_up(),
    });
    if let Some(url) = url {
        document["servers"] = json!([{"name": "this server", "url": url}]);
    }
    document
}

/// What the table says of a method.
struct Entry<'m> {
    name: &'m str,
    summary: &'m str,
    tags: &'m [&'static str],
    params: &'m [Question],
    changes: Changes,
}

const DISCOVER_ENTRY: Entry<'static> = Entry {
    name: DISCOVER,
    summary: "Describe the methods of this server",
    tags: &["system"],
    params: &[],
    changes: Changes::Nothing,
};

impl<'m> Entry<'m> {
    fn of<C>(method: &'m Method<C>) -> Self {
        Self {
            name: method.name,
            summary: method.summary,
            tags: method.tags,
            params: &method.params.questions,
            changes: method.changes,
        }
    }
}

fn method(entry: &Entry<'_>, about: &About) -> Value {
    let tags: Vec<Value> = entry.tags.iter().map(|tag| json!({"name": tag})).collect();
    let references: Vec<Value> = errors::of(about.errors).map(errors::reference).collect();
    let pairings: Vec<Value> = about
        .examples
        .iter()
        .map(|example| pairing(entry.params, example))
        .collect();
    let mut described = json!({
        "name": entry.name,
        "summary": entry.summary,
        "description": about.description,
        "tags": tags,
        "paramStructure": "either",
        "params": entry.params.iter().map(param).collect::<Vec<_>>(),
        "result": {"name": about.result, "required": true, "schema": about.schema},
        "errors": references,
        "examples": pairings,
        "x-changes-state": entry.changes != Changes::Nothing,
        "x-scope": scopes::of(entry.name),
    });
    let (takes_key, begins_run) = (entry.changes == Changes::Flows, begins_run(entry.name));
    if takes_key || begins_run {
        described["x-envelope"] = envelope(takes_key, begins_run);
    }
    described
}

/// The example's parameters in declared order, so that they can be sent by name and by position,
/// with `null` by position for what is left out.
fn pairing(questions: &[Question], example: &Example) -> Value {
    let given: Vec<Value> = questions
        .iter()
        .filter_map(|q| Some((q.name, example.params.get(q.name)?)))
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    json!({
        "name": example.name,
        "description": example.description,
        "params": given,
        "result": {"name": "result", "value": example.result},
    })
}

/// What stands beside `params` in a request that can carry an idempotency key, that begins a run.
fn envelope(takes_key: bool, begins_run: bool) -> Value {
    let mut known = Map::new();
    if takes_key {
        known.insert(
            "idempotency_key".to_owned(),
            json!({
                "type": ["string", "null"],
                "minLength": 1,
                "maxLength": IDEMPOTENCY_KEY_CHARS_MAX,
                "description": "For calls that change state: the same key and parameters within 24 hours get the first answer.",
            }),
        );
    }
    if begins_run {
        known.insert(
            "stream".to_owned(),
            json!({
                "type": ["boolean", "null"],
                "description": "For methods that start a run: `true` requests a stream after the answer, as `use_streaming` does.",
            }),
        );
    }
    let mut members = json!({"metadata": {
        "type": ["object", "null"],
        "description": "About the call. Members that are not named here are ignored.",
        "properties": known,
    }});
    if begins_run {
        members["configuration"] = json!({
            "type": ["object", "null"],
            "description": "For methods that start a run: its configuration. Unknown members are refused.",
            "properties": {callback::MEMBER: callback::schema()},
            "additionalProperties": false,
        });
    }
    members
}
