//! The commands of the documentation do what they say: each page's blocks of `sh` are typed by a [`reader`], and what
//! its blocks of JSON show is taken by a server ([`json`]).

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod json;
mod others;
mod reader;

use reader::{Ground, Reader};

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
    Reader::of(name, ground).reads().await;
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
    let flow = "$(taskledger tasks list --json | jq -r .tasks[0].id)";
    let of_flow = format!("events?flow='{flow}'&types");
    let all = "http://127.0.0.1:8000/events?from=beginning";
    let id = format!("$(curl -sN --max-time 2 '{all}' | sed -n 's/^id: //p' | head -n 1)");
    let resumed = format!("'Last-Event-ID: '{id}");
    let ground = Ground {
        words: &[
            ("events?flow=ID&types", &of_flow),
            ("'Last-Event-ID: AQAAAA..'", &resumed),
        ],
        ..Ground::default()
    };
    the_commands_work_on("docs/guides/streams.md", ground).await;
}

#[tokio::test]
async fn the_commands_of_the_command_line_reference_work() {
    the_commands_work("docs/reference/command-line.md").await;
}

#[tokio::test]
async fn the_commands_about_a2a_work() {
    // A question, which is answered, and one more, which is cancelled.
    let before = r#"(umask 077; echo token > token)
echo '{"tasks": [{"name": "ask", "schemas": {"method": "approval_executor"}, "inputs": {"question": "Go on?"}}]}' > workflow.json
asked() { taskledger a2a list http://127.0.0.1:8000 --status input-required --json | jq -r .tasks[0].id; }
"#;
    let ground = Ground {
        before,
        words: &[
            ("https://agent.example.com", "http://127.0.0.1:8000"),
            (
                "taskledger a2a send http://127.0.0.1:8000 --task ID yes",
                "RUN=$(asked)\ntaskledger a2a send http://127.0.0.1:8000 --task $RUN yes",
            ),
            (
                "a2a watch http://127.0.0.1:8000 ID",
                "a2a watch http://127.0.0.1:8000 $RUN",
            ),
            (
                "taskledger a2a cancel http://127.0.0.1:8000 ID",
                "taskledger a2a send http://127.0.0.1:8000 --data @workflow.json --no-wait\n\
                 taskledger a2a cancel http://127.0.0.1:8000 $(asked)",
            ),
        ],
        ..Ground::default()
    };
    the_commands_work_on("docs/guides/a2a.md", ground).await;
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
    // The programs of the page, as files, and a task that somebody holds.
    let before = r##"echo '{"type": "object"}' > input.json
for name in worker.py ask.py; do
  awk -v name="# $name" '/^```/ {on = 0} $0 == name {on = 1} on' docs/guides/workers.md > $name
done
printf '#!/bin/sh\ncat\n' > resize; chmod +x resize
held() {
  rpc tasks.execute '{"tasks":[{"name":"held","schemas":{"type":"remote","method":"held"}}]}' > held.json
  rpc tasks.claim '{"methods":["held"],"worker":"me","lease_seconds":300,"wait_seconds":20}' > held.json
  rpc "$1" "$(echo "$2" | sed "s/TASK/$(jq -r '.result.claims[0].task.id' held.json)/;
    s/LEASE/$(jq -r '.result.claims[0].lease.token' held.json)/")"
}
"##;
    let here = "TASKLEDGER_URL=http://127.0.0.1:8000 python3";
    let (worker, ask) = (format!("{here} worker.py"), format!("{here} ask.py"));
    let ground = Ground {
        before,
        words: &[
            (
                r#"rpc tasks.renew '{"task_id":"TASK""#,
                r#"held tasks.renew '{"task_id":"TASK""#,
            ),
            ("python worker.py", &worker),
            ("python ask.py", &ask),
        ],
        variables: &[
            ("PYTHONPATH", "clients/python/src"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ],
        ..Ground::default()
    };
    the_commands_work_on("docs/guides/workers.md", ground).await;
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
    let before = format!(
        "{REPORT}echo '{outputs}' > outputs.json\nprintf '#!/bin/sh\\ncat\\n' > fetch.sh; chmod +x fetch.sh\n"
    );
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
