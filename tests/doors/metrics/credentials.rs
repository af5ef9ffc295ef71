//! Refused credentials, tokens and the certificate as figures.

use super::scrape::{Scrape, scrape};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use taskledger::application::authentication::Denied;
use taskledger::clock::{Clock as _, SystemClock};
use taskledger::metrics::table::{On, TABLE};
use taskledger_testkit::certificates::{Files, LOCAL, Pair};
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};

taskledger_testkit::on_both_backends!(
    refused_credentials_and_tokens_are_counted_and_strangers_make_no_series
);

/// Wrong credentials of one address that are looked at in a minute.
const FAILURES_MAX: usize = 10;
/// Made-up credentials, far more than there are reasons.
const STRANGERS: usize = 40;
const REFUSED: &str = "taskledger_authentication_refused_total";
const EXPIRY: &str = "taskledger_token_expires_seconds";
/// Seconds until a token ends that ends next.
const LONG_S: u32 = 86_400;
const READ: &str = "taskledger_tls_certificate_read_time_seconds";

/// A server with authentication whose metrics are on a listener of their own.
struct Guarded {
    server: Server,
    admin: String,
    token: String,
}

impl Guarded {
    async fn start(folder: &Folder) -> Self {
        let token = run(["tokens", "generate"]).await.done().trim().to_owned();
        let path = folder.path().join("operator.token");
        std::fs::write(&path, &token).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, private).unwrap();
        let path = path.to_str().unwrap();
        let on = ["--auth", "on", "--admin-token-file", path];
        let admin = ["--admin-listen", "127.0.0.1:0"];
        let server = Server::start_with(folder, &[&on[..], &admin].concat()).await;
        let logged = server.logged();
        let lines = logged
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut lines = lines.filter(|line| line["message"] == "metrics and probes are served");
        let admin = lines.next().unwrap()["address"]
            .as_str()
            .unwrap()
            .to_owned();
        Self {
            server,
            admin,
            token,
        }
    }

    async fn scrape(&self) -> Scrape {
        let url = format!("http://{}/metrics", self.admin);
        let response = self.server.api.http.get(url).send().await.unwrap();
        Scrape::read(response.text().await.unwrap())
    }

    async fn ask(&self, token: Option<&str>, method: &str, params: Value) -> (u16, Value) {
        let api = &self.server.api;
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = api.http.post(&api.url).json(&call);
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn made(&self, name: &str, more: Value) -> Value {
        let mut new = json!({"name": name, "kind": "service", "scopes": ["tasks:read"]});
        new.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let (status, mut answer) = self.ask(Some(&self.token), "tokens.create", new).await;
        assert!(status == 200 && answer["error"].is_null(), "{answer}");
        answer["result"].take()
    }
}

