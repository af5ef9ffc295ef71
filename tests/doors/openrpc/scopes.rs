//! Each method needs the scope that the document says, and no other.

use serde_json::{Map, Value, json};
use taskledger_testkit::program::run;
use taskledger_testkit::server::{Folder, Server};

async fn ask(server: &Server, token: &str, method: &str, params: &Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let api = &server.api;
    let request = api.http.post(&api.url).json(&call).bearer_auth(token);
    request.send().await.unwrap().json().await.unwrap()
}

/// Credentials that allow nothing but a look at the metrics.
async fn server_and_token(folder: &Folder) -> (Server, String) {
    let operator = run(["tokens", "generate"]).await.done().trim().to_owned();
    let path = folder.path().join("operator.token");
    std::fs::write(&path, &operator).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, private).unwrap();
    let path = path.to_str().unwrap();
    let arguments = ["--auth", "on", "--admin-token-file", path];
    let server = Server::start_with(folder, &arguments).await;
    let params = json!({"name": "looks", "kind": "service", "scopes": ["metrics"]});
    let made = ask(&server, &operator, "tokens.create", &params).await;
    let token = made["result"]["token"].as_str().unwrap().to_owned();
    (server, token)
}

#[tokio::test]
async fn a_call_without_the_scope_of_its_method_is_refused_with_that_scope() {
    // given
    let folder = Folder::new();
    let (server, token) = server_and_token(&folder).await;
    let document = ask(&server, &token, "rpc.discover", &json!({})).await;
    let mut scoped = 0;
    for method in document["result"]["methods"].as_array().unwrap() {
        let name = method["name"].as_str().unwrap();
        let scopes = method["x-scope"].as_array().unwrap();
        let given = method["examples"][0]["params"].as_array().unwrap().iter();
        let params = given.map(|p| (p["name"].as_str().unwrap().to_owned(), p["value"].clone()));
        let params = Value::Object(params.collect::<Map<_, _>>());
        // when
        let answer = ask(&server, &token, name, &params).await;
        // then
        let error = &answer["error"];
        if scopes.is_empty() {
            assert_ne!(error["code"], -32004, "{name}: {answer}");
        } else {
            assert_eq!(error["code"], -32004, "{name} {params}: {answer}");
            assert!(scopes.contains(&error["data"]["scope"]), "{name}: {answer}");
            scoped += 1;
        }
    }
    assert!(scoped > 50, "only {scoped} methods need a scope");
    server.stop().await;
}
