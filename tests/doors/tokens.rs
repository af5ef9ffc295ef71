//! Tokens and the audit log through JSON-RPC, with the real program, in a folder and on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod admission;
mod command_line;
mod issuers;
mod modes;
mod offline;
mod proxies;

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};

/// Each test runs with a server whose data is in a folder, and with one whose data is on PostgreSQL.
macro_rules! in_both_places {
    ($($name:ident),* $(,)?) => {
        mod folder {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(taskledger_testkit::server::Folder::new()).await;
            })*
        }
        mod database {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(taskledger_testkit::server::Folder::with_database().await).await;
            })*
        }
    };
}
use in_both_places;

in_both_places!(
    a_token_is_made_rotated_and_revoked,
    what_is_done_is_in_the_audit_log,
    what_cannot_be_done_is_said_by_member,
    lists_are_paged,
    no_secret_is_in_the_log_or_in_a_file,
);

fn members(value: &Value) -> Vec<&str> {
    let members = value.as_object().unwrap().keys();
    members.map(String::as_str).collect()
}

async fn a_token_is_made_rotated_and_revoked(folder: Folder) {
    let server = Server::start(&folder).await;
    let api = &server.api;
    let new = json!({"name": "ci", "kind": "service", "scopes": ["tasks:run", "tasks:read"], "note": "n"});
    let made = api.call("tokens.create", new).await;
    let (id, text) = (
        made["id"].as_str().unwrap(),
        made["token"].as_str().unwrap(),
    );
    assert!(text.starts_with(&format!("tl_{id}_")), "{made}");
    assert_eq!(made["scopes"], json!(["tasks:read", "tasks:run"]));
    assert_eq!(
        (&made["state"], &made["expires_at"]),
        (&json!("active"), &Value::Null)
    );

    let listed = api.call("tokens.list", json!({})).await;
    let mut shown = made.clone();
    shown.as_object_mut().unwrap().remove("token");
    assert_eq!(listed, json!({"tokens": [shown]}));

    let rotated = api.call("tokens.rotate", json!({"id": id})).await;
    assert_ne!(rotated["token"], made["token"]);
    assert!(rotated["previous_until"].is_string() && rotated["rotated_at"].is_string());

    let revoked = api.call("tokens.revoke", json!({"id": id})).await;
    assert_eq!(revoked["state"], "revoked");
    assert_eq!(members(&revoked), members(&shown));
    let again = api.call("tokens.revoke", json!({"id": id})).await;
    assert_eq!(again, revoked);
    server.stop().await;
}

async fn what_is_done_is_in_the_audit_log(folder: Folder) {
    let server = Server::start(&folder).await;
    let api = &server.api;
    let made = api
        .call(
            "tokens.create",
            json!({"name": "ann", "scopes": ["tasks:read"]}),
        )
        .await;
    api.call("tokens.revoke", json!({"id": made["id"]})).await;
    api.call("system.rebuild", json!({})).await;

    let audit = api.call("audit.list", json!({})).await;
    let entries = audit["entries"].as_array().unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|e| {
            (
                e["principal"].as_str().unwrap(),
                e["action"].as_str().unwrap(),
                &e["object"],
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("anonymous", "rebuild", &Value::Null),
            ("anonymous", "token.revoke", &made["id"]),
            ("anonymous", "token.create", &made["id"]),
            ("server", "server.start", &Value::Null),
        ]
    );
    assert!(entries.iter().all(|e| e["outcome"] == "done"), "{audit}");
    assert_eq!(entries[2]["detail"]["owner"], "user:ann");
    let filter = json!({"object": made["id"], "action": "token.create", "principal": "anonymous"});
    let found = api.call("audit.list", filter).await;
    assert_eq!(found, json!({"entries": [entries[2]]}));

    let who = api.call("system.whoami", json!({})).await;
    assert_eq!(who["principal"], "anonymous");
    assert_eq!(who["scopes"].as_array().unwrap().len(), 9);
    server.stop().await;
}

async fn what_cannot_be_done_is_said_by_member(folder: Folder) {
    let server = Server::start(&folder).await;
    let api = &server.api;
    let id = "aaaaaaaaaaaaaaaa";
    let chosen = json!({"name": "ci", "kind": "service", "scopes": ["worker"], "id": id});
    api.call("tokens.create", chosen.clone()).await;
    api.call("tokens.revoke", json!({"id": id})).await;
    for (method, params, field) in [
        ("tokens.create", chosen, "id"),
        (
            "tokens.create",
            json!({"name": "ann", "scopes": ["root"]}),
            "scopes",
        ),
        (
            "tokens.create",
            json!({"name": " ann", "scopes": ["worker"]}),
            "name",
        ),
        ("tokens.rotate", json!({"id": id}), "id"),
        ("tokens.rotate", json!({"id": "bbbbbbbbbbbbbbbb"}), "id"),
        (
            "tokens.rotate",
            json!({"id": id, "grace_seconds": 700_000}),
            "grace_seconds",
        ),
        ("tokens.revoke", json!({"id": "bbbbbbbbbbbbbbbb"}), "id"),
        ("tokens.revoke", json!({"id": "tl_x"}), "id"),
        ("audit.list", json!({"since": "yesterday"}), "since"),
    ] {
        let refused = api.refusal(method, params.clone()).await;
        let first = &refused.data["errors"][0];
        assert_eq!(
            (refused.code, &first["field"]),
            (-32602, &json!(field)),
            "{method} {params}"
        );
    }
    server.stop().await;
}

