//! The card: what it says, how caches keep it, who signs it.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use taskledger_a2a::card::AgentCard;
use taskledger_a2a::{Wire, signing};
use taskledger_testkit::server::{Folder, Server};

/// The key of RFC 8410, section 10.3.
const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";

#[tokio::test]
async fn the_card_says_what_is_served_and_caches_keep_it() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let url = server.api.url.trim_end_matches('/').to_owned();
    let at = format!("{url}/.well-known/agent-card.json");
    let response = server.api.http.get(&at).send().await.unwrap();
    let headers = response.headers().clone();
    let card: Value = response.json().await.unwrap();
    let read = AgentCard::from_json(card.clone()).unwrap();
    let interfaces: Vec<_> = (read.supported_interfaces.iter())
        .map(|it| (&*it.protocol_binding, &*it.url, &*it.protocol_version))
        .collect();
    let host = url.strip_prefix("http://").unwrap();
    let expected = [
        ("JSONRPC", format!("{url}/a2a"), "1.0"),
        ("GRPC", host.to_owned(), "1.0"),
        ("HTTP+JSON", format!("{url}/a2a/rest"), "1.0"),
    ];
    let expected: Vec<_> = expected.iter().map(|(a, b, c)| (*a, &**b, *c)).collect();
    assert_eq!(interfaces, expected);
    assert_eq!(card["capabilities"]["streaming"], true);
    assert_eq!(card["capabilities"]["pushNotifications"], true);
    assert_eq!(card["securitySchemes"], json!({}));
    assert_eq!(card["skills"][0]["id"], "tasks.execute");
    // No member of the protocol's older editions, and none of this server's own card.
    assert!(card.get("url").is_none() && card.get("protocolVersion").is_none());

    let http = taskledger::tls::client().build().unwrap();
    for (name, known) in [
        ("if-none-match", "etag"),
        ("if-modified-since", "last-modified"),
    ] {
        let known = headers[known].clone();
        let response = http.get(&at).header(name, known).send().await.unwrap();
        assert_eq!(response.status(), 304, "{name}");
    }
    assert!(
        headers["cache-control"]
            .to_str()
            .unwrap()
            .contains("max-age=")
    );
    let other = http.get(&at).header("if-none-match", "\"other\"");
    assert_eq!(other.send().await.unwrap().status(), 200);
    // The card of this server's own protocol stays as it is.
    let own = server
        .api
        .http
        .get(format!("{url}/.well-known/agent-card"))
        .send()
        .await
        .unwrap();
    let own: Value = own.json().await.unwrap();
    assert_eq!(own["url"], url);
    server.stop().await;
}

#[tokio::test]
async fn a_signed_card_is_verified_with_the_published_key() {
    let folder = Folder::new();
    let key = folder.path().join("card.pem");
    std::fs::write(&key, PEM).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let key = key.to_string_lossy().into_owned();
    let server = Server::start_with(&folder, &["--a2a-signing-key", &key]).await;
    let url = server.api.url.trim_end_matches('/');
    let get = async |path: &str| -> Value {
        let response = server
            .api
            .http
            .get(format!("{url}/.well-known/{path}"))
            .send()
            .await
            .unwrap();
        response.json().await.unwrap()
    };
    let card = AgentCard::from_json(get("agent-card.json").await).unwrap();
    let keys = get("agent-card-keys.json").await;
    assert_eq!(
        keys["keys"][0]["x"],
        "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"
    );
    assert_eq!(signing::verify(&card, &keys), Ok(()));
    let mut changed = card;
    changed.description.push('!');
    assert!(signing::verify(&changed, &keys).is_err());
    server.stop().await;
}
