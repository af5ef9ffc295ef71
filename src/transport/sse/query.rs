//! The query of `GET /events`.

use crate::application::api::Watch;
use crate::subscription::cursor::Cursor;
use crate::subscription::notice::Kind;
use crate::subscription::stream::{From, Reset};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use taskledger_domain::ids::parse_uuid_v4;
use taskledger_domain::limits::{KEY_CHARS_MAX, cut};
use taskledger_domain::suggestion::suggestion;
use taskledger_domain::{FlowId, TaskId, Violation};
use url::form_urlencoded;

/// The parameters.
const NAMES: [&str; 8] = [
    "flow",
    "task",
    "user",
    "user_id",
    "types",
    "from",
    "last_event_id",
    "label",
];

/// Bytes of a name that is repeated in a message.
const SHOWN_BYTES_MAX: usize = 64;

/// The parsed query: what is watched, and from where on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) watch: Watch,
    pub(crate) from: From,
    /// What was given is no cursor.
    pub(crate) reset: Option<Reset>,
}

impl Query {
    /// Reads a query; `header` is the value of `Last-Event-ID`, which wins.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub(crate) fn read(query: &str, header: Option<&[u8]>) -> Result<Self, Vec<Violation>> {
        let mut watch = Watch::default();
        let mut from = From::Now;
        let mut cursor = header.filter(|text| !text.is_empty()).map(<[u8]>::to_vec);
        let (mut seen, mut faults) = (HashSet::new(), Vec::new());
        for pair in query.split('&') {
            let Some((name, value)) = form_urlencoded::parse(pair.as_bytes()).next() else {
                continue;
            };
            let mut fault = |reason: &str, expected: String| {
                let actual = Value::from(&*value);
                faults.push(Violation::of(&name, reason, expected, &actual));
            };
            // Two names of one parameter.
            let key = if name == "user_id" { "user" } else { &*name };
            if !is_text(pair) {
                fault("not UTF-8", "UTF-8, percent-encoded".to_owned());
                continue;
            }
            if key != "label" && !seen.insert(key.to_owned()) {
                fault(
                    "given more than once",
                    "each parameter but `label` at most once".to_owned(),
                );
                continue;
            }
            match key {
                "flow" => match parse_uuid_v4(&value) {
                    Ok(id) => watch.flow = Some(FlowId(id)),
                    Err(_) => fault("Invalid UUID format", "a UUID v4".to_owned()),
                },
                "task" => match parse_uuid_v4(&value) {
                    Ok(id) => watch.task = Some(TaskId(id)),
                    Err(_) => fault("Invalid UUID format", "a UUID v4".to_owned()),
                },
                "user" => {
                    if (1..=KEY_CHARS_MAX).contains(&value.chars().count()) {
                        watch.user = Some(Arc::from(&*value));
                    } else {
                        fault("not a user", format!("1 to {KEY_CHARS_MAX} characters"));
                    }
                }
                "types" => match kinds(&value) {
                    Ok(kinds) => watch.kinds = Some(kinds),
                    Err(unknown) => {
                        let reason =
                            format!("`{}` is not an event type", cut(unknown, SHOWN_BYTES_MAX));
                        fault(&reason, expected_kinds());
                    }
                },
                "from" => match start(&value) {
                    Some(start) => from = start,
                    None => {
                        let expected = "`beginning`, `now`, or a position, which is a whole number";
                        fault("not a position", expected.to_owned());
                    }
                },
                "label" => {
                    if let Err(wrong) = watch.labels.add(&value) {
                        fault(&wrong.reason, wrong.expected.to_owned());
                    }
                }
                "last_event_id" => {
                    if cursor.is_none() && !value.is_empty() {
                        cursor = Some(value.as_bytes().to_vec());
                    }
                }
                unknown => {
                    let expected = match meant(unknown) {
                        Some(near) => format!("a known parameter; did you mean `{near}`?"),
                        None => format!("one of {}", NAMES.join(", ")),
                    };
                    fault("unknown parameter", expected);
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut reset = None;
        if let Some(text) = cursor {
            let parsed = std::str::from_utf8(&text).ok();
            match parsed.and_then(|text| Cursor::parse(text).ok()) {
                Some(cursor) => from = From::Cursor(cursor),
                None => {
                    from = From::Now;
                    reset = Some(Reset::Malformed);
                }
            }
        }
        Ok(Self { watch, from, reset })
    }
}

/// Whether a part of a query is UTF-8 once it is decoded. What is not would be taken for another text.
fn is_text(encoded: &str) -> bool {
    let mut rest = encoded.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() {
            &behind[2..]
        } else {
            behind
        };
    }
    std::str::from_utf8(&bytes).is_ok()
}

/// The kinds of a list; else the first name that is none.
fn kinds(list: &str) -> Result<Vec<Kind>, &str> {
    let mut kinds = Vec::new();
    for name in list.split(',').map(str::trim) {
        let kind = Kind::parse(name).ok_or(name)?;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

fn expected_kinds() -> String {
    let names = Kind::ALL.map(Kind::as_str).join(", ");
    format!("one or more of {names}, separated by commas")
}

fn start(text: &str) -> Option<From> {
    match text {
        "beginning" => Some(From::Beginning),
        "now" => Some(From::Now),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok().map(From::Position)
        }
        _ => None,
    }
}

/// The parameter that a name was probably meant to be.
fn meant(unknown: &str) -> Option<&'static str> {
    // As other methods call what `last_event_id` is.
    let is_cursor = suggestion(unknown, ["cursor"].into_iter()).is_some();
    match is_cursor {
        true => Some("last_event_id"),
        false => suggestion(unknown, NAMES.into_iter()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    fn read(query: &str) -> Query {
        Query::read(query, None).expect("a valid query")
    }

    #[test]
    fn a_query_without_parameters_asks_for_everything_from_now_on() {
        let query = read("");
        assert_eq!(query.watch, Watch::default());
        assert_eq!((query.from, query.reset), (From::Now, None));
    }

    #[test]
    fn every_parameter_is_read() {
        let query = read(&format!(
            "flow={ID}&task={ID}&user_id=ann%20b&types=task_failed,task_completed&from=7&label=team%3Ddata&label=stage"
        ));
        let id = parse_uuid_v4(ID).expect("an id");
        assert_eq!(query.watch.flow, Some(FlowId(id)));
        assert_eq!(query.watch.task, Some(TaskId(id)));
        assert_eq!(query.watch.user.as_deref(), Some("ann b"));
        assert_eq!(query.watch.kinds, Some(vec![Kind::Failed, Kind::Completed]));
        assert_eq!(query.watch.labels.terms(), ["team=data", "stage"]);
        assert_eq!(query.from, From::Position(7));
        assert_eq!(read("from=beginning").from, From::Beginning);
    }

    #[test]
    fn what_is_no_text_is_refused_and_not_guessed() {
        for bad in [
            "user=%ff",
            "user=a%C3",
            "types=%80",
            "%fe=1",
            "user=%ED%A0%80",
        ] {
            let faults = Query::read(bad, None).expect_err(bad);
            assert_eq!(faults[0].reason, "not UTF-8", "{bad}");
        }
        for (good, user) in [
            ("user=%EF%BF%BD", "\u{fffd}"),
            ("user=%c3%A9%", "é%"),
            ("user=é+%4", "é %4"),
        ] {
            assert_eq!(read(good).watch.user.as_deref(), Some(user), "{good}");
        }
    }

    #[test]
    fn the_header_wins_over_the_query_and_both_over_from() {
        let cursor = |position| Cursor {
            position,
            parts: 1,
            version: 1,
            tag: 9,
        };
        let (one, two) = (cursor(1).to_string(), cursor(2).to_string());
        let query = format!("from=beginning&last_event_id={one}");
        assert_eq!(read(&query).from, From::Cursor(cursor(1)));
        let both = Query::read(&query, Some(two.as_bytes())).expect("a valid query");
        assert_eq!(both.from, From::Cursor(cursor(2)));
        let empty = Query::read("from=beginning&last_event_id=", Some(b"")).expect("valid");
        assert_eq!((empty.from, empty.reset), (From::Beginning, None));
    }

    #[test]
    fn what_is_no_cursor_begins_now_and_says_so() {
        for header in [&b"latest"[..], b"\xff\xfe", &[b'A'; 4000]] {
            let query = Query::read("from=beginning", Some(header)).expect("a valid query");
            assert_eq!(query.from, From::Now);
            assert_eq!(query.reset, Some(Reset::Malformed));
        }
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let bad = "flow=1&task=x&types=task_done&from=-1&form=now&user=&user_id=a&flow=2&label=-";
        let faults = Query::read(bad, None).expect_err("nothing is right");
        let found: Vec<_> = faults
            .iter()
            .map(|v| (v.field.as_str(), v.reason.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("flow", "Invalid UUID format"),
                ("task", "Invalid UUID format"),
                ("types", "`task_done` is not an event type"),
                ("from", "not a position"),
                ("form", "unknown parameter"),
                ("user", "not a user"),
                ("user_id", "given more than once"),
                ("flow", "given more than once"),
                ("label", "Not a key of a label"),
            ]
        );
        assert_eq!(
            faults[4].expected,
            "a known parameter; did you mean `from`?"
        );
    }

    #[test]
    fn a_cursor_is_known_here_as_the_last_event_id() {
        for name in ["cursor", "cusor", "last_event"] {
            let told = Query::read(&format!("{name}=abc"), None).expect_err("no such parameter");
            let expected = "a known parameter; did you mean `last_event_id`?";
            assert_eq!(told[0].expected, expected, "{name}");
        }
    }
}