async fn lists_are_paged(folder: Folder) {
    let server = Server::start(&folder).await;
    let api = &server.api;
    for n in 0..5 {
        let name = format!("ci-{n}");
        let new = json!({"name": name, "kind": "service", "scopes": ["worker"]});
        api.call("tokens.create", new).await;
    }
    for (method, member, count) in [("tokens.list", "tokens", 5), ("audit.list", "entries", 6)] {
        let all = api.call(method, json!({})).await;
        let mut paged = Vec::new();
        let mut params = json!({"limit": 2});
        loop {
            let page = api.call(method, params.clone()).await;
            paged.extend(page[member].as_array().unwrap().clone());
            if page["next_cursor"].is_null() {
                break;
            }
            params["cursor"] = page["next_cursor"].clone();
        }
        assert_eq!(paged.len(), count);
        assert_eq!(json!({ member: paged }), all, "{method}");
    }
    let one = json!({"name": "ci-3", "kind": "service"});
    let found = api.call("tokens.list", one).await;
    assert_eq!(found["tokens"].as_array().unwrap().len(), 1);
    let nobody = api.call("tokens.list", json!({"name": "ci-3"})).await;
    assert_eq!(nobody, json!({"tokens": []}));
    server.stop().await;
}

/// Whether a file below the folder holds the text.
fn holds(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

async fn no_secret_is_in_the_log_or_in_a_file(folder: Folder) {
    let server = Server::start_with(&folder, &["--log-level", "trace"]).await;
    let api = &server.api;
    let new = json!({"name": "ci", "kind": "service", "scopes": ["worker"]});
    let made = api.call("tokens.create", new).await;
    let rotated = api.call("tokens.rotate", json!({"id": made["id"]})).await;
    let mut told = String::new();
    for (method, params) in [
        ("tokens.list", json!({})),
        ("audit.list", json!({})),
        ("tokens.revoke", json!({"id": made["id"]})),
        ("system.health", json!({})),
    ] {
        told.push_str(&api.call(method, params).await.to_string());
    }
    let data = folder.data();
    let log = server.stop().await;

    for token in [&made["token"], &rotated["token"]] {
        let text = token.as_str().unwrap();
        let secret = text.rsplit('_').next().unwrap();
        assert!(!log.contains(secret), "in the log");
        assert!(!told.contains(secret), "in an answer");
        if data.exists() {
            assert!(!holds(&data, secret), "in a file");
        }
    }
}

#[tokio::test]
async fn the_row_of_a_start_has_the_settings_of_access_and_no_secret() {
    let folder = Folder::new();
    let proxy = "http://u:canary@127.0.0.1:9";
    let token = run(["tokens", "generate"]).await.done().trim().to_owned();
    let [_, id, secret] = *token.split('_').collect::<Vec<_>>() else {
        panic!("not a token");
    };
    let path = folder.path().join("operator.token");
    std::fs::write(&path, &token).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let arguments = [
        &["--egress-proxy", proxy, "--allow-command", "true"][..],
        &["--admin-token-file", path.to_str().unwrap()],
        &["--admin-listen", "127.0.0.1:0"],
        &["--broker-metrics-listen", "127.0.0.1:0"],
        &["--allow-origin", "https://app.example"],
        &[
            "--oidc-issuer",
            "https://login.example",
            "--oidc-audience",
            "ledger",
        ],
        &["--oidc-scopes", "groups:ops=admin", "--auth", "off"],
    ];
    let server = Server::start_with(&folder, &arguments.concat()).await;
    let starts = json!({"action": "server.start"});
    let audit = server.api.call("audit.list", starts).await;
    let rows = audit["entries"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{audit}");
    for (setting, value) in [
        ("auth", json!("off")),
        ("authentication", json!(false)),
        ("listen", json!("127.0.0.1:0")),
        ("allow_command", json!(["true"])),
        ("trusted_proxies", json!([])),
        ("egress_proxy", json!(true)),
        ("admin_listen", json!("127.0.0.1:0")),
        ("broker_metrics_listen", json!("127.0.0.1:0")),
        ("allow_origins", json!(["https://app.example"])),
        ("admin_tokens", json!([id])),
        ("oidc_audiences", json!(["ledger"])),
        ("oidc_scopes", json!(["groups:ops=admin"])),
        ("tls_client_ca", json!(false)),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(rows[0]["detail"][setting], value, "{setting}: {audit}");
    }
    assert!(!audit.to_string().contains("canary"), "{audit}");
    assert!(!audit.to_string().contains(secret), "{audit}");
    server.stop().await;
}
