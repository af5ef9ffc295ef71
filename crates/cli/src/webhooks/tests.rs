//! What each command line asks for, and how answers look.

use super::*;
use crate::testing::parsed;
use serde_json::json;
use taskledger_terminal::testing::Buffer;

#[derive(Debug, Subcommand)]
enum Local {
    Local,
}

fn command(line: &str) -> Result<Command, clap::Error> {
    let words = std::iter::once("webhooks").chain(line.split('|'));
    parsed(words).map(|args: Args<Local>| match args.command {
        Either::Remote(command) => command,
        Either::Local(_) => panic!("{line} needs no server"),
    })
}

fn request(line: &str) -> Result<Request, CliError> {
    command(line).unwrap().work().map(|work| match work {
        Work::Call(request) | Work::Test(request) => request,
        Work::Verify(_) => panic!("{line} needs no server"),
    })
}

fn shown(line: &str, answer: &Value) -> String {
    let buffer = Buffer::default();
    let mut out = Output::to(Box::new(buffer.clone()), false, false);
    (request(line).unwrap().show)(answer, &mut out).unwrap();
    buffer.text()
}

#[test]
fn each_command_makes_the_call_that_it_names() {
    let one = json!({"id": "w"});
    let cases = [
        (
            "create|http://h",
            "webhooks.create",
            json!({"url": "http://h"}),
        ),
        (
            "create|http://h|--events|task_failed,webhook.endpoint.failing|--flow|f|--user|u|--description|d e|--header|X-A: 1|--header|x-b:2:3|--ordering|endpoint|--schedule|0,60|--signature|v1a",
            "webhooks.create",
            json!({"url": "http://h", "events": ["task_failed", "webhook.endpoint.failing"], "flow_id": "f", "user_id": "u",
                "description": "d e", "headers": {"X-A": "1", "x-b": "2:3"}, "ordering": "endpoint", "schedule": [0, 60],
                "signature": "v1a"}),
        ),
        ("get|w", "webhooks.get", one.clone()),
        ("list", "webhooks.list", json!({})),
        (
            "list|--limit|5|--cursor|7",
            "webhooks.list",
            json!({"limit": 5, "cursor": "7"}),
        ),
        (
            "update|w|--to|http://i|--clear|events,flow",
            "webhooks.update",
            json!({"id": "w", "url": "http://i", "clear": ["events", "flow_id"]}),
        ),
        ("delete|w", "webhooks.delete", one.clone()),
        (
            "rotate-secret|w|--grace|0",
            "webhooks.rotate_secret",
            json!({"id": "w", "grace_seconds": 0}),
        ),
        ("secret|w", "webhooks.secret", one.clone()),
        ("test|w", "webhooks.test", one.clone()),
        ("deliveries", "webhooks.deliveries", json!({})),
        (
            "deliveries|w|--state|dead|--task|t|--since|S|--until|U|--limit|9|--cursor|c",
            "webhooks.deliveries",
            json!({"id": "w", "state": "dead", "task_id": "t", "since": "S", "until": "U", "limit": 9, "cursor": "c"}),
        ),
        (
            "redeliver|7|--request-key|k",
            "webhooks.redeliver",
            json!({"delivery_id": 7, "request_key": "k"}),
        ),
        (
            "recover|w|--since|S|--all",
            "webhooks.recover",
            json!({"id": "w", "since": "S", "which": "all"}),
        ),
        ("enable|w", "webhooks.enable", one.clone()),
        ("disable|w", "webhooks.disable", one),
    ];
    for (line, method, params) in cases {
        let request = request(line).unwrap();
        assert_eq!((request.method, request.params), (method, params), "{line}");
    }
}

#[test]
fn secrets_come_from_files_and_headers_may() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let secret = file("secret", "whsec_x\n");
    let headers = file("headers", "Authorization: Bearer t\n\nx-b: 2\n");
    let line =
        format!("create|http://h|--secret-file|{secret}|--header-file|{headers}|--header|x-c: 3");
    assert_eq!(
        request(&line).unwrap().params,
        json!({"url": "http://h", "secret": "whsec_x",
            "headers": {"Authorization": "Bearer t", "x-b": "2", "x-c": "3"}})
    );
    let line = format!("rotate-secret|w|--secret-file|{secret}");
    assert_eq!(request(&line).unwrap().params["secret"], "whsec_x");

    let wrong = |line: &str| match request(line).err() {
        Some(CliError::Usage(text)) => text,
        other => panic!("{line}: {other:?}"),
    };
    let empty = file("empty", " \n");
    assert!(wrong(&format!("create|h|--secret-file|{empty}")).contains("expected one secret"));
    assert!(wrong("create|h|--secret-file|no/such/file").contains("no/such/file"));
    let bad = file("bad", "Authorization: x\nno header, but private\n");
    let said = wrong(&format!("create|h|--header-file|{bad}"));
    assert!(
        said.contains("line 2") && !said.contains("private"),
        "{said}"
    );
    assert!(wrong(&format!("create|h|--header-file|{headers}|--header|x-b: 3")).contains("`x-b`"));
}

#[test]
fn senseless_commands_are_refused() {
    for line in [
        "create",
        "create|h|--header|no colon",
        "create|h|--secret|whsec_x",
        "create|h|--secret-file|f|--signature|v1",
        "create|h|--schedule|soon",
        "update|w|--clear|url",
        "redeliver|0",
        "recover|w",
        "deliveries|--state|lost",
        "verify|--id|i",
    ] {
        assert!(command(line).is_err(), "{line}");
    }
}

