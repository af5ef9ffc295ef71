//! A log that is moved: everything in it goes along, and nothing is half there.

use crate::system::read_models::{dump, dump_of_rebuilt_copy};
use serde_json::{Value, json};
use std::path::Path;
use taskledger_testkit::log;
use taskledger_testkit::program::{self, Ended, run, run_with};
use taskledger_testkit::server::{Folder, Server};

const KEY: &str = "the first call";

/// A storage with some history: a run that has ended, a task that waits, one that was deleted, and a
/// run in the middle of its first task.
struct Moved {
    folder: Folder,
    running: Value,
    waiting: Value,
    deleted: Value,
}

fn task(name: &str) -> Value {
    json!({"name": name, "schemas": {"method": "echo_executor"}, "inputs": {"text": "a\u{0}b\u{1F600}"}})
}

async fn given_history(folder: Folder) -> Moved {
    let server = Server::start(&folder).await;
    let tree = json!({"tasks": [
        {"id": "r", "name": "root"},
        {"id": "a", "name": "first", "parent_id": "r", "schemas": {"method": "echo_executor"}},
        {"id": "b", "name": "second", "parent_id": "r", "schemas": {"method": "echo_executor"},
         "dependencies": [{"id": "a"}]}]});
    let started = server.api.call("tasks.execute", tree).await;
    server.api.run_of(&started["root_task_id"]).await;
    let waiting = server
        .api
        .try_call("tasks.create", task("waiting"), Some(KEY));
    let waiting = waiting.await.unwrap()["id"].clone();
    let child = json!({"name": "child", "parent_id": waiting});
    let deleted = server.api.call("tasks.create", child).await["id"].clone();
    let delete = json!({"task_id": deleted});
    server.api.call("tasks.delete", delete).await;
    let tree = json!({"tasks": [
        {"id": "r", "name": "root"},
        {"id": "a", "name": "first", "parent_id": "r", "schemas": {"method": "sleep_executor"},
         "inputs": {"duration_ms": 5000}},
        {"id": "b", "name": "second", "parent_id": "r", "schemas": {"method": "echo_executor"},
         "dependencies": [{"id": "a"}]}]});
    let started = server.api.call("tasks.execute", tree).await;
    let first = json!({"task_id": started["task_ids"]["a"]});
    let begun = server.api.eventually("the first task runs", async || {
        let task = server.api.call("tasks.get", first.clone()).await;
        (task["status"] == "in_progress").then_some(())
    });
    begun.await;
    server.stop().await;
    Moved {
        folder,
        running: started["root_task_id"].clone(),
        waiting,
        deleted,
    }
}

async fn events(words: &[&str], folder: &Folder) -> Ended {
    let words = words.iter().map(|w| (*w).to_owned());
    run(["events".to_owned()]
        .into_iter()
        .chain(words)
        .chain(folder.storage()))
    .await
}

/// What a line of output says of the log: count and digest.
fn receipt(said: &str) -> &str {
    let from = said.find(|c: char| c.is_ascii_digit()).unwrap();
    said[from..].lines().next().unwrap_or_default()
}

