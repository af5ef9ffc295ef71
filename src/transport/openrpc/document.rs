//! The document, put together from the method table.

use super::about::{self, About, Example};
use super::{DISCOVER, errors, schemas};
use crate::application::caller::IDEMPOTENCY_KEY_CHARS_MAX;
use crate::transport::jsonrpc::Method;
use crate::transport::jsonrpc::params::webhooks::callback;
use crate::transport::jsonrpc::reader::Question;
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
        "x-envelope": envelope(),
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
    changes_state: bool,
}

const DISCOVER_ENTRY: Entry<'static> = Entry {
    name: DISCOVER,
    summary: "Describe the methods of this server",
    tags: &["system"],
    params: &[],
    changes_state: false,
};

impl<'m> Entry<'m> {
    fn of<C>(method: &'m Method<C>) -> Self {
        Self {
            name: method.name,
            summary: method.summary,
            tags: method.tags,
            params: &method.params,
            changes_state: method.changes_state,
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
    json!({
        "name": entry.name,
        "summary": entry.summary,
        "description": about.description,
        "tags": tags,
        "paramStructure": "either",
        "params": entry.params.iter().map(param).collect::<Vec<_>>(),
        "result": {"name": about.result, "required": true, "schema": about.schema},
        "errors": references,
        "examples": pairings,
        "x-changes-state": entry.changes_state,
    })
}

fn param(question: &Question) -> Value {
    let mut schema = question.schema.clone();
    if let Some(default) = &question.default {
        schema["default"] = default.clone();
    }
    json!({
        "name": question.name,
        "description": question.description,
        "required": question.required,
        "schema": schema,
    })
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

/// What stands beside `params` in a request.
fn envelope() -> Value {
    let metadata = json!({
        "type": ["object", "null"],
        "description": "About the call. Members that are not named here are ignored.",
        "properties": {
            "idempotency_key": {
                "type": ["string", "null"],
                "minLength": 1,
                "maxLength": IDEMPOTENCY_KEY_CHARS_MAX,
                "description": "For calls that change state: the same key and parameters within 24 hours get the first answer.",
            },
            "stream": {
                "type": "boolean",
                "description": "With methods that begin a run: `true` asks for a stream behind the answer, as `use_streaming` does.",
            },
        },
    });
    let configuration = json!({
        "type": ["object", "null"],
        "description": "How the call is carried out. Members that are not named here are ignored.",
        "properties": {callback::MEMBER: callback::schema()},
    });
    let members: [(&str, Value); 2] = [("metadata", metadata), ("configuration", configuration)];
    Value::Object(Map::from_iter(
        members.map(|(name, schema)| (name.to_owned(), schema)),
    ))
}
