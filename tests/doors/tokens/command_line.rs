//! `taskledger tokens`, `whoami` and `audit`, at a server and in its store.

use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};

super::in_both_places!(
    a_server_is_asked,
    a_store_is_worked_on_without_a_token,
    a_token_of_the_operator_is_read_at_start,
);

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn a_server_is_asked(folder: Folder) {
    let server = Server::start(&folder).await;
    let url = ["--url", &server.api.url];
    let with = |words: &[&str]| -> Vec<String> {
        words
            .iter()
            .chain(&url)
            .map(|word| (*word).to_owned())
            .collect()
    };

    let new = [
        "tokens",
        "create",
        "ci",
        "--service",
        "--scopes",
        "worker,tasks:read",
        "--methods",
        "pdf",
    ];
    let made = run(with(&new)).await.done();
    let text = made
        .split_whitespace()
        .find(|word| word.starts_with("tl_"))
        .unwrap();
    let id = &text[3..19];
    let listed = run(with(&["tokens", "list"])).await.done();
    assert!(
        listed.contains(id) && listed.contains("service:ci"),
        "{listed}"
    );
    assert!(!listed.contains(text), "{listed}");
    let rotated = run(with(&["--json", "tokens", "rotate", id, "--grace", "1h"]))
        .await
        .done();
    assert_eq!(parsed(&rotated)["methods"], json!(["pdf"]));
    let revoked = run(with(&["tokens", "revoke", id])).await.done();
    assert!(revoked.contains("revoked"), "{revoked}");
    let who = run(with(&["whoami"])).await.done();
    assert!(who.starts_with("principal        anonymous\n"), "{who}");
    let audit = run(with(&["audit", "--object", id])).await.done();
    for told in [
        "token.create",
        "token.rotate",
        "token.revoke",
        "TOKEN",
        "REQUEST",
    ] {
        assert!(audit.contains(told), "{audit}");
    }
    let refused = run(with(&["audit", "--action", "token.made"])).await;
    let refused = refused.refused(2);
    assert!(refused.contains("token.create, token.rotate"), "{refused}");
    let nobody = run(with(&["audit", "--principal", "user:nobody"])).await;
    assert_eq!(nobody.out, "");
    assert_eq!(
        nobody.refused(0),
        "taskledger: no entry names `user:nobody`\n"
    );
    let none = ["audit", "--principal", "anonymous", "--until", "2000-01-01"];
    let none = run(with(&none)).await;
    assert_eq!(none.out, "");
    assert_eq!(
        none.refused(0),
        "taskledger: no entry matches --principal anonymous --until 2000-01-01\n"
    );
    let kind = run(with(&["audit", "--principal", "nobody"])).await;
    let kind = kind.refused(2);
    assert!(kind.contains("`user:nobody` or `service:nobody`"), "{kind}");
    let refused = run(with(&["tokens", "revoke", "aaaaaaaaaaaaaaaa"]))
        .await
        .refused(2);
    assert!(refused.contains("no token with this id"), "{refused}");
    server.stop().await;
}

async fn a_store_is_worked_on_without_a_token(folder: Folder) {
    Server::start(&folder).await.stop().await;
    let place = folder.storage();
    let with = |words: &[&str]| -> Vec<String> {
        let words = words.iter().map(|word| (*word).to_owned());
        words.chain(place.iter().cloned()).collect()
    };

    let new = [
        "--json",
        "tokens",
        "create",
        "admin",
        "--service",
        "--scopes",
        "all",
    ];
    let made = parsed(&run(with(&new)).await.done());

    let server = Server::start_with(&folder, &["--auth", "off"]).await;
    let listed = server.api.call("tokens.list", json!({})).await;
    assert_eq!(listed["tokens"][0]["id"], made["id"]);
    assert_eq!(listed["tokens"][0]["scopes"].as_array().unwrap().len(), 9);
    let again = run(with(&["tokens", "list"])).await;
    if folder.url().is_some() {
        assert!(again.done().contains("service:admin"));
    } else {
        let refused = again.refused(1);
        assert!(
            refused.contains("lock") || refused.contains("use"),
            "{refused}"
        );
    }
    server.stop().await;
    // Nobody at the server did that, and no stranger is called so.
    let audit = run(with(&["--json", "audit", "--principal", "operator"])).await;
    let audit = audit.done().replace(' ', "");
    for told in [
        r#""principal":"operator""#,
        r#""action":"token.create""#,
        r#""means":"store""#,
    ] {
        assert!(audit.contains(told), "{told}: {audit}");
    }
    let strangers = run(with(&["audit", "--principal", "anonymous"])).await;
    assert_eq!(strangers.out, "");
}

async fn a_token_of_the_operator_is_read_at_start(folder: Folder) {
    let path = folder.path().join("operator");
    let file = path.to_str().unwrap();
    let token = run(["tokens", "generate"]).await.done();
    let write = |text: &str, mode: u32| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let mut serve = vec![
        "serve".to_owned(),
        "--listen".to_owned(),
        "127.0.0.1:0".to_owned(),
    ];
    serve.extend(folder.storage());
    serve.extend(["--admin-token-file".to_owned(), file.to_owned()]);

    write(&token, 0o644);
    let refused = run(&serve).await.refused(2);
    assert!(refused.contains("has mode 0644"), "{refused}");
    write(&token[..70], 0o600);
    let refused = run(&serve).await.refused(2);
    assert!(
        refused.contains("line 1") && refused.contains("characters"),
        "{refused}"
    );
    assert!(!refused.contains(&token[20..40]), "{refused}");

    write(&token, 0o600);
    let server = Server::start_with(&folder, &["--admin-token-file", file]).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tokens.list"});
    let request = server.api.http.post(&server.api.url).json(&call);
    let answer = request.bearer_auth(token.trim()).send().await.unwrap();
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["result"], json!({"tokens": []}));
    let log = server.stop().await;
    assert!(!log.contains(&token[20..40]), "{log}");
}