/// Moves the log and looks at it from all sides.
async fn moves(from: Folder, to: Folder) {
    let from = given_history(from).await;
    let file = from.folder.path().join("log.jsonl");
    let file = file.to_str().unwrap();

    let words = ["export", "--with-keys", "--output", file];
    let exported = events(&words, &from.folder).await.done();
    let imported = events(&["import", file], &to).await.done();

    assert!(exported.contains("1 idempotency keys"), "{exported}");
    assert_eq!(receipt(&exported), receipt(&imported), "{imported}");
    let (before, after) = (log::export(&from.folder).await, log::export(&to).await);
    assert_eq!(before.len(), after.len());
    let verified = events(&["verify"], &to).await.done();
    assert!(verified.starts_with("sound"), "{verified}");
    assert_eq!(verified, events(&["verify"], &from.folder).await.done());
    assert!(
        imported.contains("hash chain, from position 1 on"),
        "{imported}"
    );

    let server = Server::start(&to).await;
    let again = server
        .api
        .try_call("tasks.create", task("waiting"), Some(KEY));
    assert_eq!(
        again.await.unwrap()["id"],
        from.waiting,
        "the key is remembered"
    );
    let get = json!({"task_id": from.waiting});
    let found = server.api.call("tasks.get", get.clone()).await;
    assert_eq!(found["inputs"]["text"], "a\u{0}b\u{1F600}");
    let taken = json!({"id": from.deleted, "name": "n"});
    let refusal = server
        .api
        .refusal("tasks.create", json!({"tasks": [taken]}))
        .await;
    assert_eq!(
        refusal.code, -32602,
        "a deleted id stays taken: {refusal:?}"
    );
    server.api.call("tasks.execute", get).await;
    let run = server.api.run_of(&from.waiting).await;
    assert_eq!(run["state"], "completed");
    let went_on = server.api.run_of(&from.running).await;
    assert_eq!(went_on["state"], "completed", "{went_on}");
    assert_eq!(went_on["counts"]["completed"], 2, "{went_on}");
    server.api.caught_up().await;
    server.stop().await;
    log::assert_started_in_order(&log::export(&to).await);
    assert_eq!(dump(&to).await, dump_of_rebuilt_copy(&to).await);

    let refused = events(&["import", file], &to).await.refused(1);
    assert!(refused.contains("exist"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_moves_from_folder_to_folder() {
    moves(Folder::new(), Folder::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_moves_from_a_folder_to_a_database() {
    moves(Folder::new(), Folder::with_database().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_moves_from_a_database_to_a_folder() {
    moves(Folder::with_database().await, Folder::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_moves_from_database_to_database() {
    moves(Folder::with_database().await, Folder::with_database().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_fails_names_the_line_and_leaves_nothing() {
    let from = given_history(Folder::new()).await;
    let text = events(&["export"], &from.folder).await.done();
    let to = Folder::new();
    let import = |text: String| {
        let words = ["events", "import", "-"].map(str::to_owned).into_iter();
        let words: Vec<_> = words.chain(to.storage()).collect();
        async move { run_with(words, Path::new("."), &text).await.refused(2) }
    };
    let without = |n: usize| -> String {
        let kept = text.lines().enumerate().filter(|(i, _)| *i != n);
        kept.map(|(_, line)| format!("{line}\n")).collect()
    };

    let gap = import(without(2)).await;
    let cut = import(text[..text.len() / 2].to_owned()).await;
    let changed = text.replacen("\"TaskCreated\"", "\"TaskInvented\"", 1);
    let unknown = import(changed).await;
    let more = text.replacen("{\"position\":1,", "{\"surprise\":1,\"position\":1,", 1);
    let surprise = import(more).await;

    assert!(gap.contains("line 3: `position` is 4, expected 3"), "{gap}");
    assert!(cut.contains("line "), "{cut}");
    assert!(
        unknown.contains("line 1: `data`: unknown event kind `TaskInvented`"),
        "{unknown}"
    );
    assert!(
        surprise.contains("line 1: unknown field `surprise`"),
        "{surprise}"
    );
    assert!(!to.data().exists(), "the folder was made by the import");
    std::fs::create_dir(to.data()).unwrap();
    import(without(2)).await;
    let left: Vec<_> = std::fs::read_dir(to.data()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    std::fs::write(to.read_models(), "of another log").unwrap();
    let words = ["import".to_owned(), file(&from, &text)];
    let words = words.each_ref().map(String::as_str);
    let taken = events(&words, &to).await.refused(1);
    assert!(taken.contains("exists already"), "{taken}");
    assert!(
        !to.data().join("lock").exists(),
        "nothing of the import stays"
    );
    std::fs::remove_file(to.read_models()).unwrap();
    import_works_afterwards(&text, &to).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_was_cut_between_two_lines_is_noticed() {
    let from = given_history(Folder::new()).await;
    let text = events(&["export"], &from.folder).await.done();
    let lines: Vec<&str> = text.lines().collect();
    let (end, others) = lines.split_last().unwrap();
    let joined = |lines: &[&str]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
    let import = async |text: String, flags: &[&str]| {
        let to = Folder::new();
        let words = [&["events", "import", "-"], flags].concat().into_iter();
        let words: Vec<_> = words.map(str::to_owned).chain(to.storage()).collect();
        let ended = run_with(words, Path::new("."), &text).await;
        assert_eq!(to.data().exists(), ended.code == Some(0), "{ended:?}");
        ended
    };
    let without_one = [&others[..others.len() - 1], &[*end]].concat();
    let twice = [others, &[*end, *end]].concat();

    let cut = import(joined(&without_one), &[]).await.refused(2);
    let behind = import(joined(&twice), &[]).await.refused(2);
    let open = import(joined(others), &[]).await.refused(2);
    let allowed = import(joined(others), &["--allow-unterminated"]).await;

    assert!(cut.contains("cut off or changed"), "{cut}");
    assert!(behind.contains("after the end"), "{behind}");
    let missing = format!("line {}: expected the closing line", lines.len());
    assert!(open.contains(&missing), "{open}");
    assert!(open.contains("nothing is imported"), "{open}");
    assert!(open.contains("--allow-unterminated"), "{open}");
    let told = allowed.err.contains("missing events are not noticed");
    assert!(told && allowed.code == Some(0), "{allowed:?}");
    let nothing = import(String::new(), &[]).await.refused(2);
    assert!(
        nothing.contains("line 1: expected the closing"),
        "{nothing}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_into_a_database_that_fails_leaves_nothing() {
    let from = given_history(Folder::new()).await;
    let text = events(&["export"], &from.folder).await.done();
    let to = Folder::with_database().await;
    let words = ["events", "import", "-"].map(str::to_owned).into_iter();
    let words: Vec<_> = words.chain(to.storage()).collect();
    // The fault is in the last line, when all others have been written.
    let cut = &text[..text.len() - 10];

    let refused = run_with(words, Path::new("."), cut).await.refused(2);

    let lines = text.lines().count();
    assert!(refused.contains(&format!("line {lines}: ")), "{refused}");
    let nothing = events(&["export"], &to).await.done();
    assert_eq!(program::events_of(&nothing).count(), 0, "{nothing}");
    import_works_afterwards(&text, &to).await;
}

/// A file beside the data with this text.
fn file(place: &Moved, text: &str) -> String {
    let file = place.folder.path().join("file.jsonl");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

async fn import_works_afterwards(text: &str, to: &Folder) {
    let words = ["events", "import", "-"].map(str::to_owned).into_iter();
    let words: Vec<_> = words.chain(to.storage()).collect();
    let said = run_with(words, Path::new("."), text).await.done();
    assert!(said.starts_with("imported"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_never_overwrites_a_file() {
    let from = given_history(Folder::new()).await;
    let file = from.folder.path().join("log.jsonl");
    std::fs::write(&file, "precious").unwrap();
    let words = ["export", "--output", file.to_str().unwrap()];
    let refused = events(&words, &from.folder).await.refused(2);
    assert!(refused.contains("--output"), "{refused}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}
