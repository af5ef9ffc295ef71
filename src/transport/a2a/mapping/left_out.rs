//! Describes the results that an answer leaves out.

use super::super::names::{ARTIFACTS, REST_PATH};
use serde_json::{Map, Value};

/// The member of metadata that counts results which are left out.
pub(crate) const LEFT_OUT: &str = "artifactsLeftOut";

/// Says where the results are that were left out.
pub(crate) fn say_where(task: &str, metadata: &mut Map<String, Value>) {
    let path = format!("{REST_PATH}/tasks/{task}/{ARTIFACTS}");
    metadata.insert("artifactsPath".to_owned(), path.into());
}
