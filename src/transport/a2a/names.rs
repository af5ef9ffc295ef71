//! Names that the protocol leaves the agent to choose.

/// The extension of this server: ids of nodes in metadata, and progress of nodes in streams.
pub(super) const NODES: &str = "urn:taskledger:a2a:nodes:v1";
/// The skill of messages that hold tasks.
pub(super) const TASKS: &str = "tasks.execute";
/// Media types of parts that are taken.
pub const INPUT_MODES: [&str; 2] = ["text/plain", "application/json"];
/// Media types of parts that are given.
pub(super) const OUTPUT_MODES: [&str; 2] = ["application/json", "text/plain"];
/// Where the HTTP+JSON binding is.
pub(super) const REST_PATH: &str = "/a2a/rest";
/// The last segment of the path of the results of a task.
pub(super) const ARTIFACTS: &str = "artifacts";
/// Begins the skills of saved workflows; the name follows.
pub(super) const WORKFLOW_SKILL: &str = "workflow:";