async fn refused_credentials_and_tokens_are_counted_and_strangers_make_no_series(folder: Folder) {
    let guarded = Guarded::start(&folder).await;
    let refused = |found: &Scrape, reason| found.sum(REFUSED, &[("reason", reason)]);
    let before = guarded.scrape().await;
    assert_eq!(
        before.sum(REFUSED, &[]),
        0.0,
        "probes and scrapes need no credentials"
    );
    assert_eq!(before.sum("taskledger_tokens", &[]), 0.0);

    guarded.made("stays", json!({})).await;
    let never_ends = guarded.scrape().await;
    assert_eq!(never_ends.count(EXPIRY), 0, "{}", never_ends.text);
    let revoked = guarded.made("revoked", json!({})).await;
    guarded
        .made("long", json!({"expires_in_seconds": LONG_S}))
        .await;
    let short = guarded
        .made("short", json!({"expires_in_seconds": 1}))
        .await;
    let (status, _) = guarded
        .ask(
            Some(&guarded.token),
            "tokens.revoke",
            json!({"id": revoked["id"]}),
        )
        .await;
    assert_eq!(status, 200);
    let ask = async |token| guarded.ask(token, "system.whoami", json!({})).await.0;
    assert_eq!(ask(None).await, 401);
    assert_eq!(ask(revoked["token"].as_str()).await, 401);
    let found = guarded
        .server
        .api
        .eventually("the short token is over", async || {
            ask(short["token"].as_str()).await;
            let found = guarded.scrape().await;
            (found.sum("taskledger_tokens", &[("state", "expired")]) == 1.0
                && refused(&found, "expired") > 0.0)
                .then_some(found)
        });
    let found = found.await;
    for (state, tokens) in [("active", 2.0), ("revoked", 1.0)] {
        assert_eq!(
            found.sum("taskledger_tokens", &[("state", state)]),
            tokens,
            "{state}"
        );
    }
    let done = |found: &Scrape| found.sum("taskledger_audit_entries_total", &[("outcome", "done")]);
    // Four tokens were made, and one was revoked.
    assert_eq!(done(&found) - done(&before), 5.0, "{}", found.text);
    // The one that is over is none that ends next.
    let left = found.sum(EXPIRY, &[]);
    let range = f64::from(LONG_S) - 600.0..=f64::from(LONG_S);
    assert!(range.contains(&left), "{left} s");
    assert_eq!(
        (refused(&found, "missing"), refused(&found, "revoked")),
        (1.0, 1.0)
    );

    for n in 0..STRANGERS {
        let made_up = [
            format!("somebody-{n}"),
            format!("tl_{n}"),
            format!("a.b.{n}"),
        ];
        let token = Some(&*made_up[n % made_up.len()]);
        let (status, _) = guarded.ask(token, "system.whoami", json!({})).await;
        let expected = if n < FAILURES_MAX { 401 } else { 429 };
        assert_eq!(status, expected, "{n}");
    }
    let found = guarded.scrape().await;
    let sums = ["malformed", "unknown", "limited"].map(|reason| refused(&found, reason));
    assert_eq!(sums.iter().sum::<f64>(), STRANGERS as f64, "{sums:?}");
    // The address has failed ten times by then, and is not looked at any more.
    assert_eq!(sums[2], (STRANGERS - FAILURES_MAX) as f64, "{sums:?}");
    let reasons = found.samples.iter().filter(|sample| sample.name == REFUSED);
    let reasons: BTreeSet<_> = reasons
        .map(|sample| sample.labels["reason"].as_str())
        .collect();
    assert_eq!(reasons, BTreeSet::from(Denied::REASONS));
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_certificate_and_its_last_reads_are_shown() {
    const DAY: f64 = 86_400.0;
    let now = || SystemClock::default().now().0 as f64 / 1e6;
    let (folder, files) = (Folder::new(), Files::new());
    let begun = now();
    let arguments = files.arguments();
    let arguments: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .chain(["--metrics"])
        .collect();
    let server = Server::start_with(&folder, &arguments).await;
    let read = |found: &Scrape, outcome| found.sum(READ, &[("outcome", outcome)]);

    let found = scrape(&server.api).await;
    let of_tls = TABLE.iter().filter(|row| row.on == On::Tls);
    assert!(of_tls.clone().count() > 0 && of_tls.into_iter().all(|row| found.count(row.name) > 0));
    let left = found.sum("taskledger_tls_certificate_expiry_seconds", &[]);
    assert!(left > DAY, "{left}");
    let usable = read(&found, "usable");
    assert!((begun - 1.0..=now() + 1.0).contains(&usable), "{usable}");
    assert_eq!(read(&found, "failed"), 0.0, "{}", found.text);

    files.replace(files.key(), &Pair::of(&LOCAL).key);
    server.hang_up();
    let failed = server.api.eventually("the files cannot be used", async || {
        let found = scrape(&server.api).await;
        (read(&found, "failed") > 0.0).then_some(found)
    });
    let failed = failed.await;
    assert!(read(&failed, "failed") > read(&failed, "usable"));
    let still = failed.sum("taskledger_tls_certificate_expiry_seconds", &[]);
    assert!(
        still <= left && still > left - DAY,
        "{still}: the certificate before is in use"
    );

    files.write(&Pair::of(&LOCAL));
    server.hang_up();
    server
        .api
        .eventually("they can again", async || {
            let found = scrape(&server.api).await;
            (read(&found, "usable") > read(&found, "failed")).then_some(())
        })
        .await;
    server.stop().await;
}
