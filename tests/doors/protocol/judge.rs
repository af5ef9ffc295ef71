//! Bodies and answers that several tests need.

use serde_json::Value;

/// A call with this text as its id.
pub(crate) fn with_id(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"test.echo","id":{id}}}"#)
}

pub(crate) fn is_parse_error(answer: &Value) -> bool {
    answer["error"]["code"] == -32700
        && answer["error"]["message"] == "Parse error"
        && answer.as_object().unwrap().get("id") == Some(&Value::Null)
}

pub(crate) fn is_invalid_request(answer: &Value) -> bool {
    answer["error"]["code"] == -32600
        && answer["error"]["message"] == "Invalid Request"
        && answer["error"]["data"]["errors"].is_array()
}
