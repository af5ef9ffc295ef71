//! The commands of the documentation do what they say: each page's blocks of `sh` are run, from top to bottom, against a
//! server of their own, which works in the folder `taskledger-data` of the folder that they are run in. A block with `no-run` is left out (it installs, never ends, or needs another machine); one with
//! `until=TEXT` is run until its output has the text.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use taskledger_testkit::pages::{Block, pages};
use taskledger_testkit::program;
use taskledger_testkit::server::Server;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

/// The address that the pages show.
const SHOWN: &str = "127.0.0.1:8000";
/// For all commands of a page.
const PATIENCE: Duration = Duration::from_secs(60);
/// Names are not looked up: receivers in examples are not called.
const NO_NAMES: [&str; 2] = ["--egress-dns", "127.0.0.1:1"];

/// The folder of the server that the README and the quickstart start.
const DATA: &str = "taskledger-data";

/// A shell as somebody has it who follows a page: commands go to the server because it is the context in use.
fn shell(script: &str, place: &Path) -> Command {
    let mut command = program::command_of("bash");
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .args(["-c", script])
        .current_dir(place)
        .env("PATH", format!("{}:{path}", place.join("bin").display()))
        .env("TASKLEDGER_CONTEXTS", place.join("contexts.json"))
        .env("TMPDIR", place.join("tmp"))
        .stdin(Stdio::null());
    command
}

/// Runs `block` until its output has `text`.
async fn shows(block: &Block, text: &str, mut command: Command) {
    let mut child = command
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = timeout(PATIENCE, async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(text) {
                return true;
            }
        }
        false
    });
    assert_eq!(found.await, Ok(true), "line {}: no `{text}`", block.line);
    let group = Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    kill_process_group(group, Signal::KILL).unwrap();
    child.wait().await.unwrap();
}

/// What a page takes for granted.
#[derive(Default)]
struct Ground<'g> {
    /// Options of the server.
    options: &'g [&'g str],
    /// Commands before those of the page.
    before: &'g str,
    /// Words of the page that stand for something, and what the reader would type.
    words: &'g [(&'g str, &'g str)],
}

async fn the_commands_work(name: &str) {
    the_commands_work_on(name, Ground::default()).await;
}

/// The same behind other commands.
async fn the_commands_work_after(before: &str, name: &str) {
    let ground = Ground {
        before,
        ..Ground::default()
    };
    the_commands_work_on(name, ground).await;
}