#[test]
fn a_new_secret_is_shown_apart_with_what_to_do_with_it() {
    let answer =
        json!({"id": "w", "url": "http://h", "events": null, "enabled": true, "secret": "whsec_x"});
    let said = shown("create|http://h", &answer);
    assert!(
        said.starts_with(
            "id               w\nurl              http://h\nenabled          true\n\n"
        ),
        "{said}"
    );
    assert!(
        said.contains("\nsecret           whsec_x\nKeep it"),
        "{said}"
    );
    assert!(!shown("get|w", &json!({"id": "w"})).contains("Keep it"));
}

#[test]
fn what_was_done_is_a_sentence() {
    assert_eq!(
        shown("delete|w", &json!({"success": true, "cancelled": 2})),
        "deleted; 2 waiting messages were cancelled\n"
    );
    assert_eq!(
        shown("delete|w", &json!({"success": true, "cancelled": 1})),
        "deleted; 1 waiting message was cancelled\n"
    );
    assert_eq!(
        shown("recover|w|--since|S", &json!({"recovered": 1})),
        "1 message is delivered again\n"
    );
    assert_eq!(
        shown("recover|w|--since|S", &json!({"recovered": 3})),
        "3 messages are delivered again\n"
    );
    let queued = shown("redeliver|7", &json!({"delivery_id": 7}));
    assert!(queued.starts_with("delivery_id      7\n"), "{queued}");
}

#[test]
fn what_came_of_a_test_is_a_sentence() {
    let attempt = |status: Value, error: Value| json!({"status": status, "error": error, "detail": "d", "duration_ms": 31});
    for (answer, said) in [
        (
            json!({"state": "delivered", "attempt": attempt(json!(204), Value::Null)}),
            "it has arrived: 204 after 31 ms",
        ),
        (
            json!({"state": "dead", "attempt": attempt(json!(500), json!("status"))}),
            "it has failed: 500, d",
        ),
        (
            json!({"state": "dead", "attempt": attempt(Value::Null, json!("timeout"))}),
            "it has failed: timeout, d",
        ),
        (
            json!({"state": "waiting", "waits_for": "breaker", "next_at": "T", "attempt": null}),
            "it waits: nothing is sent before T; see `taskledger webhooks list`",
        ),
        (
            json!({"state": "waiting", "waits_for": null, "attempt": null}),
            "it is waiting; `taskledger webhooks deliveries` shows what becomes of it",
        ),
    ] {
        let mut answer = answer;
        answer["delivery_id"] = json!(7);
        assert_eq!(shown("test|w", &answer), format!("delivery 7\n{said}\n"));
    }
}

#[test]
fn a_breaker_and_old_secrets_are_told_in_words() {
    let answer = json!({"id": "w",
        "breaker": {"state": "open", "failures": 5, "since": "A", "next_try_at": "B"},
        "secrets": [{"created_at": "C", "expires_at": null}, {"created_at": "D", "expires_at": "E"}]});
    let said = shown("get|w", &answer);
    let open = "breaker          open since A, tried again at B, 5 failures in a row\n";
    assert!(said.contains(open), "{said}");
    assert!(
        said.contains("secrets          2, old ones until E\n"),
        "{said}"
    );
    let answer = json!({"id": "w", "breaker": {"state": "closed", "failures": 0}, "secrets": []});
    let said = shown("get|w", &answer);
    assert!(said.contains("breaker          closed\n"), "{said}");
    assert!(said.contains("none: messages are not signed\n"), "{said}");
}

#[test]
fn lists_are_tables() {
    let answer = json!({"webhooks": [
        {"id": "a", "url": "http://a", "events": null, "enabled": true, "failing_since": null},
        {"id": "b", "url": "http://b", "events": ["task_failed", "task_completed"], "failing_since": "T"},
        {"id": "c", "url": "http://c", "events": null, "disabled": {"reason": "gone", "at": "T"}},
        {"id": "d", "url": "http://d", "events": null, "failing_since": "S",
            "breaker": {"state": "open", "next_try_at": "T"}},
    ]});
    assert_eq!(
        shown("list", &answer),
        "ID  STATE            EVENTS                      URL       DESCRIPTION\n\
         a   enabled          all about tasks             http://a\n\
         b   failing          task_failed,task_completed  http://b\n\
         c   disabled (gone)  all about tasks             http://c\n\
         d   paused until T   all about tasks             http://d\n"
    );
    let answer = json!({"deliveries": [
        {"id": 2, "state": "waiting", "attempts": 1, "created_at": "T", "type": "task_failed", "task_id": "t",
            "log": [{"status": null, "error": "timeout"}], "waits_for": null},
        {"id": 3, "state": "waiting", "attempts": 0, "created_at": "T", "type": "task_failed", "task_id": "t",
            "log": [], "waits_for": "breaker", "next_at": "U"},
        {"id": 1, "state": "delivered", "attempts": 2, "created_at": "T", "type": "webhook.test", "task_id": null,
            "log": [{"status": 500, "error": "status"}, {"status": 204, "error": null}]},
    ]});
    assert_eq!(
        shown("deliveries", &answer),
        "ID  STATE           ATTEMPTS  LAST     CREATED  TYPE          TASK\n\
         2   waiting         1         timeout  T        task_failed   t\n\
         3   paused until U  0         -        T        task_failed   t\n\
         1   delivered       2         204      T        webhook.test\n"
    );
}
