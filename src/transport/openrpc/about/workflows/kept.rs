//! The methods of workflow documents that are kept.

use super::super::super::schemas::{object, with_optional};
use super::super::About;
use super::{
    ABSENT, DOCUMENT, HASH, NAME, TIME, about, count, faults, merged, names, number, text, time,
};
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Value, json};

/// A saved version, and what more of it is told.
fn version(more: Value) -> Value {
    let mut members = json!({
        "name": text("`info.name` of the document."),
        "version": number("Counts what happened to the name, from 1; deletions count."),
        "info_version": text("`info.version` of the document."),
        "hash": text("SHA-256 of the document as JSON with sorted keys."),
        "bytes": count("Bytes of its text."),
        "saved_at": time("When it was saved."),
        "saved_by": text("The principal."),
    });
    if let (Some(members), Value::Object(more)) = (members.as_object_mut(), more) {
        members.extend(more);
    }
    object(members)
}

fn shown_version() -> Value {
    json!({
        "name": NAME, "version": 1, "info_version": "1.0.0", "hash": HASH, "bytes": DOCUMENT.len(),
        "saved_at": TIME, "saved_by": "anonymous",
    })
}

/// Members that tell a difference.
fn differences() -> Value {
    let change = object(json!({
        "path": text("Where in the document."),
        "change": {"type": "string", "enum": ["added", "removed", "changed"]},
        "before": {"type": ["string", "null"], "description": "The old value, shortened; null if there was none."},
        "after": {"type": ["string", "null"], "description": "The new value, shortened; null if there is none."},
        "breaking": {"type": "boolean", "description": "Whether callers, workers or readers of results may break."},
        "reason": {"type": ["string", "null"], "description": "Whom it breaks and how."},
    }));
    json!({
        "changes": {"type": "array", "items": change, "description": "Breaking ones first; at most 1000."},
        "count": count("How many there are in all."),
        "breaking": count("How many of them are breaking."),
    })
}

/// The same members, each null where nothing was compared.
fn or_null(members: Value) -> Value {
    let members = members.as_object().into_iter().flatten();
    let nullable = members.map(|(name, schema)| {
        let schema = json!({"anyOf": [schema, {"type": "null"}], "description": "Null if there is no earlier version to compare with."});
        (name.clone(), schema)
    });
    Value::Object(nullable.collect())
}

/// `workflows.save`.
#[must_use]
pub fn save() -> About {
    let more = merged(
        json!({
            "created": {"type": "boolean", "description": "Whether it is a new version; a document that is equal to the newest is kept already."},
            "warnings": faults("What is probably a mistake."),
            "not_acted_on": names("Paths of keys that have no effect here."),
        }),
        or_null(differences()),
    );
    let shown = json!({
        "created": false, "changes": null, "count": null, "breaking": null,
        "warnings": [], "not_acted_on": [],
    });
    about(
        "Keeps a workflow document as the newest version of its name, and says what is different from the version before, if there is one. At most 1,000 names, 10,000 versions of a name and 64 MiB for each owner.",
        ("saved", version(more)),
        &[ErrorKind::InputWiring, ErrorKind::WorkflowChanged],
        (
            "the same again",
            json!({"document": DOCUMENT}),
            merged(shown_version(), shown),
        ),
    )
}

/// `workflows.get`.
#[must_use]
pub fn get() -> About {
    let document =
        json!({"document": {"type": ["string", "object"], "description": "As it was given."}});
    about(
        "Reads a version of a workflow document that is kept.",
        ("workflow", version(document)),
        ABSENT,
        (
            "the newest",
            json!({"name": NAME}),
            merged(shown_version(), json!({"document": DOCUMENT})),
        ),
    )
}

/// `workflows.list`.
#[must_use]
pub fn list() -> About {
    about(
        "Lists the newest versions of the workflow documents of one user, by name.",
        (
            "workflows",
            object(json!({
                "workflows": {"type": "array", "items": version(json!({}))},
                "next_after": {"type": ["string", "null"], "description": "`after` of the next page; null on the last."},
            })),
        ),
        &[],
        (
            "all",
            json!({}),
            json!({"workflows": [shown_version()], "next_after": null}),
        ),
    )
}

/// `workflows.versions`.
#[must_use]
pub fn versions() -> About {
    let event = with_optional(
        object(json!({
            "version": number("Its number."),
            "event": {"type": "string", "enum": ["saved", "deleted"]},
            "at": time("When."),
            "by": text("The principal."),
            "kept": {"type": "boolean", "description": "Whether the document is still there."},
        })),
        json!({
            "info_version": text("`info.version` of the document."),
            "hash": text("SHA-256 of the document as JSON with sorted keys."),
            "bytes": count("Bytes of its text."),
        }),
    );
    about(
        "Lists what happened to a workflow document, newest first. Deletions stay listed, without the documents that they removed.",
        (
            "versions",
            object(json!({
                "versions": {"type": "array", "items": event},
                "next_before": {"type": ["integer", "null"], "description": "`before` of the next page; null on the last."},
            })),
        ),
        &[],
        (
            "of one workflow",
            json!({"name": NAME}),
            json!({
                "versions": [{
                    "version": 1, "event": "saved", "at": TIME, "by": "anonymous", "kept": true,
                    "info_version": "1.0.0", "hash": HASH, "bytes": DOCUMENT.len(),
                }],
                "next_before": null,
            }),
        ),
    )
}

/// `workflows.diff`.
#[must_use]
pub fn diff() -> About {
    let compared = merged(
        json!({
            "from": number("The version before."),
            "to": {"type": ["integer", "null"], "description": "The version after; null for a document of the call."},
        }),
        differences(),
    );
    about(
        "Says what is different between two versions of a workflow document, or between a version and a document that is not kept, and what of it breaks callers, workers or readers of results.",
        ("difference", object(compared)),
        &[ErrorKind::WorkflowNotFound, ErrorKind::InputWiring],
        (
            "a document that is not kept",
            json!({"name": NAME, "document": DOCUMENT}),
            json!({"from": 1, "to": null, "changes": [], "count": 0, "breaking": 0}),
        ),
    )
}

/// `workflows.delete`.
#[must_use]
pub fn delete() -> About {
    about(
        "Deletes all versions of a workflow document. Runs continue: their tasks contain all that they need. `workflows.versions` still lists the changes of the name.",
        (
            "deleted",
            object(json!({
                "deleted": {"type": "boolean", "description": "Whether there were any."},
            })),
        ),
        &[ErrorKind::WorkflowChanged],
        ("one", json!({"name": "Draft"}), json!({"deleted": false})),
    )
}
