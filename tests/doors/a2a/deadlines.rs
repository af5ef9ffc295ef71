//! `grpc-timeout` of calls that last as long as a run: the caller is told that it is over, and the task goes on.

use super::binding::{Binding, all, send_message, with_version};
use super::{endless, runs};
use crate::broker::deadlines::{first_until_end, origin, patient, within};
use serde_json::{Value, json};
use taskledger_a2a::Operation::{CancelTask, GetTask, ListTasks};
use taskledger_a2a::grpc::pb::stream_response::Payload;
use taskledger_a2a::grpc::{A2aServiceClient, pb};
use taskledger_testkit::server::{Folder, Server};
use tonic::Code;

/// The task comes to work; then it is cancelled.
async fn goes_on_and_is_cancelled(binding: &mut dyn Binding, id: &Value) {
    let named = json!({"id": id});
    loop {
        let read = binding.ask(GetTask, named.clone()).await.unwrap();
        let state = read["status"]["state"].as_str().unwrap();
        if state == "TASK_STATE_WORKING" {
            break;
        }
        assert_eq!(state, "TASK_STATE_SUBMITTED", "{read}");
    }
    let gone = binding.ask(CancelTask, named).await.unwrap();
    assert_eq!(gone["status"]["state"], "TASK_STATE_CANCELED", "{gone}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_send_that_waits_is_cut_off_and_its_task_goes_on() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let mut client = A2aServiceClient::with_origin(patient(&server).await, origin());
    let mut binding = all(&server.api.url).await.remove(0);
    // On a slow machine the time may be over before a run has begun.
    let list = loop {
        let message = send_message(runs(json!([endless()])));
        let late = within("1S", with_version(message, None));
        let late = client.send_message(late).await.unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        let begun = late.message().starts_with("the call ran out of time; ");
        let not_begun = late
            .message()
            .starts_with("the call ran out of time before");
        assert!(begun || not_begun, "{late}");
        let list = binding.ask(ListTasks, json!({})).await.unwrap();
        if begun && list["totalSize"] != 0 {
            break list;
        }
    };
    goes_on_and_is_cancelled(&mut *binding, &list["tasks"][0]["id"]).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_cut_off_and_another_one_follows_its_task() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let client = A2aServiceClient::with_origin(patient(&server).await, origin());
    let (begun, _) = first_until_end(async || {
        let message = send_message(runs(json!([endless()])));
        let request = within("1S", with_version(message, None));
        client.clone().send_streaming_message(request).await
    })
    .await;
    let Some(Payload::Task(task)) = begun.payload else {
        panic!("a task comes first: {begun:?}");
    };
    let (follows, _) = first_until_end(async || {
        let (tenant, id) = (String::new(), task.id.clone());
        let request = with_version(pb::SubscribeToTaskRequest { tenant, id }, None);
        client
            .clone()
            .subscribe_to_task(within("1S", request))
            .await
    })
    .await;
    assert!(
        matches!(&follows.payload, Some(Payload::Task(it)) if it.id == task.id),
        "{follows:?}"
    );
    let mut binding = all(&server.api.url).await.remove(0);
    goes_on_and_is_cancelled(&mut *binding, &json!(task.id)).await;
    server.stop().await;
}
