//! Clients behind a reverse proxy that the server trusts.

use super::in_both_places;
use serde_json::{Value, json};
use std::path::Path;
use taskledger_testkit::server::{Folder, Server};

in_both_places!(a_client_behind_a_trusted_proxy_is_known_by_its_own_address);

/// A call with these credentials, as a proxy would pass it on for this client. The status.
async fn passed_on(server: &Server, client: &str, token: &str) -> u16 {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "system.whoami"});
    let http = taskledger::tls::client().build().unwrap();
    let request = http.post(&server.api.url).bearer_auth(token).json(&body);
    let request = request.header("x-forwarded-for", client);
    request.send().await.unwrap().status().as_u16()
}

fn operator(folder: &Path) -> (String, String) {
    use std::os::unix::fs::PermissionsExt as _;
    use taskledger::clock::SystemClock;
    use taskledger_auth::Token;
    let path = folder.join("operator.token");
    let token = Token::fresh(&SystemClock::default()).reveal().to_string();
    std::fs::write(&path, &token).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    (path.to_str().unwrap().to_owned(), token)
}

async fn a_client_behind_a_trusted_proxy_is_known_by_its_own_address(folder: Folder) {
    let (path, token) = operator(folder.path());
    let on = ["--auth", "on", "--admin-token-file", &path];
    let arguments = [&on[..], &["--trusted-proxies", "127.0.0.0/8,::1"]].concat();
    let server = Server::start_with(&folder, &arguments).await;

    let guess = "tl_aaaaaaaaaaaaaaaa_guessed";
    for _ in 0..10 {
        assert_eq!(passed_on(&server, "198.51.100.7", guess).await, 401);
    }

    // He is turned away, and nobody else behind the proxy.
    assert_eq!(passed_on(&server, "198.51.100.7", &token).await, 429);
    assert_eq!(passed_on(&server, "203.0.113.9", &token).await, 200);
    // What he writes himself stands to the left of what the proxy saw.
    let disguised = "203.0.113.1, 198.51.100.7";
    assert_eq!(passed_on(&server, disguised, &token).await, 429);
    let failures = server
        .api
        .eventually("the failures are in the audit log", async || {
            let failures = audited(&server, &token).await;
            (!failures.is_empty()).then_some(failures)
        });
    assert_eq!(failures.await[0]["address"], "198.51.100.7");
    server.stop().await;
}

async fn audited(server: &Server, token: &str) -> Vec<Value> {
    let params = json!({"action": "login.failed"});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "audit.list", "params": params});
    let http = taskledger::tls::client().build().unwrap();
    let request = http.post(&server.api.url).bearer_auth(token).json(&body);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    answer["result"]["entries"].as_array().unwrap().clone()
}
