//! The rows of the table.

use super::*;
use crate::clock::SystemClock;

#[test]
fn every_row_has_a_code_of_its_own() {
    let mut codes: Vec<i64> = ErrorKind::ALL.iter().map(|kind| kind.row().0).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), ErrorKind::ALL.len());
}

#[test]
fn a_single_fault_is_listed_and_flat() {
    let error = RpcError::from(vec![Violation::of(
        "limit",
        "too large",
        "1 to 1000",
        &5000.into(),
    )]);
    let fault = json!({"field": "limit", "reason": "too large", "expected": "1 to 1000", "actual": 5000, "path": ["limit"]});
    let mut data = fault.clone();
    data["errors"] = json!([fault]);
    assert_eq!(
        json!(error),
        json!({"code": -32602, "message": "Invalid params", "data": data})
    );
}

#[test]
fn several_faults_are_listed_and_not_flat() {
    let fault = |field| Violation::of(field, "missing", "a string", &Value::Null);
    let error = RpcError::from(vec![fault("a"), fault("b")]);
    assert_eq!(error.data["errors"].as_array().map(Vec::len), Some(2));
    assert!(error.data.get("field").is_none());
}

#[test]
fn faults_beyond_the_limit_are_counted() {
    let fault = Violation::of("a", "missing", "a string", &Value::Null);
    let error = RpcError::from(vec![fault; VIOLATIONS_MAX + 3]);
    assert_eq!(
        error.data["errors"].as_array().map(Vec::len),
        Some(VIOLATIONS_MAX)
    );
    assert_eq!(error.data["more"], 3);
}

#[test]
fn an_internal_error_shows_an_id_and_nothing_of_its_cause() {
    let error = RpcError::internal(&SystemClock::default(), &"disk /secret/path is on fire");
    let text = json!(error).to_string();
    assert!(!text.contains("secret") && !text.contains("fire"), "{text}");
    assert!(error.data["error_id"].is_string());
    assert!(error.data["errors"].is_array());
}
