//! What people are shown of schedules, and what their options take.

use super::*;
use crate::when::{Times, tests::at_noon};
use clap::Parser;
use taskledger_terminal::testing::Buffer;

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

fn refused(words: &[&str]) -> String {
    let words = ["x"].iter().chain(words);
    Line::try_parse_from(words).unwrap_err().to_string()
}

#[test]
fn commands_to_paste_are_quoted_and_have_the_options_of_the_call() {
    let buffer = Buffer::default();
    let mut out = Output::to(Box::new(buffer.clone()), false, false);
    out.calls_with(" --url http://h:1".to_owned());
    let asked = json!({"name": "a b", "owner": "ann"});
    run(&asked, &json!({"outcome": "skipped"}), &mut out).unwrap();
    let said = buffer.text();
    assert_eq!(
        said.lines().last().unwrap(),
        "skipped: a run is in progress; `taskledger schedules run-now 'a b' --overlap allow --owner ann --url http://h:1` \
         starts another one at the same time"
    );
}

#[test]
fn bounds_are_times_to_come_and_can_be_taken_away() {
    let said = refused(&["create", "n", "--every", "60", "--start-at", "yesterday"]);
    assert!(said.contains("is not a time to come"), "{said}");
    let said = refused(&["update", "n", "--end-at", "yesterday 14:00"]);
    assert!(said.contains("is not a time to come"), "{said}");
    let said = refused(&["create", "n", "--every", "60", "--end-at", "2020-01-01"]);
    assert!(said.contains("`2020-01-01` has passed"), "{said}");
    let words = "x create n --every 60 --tasks f --start-at 2020-01-01";
    assert!(Line::try_parse_from(words.split(' ')).is_ok());
    let words = "x update n --without start-at --without max_runs";
    let line = Line::try_parse_from(words.split(' ')).unwrap();
    let Command::Update(update) = line.command else {
        panic!("{line:?}");
    };
    assert_eq!(update.without, [Bound::StartAt, Bound::MaxRuns]);
    assert!(refused(&["update", "n", "--without", "cron"]).contains("start-at, end-at, max-runs"));
}

#[test]
fn a_run_has_the_status_that_all_commands_show() {
    let buffer = Buffer::default();
    let mut out = Output::to(Box::new(buffer.clone()), false, false);
    let stages = [
        "submitted",
        "working",
        "input_required",
        "completed",
        "rejected",
    ];
    let runs = stages.map(|stage| json!({"outcome": "started", "by_hand": true, "status": stage}));
    let schedule =
        json!({"name": "n", "every_seconds": 60, "tasks": [{}], "version": 1, "runs": runs});
    shown(&schedule, &at_noon(Times::Utc), &mut out).unwrap();
    let shown = buffer.text();
    let shown: Vec<&str> = shown.lines().rev().take(stages.len()).collect();
    let expected = [
        "failed, rejected",
        "completed",
        "in_progress, waits for a person",
        "in_progress",
        "pending",
    ];
    for (line, status) in shown.into_iter().zip(expected) {
        let end = line.split_once("started").map(|(_, end)| end.trim());
        assert_eq!(end, Some(status), "{line}");
    }
}

#[test]
fn runs_have_whole_ids_where_programs_read_them() {
    const ROOT: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let buffer = Buffer::default();
    let mut out = Output::to(Box::new(buffer.clone()), false, false);
    let run = json!({"root_task_id": ROOT, "outcome": "started", "by_hand": true});
    let schedule =
        json!({"name": "n", "every_seconds": 60, "tasks": [{}], "version": 1, "runs": [run]});
    shown(&schedule, &at_noon(Times::Utc), &mut out).unwrap();
    assert!(buffer.text().contains(ROOT), "{}", buffer.text());
}

#[test]
fn an_update_changes_something() {
    let given = |params: Params| changes_something(&params.with("name", "n").with("owner", "ann"));
    assert!(!given(Params::default()));
    assert!(given(Params::default().with("overlap", "skip")));
}

/// A server with one schedule.
struct Server;

#[async_trait::async_trait]
impl Api for Server {
    async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
        assert_eq!(
            (method, &params["owner"]),
            ("schedules.list", &json!("ann"))
        );
        Ok(json!({"schedules": [{"name": "poll"}]}))
    }
}

#[tokio::test]
async fn a_schedule_that_there_is_not_is_refused_with_the_one_that_was_meant() {
    let out = Output::to(Box::new(Vec::new()), false, false);
    for (name, meant) in [("nope", ";"), ("pol", "; did you mean `poll`?")] {
        let said = none_such(&Server, &json!({"name": name, "owner": "ann"}), &out).await;
        let text = format!(
            "there is no schedule `{name}`{meant} `taskledger schedules list --owner ann` shows those that there are"
        );
        assert!(
            matches!(&said, CliError::Usage(told) if *told == text),
            "{said}"
        );
    }
    let refused = |code, field: &str| ApiError::Refused {
        code,
        message: "no".to_owned(),
        data: json!({"errors": [{"field": field, "reason": "unknown"}]}),
    };
    for (error, hint) in [
        (refused(-31014, "name"), "did you mean `poll`?"),
        (
            refused(-32602, "time_zone"),
            "did you mean `Europe/Berlin`?",
        ),
    ] {
        let asked = json!({"name": "pol", "owner": "ann", "time_zone": "Europe/Belin"});
        let said = helped(&Server, &asked, error).await.to_string();
        assert!(said.ends_with(hint), "{said}");
    }
}
