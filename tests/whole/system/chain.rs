//! The hash chain as an auditor uses it: a head is kept, and a later log compared with it.

use serde_json::{Value, json};
use std::path::Path;
use taskledger_testkit::program::{Ended, run, run_with};
use taskledger_testkit::server::{Folder, Server};

async fn events(words: &[&str], folder: &Folder) -> Ended {
    let words = ["events"].iter().chain(words).map(|w| (*w).to_owned());
    run(words.chain(folder.storage())).await
}

async fn create(folder: &Folder, names: &[&str]) {
    let server = Server::start(folder).await;
    for name in names {
        server.api.call("tasks.create", json!({"name": name})).await;
    }
    server.stop().await;
}

/// The head that `events verify` prints.
async fn head(folder: &Folder) -> String {
    let said = events(&["verify"], folder).await.done();
    let line = said.lines().find_map(|l| l.strip_prefix("head "));
    line.unwrap_or_else(|| panic!("{said}")).to_owned()
}

/// What is said of a log that is not sound.
fn changed(ended: Ended) -> String {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    ended.out
}

async fn an_auditor_finds_what_was_changed(folder: Folder) {
    create(&folder, &["pay 100", "other"]).await;
    let kept = head(&folder).await;
    create(&folder, &["third"]).await;

    let sound = events(&["verify", "--head", &kept], &folder).await.done();
    let text = events(&["export"], &folder).await.done();
    let file = folder.path().join("log.jsonl");
    std::fs::write(&file, &text).unwrap();
    let of_file = events(
        &["verify", file.to_str().unwrap(), "--head", &kept],
        &folder,
    )
    .await;
    let short = Folder::new();
    create(&short, &["another log", "of two", "and three"]).await;
    let foreign = changed(events(&["verify", "--head", &kept], &short).await);
    let behind = kept.replace("@2", "@9");
    let behind = changed(events(&["verify", "--head", &behind], &folder).await);
    let wrong = events(&["verify", "--head", "abc"], &folder)
        .await
        .refused(2);

    let elsewhere = events(&["verify", folder.path().to_str().unwrap()], &folder)
        .await
        .refused(1);
    assert!(elsewhere.contains("--data-dir"), "{elsewhere}");

    let unchanged = "no event up to position 2 has changed since the head was recorded";
    assert!(sound.contains(unchanged), "{sound}");
    let of_file = of_file.done();
    assert!(of_file.starts_with("sound: 3 events, sha256"), "{of_file}");
    assert!(of_file.contains(unchanged), "{of_file}");
    assert!(of_file.contains(&head(&folder).await), "{of_file}");
    assert!(foreign.contains("was changed here or before"), "{foreign}");
    assert!(behind.contains("its end is missing"), "{behind}");
    assert!(wrong.contains("expected HASH@POSITION"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_auditor_finds_what_was_changed_in_a_folder() {
    an_auditor_finds_what_was_changed(Folder::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_auditor_finds_what_was_changed_in_a_database() {
    an_auditor_finds_what_was_changed(Folder::with_database().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_whose_hashes_were_all_removed_is_not_simply_sound() {
    let folder = Folder::new();
    create(&folder, &["pay 100", "other"]).await;
    let ledger = rusqlite::Connection::open(folder.ledger()).unwrap();
    ledger.execute("UPDATE events SET hash = NULL", []).unwrap();
    drop(ledger);

    let said = events(&["verify"], &folder).await.done();

    assert!(
        said.starts_with("sound by checksums alone: 2 events")
            && said.contains("warning: there is no hash chain")
            && !said.contains("damaged"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_of_a_log_whose_chain_does_not_hold_warns() {
    let folder = Folder::new();
    create(&folder, &["pay 100", "other", "third"]).await;
    let sound = events(&["export"], &folder).await;
    assert_eq!(sound.err, "");
    let ledger = rusqlite::Connection::open(folder.ledger()).unwrap();
    let changed = ledger.execute(
        "UPDATE events SET hash = zeroblob(32) WHERE position = 2",
        [],
    );
    assert_eq!(changed, Ok(1));
    ledger.close().unwrap();

    let all = events(&["export"], &folder).await;
    let end = events(&["export", "--after", "1"], &folder).await;

    let warning = "WARNING: the hash chain of this log does not hold, so the export is not what was recorded: position ";
    assert!(
        all.err.contains(&format!("{warning}2: the hash is")),
        "{all:?}"
    );
    assert!(
        end.err.contains(&format!("{warning}3: the hash is")),
        "{end:?}"
    );
    assert_eq!(all.done().lines().count(), 4, "it is written all the same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_of_the_end_of_a_log_is_said_to_be_one() {
    let (folder, to) = (Folder::new(), Folder::new());
    create(&folder, &["first", "second", "third"]).await;
    let end = events(&["export", "--after", "1"], &folder).await.done();

    let words = ["events", "import", "-"].map(str::to_owned).into_iter();
    let imported = run_with(words.chain(to.storage()), Path::new("."), &end).await;
    let verified = run_with(["events", "verify", "-"], Path::new("."), &end).await;

    for said in [imported.refused(2), verified.refused(1)] {
        assert!(
            said.contains("line 1: ")
                && said.contains("the file begins at position 2: a part of a log")
                && said.contains("`taskledger events verify` with --data-dir or --database-url")
                && !said.contains("--restart-chain"),
            "{said}"
        );
    }
}

/// The export with a payload changed, and a closing line that agrees with it.
fn forged(export: &str) -> String {
    use sha2::{Digest, Sha256};
    let changed = export.replacen("pay 100", "pay 900", 1);
    let (lines, end) = changed.trim_end().rsplit_once('\n').unwrap();
    let mut end: Value = serde_json::from_str(end).unwrap();
    let digest = Sha256::digest(format!("{lines}\n"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    end["end"]["sha256"] = digest.into();
    format!("{lines}\n{end}\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_was_changed_is_to_be_made_again_and_giving_up_its_chain_is_not_advised() {
    let from = Folder::new();
    create(&from, &["pay 100", "other"]).await;
    let changed = events(&["export"], &from).await.done();
    let changed = changed.replacen("pay 100", "pay 900", 1);
    let to = Folder::new();
    let words = ["events", "import", "-"].map(str::to_owned).into_iter();
    let given = run_with(words.chain(to.storage()), Path::new("."), &changed).await;
    let refused = given.refused(2);

    assert!(refused.contains("line 1: the hash is"), "{refused}");
    assert!(
        refused.contains("it was cut off or changed; nothing is imported: export the log again"),
        "{refused}"
    );
    assert!(!refused.contains("--restart-chain"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_export_is_refused_unless_its_chain_is_given_up() {
    let from = Folder::new();
    create(&from, &["pay 100", "other"]).await;
    let text = forged(&events(&["export"], &from).await.done());
    let to = Folder::new();
    let given = async |words: &[&str]| {
        let words = ["events"].iter().chain(words).map(|w| (*w).to_owned());
        run_with(words.chain(to.storage()), Path::new("."), &text).await
    };

    let verified = given(&["verify", "-"]).await.refused(1);
    let refused = given(&["import", "-"]).await.refused(2);
    let imported = given(&["import", "-", "--restart-chain"]).await.done();
    let before = events(&["verify"], &to).await.done();
    create(&to, &["third"]).await;
    let after = events(&["verify"], &to).await.done();

    assert!(verified.contains("line 1: the hash is"), "{verified}");
    assert!(refused.contains("line 1: the hash is"), "{refused}");
    assert!(refused.contains("--restart-chain"), "{refused}");
    assert!(
        imported.contains("starts with the next append"),
        "{imported}"
    );
    assert!(before.contains("there is no hash chain"), "{before}");
    assert!(
        after.contains("events before position 3 have no hash"),
        "{after}"
    );
}

/// An export of these lines, with a closing line whose count and digest agree with them; `head` is its `head`.
fn closed(lines: &[String], head: &Value) -> String {
    use sha2::{Digest, Sha256};
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let digest = Sha256::digest(&text);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut end = json!({"end": {"events": lines.len(), "keys": 0, "sha256": digest}});
    if !head.is_null() {
        end["head"] = head.clone();
    }
    format!("{text}{end}\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_whose_end_or_hashes_were_removed_is_refused_though_its_last_line_was_made_again()
{
    let from = Folder::new();
    create(&from, &["first", "second", "third"]).await;
    let kept = head(&from).await;
    let whole = events(&["export"], &from).await.done();
    let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
    let end: Value = serde_json::from_str(&lines.pop().unwrap()).unwrap();
    let second: Value = serde_json::from_str(&lines[1]).unwrap();
    let cut = closed(&lines[..2], &end["head"]);
    let of_second = json!({"position": 2, "hash": second["hash"]});
    let cut_with_head = closed(&lines[..2], &of_second);
    let without_hash = |line: &String| {
        let (rest, _) = line.split_once(",\"hash\":").unwrap();
        format!("{rest}}}").replace("\"actor\":\"", "\"actor\":\"mallory:")
    };
    let forged: Vec<_> = lines.iter().map(without_hash).collect();
    let unchained = closed(&forged, &Value::Null);
    let import = async |text: &str, words: &[&str]| {
        let to = Folder::new();
        let words = ["events", "import", "-"].iter().chain(words);
        let words = words.map(|w| (*w).to_owned()).chain(to.storage());
        run_with(words, Path::new("."), text).await
    };

    let of_cut = import(&cut, &[]).await.refused(2);
    let of_head = import(&cut_with_head, &["--expect-head", &kept]).await;
    let of_unchained = import(&unchained, &[]).await.refused(2);
    import(&whole, &["--expect-head", &kept]).await.done();
    let accepted = import(&unchained, &["--accept-unchained"]).await.done();

    assert!(
        of_cut.contains("the closing line says that the hash chain ends with"),
        "{of_cut}"
    );
    let of_head = of_head.refused(2);
    assert!(of_head.contains("its end is missing"), "{of_head}");
    assert!(
        of_unchained.contains("--accept-unchained"),
        "{of_unchained}"
    );
    assert!(accepted.contains("it has no hashes"), "{accepted}");
}
