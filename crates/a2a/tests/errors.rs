//! The tables of errors, row by row, in both editions and on each binding.

use serde_json::json;
use taskledger_a2a::ErrorKind::{self, *};
use taskledger_a2a::grpc::status;
use taskledger_a2a::{Edition, Error, Fault};

/// Kind, JSON-RPC code, HTTP status and gRPC code of edition 1.0.1, and of 1.0.0.
type Row = (ErrorKind, i32, (u16, &'static str), (u16, &'static str));

const ROWS: [Row; 18] = [
    (TaskNotFound, -32001, (404, "NOT_FOUND"), (404, "NOT_FOUND")),
    (
        TaskNotCancelable,
        -32002,
        (400, "FAILED_PRECONDITION"),
        (409, "FAILED_PRECONDITION"),
    ),
    (
        PushNotificationNotSupported,
        -32003,
        (400, "FAILED_PRECONDITION"),
        (400, "UNIMPLEMENTED"),
    ),
    (
        UnsupportedOperation,
        -32004,
        (400, "FAILED_PRECONDITION"),
        (400, "UNIMPLEMENTED"),
    ),
    (
        ContentTypeNotSupported,
        -32005,
        (400, "INVALID_ARGUMENT"),
        (415, "INVALID_ARGUMENT"),
    ),
    (
        InvalidAgentResponse,
        -32006,
        (500, "INTERNAL"),
        (502, "INTERNAL"),
    ),
    (
        ExtendedAgentCardNotConfigured,
        -32007,
        (400, "FAILED_PRECONDITION"),
        (400, "FAILED_PRECONDITION"),
    ),
    (
        ExtensionSupportRequired,
        -32008,
        (400, "FAILED_PRECONDITION"),
        (400, "FAILED_PRECONDITION"),
    ),
    (
        VersionNotSupported,
        -32009,
        (400, "FAILED_PRECONDITION"),
        (400, "UNIMPLEMENTED"),
    ),
    (
        Parse,
        -32700,
        (400, "INVALID_ARGUMENT"),
        (400, "INVALID_ARGUMENT"),
    ),
    (
        InvalidRequest,
        -32600,
        (400, "INVALID_ARGUMENT"),
        (400, "INVALID_ARGUMENT"),
    ),
    (
        MethodNotFound,
        -32601,
        (404, "UNIMPLEMENTED"),
        (404, "UNIMPLEMENTED"),
    ),
    (
        InvalidParams,
        -32602,
        (400, "INVALID_ARGUMENT"),
        (400, "INVALID_ARGUMENT"),
    ),
    (Internal, -32603, (500, "INTERNAL"), (500, "INTERNAL")),
    (
        Unauthenticated,
        -32600,
        (401, "UNAUTHENTICATED"),
        (401, "UNAUTHENTICATED"),
    ),
    (
        Forbidden,
        -32600,
        (403, "PERMISSION_DENIED"),
        (403, "PERMISSION_DENIED"),
    ),
    (
        Unavailable,
        -32603,
        (503, "UNAVAILABLE"),
        (503, "UNAVAILABLE"),
    ),
    (
        ResourceExhausted,
        -32603,
        (429, "RESOURCE_EXHAUSTED"),
        (429, "RESOURCE_EXHAUSTED"),
    ),
];

#[test]
fn every_kind_has_its_codes() {
    assert_eq!(ROWS.map(|(kind, ..)| kind), ErrorKind::ALL);
    for (kind, rpc, new, old) in ROWS {
        assert_eq!(kind.rpc_code(), rpc, "{kind:?}");
        for (edition, (http, grpc)) in [(Edition::V1_0_1, new), (Edition::V1_0_0, old)] {
            assert_eq!(kind.http_status(edition), http, "{kind:?} {edition}");
            assert_eq!(kind.grpc_code(edition).1, grpc, "{kind:?} {edition}");
            let status = status::of(&Error::new(kind, "x"), edition);
            assert_eq!(i32::from(status.code()), kind.grpc_code(edition).0);
        }
    }
}

#[test]
fn reasons_are_the_names_of_the_errors() {
    for kind in ErrorKind::ALL {
        let error = Error::new(kind, "x");
        let first = &error.details()[0];
        assert_eq!(first["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
        assert_eq!(first["domain"], "a2a-protocol.org");
        assert_eq!(first["reason"], kind.reason());
        let grpc = status::reasons(&status::of(&error, Edition::default()));
        let expected = (kind.reason().to_owned(), "a2a-protocol.org".to_owned());
        assert_eq!(grpc, [expected]);
    }
}

#[test]
fn details_stand_in_their_order_on_each_binding() {
    let error = Error::invalid_member("message.parts[0].data", "wrong")
        .named("CIRCULAR_DEPENDENCY")
        .after(1500);
    let kinds: Vec<_> = error
        .details()
        .iter()
        .map(|it| it["@type"].clone())
        .collect();
    let named = |name: &str| json!(format!("type.googleapis.com/google.rpc.{name}"));
    assert_eq!(
        kinds,
        ["ErrorInfo", "BadRequest", "ErrorInfo", "RetryInfo"].map(named)
    );
    assert_eq!(
        error.to_rpc()["data"][1]["fieldViolations"],
        json!([{"field": "message.parts[0].data", "description": "wrong"}])
    );
    assert_eq!(error.to_rpc()["data"][3]["retryDelay"], "1.500s");
    let rest = error.to_rest(Edition::default());
    assert_eq!(
        (&rest["code"], &rest["status"]),
        (&json!(400), &json!("INVALID_ARGUMENT"))
    );
    assert_eq!(rest["details"], error.to_rpc()["data"]);
    let status = status::of(&error, Edition::default());
    let reasons = status::reasons(&status);
    assert_eq!(reasons[0].0, "INVALID_PARAMS");
    assert_eq!(
        reasons[1],
        ("CIRCULAR_DEPENDENCY".to_owned(), "taskledger".to_owned())
    );
    let faults = status::faults(&status);
    assert_eq!(faults, [Fault::new("message.parts[0].data", "wrong")]);
}
