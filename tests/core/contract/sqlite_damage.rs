//! Damage is named, not believed; and the walk and the export that find it.

use crate::contract::fixture::{append, appended, event, given_stream, ledger, manual_clock, open};
use std::path::Path;
use taskledger::store::damage::is_mended;
use taskledger::store::sqlite::export::Export;
use taskledger::store::sqlite::{OpenError, verify};
use taskledger::store::transfer::{ExportedEvent, Line, Source};
use taskledger::store::verify::{Fault, Report};
use taskledger::store::{Append, Error, EventStore};
use taskledger_domain::{FlowId, Position};

async fn all(mut export: Export) -> Result<Vec<ExportedEvent>, Error> {
    let mut events = Vec::new();
    loop {
        let page = export.events().await?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend(page.into_iter().map(event_of));
    }
}

fn event_of(line: Line) -> ExportedEvent {
    match line {
        Line::Event(event) => event,
        Line::Key(_) | Line::Dropped(_) | Line::End(_) | Line::Archive(_) => {
            panic!("{line:?} is no event")
        }
    }
}

fn verified(folder: &Path) -> Report {
    verify(&ledger(folder), None, |_, _| {}).unwrap()
}

fn sql(folder: &Path, text: &str) {
    let db = rusqlite::Connection::open(ledger(folder)).unwrap();
    db.execute_batch(text).unwrap();
}

/// A closed log with a stream of three, one of two, and the first again: positions 1 to 8.
async fn closed_log(folder: &Path) -> (FlowId, FlowId) {
    let s = open(folder, manual_clock());
    let one = given_stream(&s, 3).await;
    let two = given_stream(&s, 2).await;
    let marked = Append {
        events: vec![event("a"), event("the-marked-name"), event("b")],
        ..append(one, 3, 0)
    };
    appended(s.append(marked).await.unwrap());
    s.close().await;
    (one, two)
}

/// Position of the event with the marked name.
const MARKED: Position = 7;

/// Flips one bit of the only occurrence of `text` in the file.
fn flip(path: &Path, text: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes
        .windows(text.len())
        .position(|w| w == text.as_bytes())
        .unwrap();
    bytes[at + 4] ^= 0x04;
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_sound_log_has_no_faults() {
    let folder = tempfile::tempdir().unwrap();
    closed_log(folder.path()).await;
    let mut told = Vec::new();

    let report = verify(&ledger(folder.path()), None, |at, head| {
        told.push((at, head))
    })
    .unwrap();

    assert_eq!((report.head, report.events, report.streams), (8, 8, 2));
    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!(told.last(), Some(&(8, 8)));
}

#[tokio::test]
async fn a_flipped_bit_is_named_by_verify_and_by_every_read() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = closed_log(folder.path()).await;
    flip(&ledger(folder.path()), "the-marked-name");

    let report = verified(folder.path());
    let s = open(folder.path(), manual_clock());
    let before = s.read_stream(one, 0, 100, usize::MAX).await.unwrap();
    let errors = [
        s.read_stream(one, 4, 100, usize::MAX).await.unwrap_err(),
        s.read_versions(one, &[5]).await.unwrap_err(),
    ];
    let page = s.read_all(0, 100).await.unwrap();

    assert_eq!(report.events, 7);
    assert_eq!(report.faults.len(), 1);
    let fault = &report.faults[0];
    assert_eq!((fault.position, fault.stream), (Some(MARKED), Some(one)));
    assert!(fault.reason.contains("checksum"), "{fault}");
    for error in errors {
        assert!(
            matches!(&error, Error::Corrupt { position: MARKED, flow, reason }
                if *flow == Some(one) && reason.contains("checksum")),
            "{error}"
        );
    }
    assert_eq!(before.last().map(|it| it.version), Some(4));
    let others: Vec<_> = page.events.iter().map(|it| it.position).collect();
    assert_eq!(
        (others, page.next, page.at_end),
        (vec![1, 2, 3, 4, 5, 6, 8], 8, true)
    );
    let named: Vec<_> = page
        .damaged
        .iter()
        .map(|it| (it.position, it.flow))
        .collect();
    assert_eq!(named, [(MARKED, Some(one))]);
    assert_eq!(s.damage().list(), page.damaged);
    // Reading on from anywhere gives what follows.
    let page = s.read_all(6, 1).await.unwrap();
    assert_eq!(page.events.first().map(|it| it.position), Some(8));
    assert_eq!(
        s.read_stream(two, 0, 100, usize::MAX).await.unwrap().len(),
        2
    );
    assert_eq!(s.read_all(0, 6).await.unwrap().events.len(), 6);
    appended(s.append(append(two, 2, 1)).await.unwrap());
}

