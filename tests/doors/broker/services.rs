//! What stands around the broker: health, reflection, sizes, credentials, the end of the server.

use super::{Bus, PATIENCE, Peer, one, task};
use prost_types::value::Kind;
use taskledger_eventbus::retry_after;
use taskledger_testkit::server::{Folder, Server};
use tokio::time::timeout;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

#[tokio::test]
async fn probes_are_answered() {
    let bus = Bus::start().await;
    let url = bus.server.api.url.trim_end_matches('/').to_owned();
    let channel = tonic::transport::Endpoint::from_shared(url)
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut health = HealthClient::new(channel);
    for service in ["", "eventbus.EventBus"] {
        let asked = HealthCheckRequest {
            service: service.to_owned(),
        };
        let status = health.check(asked).await.unwrap().into_inner().status;
        assert_eq!(status, 1, "serving");
    }
    let asked = HealthCheckRequest {
        service: "other".to_owned(),
    };
    assert_eq!(
        health.check(asked).await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn messages_have_a_size() {
    let bus = Bus::start().await;
    let text = |bytes: usize| Some(one("k", Kind::StringValue("x".repeat(bytes))));
    let mut message = task("t", "x");
    message.parameters = text(5 * 1024 * 1024);
    let refused = bus.publish(message.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    // What a task may hold is less.
    message.parameters = text(2 * 1024 * 1024);
    let refused = bus.publish(message.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    message.parameters = text(512 * 1024);
    bus.publish(message).await.unwrap();
}

#[tokio::test]
async fn streams_end_at_once_when_the_server_stops() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    bus.server.ask_to_stop();
    let end = timeout(PATIENCE, stream.message())
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(end.code(), Code::Unavailable, "{end}");
    let (status, _) = timeout(PATIENCE, bus.server.end()).await.unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn calls_that_are_no_grpc_are_told_so() {
    let bus = Bus::start().await;
    let url = format!("{}eventbus.EventBus/PublishTask", bus.server.api.url);
    let answer = bus
        .server
        .api
        .http
        .post(&url)
        .body("{}")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 415);
    let answer = bus.server.api.http.get(&url).send().await.unwrap();
    assert_eq!(answer.status(), 405);
}

#[tokio::test]
async fn who_calls_too_fast_is_told_when_to_call_again() {
    let folder = Folder::new();
    let limits = ["--rate-per-second", "40", "--rate-burst", "40"];
    let server = Server::start_with(&folder, &limits).await;
    let peer = Peer::of(&server).await;
    let (id, refused) = timeout(PATIENCE, async {
        for n in 0.. {
            let id = format!("t{n}");
            if let Err(refused) = peer.publish(task(&id, "x")).await {
                return (id, refused);
            }
        }
        unreachable!("it is refused, or takes too long")
    })
    .await
    .unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let after = retry_after(&refused).expect("it is said when to call again");
    assert!(!after.is_zero() && after < PATIENCE, "{after:?}");
    let text = format!("call again after {} ms", after.as_millis());
    assert!(refused.message().ends_with(&text), "{refused}");
    tokio::time::sleep(after).await;
    peer.publish(task(&id, "x")).await.unwrap();
}
