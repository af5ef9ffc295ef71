//! Whose JWTs can be refused: those of issuers that the server trusts.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};

const CORP: &str = "https://login.example.com";
const PARTNER: &str = "https://partner.example.com/realm";

/// The answer to a call with this token.
async fn ask(server: &Server, token: &str, method: &str, params: Value) -> Value {
    let api = &server.api;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = api.http.post(&api.url).bearer_auth(token).json(&call);
    request.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_issuer_that_is_not_configured_is_refused_with_those_that_are() {
    let folder = Folder::new();
    let chief = run(["tokens", "generate"]).await.done().trim().to_owned();
    let path = folder.path().join("operator.token");
    std::fs::write(&path, &chief).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let audience = |issuer| format!("{issuer} taskledger");
    let prefix = format!("{PARTNER} partner:");
    let arguments = [
        &["--admin-token-file", path.to_str().unwrap()][..],
        &["--oidc-issuer", CORP, "--oidc-audience", &audience(CORP)],
        &[
            "--oidc-issuer",
            PARTNER,
            "--oidc-audience",
            &audience(PARTNER),
        ],
        &["--oidc-user-prefix", &prefix],
    ];
    let server = Server::start_with(&folder, &arguments.concat()).await;
    let new = json!({"name": "ann", "scopes": ["tasks:read"]});
    let ann = ask(&server, &chief, "tokens.create", new).await["result"]["token"].take();
    let deny = |issuer: &str| json!({"issuer": issuer, "claim": "sub", "value": "cora"});

    for wrong in [
        "https://login.example.com/",
        "https://other.example.com",
        "login.example.com",
    ] {
        let refused = ask(&server, &chief, "tokens.deny", deny(wrong)).await;
        let fault = &refused["error"]["data"]["errors"][0];
        assert_eq!(
            (&refused["error"]["code"], &fault["field"]),
            (&json!(-32602), &json!("issuer"))
        );
        assert_eq!(
            (&fault["reason"], &fault["actual"]),
            (&json!("not an issuer that is configured"), &json!(wrong))
        );
        let expected = fault["expected"].as_str().unwrap();
        assert!(
            expected.contains(CORP) && expected.contains(PARTNER),
            "{expected}"
        );
        // Who may not refuse tokens does not hear of them.
        let refused = ask(&server, ann.as_str().unwrap(), "tokens.deny", deny(wrong)).await;
        assert_eq!(refused["error"]["data"]["scope"], "admin");
        assert!(!refused.to_string().contains(CORP), "{refused}");
    }
    let denied = ask(&server, &chief, "tokens.deny", deny(PARTNER)).await;
    assert_eq!(denied["result"]["issuer"], PARTNER, "{denied}");
    let audit = ask(
        &server,
        &chief,
        "audit.list",
        json!({"action": "jwt.deny_subject"}),
    )
    .await;
    assert_eq!(
        audit["result"]["entries"].as_array().unwrap().len(),
        1,
        "{audit}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_issuers_none_is_taken_but_in_a_store_whose_settings_nobody_knows() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.clone();
    let refused = run(["tokens", "deny", CORP, "--sub", "cora", "--url", &url])
        .await
        .refused(2);
    assert!(
        refused.contains("no issuer is configured") && refused.contains("--oidc-issuer"),
        "{refused}"
    );
    server.stop().await;

    let place = folder.storage();
    let words = ["tokens", "deny", CORP, "--sub", "cora"].map(str::to_owned);
    let denied = run(words.into_iter().chain(place)).await.done();
    assert!(denied.contains(CORP), "{denied}");
}
