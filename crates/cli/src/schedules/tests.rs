//! What people are shown of schedules, and what their options take.

use super::*;
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
    let words = "x update n --without start-at --without max_runs";
    let line = Line::try_parse_from(words.split(' ')).unwrap();
    let Command::Update(update) = line.command else {
        panic!("{line:?}");
    };
    assert_eq!(update.without, [Bound::StartAt, Bound::MaxRuns]);
    assert!(refused(&["update", "n", "--without", "cron"]).contains("start-at, end-at, max-runs"));
}
