//! `taskledger backup` and `taskledger restore`: everything that was answered before a backup is in it, whatever the
//! server does meanwhile, and neither is ever half there.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use taskledger_testkit::program::{self, Ended, run};
use taskledger_testkit::receiver::Receiver;
use taskledger_testkit::server::{Api, Folder, Server};
use tokio::task::JoinHandle;

const AUTH: [&str; 4] = ["--auth", "on", "--egress-allow-net", "127.0.0.1/32"];
const SECRET: &str = "the value of the secret";

fn backup(folder: &Folder, to: &Path) -> Vec<String> {
    let words = ["backup", to.to_str().unwrap()].map(str::to_owned);
    words.into_iter().chain(folder.storage()).collect()
}

async fn restore(from: &Path, folder: &Folder) -> Ended {
    let words = ["restore", from.to_str().unwrap()].map(str::to_owned);
    run(words.into_iter().chain(folder.storage())).await
}

async fn verify(backup: &Path) -> Ended {
    run(["backup", "verify", backup.to_str().unwrap()]).await
}

async fn server_of(folder: &Folder) -> Server {
    let mut server = Server::start_with(folder, &AUTH).await;
    server.api = server.api.with_token(&folder.first_token());
    server
}

async fn create_tasks(
    api: Api,
    client: usize,
    ends: Arc<AtomicBool>,
    created: Arc<AtomicU64>,
) -> Vec<Value> {
    let mut ids = Vec::new();
    while !ends.load(Ordering::Relaxed) {
        let name = format!("{client}-{}", ids.len());
        let task = json!({"name": name, "schemas": {"method": "echo_executor"}});
        let params = json!({"tasks": [task]});
        // Refused while the server is too busy.
        let Ok(run) = api.try_call("tasks.execute", params, None).await else {
            continue;
        };
        ids.push(run["root_task_id"].clone());
        created.fetch_add(1, Ordering::Relaxed);
    }
    ids
}

/// Tasks that are created one after the other until it is stopped.
struct Load {
    ends: Arc<AtomicBool>,
    created: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Vec<Value>>>,
}

impl Load {
    fn start(api: &Api) -> Self {
        let (ends, created) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let clients = (0..4)
            .map(|n| tokio::spawn(create_tasks(api.clone(), n, ends.clone(), created.clone())))
            .collect();
        Self {
            ends,
            created,
            clients,
        }
    }

    /// Waits until so many more tasks were created.
    async fn more(&self, count: u64) {
        let until = self.created.load(Ordering::Relaxed) + count;
        while self.created.load(Ordering::Relaxed) < until {
            tokio::task::yield_now().await;
        }
    }

    async fn stop(self) -> Vec<Value> {
        self.ends.store(true, Ordering::Relaxed);
        let mut ids = Vec::new();
        for client in self.clients {
            ids.extend(client.await.unwrap());
        }
        ids
    }
}

const DOCUMENT: &str =
    "openintent: \"1.0\"\ninfo: {name: Report}\nworkflow:\n  echo:\n    assign: echo_executor\n";

/// One of everything that is stored beside the log.
struct World {
    task: Value,
    token: String,
    webhook: Value,
}

impl World {
    async fn make(first: &str, server: &Server, receiver: &Receiver) -> Self {
        let api = &server.api;
        let task = api.call("tasks.create", json!({"name": "kept"})).await["id"].clone();
        let secret = json!({"name": "pw", "value": SECRET, "owner": "ann"});
        api.call("secrets.set", secret).await;
        api.call("workflows.save", json!({"document": DOCUMENT}))
            .await;
        let schedule = json!({"name": "nightly", "cron": "0 3 * * *", "time_zone": "Europe/Berlin",
            "workflow": {"name": "Report"}});
        api.call("schedules.create", schedule).await;
        let webhook = json!({"url": receiver.url("/hook"), "events": ["task_completed"]});
        let webhook = api.call("webhooks.create", webhook).await["id"].clone();
        let words = [
            "tokens",
            "create",
            "ann",
            "--scopes",
            "tasks:read",
            "--json",
            "--url",
            &api.url,
        ];
        let mut command = program::command();
        command.args(words).env("TASKLEDGER_TOKEN", first);
        let made: Value = serde_json::from_str(&program::end(command, "").await.done()).unwrap();
        Self {
            task,
            token: made["token"].as_str().unwrap().to_owned(),
            webhook,
        }
    }

