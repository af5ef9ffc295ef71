//! The parse cases of JSONTestSuite as request bodies: what is JSON is no request (-32600, for an
//! array one answer for each element), and what is no JSON is one -32700.

use crate::protocol::harness::{Client, Server};
use crate::protocol::judge::{is_invalid_request, is_parse_error};
use crate::protocol::notation;
use serde_json::Value;

const SUITE: &str = include_str!("data/json_test_suite.txt");

/// Cases that a parser may take or refuse, and that this server takes: numbers beyond an integer's
/// range or too small for a float where nobody reads them, and a byte order mark. Of the others, numbers
/// that no float can hold, lone surrogates, what is not UTF-8 and 500 levels are refused.
const TAKEN: [&str; 6] = [
    "i_structure_UTF-8_BOM_empty_object",
    "i_number_double_huge_neg_exp",
    "i_number_real_underflow",
    "i_number_too_big_neg_int",
    "i_number_too_big_pos_int",
    "i_number_very_big_negative_int",
];

fn cases() -> Vec<(&'static str, Vec<u8>)> {
    SUITE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once('\t').unwrap())
        .map(|(name, text)| (name, notation::bytes(text)))
        .collect()
}

#[tokio::test]
async fn all_318_bodies_of_the_json_test_suite_are_answered_as_json_rpc_demands() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let cases = cases();
    for (name, body) in &cases {
        let is_json = name.starts_with("y_") || TAKEN.contains(name);
        for path in ["/", "/tasks"] {
            check(&mut client, name, path, body, is_json).await;
        }
    }
    let count = |prefix: &str| cases.iter().filter(|(n, _)| n.starts_with(prefix)).count();
    assert_eq!([count("y_"), count("n_"), count("i_")], [95, 188, 35]);
    assert_eq!(cases.len(), 318);
    assert!(server.fake.calls().is_empty(), "nothing was executed");
}

async fn check(client: &mut Client, name: &str, path: &str, body: &[u8], is_json: bool) {
    let answer = client.post(path, body).await.ok();
    if !is_json {
        assert!(is_parse_error(&answer), "{name} on {path}: {answer}");
        return;
    }
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let body: Value = serde_json::from_slice(body).unwrap();
    // An id that can be read is answered.
    let id = body.get("id").unwrap_or(&Value::Null);
    let invalid = |a: &Value| is_invalid_request(a) && a["id"] == *id;
    let elements = body.as_array().map_or(0, Vec::len);
    if elements == 0 {
        assert!(invalid(&answer), "{name} on {path}: {answer}");
        return;
    }
    let answers = answer.as_array().map_or(&[][..], Vec::as_slice);
    assert_eq!(answers.len(), elements, "{name} on {path}: {answer}");
    assert!(answers.iter().all(invalid), "{name} on {path}: {answer}");
}
