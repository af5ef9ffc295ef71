//! The names and labels of a scrape are those of the table.

use super::scrape::{Scrape, scrape, server, tree};
use serde_json::json;
use std::collections::BTreeSet;
use taskledger::metrics::table::{Kind, On, TABLE};
use taskledger_testkit::server::Folder;

taskledger_testkit::on_both_backends!(
    a_scrape_after_some_work_has_all_of_the_table_and_nothing_else
);

async fn a_scrape_after_some_work_has_all_of_the_table_and_nothing_else(folder: Folder) {
    // given
    let server = server(&folder).await;
    let api = &server.api;
    let begun = api
        .call("tasks.execute", tree(&["echo_executor", "echo_executor"]))
        .await;
    api.run_of(&begun["root_task_id"]).await;
    let remote = json!({"name": "a", "schemas": {"method": "resize", "type": "remote"}});
    api.call("tasks.execute", json!({"tasks": [remote]})).await;
    api.refusal("tasks.get", json!({"task_id": 5})).await;
    api.refusal("no.such", json!({})).await;
    // when
    let found = api
        .eventually("everything has answered", async || {
            let found = scrape(api).await;
            (found.sum("taskledger_ready", &[]) == 1.0).then_some(found)
        })
        .await;
    // then
    let here = |on: On| match on {
        On::Every => true,
        On::Folder => folder.url().is_none(),
        On::Database => folder.url().is_some(),
        On::Tls | On::Expiring => false,
    };
    let expected: BTreeSet<_> = TABLE
        .iter()
        .filter(|row| here(row.on))
        .map(|row| {
            let suffix = match row.kind {
                Kind::Counter => "_total",
                Kind::Info => "_info",
                Kind::Gauge | Kind::Histogram => "",
            };
            let family = row.name.strip_suffix(suffix).unwrap();
            (family.to_owned(), row.kind.as_str().to_owned())
        })
        .collect();
    assert_eq!(found.families(), expected, "{}", found.text);
    assert_labels(&found);
    let calls = "rpc_server_call_duration_seconds_count";
    let of = |method, code| {
        let labels = [
            ("rpc_method", method),
            ("rpc_response_status_code", code),
            ("door", "http"),
        ];
        found.sum(calls, &labels)
    };
    assert_eq!(
        (
            of("tasks.execute", "OK"),
            of("tasks.get", "-32602"),
            of("_OTHER", "-32601")
        ),
        (2.0, 1.0, 1.0)
    );
    assert_eq!(
        found.sum("taskledger_log_head", &[]),
        found.sum("taskledger_log_events_total", &[])
    );
    assert!(found.samples.len() < 2000, "{} lines", found.samples.len());
    server.stop().await;
}

/// Each line belongs to a row and has its labels.
fn assert_labels(found: &Scrape) {
    for sample in &found.samples {
        let parts = ["_bucket", "_sum", "_count"];
        let bare = parts.iter().find_map(|part| sample.name.strip_suffix(part));
        let is_row = |name: &str, histogram| {
            let row = TABLE.iter().find(|row| row.name == name);
            row.filter(|row| (row.kind == Kind::Histogram) == histogram)
        };
        let row = is_row(&sample.name, false).or_else(|| is_row(bare?, true));
        let row = row.unwrap_or_else(|| panic!("{} is not in the table", sample.name));
        let mut expected: BTreeSet<_> = row.labels.iter().map(|l| (*l).to_owned()).collect();
        if sample.name.ends_with("_bucket") {
            expected.insert("le".to_owned());
        }
        let labels: BTreeSet<_> = sample.labels.keys().cloned().collect();
        assert_eq!(labels, expected, "{}", sample.name);
    }
}
