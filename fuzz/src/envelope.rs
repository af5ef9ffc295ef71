//! Bytes as a request body, answered by the dispatcher over the real readers of parameters.
//!
//! The rules of JSON-RPC are told a second time here, from members as they stand in the text:
//! what is a request, what is answered, to which id, with which codes, in which order. Every answer
//! must be the one that these rules demand, as well-formed JSON-RPC, or nothing.

mod rules;

use futures_util::FutureExt;
use rules::{Expected, Member};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::{Arc, OnceLock};
use taskledger::application::Context;
use taskledger::clock::SystemClock;
use taskledger::transport::jsonrpc::methods::read::{children, explain, get, history, list, tree};
use taskledger::transport::jsonrpc::methods::tasks::{
    cancel, copy, create, delete, execute, retry, update,
};
use taskledger::transport::jsonrpc::params::nothing;
use taskledger::transport::jsonrpc::reader::Parameters;
use taskledger::transport::jsonrpc::{Changes, Dispatcher, Method};
use taskledger::transport::openrpc::about;

/// Elements of a batch. Stated here again, because the rules are.
const BATCH_CALLS_MAX: usize = 100;

/// One answer, with nothing in it that JSON-RPC does not know.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer<'a> {
    jsonrpc: String,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<AnsweredError>,
    #[serde(borrow)]
    id: &'a RawValue,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnsweredError {
    code: i64,
    message: String,
    data: Value,
}

/// Answers `bytes`.
///
/// # Panics
/// When a claim does not hold.
pub fn run(bytes: &[u8]) {
    let context = Context::anonymous("fuzz".into());
    let answer = dispatcher()
        .answer_bytes(bytes, context)
        .now_or_never()
        .expect("nothing here waits");
    let text = answer.map(|a| String::from_utf8(a).expect("an answer is UTF-8"));
    let Some(text) = text else {
        let silent = rules::silent(bytes);
        assert!(silent, "no answer to {}", String::from_utf8_lossy(bytes));
        return;
    };
    if text.starts_with('[') {
        let answers: Vec<Answer<'_>> = serde_json::from_str(&text).expect("an array of answers");
        assert!((1..=BATCH_CALLS_MAX).contains(&answers.len()), "{text}");
        judge_batch(bytes, &answers, &text);
    } else {
        let answer: Answer<'_> = serde_json::from_str(&text).expect("one answer");
        judge_single(bytes, &answer, &text);
    }
}

fn judge_single(bytes: &[u8], answer: &Answer<'_>, text: &str) {
    well_formed(answer, text);
    match rules::read(bytes) {
        rules::Body::NotJson => {
            assert_eq!((code(answer), answer.id.get()), (-32700, "null"), "{text}");
        }
        // Numbers that no value can hold may stand where nobody reads them, or be an id.
        rules::Body::OutOfRange => {}
        rules::Body::Batch(elements) => {
            let whole = match elements.len() {
                n if n == 0 || n > BATCH_CALLS_MAX => -32600,
                n => panic!("{n} calls, one answer: {text}"),
            };
            assert_eq!((code(answer), answer.id.get()), (whole, "null"), "{text}");
        }
        rules::Body::Single(element) => expect(&rules::judge(element), answer, text),
    }
}

fn judge_batch(bytes: &[u8], answers: &[Answer<'_>], text: &str) {
    answers.iter().for_each(|a| well_formed(a, text));
    let elements = match rules::read(bytes) {
        rules::Body::Batch(elements) => elements,
        rules::Body::OutOfRange => return,
        rules::Body::NotJson | rules::Body::Single(_) => panic!("an array for no batch: {text}"),
    };
    let expected: Vec<Expected<'_>> = elements
        .iter()
        .map(|element| rules::judge(element))
        .filter(|e| !matches!(e, Expected::Silence))
        .collect();
    assert_eq!(expected.len(), answers.len(), "{text}");
    for (expected, answer) in expected.iter().zip(answers) {
        expect(expected, answer, text);
    }
}

fn expect(expected: &Expected<'_>, answer: &Answer<'_>, text: &str) {
    match expected {
        Expected::Silence => panic!("a notification is not answered: {text}"),
        Expected::Invalid { id } => {
            assert_eq!((code(answer), answer.id.get()), (-32600, *id), "{text}");
        }
        Expected::Called { id, method } => {
            assert_eq!(answer.id.get(), *id, "{text}");
            // The dispatcher answers `rpc.discover` itself.
            let mut names = dispatcher().methods().iter().map(|m| m.name);
            let known = names.any(|name| name == method) || method == "rpc.discover";
            if known {
                assert!([0, -32602].contains(&code(answer)), "{text}");
            } else {
                assert_eq!(code(answer), -32601, "{text}");
            }
        }
    }
}

/// 0 for a result.
fn code(answer: &Answer<'_>) -> i64 {
    answer.error.as_ref().map_or(0, |e| e.code)
}

fn well_formed(answer: &Answer<'_>, text: &str) {
    assert_eq!(answer.jsonrpc, "2.0");
    assert!(answer.result.is_some() != answer.error.is_some(), "{text}");
    assert!(Member::is_id(answer.id.get()), "{text}");
    let Some(error) = &answer.error else {
        return;
    };
    let message = match error.code {
        -32700 => "Parse error",
        -32600 => "Invalid Request",
        -32601 => "Method not found",
        -32602 => "Invalid params",
        other => panic!("the code {other} in {text}"),
    };
    assert_eq!(error.message, message, "{text}");
    let faults = error.data["errors"].as_array().expect("the faults");
    assert!((1..=100).contains(&faults.len()), "{text}");
    for fault in faults {
        assert!(
            fault["field"].is_string() && fault["path"].is_array(),
            "{fault}"
        );
        assert!(
            fault["reason"].as_str().is_some_and(|r| !r.is_empty()),
            "{fault}"
        );
        assert!(
            fault["expected"].as_str().is_some_and(|e| !e.is_empty()),
            "{fault}"
        );
        assert!(fault.get("actual").is_some(), "{fault}");
    }
    if let [only] = faults.as_slice() {
        assert_eq!(error.data["reason"], only["reason"], "flat beside the list");
    }
}

type Table = Dispatcher<()>;

/// Methods that read their parameters and do nothing else.
fn dispatcher() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    macro_rules! methods {
        ($($name:literal: $params:ty;)+) => {
            vec![$(Method {
                name: $name,
                title: "",
                summary: "",
                tags: &[],
                params: <$params>::declared(),
                changes: Changes::Flows,
                about: about::discover(), // nobody reads it here
                handler: |_, call| {
                    let read = <$params>::read(&call.params).map(|_| RawValue::TRUE.to_owned().into());
                    std::future::ready(read.map_err(Into::into)).boxed()
                },
            }),+]
        };
    }
    TABLE.get_or_init(|| {
        let methods = methods![
            "tasks.create": create::Params;
            "tasks.update": update::Params;
            "tasks.execute": execute::Params;
            "tasks.get": get::Params;
            "tasks.list": list::Params;
            "tasks.tree": tree::Params;
            "tasks.children": children::Params;
            "tasks.history": history::Params;
            "tasks.explain": explain::Params;
            "tasks.cancel": cancel::Params;
            "tasks.copy": copy::Params;
            "tasks.delete": delete::Params;
            "tasks.retry": retry::Params;
            "system.executors": nothing::Params;
            "system.health": nothing::Params;
            "system.rebuild": nothing::Params;
        ];
        Dispatcher::new(Arc::new(()), methods, Arc::new(SystemClock::default()))
    })
}