async fn the_commands_work_on(name: &str, ground: Ground<'_>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().unwrap();
    let mut serve = program::command();
    serve
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir", DATA])
        .args(NO_NAMES)
        .args(ground.options);
    let server = Server::spawn(serve, place.path()).await;
    std::fs::create_dir(place.path().join("tmp")).unwrap();
    symlink(root.join("docs"), place.path().join("docs")).unwrap();
    std::fs::create_dir(place.path().join("bin")).unwrap();
    symlink(program::path(), place.path().join("bin/taskledger")).unwrap();
    symlink(root.join("examples"), place.path().join("examples")).unwrap();
    let url = server.api.url.as_str();
    let named = format!("taskledger context add here --server {url}");
    let named = shell(&named, place.path()).status().await.unwrap();
    assert!(named.success());
    let address = url.trim_start_matches("http://").trim_end_matches('/');

    let page = pages(root, &[name]).remove(0);
    let blocks = page
        .blocks()
        .into_iter()
        .filter(|block| block.language == "sh");
    // What a page starts in the background ends with it.
    let mut script =
        String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    if ground.options.contains(&"--auth") {
        script.push_str("export TASKLEDGER_TOKEN=$(cat taskledger-data/admin.token)\n");
    }
    script.push_str(ground.before);
    let mut count = 0;
    for mut block in blocks {
        block.text = block.text.replace(SHOWN, address);
        for (word, typed) in ground.words {
            block.text = block.text.replace(word, typed);
        }
        let until = block
            .notes
            .iter()
            .find_map(|note| note.strip_prefix("until="));
        if block.notes.iter().any(|note| note == "no-run") {
            continue;
        }
        count += 1;
        match until {
            Some(text) => shows(&block, text, shell(&block.text, place.path())).await,
            None => script.push_str(&block.text),
        }
    }
    assert!(count > 0, "{name} has commands");
    let run = shell(&script, place.path()).output();
    let ended = timeout(PATIENCE, run)
        .await
        .expect("the commands end")
        .unwrap();
    let out = String::from_utf8_lossy(&ended.stdout);
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.success(),
        "{name}: {}\n{out}\n{err}",
        ended.status
    );
    assert!(
        !out.contains(r#""error":{"#),
        "{name}: a call is refused\n{out}"
    );
    let left: Vec<_> = std::fs::read_dir(place.path().join("tmp"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.is_empty(), "{name} leaves {left:?}");
    server.stop().await;
}

#[tokio::test]
async fn the_commands_of_the_readme_work() {
    the_commands_work("README.md").await;
}

#[tokio::test]
async fn the_commands_of_the_quickstart_work() {
    the_commands_work("docs/quickstart.md").await;
}

#[tokio::test]
async fn the_commands_about_tasks_work() {
    the_commands_work("docs/guides/tasks.md").await;
}

#[tokio::test]
async fn the_commands_about_executors_work() {
    the_commands_work("docs/guides/executors.md").await;
}

#[tokio::test]
async fn the_commands_about_streams_work() {
    the_commands_work("docs/guides/streams.md").await;
}

#[tokio::test]
async fn the_commands_about_webhooks_work() {
    the_commands_work("docs/guides/webhooks.md").await;
}

#[tokio::test]
async fn the_commands_of_the_command_line_reference_work() {
    the_commands_work("docs/reference/command-line.md").await;
}

#[tokio::test]
async fn the_commands_about_a2a_work() {
    the_commands_work("docs/guides/a2a.md").await;
}

#[tokio::test]
async fn the_commands_about_contracts_work() {
    the_commands_work("docs/guides/contracts.md").await;
}

#[tokio::test]
async fn the_commands_about_stopping_work() {
    the_commands_work("docs/guides/stopping.md").await;
}

#[tokio::test]
async fn the_commands_about_workers_work() {
    the_commands_work_after(
        "echo '{\"type\": \"object\"}' > input.json\n",
        "docs/guides/workers.md",
    )
    .await;
}

/// A flow of one task, which has completed.
const ONE_FLOW: &str =
    "echo '[{\"name\": \"a\", \"schemas\": {\"method\": \"echo_executor\"}}]' > one.json
taskledger run one.json --context here
";

#[tokio::test]
async fn the_commands_about_the_audit_work() {
    the_commands_work_after(ONE_FLOW, "docs/guides/audit.md").await;
}

#[tokio::test]
async fn the_commands_about_backups_work() {
    the_commands_work_after(ONE_FLOW, "docs/operating/backup.md").await;
}

#[tokio::test]
async fn the_commands_about_security_work() {
    const NEWEST: &str = "$(taskledger tokens list --json | jq -r .tokens[-1].id)";
    let (rotate, revoke) = (
        format!("rotate {NEWEST} --grace"),
        format!("revoke {NEWEST}"),
    );
    let ground = Ground {
        options: &["--auth", "on"],
        words: &[("rotate ID --grace", &rotate), ("revoke ID", &revoke)],
        ..Ground::default()
    };
    the_commands_work_on("docs/guides/security.md", ground).await;
}

#[tokio::test]
async fn the_commands_about_secrets_work() {
    the_commands_work_after(
        "printf github-secret-1 > token.txt\n",
        "docs/guides/secrets.md",
    )
    .await;
}

/// The document of the guide, as a file.
const REPORT: &str = "awk '/^```yaml$/ {on = 1; next} /^```/ && on {exit} on' docs/guides/workflows.md > report.yaml\n";

#[tokio::test]
async fn the_commands_about_workflow_documents_work() {
    let outputs = r#"{"fetch": {"revenue": 1, "findings": []}, "report": {"report_url": "x"}}"#;
    let before = format!("{REPORT}echo '{outputs}' > outputs.json\n");
    the_commands_work_after(&before, "docs/guides/workflows.md").await;
}

#[tokio::test]
async fn the_commands_about_schedules_work() {
    let tasks = r#"[{"name": "poll", "schemas": {"method": "echo_executor"}}]"#;
    let before =
        format!("{REPORT}taskledger workflows save report.yaml\necho '{tasks}' > tasks.json\n");
    the_commands_work_after(&before, "docs/guides/schedules.md").await;
}

#[tokio::test]
async fn the_commands_about_questions_to_people_work() {
    let before = "awk '/^```json$/ {on = 1; next} /^```/ && on {exit} on' docs/guides/people.md > approval.json
taskledger tasks execute --file approval.json
";
    let asked = "$(taskledger tasks list --all --name approve --json | jq -r .tasks[0].id)";
    let ground = Ground {
        before,
        words: &[("TASK_ID", asked)],
        ..Ground::default()
    };
    the_commands_work_on("docs/guides/people.md", ground).await;
}