#[tokio::test]
async fn every_column_is_under_the_checksum() {
    for change in [
        "version = version + 100",
        "id = zeroblob(16)",
        "id = x'00'",
        "time = time + 1",
        "recorded_at = recorded_at + 1",
        "kind = 'TaskMoved'",
        "schema_version = 2",
        "schema_version = 70000",
        "actor = 'root'",
        "correlation = actor, actor = correlation",
        "causation = id",
        "causation = x'00'",
        "trace = ''",
        "data = replace(data, 'marked', 'forged')",
        "stream = 2, version = version + 10",
        "stream = 99",
    ] {
        let folder = tempfile::tempdir().unwrap();
        closed_log(folder.path()).await;
        sql(
            folder.path(),
            &format!("UPDATE events SET {change} WHERE position = {MARKED}"),
        );

        let report = verified(folder.path());
        let s = open(folder.path(), manual_clock());
        let page = s.read_all(6, 1).await.unwrap();

        let named = report.faults.iter().any(|f| f.position == Some(MARKED));
        assert!(named, "{change}: {:?}", report.faults);
        assert_eq!(page.damaged.len(), 1, "{change}");
        assert_eq!(page.damaged[0].position, MARKED, "{change}");
        assert_eq!(
            page.events.first().map(|it| it.position),
            Some(8),
            "{change}"
        );
    }
}

#[tokio::test]
async fn rows_that_are_missing_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (one, _) = closed_log(folder.path()).await;
    sql(folder.path(), "DELETE FROM events WHERE position IN (2, 3)");

    let report = verified(folder.path());
    let s = open(folder.path(), manual_clock());

    let texts: Vec<_> = report.faults.iter().map(Fault::to_string).collect();
    assert!(
        texts.contains(&"position 2, the rows up to position 3 are missing".to_owned()),
        "{texts:?}"
    );
    assert!(
        texts.contains(&format!(
            "position 6, flow `{one}`, version 4 follows version 1"
        )),
        "{texts:?}"
    );
    let page = s.read_all(0, 100).await.unwrap();
    let named: Vec<_> = page
        .damaged
        .iter()
        .map(|it| (it.position, it.flow))
        .collect();
    assert_eq!(named, [(2, None)]);
    let others: Vec<_> = page.events.iter().map(|it| it.position).collect();
    assert_eq!(others, [1, 4, 5, 6, 7, 8]);
    let error = s.read_stream(one, 1, 100, usize::MAX).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn a_version_that_a_flow_lacks_is_registered_once_until_it_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let (one, _) = closed_log(folder.path()).await;
    let remove = format!(
        "CREATE TABLE kept AS SELECT * FROM events WHERE position = {MARKED};
         DELETE FROM events WHERE position = {MARKED}"
    );
    sql(folder.path(), &remove);
    let s = open(folder.path(), manual_clock());

    // Versions 4, 5 and 6 were at positions 6, 7 and 8.
    for read in [
        s.read_stream(one, 4, 1, usize::MAX).await,
        s.read_stream(one, 4, 100, usize::MAX).await,
        s.read_stream_back(one, 6, 100, usize::MAX).await,
        s.read_versions(one, &[5]).await,
    ] {
        let named = matches!(&read, Err(Error::Corrupt { position: 8, flow: Some(flow), reason })
            if *flow == one && reason.contains("no event with version 5"));
        assert!(named, "{read:?}");
    }

    let registered = s.damage().list();
    assert_eq!(registered.len(), 1, "{registered:?}");
    assert!(!is_mended(&s, &registered[0]).await.unwrap());
    sql(
        folder.path(),
        "INSERT INTO events SELECT * FROM kept; DROP TABLE kept",
    );
    assert!(is_mended(&s, &registered[0]).await.unwrap());
}

#[tokio::test]
async fn a_log_that_was_cut_off_disagrees_with_its_streams() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = closed_log(folder.path()).await;
    sql(folder.path(), "DELETE FROM events WHERE position > 6");

    let report = verified(folder.path());
    let s = open(folder.path(), manual_clock());

    assert_eq!(report.faults.len(), 1, "{:?}", report.faults);
    assert_eq!(report.faults[0].stream, Some(one));
    let error = s.read_stream(one, 4, 100, usize::MAX).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert_eq!(
        s.read_stream(two, 0, 100, usize::MAX).await.unwrap().len(),
        2
    );
}

