//! Envelopes and codes. spec: interface / JSON-RPC 2.0 Compliance
//!
//! The document demands the whole of the JSON-RPC 2.0 specification in one sentence; the section
//! `json-rpc` takes it apart into what that specification demands of a server.

mod calls;
mod errors;

use super::prelude::*;
use calls::*;
use errors::*;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;

/// The clauses of these sections.
pub(super) fn clauses() -> Vec<Clause> {
    let mut clauses = specification();
    clauses.extend(requests());
    clauses.extend(successes());
    clauses.extend(failures());
    clauses.extend(codes());
    clauses
}

fn specification() -> Vec<Clause> {
    vec![
        must(
            "interface/json-rpc/1-specification",
            "the server complies with JSON-RPC 2.0: its examples are answered as it shows them",
            examples_are_answered,
        ),
        must_not(
            "interface/json-rpc/2-notifications",
            "a request without `id` is a notification and is not answered, not even with an error",
            notifications_are_not_answered,
        ),
        must(
            "interface/json-rpc/3-batch",
            "an array of requests is answered with an array of one answer for each call in it",
            each_call_of_a_batch_is_answered,
        ),
        must(
            "interface/json-rpc/4-empty-batch",
            "an empty array is one invalid request, answered with one object",
            an_empty_batch_is_one_error,
        ),
        must(
            "interface/json-rpc/5-batch-of-no-requests",
            "each element of a batch that is no request is answered as invalid by itself",
            invalid_elements_are_answered_each,
        ),
        must_not(
            "interface/json-rpc/6-batch-of-notifications",
            "a batch of notifications only is answered with nothing, not with an empty array",
            a_batch_of_notifications_is_not_answered,
        ),
        must(
            "interface/json-rpc/7-broken-batch",
            "a batch that is no JSON is one parse error, and nothing of it is executed",
            a_broken_batch_does_nothing,
        ),
        must(
            "interface/json-rpc/8-reserved-names",
            "names that begin with `rpc.` are no methods of the application",
            reserved_names_are_no_methods,
        ),
        must(
            "interface/json-rpc/9-exact-names",
            "names of members and methods are case-sensitive",
            names_are_exact,
        ),
    ]
}

fn requests() -> Vec<Clause> {
    vec![
        must(
            "interface/json-rpc.request/1-version",
            "`jsonrpc` is \"2.0\"; a request with another version or none is invalid",
            other_versions_are_invalid,
        ),
        must(
            "interface/json-rpc.request/2-method",
            "`method` is required and a text",
            a_method_is_a_text,
        ),
        must(
            "interface/json-rpc.request/3-params",
            "`params` is an object: bare values are refused, and so is a call that leaves out parameters which its method requires",
            params_are_structured,
        ),
        must(
            "interface/json-rpc.request/4-id",
            "`id` is a text or a number; other types make the request invalid",
            ids_are_texts_or_numbers,
        ),
    ]
}

fn successes() -> Vec<Clause> {
    vec![
        must(
            "interface/json-rpc.success/1-version",
            "`jsonrpc` of a result is \"2.0\"",
            results_are_sound,
        ),
        must(
            "interface/json-rpc.success/2-result",
            "a success has `result`, and no `error` beside it",
            results_are_sound,
        ),
        must(
            "interface/json-rpc.success/3-id",
            "`id` of a result is that of the request, value and type",
            ids_come_back,
        ),
    ]
}

fn failures() -> Vec<Clause> {
    vec![
        must(
            "interface/json-rpc.error/1-version",
            "`jsonrpc` of an error is \"2.0\"",
            errors_are_sound,
        ),
        must(
            "interface/json-rpc.error/2-error",
            "a failure has an object `error`, and no `result` beside it",
            errors_are_sound,
        ),
        must(
            "interface/json-rpc.error/3-code",
            "`code` is an integer",
            errors_are_sound,
        ),
        must(
            "interface/json-rpc.error/4-message",
            "`message` is a text, and says something",
            errors_are_sound,
        ),
        may(
            "interface/json-rpc.error/5-data",
            "`data` may tell more",
            errors_have_data,
        ),
        must(
            "interface/json-rpc.error/6-id",
            "`id` of an error is that of the request",
            ids_come_back_with_errors,
        ),
        must(
            "interface/json-rpc.error/7-id-of-parse-errors",
            "`id` is null after a parse error",
            parse_errors_have_no_id,
        ),
    ]
}

fn codes() -> Vec<Clause> {
    vec![
        must(
            "interface/json-rpc.codes/1-parse-error",
            "-32700: what came is no JSON",
            parse_errors_have_no_id,
        ),
        must(
            "interface/json-rpc.codes/2-invalid-request",
            "-32600: what came is JSON and no request",
            invalid_requests_are_told,
        ),
        must(
            "interface/json-rpc.codes/3-method-not-found",
            "-32601: there is no such method",
            unknown_methods_are_told,
        ),
        must(
            "interface/json-rpc.codes/4-invalid-params",
            "-32602: the parameters do not fit the method",
            invalid_params_are_told,
        ),
        not_testable(
            Level::Must,
            "interface/json-rpc.codes/5-internal-error",
            "-32603: the server could not do its work",
            "no request makes a sound server fail inside",
        ),
        must(
            "interface/json-rpc.codes/6-server-errors",
            "codes from -32768 to -32000 are the standard's; of these a server defines only -32099 to -32000",
            own_codes_are_in_the_servers_range,
        ),
        must(
            "interface/json-rpc.codes/7-standard-codes",
            "errors of the protocol have the standard codes",
            standard_codes_are_used,
        ),
        not_testable(
            Level::Should,
            "interface/json-rpc.codes/8-application-codes",
            "errors of the application have codes outside -32099 to -32000",
            "the same document gives the application's errors codes inside that range (-32001 to -32004, \
             Common Error Scenarios); a server cannot keep both",
        ),
    ]
}
