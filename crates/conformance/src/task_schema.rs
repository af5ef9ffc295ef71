//! The data model's own schema for a task (its facts, without its descriptions).

use jsonschema::Validator;
use serde_json::Value;
use std::sync::LazyLock;
use uuid::{Uuid, Variant};

static TASK: LazyLock<Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(include_str!("task_schema.json"))
        .expect("the file beside is JSON, which a test proves");
    jsonschema::draft7::options()
        .should_validate_formats(true)
        // Draft-07 itself does not know this format.
        .with_format("uuid", is_uuid_v4)
        .build(&schema)
        .expect("the file beside is a schema, which a test proves")
});

/// The data model's texts narrow its format `uuid` to version 4, which RFC 9562 has in one variant only.
fn is_uuid_v4(text: &str) -> bool {
    let id = Uuid::try_parse(text);
    let v4 = |id: Uuid| id.get_version_num() == 4 && id.get_variant() == Variant::RFC4122;
    text.len() == 36 && id.is_ok_and(v4)
}

/// Where and how `task` breaks the schema; empty when it conforms.
#[must_use]
pub fn violations(task: &Value) -> Vec<String> {
    TASK.iter_errors(task)
        .map(|error| format!("`{}`: {error}", error.instance_path()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::violations;
    use serde_json::json;

    #[test]
    fn a_task_conforms_and_each_fault_in_it_is_named() {
        let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let task = json!({"id": id, "name": "n", "status": "pending", "created_at": "2026-01-01T00:00:00Z",
            "parent_id": null, "dependencies": [{"id": id, "required": false}]});
        assert_eq!(violations(&task), [""; 0]);
        let other_version = "0f8fad5b-d9cb-169f-a165-70867728950e";
        for other_variant in [
            "0f8fad5b-d9cb-469f-c165-70867728950e",
            "0f8fad5b-d9cb-469f-7165-70867728950e",
        ] {
            let mut task = task.clone();
            task["id"] = json!(other_variant);
            assert_eq!(violations(&task).len(), 1, "{other_variant}");
        }
        let faulty = json!({
            "id": "x",
            "parent_id": other_version,
            "name": "",
            "status": "done",
            "priority": 4,
            "created_at": "today",
            "dependencies": [{"required": "yes"}],
            "result": 1,
            "progress": 1.5,
        });
        let found = violations(&faulty).join("\n");
        for path in [
            "/id",
            "/parent_id",
            "/name",
            "/status",
            "/priority",
            "/created_at",
            "/result",
            "/progress",
            "/dependencies/0",
            "/dependencies/0/required",
        ] {
            assert!(found.contains(&format!("`{path}`")), "{path} in {found}");
        }
    }
}
