//! Pages that take more for granted than a server: an issuer of tokens, certificates, a database, a flow that failed.

use super::reader::{Ground, Reader};
use super::{the_commands_work, the_commands_work_on};
use std::path::Path;
use taskledger_testkit::certificates::{Pair, authority_pem};
use taskledger_testkit::issuer::OidcIssuer;
use taskledger_testkit::receiver::Receiver;
use tempfile::TempDir;

/// The commands of a page that need a database.
async fn the_commands_work_on_postgres(name: &str, ground: Ground<'_>) {
    Reader::of(name, ground).with_database().await.reads().await;
}

/// Files with a certificate for the machine, its key and the authority: `cert.pem`, `key.pem`, `ca.pem`.
fn certificates() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::of(&["localhost", "127.0.0.1"]);
    let files = [
        ("cert.pem", pair.certificate),
        ("key.pem", pair.key),
        ("ca.pem", authority_pem()),
    ];
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// A command that copies them to where the reader is.
fn copied(folder: &Path) -> String {
    format!("cp {}/*.pem .; chmod 600 *.pem\n", folder.display())
}

/// Files that the guide runs, and a failed flow, with the id of its root in `GROUP` and that of its task in `FAILED`,
/// which would complete by now.
const WORK: &str = r#"
mkdir -p ~/.zfunc ~/.config/fish/completions ~/.local/share/bash-completion/completions
echo '[{"name": "a", "schemas": {"method": "echo_executor"}}]' | tee first.json > workflow.json
echo '[{name: b, schemas: {method: echo_executor}}]' | tee second.yaml > workflow.yaml
printf '[{"id": "g", "name": "g"}, {"name": "f", "parent_id": "g", "schemas": {"method": "command_executor"},
  "inputs": {"program": "test", "args": ["-e", "%s/there"]}}]' "$PWD" > fails.json
taskledger run fails.json --url http://127.0.0.1:8000 || test $? = 1
export GROUP=$(taskledger tasks list --json | jq -r .tasks[0].id)
export FAILED=$(taskledger tasks list --all --name f --json | jq -r .tasks[0].id)
touch there
"#;

#[tokio::test]
async fn the_commands_of_the_guide_of_the_command_line_work() {
    let files = certificates();
    let before = copied(files.path())
        + "cp cert.pem server.pem; cp cert.pem me.pem; cp key.pem server.key; cp key.pem me.key; cp ca.pem clients.pem\n"
        + "echo token > ~/.ledger-token; chmod 600 ~/.ledger-token\n"
        + WORK;
    let ground = Ground {
        options: &["--allow-command", "test"],
        before: &before,
        words: &[
            // The commands behind go to the server that is there.
            ("context use prod", "context use local"),
            ("--reason 'wrong input'", "--reason 'wrong input' --yes"),
            (
                "--all-failed-children 0f8fad5b",
                "--all-failed-children $GROUP --yes",
            ),
            // The flow has failed.
            (
                "taskledger watch @last\n",
                "taskledger watch @last || test $? = 1\n",
            ),
            (
                "taskledger tasks execute @last --watch",
                "taskledger tasks create --name new --method echo_executor\ntaskledger tasks execute @last --watch",
            ),
            // The bulk commands have retried the other one.
            (
                "taskledger tasks retry 0f8fad5b --wait",
                "rm there; taskledger run fails.json --url http://127.0.0.1:8000 || test $? = 1; touch there\n\
                 FAILED=$(taskledger tasks list --all --name f --status failed --json | jq -r .tasks[0].id)\n\
                 taskledger tasks retry $FAILED --wait",
            ),
            ("0f8fad5b", "$FAILED"),
        ],
        ..Ground::default()
    };
    the_commands_work_on("docs/guides/cli.md", ground).await;
}

