//! `GET /openrpc.json` and `rpc.discover`.

use crate::openrpc::support::World;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn both_ways_give_the_same_document() {
    let world = World::start().await;
    let url = format!("{}/openrpc.json", world.url);
    let response = world.client.get(&url).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert!(
        response.headers()["cache-control"]
            .to_str()
            .unwrap()
            .contains("max-age")
    );
    assert!(
        response.headers()["etag"]
            .to_str()
            .unwrap()
            .starts_with('"')
    );
    let document: Value = response.json().await.unwrap();
    assert_eq!(document, world.document().await.0);
    for params in [json!({}), json!([])] {
        assert_eq!(world.call("rpc.discover", params).await, document);
    }
    for params in [json!({"x": 1}), json!([1])] {
        let answer = world.answer("rpc.discover", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    world.close().await;
}

#[tokio::test]
async fn a_cache_is_told_that_nothing_changed() {
    let world = World::start().await;
    let url = format!("{}/openrpc.json", world.url);
    let first = world.client.get(&url).send().await.unwrap();
    let etag = first.headers()["etag"].to_str().unwrap().to_owned();
    for (known, status) in [
        (etag.clone(), 304),
        (format!("W/{etag}"), 304),
        (format!("\"other\", {etag}"), 304),
        ("*".to_owned(), 304),
        ("\"other\"".to_owned(), 200),
    ] {
        let request = world.client.get(&url).header("if-none-match", &known);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{known}");
        assert_eq!(response.headers()["etag"], etag.as_str());
        let body = response.text().await.unwrap();
        assert_eq!(body.is_empty(), status == 304, "{known}");
    }
    world.close().await;
}

#[tokio::test]
async fn it_is_read_only() {
    let world = World::start().await;
    let url = format!("{}/openrpc.json", world.url);
    let head = world.client.head(&url).send().await.unwrap();
    assert_eq!(head.status(), 200);
    assert!(head.headers().contains_key("etag"));
    let length = head.headers()["content-length"]
        .to_str()
        .unwrap()
        .parse::<usize>()
        .unwrap();
    let whole = world
        .client
        .get(&url)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert_eq!(length, whole.len());
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        let response = world
            .client
            .request(method.clone(), &url)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 405, "{method}");
        assert_eq!(response.headers()["allow"], "GET, HEAD");
    }
    world.close().await;
}
