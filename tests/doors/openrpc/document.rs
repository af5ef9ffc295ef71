//! The document itself.

use crate::openrpc::support::{Document, World};
use jsonschema::{Retrieve, Uri};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use taskledger::application::api::{Cost, UseCase};
use taskledger::transport::jsonrpc::stream_request::OF_SOCKETS;
use taskledger::transport::jsonrpc::{ErrorKind, methods};
use taskledger::transport::openrpc::{DISCOVER, document};
use taskledger_auth::Scope;

const META_SCHEMA: &str = include_str!("data/open-rpc/meta-schema.json");
const TASK_SCHEMA: &str = include_str!("../../../crates/conformance/src/task_schema.json");

/// The document of a server at no address in particular.
pub(crate) fn described() -> Document {
    Document(document(&methods::table(), Some("http://localhost:8000")))
}

/// The meta-schema leaves schemas to another one, of which draft-07 is the part that we use.
struct SchemasOfSchemas;

impl Retrieve for SchemasOfSchemas {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        if uri.as_str().trim_end_matches('/') != "https://meta.json-schema.tools" {
            return Err(format!("`{}` is not at hand", uri.as_str()).into());
        }
        Ok(json!({
            "$ref": "http://json-schema.org/draft-07/schema#",
            "definitions": {"JSONSchemaObject": {"properties": {"$ref": {"type": "string"}}}},
        }))
    }
}

#[test]
fn the_document_is_valid_against_the_meta_schema() {
    let meta: Value = serde_json::from_str(META_SCHEMA).unwrap();
    let validator = jsonschema::draft7::options()
        .with_retriever(SchemasOfSchemas)
        .build(&meta)
        .unwrap();
    let document = described().0;
    crate::openrpc::support::check(&validator, "the document", &document);
    for broken in [
        json!({"openrpc": "1.3.2"}),
        json!({"openrpc": "1.3.2", "info": {"title": "t", "version": "1"}, "methods": [{"name": "m"}]}),
        json!({"openrpc": "1.3.2", "info": {"title": "t", "version": "1"}, "methods": [{"name": "m", "params": [{"name": "p", "schema": {"type": "no type"}}]}]}),
    ] {
        assert!(!validator.is_valid(&broken), "{broken}");
    }
}