#[tokio::test]
async fn the_commands_about_oidc_work() {
    let issuer = OidcIssuer::start().await;
    let files = certificates();
    let url = issuer.url();
    let here = format!("{url} --oidc-loopback-http --egress-allow-net 127.0.0.1/32");
    let get = format!("$(echo {})", issuer.token("ann", "jti-1"));
    let deny =
        format!("TASKLEDGER_TOKEN=$(cat taskledger-data/admin.token) taskledger tokens deny {url}");
    let authority = files.path().join("ca.pem").display().to_string();
    let ground = Ground {
        words: &[
            ("https://login.example/realms/main", &here),
            ("$(get-token)", &get),
            ("taskledger tokens deny https://login.example", &deny),
            ("/etc/ssl/internal-ca.pem", &authority),
        ],
        ..Ground::default()
    };
    the_commands_work_on("docs/guides/oidc.md", ground).await;
}

#[tokio::test]
async fn the_commands_about_the_agent_broker_work() {
    the_commands_work("docs/guides/agent-broker.md").await;
}

#[tokio::test]
async fn the_commands_about_quotas_work() {
    the_commands_work("docs/operating/quotas.md").await;
}

#[tokio::test]
async fn the_commands_about_retention_work() {
    // An export stands for a file of the archive.
    let export =
        "taskledger events export --data-dir taskledger-data --with-keys --output archived.jsonl";
    let import = format!("{export}\ntaskledger events import archived.jsonl");
    let ground = Ground {
        words: &[
            ("/var/lib/taskledger-archive", "./archive"),
            ("taskledger events import FILE", &import),
        ],
        ..Ground::default()
    };
    the_commands_work_on("docs/operating/retention.md", ground).await;
}

#[tokio::test]
async fn the_commands_about_tls_work() {
    let files = certificates();
    let serve = "taskledger serve --tls-cert cert.pem --tls-key key.pem\n";
    // Before the page makes a certificate of its own.
    let first = format!("[ -e cert.pem ] || {{ {}}}\n{serve}", copied(files.path()));
    let ground = Ground {
        words: &[(serve, &first), ("ledger.example:8000", "127.0.0.1:8000")],
        ..Ground::default()
    };
    the_commands_work_on("docs/operating/proxies.md", ground).await;
}

#[tokio::test]
async fn the_commands_about_webhooks_work() {
    let receiver = Receiver::start().await;
    let told = ["/first", "/second", "/told"].map(|path| receiver.url(path));
    let id = "$(taskledger webhooks list --json | jq -r .webhooks[0].id)";
    let of_id = |word: &str| {
        (
            format!("webhooks {word} ID"),
            format!("webhooks {word} {id}"),
        )
    };
    let (test, deliveries, recover) = (of_id("test"), of_id("deliveries"), of_id("recover"));
    let ground = Ground {
        options: &["--egress-allow-http", "--egress-allow-net", "127.0.0.1/32"],
        words: &[
            ("https://example.com/hooks/taskledger", &told[0]),
            ("https://example.com/hooks/data", &told[1]),
            ("https://example.com/told", &told[2]),
            (&test.0, &test.1),
            (&deliveries.0, &deliveries.1),
            (&recover.0, &recover.1),
        ],
        ..Ground::default()
    };
    the_commands_work_on("docs/guides/webhooks.md", ground).await;
    assert!(!receiver.requests().is_empty(), "the message has arrived");
}

#[tokio::test]
async fn the_commands_about_postgres_work_on_postgres() {
    let before =
        "echo '[{\"name\": \"a\", \"schemas\": {\"method\": \"echo_executor\"}}]' > one.json
taskledger run one.json --data-dir taskledger-data\n";
    let ground = Ground {
        before,
        words: &[
            (
                "'postgres://taskledger:secret@db.example:5432/taskledger?sslmode=verify-full&sslrootcert=ca.pem'",
                "\"$DB\"",
            ),
            ("10.0.0.1:8000", "127.0.0.1:8000"),
            // What is moved goes into an empty one.
            ("\"$TASKLEDGER_DATABASE_URL\"", "\"$DB_EMPTY\""),
        ],
        ..Ground::default()
    };
    the_commands_work_on_postgres("docs/operating/postgres.md", ground).await;
}

#[tokio::test]
async fn the_commands_about_security_work_on_postgres() {
    the_commands_work_on_postgres("docs/guides/security.md", Ground::default()).await;
}
