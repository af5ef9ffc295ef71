//! Webhooks of other users: neither their ids nor their secrets can be guessed.

use crate::isolation::world::World;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_and_secrets_of_other_users_webhooks_cannot_be_guessed() {
    let world = World::start().await;
    let url = "https://receiver.example.com/hook";
    let secret = format!("whsec_{}", "A".repeat(32));
    let with_secret = json!({"url": url, "secret": secret});
    // given: a webhook of another user, and an id that no webhook has
    let of_bob = world
        .call("bob", "webhooks.create", with_secret.clone())
        .await;
    let absent = json!("aa0e8400-e29b-41d4-a716-4466554400ff");
    // then: both ids are refused alike
    let chosen = async |id: &Value| {
        let new = json!({"url": url, "id": id});
        let mut refused = world.refusal("ann", "webhooks.create", new).await;
        refused["data"]["correlation_id"].take();
        refused
    };
    let refused = chosen(&of_bob["id"]).await;
    assert_eq!(refused, chosen(&absent).await);
    assert_eq!(
        (&refused["data"]["field"], &refused["data"]["scope"]),
        (&json!("id"), &json!("users:any"))
    );
    // and a secret is taken only by the user's own webhooks.
    let own = world
        .call("ann", "webhooks.create", with_secret.clone())
        .await;
    let other = world
        .call("ann", "webhooks.create", json!({"url": url}))
        .await;
    for id in [&own["id"], &other["id"]] {
        let rotate = json!({"id": id, "secret": secret});
        let refused = world.refusal("ann", "webhooks.rotate_secret", rotate).await;
        assert_eq!(refused["data"]["field"], "secret", "{refused}");
    }
    // Callers who see all webhooks choose ids, and learn which are taken.
    let taken = json!({"url": url, "id": of_bob["id"]});
    let refused = world.refusal("chief", "webhooks.create", taken).await;
    assert_eq!(refused["code"], -32602, "{refused}");
    let created = world
        .call(
            "chief",
            "webhooks.create",
            json!({"url": url, "id": absent}),
        )
        .await;
    assert_eq!(created["id"], absent);
    world.close().await;
}