#[tokio::test]
async fn many_faults_are_counted_and_the_first_ones_listed() {
    let folder = tempfile::tempdir().unwrap();
    let s = open(folder.path(), manual_clock());
    given_stream(&s, 3_000).await;
    s.close().await;
    sql(folder.path(), "UPDATE events SET time = time + 1");

    let report = verified(folder.path());

    assert_eq!(report.faults.len(), 100);
    assert_eq!(report.more_faults, 2_900);
    assert_eq!(report.faults[99].position, Some(100));
    assert_eq!(report.events, 0);
}

#[tokio::test]
async fn a_damaged_page_does_not_end_the_walk() {
    let folder = tempfile::tempdir().unwrap();
    let s = open(folder.path(), manual_clock());
    given_stream(&s, 500).await;
    s.close().await;
    let path = ledger(folder.path());
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes
        .windows(10)
        .position(|w| w == b"\"name 250\"")
        .unwrap();
    let page = at / 4096 * 4096;
    bytes[page..page + 4096].fill(0xff);
    std::fs::write(&path, bytes).unwrap();

    let report = verified(folder.path());

    assert_eq!(report.head, 500);
    assert!(report.events > 400, "{}", report.events);
    let named = report.faults.iter().any(|f| f.position == Some(251));
    assert!(named, "{:?}", report.faults);
    let s = open(folder.path(), manual_clock());
    let page = s.read_all(245, 100).await.unwrap();
    assert!(
        page.damaged.iter().any(|it| it.position == 251),
        "{:?}",
        page.damaged
    );
    let behind = page.events.last().expect("other pages are sound").position;
    assert!(behind > 251, "{behind}");
    let read = page.events.len() as u64 + page.damaged.len() as u64;
    assert_eq!(read, page.next - 245, "each is read or named");
}

#[tokio::test]
async fn verify_and_export_work_beside_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let s = open(folder.path(), manual_clock());
    let stream = given_stream(&s, 2_500).await;

    let export = Export::open(&ledger(folder.path()), 0).unwrap();
    appended(s.append(append(stream, 2_500, 1)).await.unwrap());
    let report = verified(folder.path());
    let exported = all(export).await.unwrap();

    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!(report.events, 2_501);
    assert!(exported.iter().map(|e| e.position).eq(1..=2_500));
    assert!(exported.iter().map(|e| e.version).eq(1..=2_500));
}

#[tokio::test]
async fn an_exported_event_is_one_json_object() {
    let folder = tempfile::tempdir().unwrap();
    let (one, _) = closed_log(folder.path()).await;

    let mut export = Export::open(&ledger(folder.path()), MARKED - 1).unwrap();
    assert_eq!(export.head(), 8);
    let line = serde_json::to_value(event_of(export.events().await.unwrap().remove(0))).unwrap();

    assert_eq!(line["position"], MARKED);
    assert_eq!(line["flow_id"], one.to_string());
    assert_eq!(line["version"], 5);
    assert_eq!(line["kind"], "TaskRenamed");
    assert_eq!(line["schema_version"], 1);
    assert_eq!(line["time"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(line["recorded_at"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(line["actor"], "anonymous");
    assert_eq!(line["correlation"], "request-1");
    assert_eq!(line["causation"], serde_json::Value::Null);
    assert_eq!(line["trace"], serde_json::Value::Null);
    assert_eq!(line["data"]["name"], "the-marked-name");
    assert_eq!(line["hash"].as_str().map(str::len), Some(64));
    assert!(line["event_id"].is_string());
}

#[tokio::test]
async fn an_export_gives_what_precedes_the_damage_then_names_it_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    closed_log(folder.path()).await;
    flip(&ledger(folder.path()), "the-marked-name");

    let mut export = Export::open(&ledger(folder.path()), 0).unwrap();
    let good = export.events().await.unwrap();
    let damaged = export.events().await.unwrap_err();

    assert_eq!(good.len(), 6);
    assert!(matches!(
        damaged,
        Error::Corrupt {
            position: MARKED,
            ..
        }
    ));
    assert!(export.events().await.unwrap().is_empty());
}

#[test]
fn verify_and_export_of_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = ledger(folder.path());

    let verified = verify(&path, None, |_, _| {}).unwrap_err();
    let exported = Export::open(&path, 0).unwrap_err();

    assert!(matches!(verified, OpenError::Unusable { .. }), "{verified}");
    assert!(matches!(exported, OpenError::Unusable { .. }), "{exported}");
    assert!(!path.exists());
}