    /// All of it is there, and usable.
    async fn check(&self, server: &Server, receiver: &Receiver) {
        let api = &server.api;
        let task = api.call("tasks.get", json!({"task_id": self.task})).await;
        assert_eq!(task["name"], "kept");
        let schedule = api.call("schedules.get", json!({"name": "nightly"})).await;
        assert_eq!(schedule["cron"], "0 3 * * *", "{schedule}");
        let workflows = api.call("workflows.list", json!({})).await;
        assert!(workflows.to_string().contains("Report"), "{workflows}");
        let webhooks = api.call("webhooks.list", json!({})).await;
        assert!(
            webhooks
                .to_string()
                .contains(self.webhook.as_str().unwrap()),
            "{webhooks}"
        );
        let audit = api.call("audit.list", json!({})).await;
        assert!(audit.to_string().contains("token.create"), "{audit}");
        let ann = api.with_token(&self.token);
        ann.call("tasks.list", json!({})).await;
        let before = receiver.requests().len();
        let inputs = json!({"url": receiver.url("/secret"),
            "headers": {"x-key": {"$secret": "pw"}}});
        let task = json!({"name": "uses it", "user_id": "ann", "inputs": inputs,
            "schemas": {"method": "http_executor"}});
        let run = api.call("tasks.execute", json!({"tasks": [task]})).await;
        api.run_of(&run["root_task_id"]).await;
        let came = receiver.requests();
        let used = came[before..]
            .iter()
            .find(|it| it.header("x-key").is_some());
        assert_eq!(used.expect("it was sent").header("x-key"), Some(SECRET));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_was_answered_before_a_backup_of_a_busy_server_is_restored() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = server_of(&folder).await;
    let world = World::make(&folder.first_token(), &server, &receiver).await;
    let load = Load::start(&server.api);
    load.more(50).await;
    let before = load.created.load(Ordering::Relaxed);
    let to = folder.path().join("backup");
    let words = [backup(&folder, &to), vec!["--json".to_owned()]].concat();
    let manifest: Value = serde_json::from_str(&run(words).await.done()).unwrap();
    let ids = load.stop().await;
    server.stop().await;
    let names: Vec<&str> = manifest["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["name"].as_str().unwrap())
        .collect();
    for name in [
        "ledger.db",
        "auth.db",
        "webhooks.db",
        "workers.db",
        "workflows.db",
        "schedules.db",
        "broker.db",
        "secrets.key",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(verify(&to).await.done().starts_with("sound: "));

    let restored = Folder::new();
    restore(&to, &restored).await.done();
    let words = ["events", "verify"].map(str::to_owned).into_iter();
    let verified = run(words.chain(restored.storage())).await.done();
    assert!(verified.starts_with("sound: "), "{verified}");
    let server = server_of(&restored).await;
    world.check(&server, &receiver).await;
    goes_on(&server.api, &ids, before).await;
    server.stop().await;
}

/// Of these tasks, so many at least are there, and others can be run.
async fn goes_on(api: &Api, ids: &[Value], at_least: u64) {
    let mut there = 0;
    for id in ids {
        let found = api.try_call("tasks.get", json!({"task_id": id}), None);
        there += u64::from(found.await.is_ok());
    }
    assert!(
        there >= at_least,
        "{there} of the {at_least} that were answered before"
    );
    let task = json!({"tasks": [{"name": "after", "schemas": {"method": "echo_executor"}}]});
    let run = api.call("tasks.execute", task).await;
    assert_eq!(api.run_of(&run["root_task_id"]).await["state"], "completed");
}

/// The URL without options that only this program knows.
fn plain_url(folder: &Folder) -> &str {
    let url = folder.url().expect("it is a database");
    url.split('?').next().unwrap_or(url)
}

/// Runs a program of PostgreSQL.
async fn postgres_program(name: &str, words: &[&str]) {
    let programs = std::env::var("TASKLEDGER_TEST_POSTGRES_BIN");
    let programs = PathBuf::from(programs.expect("run the tests with `.ci/with-postgres`"));
    let mut command = program::command_of(programs.join(name));
    command.args(words);
    program::end(command, "").await.done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_database_was_dumped_with_under_load_is_there_once_it_is_restored() {
    let (folder, receiver) = (Folder::with_database().await, Receiver::start().await);
    let key = folder.path().join("keys");
    std::fs::write(&key, "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=\n").unwrap();
    let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&key, only_owner).unwrap();
    let words = ["tokens", "create", "ops", "--service", "--scopes", "all"].map(str::to_owned);
    let made = words.into_iter().chain(["--json".to_owned()]);
    let made: Value =
        serde_json::from_str(&run(made.chain(folder.storage())).await.done()).unwrap();
    let first = made["token"].as_str().unwrap();
    let options = [&AUTH[..], &["--secrets-key-file", key.to_str().unwrap()]].concat();
    let mut server = Server::start_with(&folder, &options).await;
    server.api = server.api.with_token(first);
    let world = World::make(first, &server, &receiver).await;
    let load = Load::start(&server.api);
    load.more(20).await;
    let before = load.created.load(Ordering::Relaxed);
    let dump = folder.path().join("ledger.dump");
    let file = format!("--file={}", dump.display());
    let without_rows = "--exclude-schema=taskledger_rows*";
    let words = ["--format=custom", without_rows, &file, plain_url(&folder)];
    postgres_program("pg_dump", &words).await;
    let ids = load.stop().await;
    server.stop().await;

    let restored = Folder::with_database().await;
    let to = format!("--dbname={}", plain_url(&restored));
    let words = ["--exit-on-error", &to, dump.to_str().unwrap()];
    postgres_program("pg_restore", &words).await;
    let words = ["events", "verify"].map(str::to_owned).into_iter();
    let verified = run(words.chain(restored.storage())).await.done();
    assert!(verified.starts_with("sound: "), "{verified}");
    let mut server = Server::start_with(&restored, &options).await;
    server.api = server.api.with_token(first);
    world.check(&server, &receiver).await;
    goes_on(&server.api, &ids, before).await;
    server.stop().await;
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Runs a command and kills it as soon as `folder` has an entry whose name contains `name`, if it does not end before.
async fn killed_when(words: Vec<String>, folder: &Path, name: &str) {
    let mut command = program::command();
    command
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        let is_there = |path: &PathBuf| path.to_string_lossy().contains(name);
        let inner = entries(folder).into_iter().filter(|path| path.is_dir());
        let mut all = inner.flat_map(|path| match std::fs::read_dir(path) {
            Ok(found) => found.filter_map(|entry| Some(entry.ok()?.path())).collect(),
            Err(_) => Vec::new(),
        });
        if all.any(|path| is_there(&path)) {
            child.kill().await.unwrap();
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_or_a_restore_that_is_killed_is_whole_or_not_there() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let load = Load::start(&server.api);
    load.more(100).await;
    let place = tempfile::tempdir().unwrap();
    for name in ["auth.db", "broker.db", "ledger.db", "manifest.json"] {
        let to = place.path().join(format!("backup-{name}"));
        killed_when(backup(&folder, &to), place.path(), &format!(".part/{name}")).await;
        if to.exists() {
            verify(&to).await.done();
        } else {
            verify(&to).await.refused(1);
            // What is left is in nobody's way.
            run(backup(&folder, &to)).await.done();
            verify(&to).await.done();
        }
    }
    load.stop().await;
    server.stop().await;
    let to = place.path().join("backup-ledger.db");
    for name in ["auth.db", "ledger.db"] {
        let restored = Folder::new();
        let words = ["restore", to.to_str().unwrap()]
            .map(str::to_owned)
            .into_iter();
        let words = words.chain(restored.storage()).collect();
        killed_when(words, restored.path(), &format!(".part/{name}")).await;
        if !restored.data().exists() {
            restore(&to, &restored).await.done();
        }
        let server = Server::start(&restored).await;
        server.api.call("tasks.list", json!({})).await;
        server.stop().await;
        let is_left = |path: &PathBuf| path.to_string_lossy().ends_with(".part");
        assert!(!entries(restored.path()).iter().any(is_left));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_was_changed_is_not_restored_and_nothing_is_overwritten() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    server
        .api
        .call("tasks.create", json!({"name": "precious"}))
        .await;
    server.stop().await;
    let to = folder.path().join("backup");
    run(backup(&folder, &to)).await.done();
    let again = run(backup(&folder, &to)).await.refused(2);
    assert!(again.contains("exists already"), "{again}");
    let full = restore(&to, &folder).await.refused(2);
    assert!(
        full.contains("--data-dir") && full.contains("exists already"),
        "{full}"
    );

    let ledger = to.join("ledger.db");
    let mut bytes = std::fs::read(&ledger).unwrap();
    let at = bytes.windows(8).position(|it| it == b"precious").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&ledger, bytes).unwrap();
    let verified = verify(&to).await;
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(
        verified.out.contains("ledger.db: its SHA-256 is"),
        "{verified:?}"
    );
    let restored = Folder::new();
    let refused = restore(&to, &restored).await.refused(1);
    assert!(
        refused.contains("nothing was restored: ledger.db"),
        "{refused}"
    );
    assert!(!restored.data().exists());
    let manifest = to.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("ledger.db", "ledger.dc")).unwrap();
    let refused = restore(&to, &restored).await.refused(1);
    assert!(refused.contains("no complete backup"), "{refused}");
    let none = run(["backup", "verify", folder.path().to_str().unwrap()]).await;
    none.refused(1);
}

#[tokio::test]
async fn for_a_database_the_commands_of_its_own_tools_are_printed() {
    let words = [
        "backup",
        "ledger.dump",
        "--database-url",
        "postgres://u:hunter2@h/d",
    ];
    let refused = run(words).await.refused(2);
    assert!(
        refused.contains("pg_dump --format=custom --exclude-schema"),
        "{refused}"
    );
    assert!(!refused.contains("hunter2"), "{refused}");
}
