//! Every example of the document is sent to a real server.

use crate::openrpc::support::{Document, World, by_name, check};
use serde_json::{Value, json};

/// `null` stands for what the example leaves out.
fn by_position(method: &Value, example: &Value) -> Value {
    let given = example["params"].as_array().unwrap();
    let declared = method["params"].as_array().unwrap();
    let mut values: Vec<Value> = declared
        .iter()
        .map(|param| {
            let found = given.iter().find(|p| p["name"] == param["name"]);
            found.map_or(Value::Null, |p| p["value"].clone())
        })
        .collect();
    let used = values
        .iter()
        .rposition(|v| !v.is_null())
        .map_or(0, |at| at + 1);
    values.truncate(used);
    assert_eq!(values.iter().filter(|v| !v.is_null()).count(), given.len());
    Value::Array(values)
}

/// Examples that change something have a server of their own.
async fn every_example(form: fn(&Value, &Value) -> Value) {
    let reading = World::start().await;
    let document = reading.document().await;
    reading.set_up(&document).await;
    let mut sent = 0;
    for method in document.methods() {
        for example in method["examples"].as_array().unwrap() {
            if method["x-changes-state"] == false {
                run(&reading, &document, method, example, form).await;
            } else {
                let world = World::start().await;
                world.set_up(&document).await;
                run(&world, &document, method, example, form).await;
                world.close().await;
            }
            sent += 1;
        }
    }
    assert!(sent >= document.methods().len());
    reading.close().await;
}

/// The example with the lease of a claim, which only the server can make.
async fn under_a_lease(world: &World, example: &Value) -> Value {
    let mut example = example.clone();
    let params = example["params"].as_array_mut().unwrap();
    let task = params.iter().find(|p| p["name"] == "task_id").unwrap()["value"].clone();
    let claimed = world.call("tasks.claim", json!({"task_id": task})).await;
    let lease = params.iter_mut().find(|p| p["name"] == "lease").unwrap();
    lease["value"] = claimed["claims"][0]["lease"]["token"].clone();
    example
}

/// The example with the id of a wait, which only the server can make.
async fn suspended(world: &World, example: &Value) -> Value {
    let mut example = example.clone();
    let params = example["params"].as_array_mut().unwrap();
    let task = params.iter().find(|p| p["name"] == "task_id").unwrap()["value"].clone();
    let claimed = world.call("tasks.claim", json!({"task_id": task})).await;
    let choices = json!([{"value": "a4", "label": "A4"}]);
    let asks = json!({"task_id": task, "lease": claimed["claims"][0]["lease"]["token"],
        "request": {"question": "?", "response_type": "choice", "choices": choices}});
    let waits = world.call("tasks.suspend", asks).await;
    let id = params
        .iter_mut()
        .find(|p| p["name"] == "suspension_id")
        .unwrap();
    id["value"] = waits["suspension_id"].clone();
    example
}

async fn run(
    world: &World,
    document: &Document,
    method: &Value,
    example: &Value,
    form: fn(&Value, &Value) -> Value,
) {
    let name = method["name"].as_str().unwrap();
    let mut params = example["params"].as_array().unwrap().iter();
    let made;
    let example = match params.find_map(|param| {
        param["name"]
            .as_str()
            .filter(|name| *name == "lease" || *name == "suspension_id")
    }) {
        Some("lease") => {
            made = under_a_lease(world, example).await;
            &made
        }
        Some(_) => {
            made = suspended(world, example).await;
            &made
        }
        None => example,
    };
    let result = world.call(name, form(method, example)).await;
    document.check_result(name, &result);
    // What the example says of constants and shapes is what is answered.
    let shown = &example["result"]["value"];
    if let (Value::Object(shown), false) = (shown, name == "rpc.discover") {
        let members: Vec<_> = shown.keys().collect();
        let real: Vec<_> = result.as_object().unwrap().keys().collect();
        assert_eq!(members, real, "{name}, {}", example["name"]);
        assert_eq!(shown.get("status"), result.get("status"), "{name}");
    }
}

#[tokio::test]
async fn every_example_can_be_sent_by_name() {
    every_example(|_, example| by_name(example)).await;
}

#[tokio::test]
async fn every_example_can_be_sent_by_position() {
    every_example(by_position).await;
}

#[test]
fn every_example_fits_the_schemas_beside_it() {
    let document = crate::openrpc::document::described();
    for method in document.methods() {
        let name = method["name"].as_str().unwrap();
        for example in method["examples"].as_array().unwrap() {
            document.check_result(name, &example["result"]["value"]);
            for given in example["params"].as_array().unwrap() {
                let params = method["params"].as_array().unwrap();
                let declared = params.iter().find(|p| p["name"] == given["name"]).unwrap();
                let validator = document.validator(&declared["schema"]);
                check(&validator, name, &given["value"]);
            }
        }
    }
}