fn references(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            if members.contains_key("$ref") {
                found.push(value.clone());
            }
            members.values().for_each(|v| references(v, found));
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_used() {
    let document = described();
    let mut found = Vec::new();
    references(&document.0, &mut found);
    let mut used = BTreeSet::new();
    for reference in &found {
        assert!(!document.at(reference).is_null());
        used.insert(reference["$ref"].as_str().unwrap().to_owned());
    }
    for name in document.0["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        let reference = format!("#/components/schemas/{name}");
        assert!(used.contains(&reference), "`{name}` is referred to");
    }
}

#[test]
fn the_methods_are_those_of_the_table_and_the_one_that_tells_them() {
    let document = described();
    let told: Vec<_> = document
        .methods()
        .iter()
        .map(|m| m["name"].as_str().unwrap())
        .collect();
    let mut table: Vec<_> = methods::table().iter().map(|m| m.name).collect();
    table.push(DISCOVER);
    assert_eq!(told, table);
}

#[test]
fn every_method_is_fully_described() {
    let document = described();
    let error_names: BTreeSet<_> = document.0["components"]["errors"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(error_names.len(), ErrorKind::ALL.len());
    for method in document.methods() {
        let name = &method["name"];
        for member in ["summary", "description"] {
            assert!(
                !method[member].as_str().unwrap().is_empty(),
                "{name}: {member}"
            );
        }
        assert_eq!(method["paramStructure"], "either", "{name}");
        assert!(!method["tags"].as_array().unwrap().is_empty(), "{name}");
        assert!(!method["examples"].as_array().unwrap().is_empty(), "{name}");
        for param in method["params"].as_array().unwrap() {
            let sentence = param["description"].as_str().unwrap();
            assert!(sentence.ends_with('.'), "{name}: {param}");
        }
        let mut errors: Vec<_> = method["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["$ref"].as_str().unwrap())
            .collect();
        let all = errors.len();
        errors.sort_unstable();
        errors.dedup();
        assert_eq!(errors.len(), all, "{name} names each error once");
    }
}

#[test]
fn required_parameters_stand_before_those_that_may_be_left_out() {
    for method in described().methods() {
        let required: Vec<_> = method["params"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["required"] == true)
            .collect();
        let mut sorted = required.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(required, sorted, "{}", method["name"]);
    }
}

#[test]
fn what_stands_beside_params_is_told_with_the_methods_that_read_it() {
    let document = described();
    for method in document.methods() {
        let name = method["name"].as_str().unwrap();
        let beside = &method["x-envelope"];
        let begins_run = ["tasks.execute", "tasks.retry"].contains(&name);
        let stream = &beside["metadata"]["properties"]["stream"];
        assert_eq!(stream.is_object(), begins_run, "{name}");
        let configuration = &beside["configuration"];
        assert_eq!(configuration.is_object(), begins_run, "{name}");
        let key = &beside["metadata"]["properties"]["idempotency_key"];
        let of_worker = method["tags"]
            .as_array()
            .unwrap()
            .contains(&json!({"name": "worker"}));
        let changes = method["x-changes-state"] == true;
        let runs = ["workflows.create", "workflows.run", "schedules.run_now"];
        let is_of_flows = name.starts_with("tasks.") || runs.contains(&name);
        let keeps_keys = is_of_flows && changes && !of_worker;
        assert_eq!(key.is_object(), keeps_keys, "{name}");
    }
}

#[test]
fn what_costs_a_change_changes_state() {
    // To work on a document costs as much, and needs no more than to read; so does an answer that writes its entry in
    // the audit log.
    let is_change = |case: &&UseCase| {
        let reads = case.scope() == Some(Scope::TasksRead) || **case == UseCase::ReadWebhookSecret;
        case.cost() == Cost::Write && !reads
    };
    let document = described();
    let mut changing = 0;
    for method in document.methods() {
        let mut cases = UseCase::ALL.iter();
        let case = cases.find(|case| method["name"] == case.as_str());
        if case.filter(is_change).is_some() {
            assert_eq!(method["x-changes-state"], true, "{}", method["name"]);
            changing += 1;
        }
    }
    assert!(changing > 20, "{changing}");
}

#[test]
fn what_only_a_socket_has_is_told() {
    let socket = described().0["x-socket"].take();
    assert_eq!(socket["path"], "/ws");
    let methods = socket["methods"].as_array().unwrap();
    let names: Vec<_> = methods
        .iter()
        .map(|m| m["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, OF_SOCKETS);
    let params = |at: usize| {
        let params = methods[at]["params"].as_array().unwrap();
        params
            .iter()
            .map(|p| p["name"].as_str().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        params(0),
        [
            "flow",
            "task",
            "user",
            "types",
            "from",
            "last_event_id",
            "labels"
        ]
    );
    assert_eq!(params(1), ["subscription"]);
    assert_eq!(params(2), ["methods", "worker", "window", "lease_seconds"]);
    let told = socket["notifications"].as_array().unwrap();
    let told: Vec<_> = told.iter().map(|n| n["name"].as_str().unwrap()).collect();
    assert_eq!(told, ["event", "place", "work", "end"]);
}

/// The schema without what is only for people.
fn facts(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.remove("description");
        members.remove("default");
        members.remove("items");
        if let Some(Value::Number(n)) = members.get("minimum") {
            let as_float = json!(n.as_f64());
            members.insert("minimum".to_owned(), as_float);
        }
        if let Some(Value::Number(n)) = members.get("maximum") {
            let as_float = json!(n.as_f64());
            members.insert("maximum".to_owned(), as_float);
        }
    }
    schema
}

#[test]
fn our_task_is_the_protocols_task_with_more_members() {
    let protocol: Value = serde_json::from_str(TASK_SCHEMA).unwrap();
    let document = described();
    let ours = &document.0["components"]["schemas"]["Task"];
    assert_eq!(ours["required"], protocol["required"]);
    for (name, theirs) in protocol["properties"].as_object().unwrap() {
        assert_eq!(facts(&ours["properties"][name]), facts(theirs), "{name}");
    }
    let more: BTreeSet<_> = ours["properties"]
        .as_object()
        .unwrap()
        .keys()
        .filter(|n| protocol["properties"].get(n.as_str()).is_none())
        .map(String::as_str)
        .collect();
    assert_eq!(
        more,
        BTreeSet::from([
            "as_of",
            "attempt",
            "blocked_by",
            "labels",
            "next_attempt_at",
            "root_task_id",
            "run",
            "skipped",
            "start_at",
            "suspension"
        ])
    );
}

#[tokio::test]
async fn a_running_server_tells_the_same_and_where_it_is() {
    let world = World::start().await;
    let told = world.document().await;
    assert_eq!(told.0["servers"][0]["url"], world.url.as_str());
    assert_eq!(told.0["methods"], described().0["methods"]);
    assert_eq!(told.0["components"], described().0["components"]);
    world.close().await;
}
