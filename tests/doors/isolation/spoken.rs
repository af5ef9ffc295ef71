//! What credentials do not allow beyond their scopes: methods, agents and documents of others. It is noted as a
//! refusal. What an agent published for somebody else it reads in its inbox.

use super::asked::{Asked, answer, shown};
use super::audited::{audited, told};
use super::bus;
use super::inboxes::{self, KIND, NOW, client, with};
use super::matrix::given_object;
use super::world::{World, user, usual};
use prost_types::Struct;
use serde_json::json;
use std::sync::Arc;
use taskledger::application::api::UseCase;
use taskledger_a2a::Operation;
use taskledger_auth::Scopes;
use taskledger_eventbus::{PublishTaskRequest, SubscribeToTaskResultsRequest, TaskMessage};

const PUBLISHED: &str = "660e8400-e29b-41d4-a716-446655440001";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_speaks_for_the_agent_of_another_is_noted() {
    let world = World::start().await;
    let hers = given_object(&world, "ann").await;
    for (case, action) in [
        (UseCase::CreateTasks, "task.execute"),
        (UseCase::ClaimTasks, "task.claim"),
        (UseCase::RenewLease, "task.work"),
        (UseCase::FailTask, "task.work"),
        (UseCase::ReadInbox, "flow.read"),
    ] {
        let asked = if case == UseCase::ReadInbox {
            let rows = inboxes::rows(&hers.agent, &hers.agent, &hers.published);
            rows.into_iter().map(Asked::Inbox).next()
        } else {
            let rows = bus::rows(case, &hers, &hers);
            rows.into_iter().map(Asked::Bus).next()
        };
        let asked = asked.unwrap();
        let name = format!("mallory-{case:?}").to_lowercase();
        world.known.put(&name, user(&name, usual()));
        let (status, text) = answer(&world, Some(&name), &asked).await;
        assert_eq!(status, 403, "{}: {text}", shown(&asked));
        let rows = audited(&world, &name, action).await;
        let expected = [[&json!(hers.agent), &json!("refused"), &json!(null)]];
        assert_eq!(told(&rows), expected, "{}", shown(&asked));
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_of_other_methods_and_runs_of_documents_of_others_are_noted() {
    let world = World::start().await;
    let narrowed = user("narrowed", usual()).narrowed(Some(Arc::from([Arc::from("m1")])));
    world.known.put("narrowed", narrowed);
    let claim = json!({"methods": ["m2"], "wait_seconds": 0});
    world.refusal("narrowed", "tasks.claim", claim).await;
    let rows = audited(&world, "narrowed", "task.claim").await;
    assert_eq!(rows[0]["outcome"], "refused", "{rows:?}");
    for (execute, action) in [(true, "task.execute"), (false, "task.create")] {
        let run = json!({"name": "Report", "owner": "bob", "execute": execute});
        world.refusal("ann", "workflows.run", run).await;
        let rows = audited(&world, "ann", action).await;
        let detail = json!({"count": 1, "scope": "users:any"});
        assert_eq!(
            (&rows[0]["object"], &rows[0]["detail"]),
            (&json!("Report"), &detail)
        );
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inbox_shows_results_of_others_as_a_read_of_their_flow() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let mut bus = client(&world).await;
    let fields = [("user_id".to_owned(), "ann".to_owned().into())].into();
    let task = Some(TaskMessage {
        task_id: PUBLISHED.to_owned(),
        task_type: KIND.to_owned(),
        requester_agent_id: "auditor".to_owned(),
        created_at: Some(NOW),
        metadata: Some(Struct { fields }),
        ..TaskMessage::default()
    });
    let publish = with(&world, Some("auditor"), PublishTaskRequest { task });
    bus.publish_task(publish).await.unwrap();
    let rows = audited(&world, "auditor", "task.execute").await;
    let [object, _, owner] = told(&rows)[0];
    assert_eq!((object, owner), (&json!(PUBLISHED), &json!("ann")));
    assert!(audited(&world, "auditor", "flow.read").await.is_empty());
    let cancel = json!({"task_id": PUBLISHED});
    world.call("ann", "tasks.cancel", cancel).await;
    let asked = SubscribeToTaskResultsRequest {
        requester_agent_id: "auditor".to_owned(),
        ..SubscribeToTaskResultsRequest::default()
    };
    let asked = with(&world, Some("auditor"), asked);
    let results = bus.subscribe_to_task_results(asked).await.unwrap();
    let told = results.into_inner().message().await.unwrap().unwrap();
    assert_eq!(told.task_id, PUBLISHED);
    let rows = audited(&world, "auditor", "flow.read").await;
    assert_eq!(rows[0]["object"], PUBLISHED, "{rows:?}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_receivers_say_their_host_and_whether_they_are_set_or_removed() {
    let world = World::start().await;
    world.known.put("auditor", user("auditor", Scopes::all()));
    let hers = given_object(&world, "ann").await;
    let url = "https://canary:canary@receiver.example.com:8443/canary?canary";
    let named = json!({"taskId": hers.run, "id": "c"});
    let config =
        json!({"taskId": hers.run, "id": "c", "url": "https://receiver.example.com/canary"});
    for (operation, request) in [
        (Operation::CreateTaskPushNotificationConfig, config),
        (Operation::DeleteTaskPushNotificationConfig, named),
    ] {
        let asked = Asked::A2a(operation, request);
        answer(&world, Some("auditor"), &asked).await;
    }
    let rows = audited(&world, "auditor", "run.report").await;
    let host = "receiver.example.com";
    let set = json!({"owner": "ann", "change": "set", "name": "c", "host": host});
    let removed = json!({"owner": "ann", "change": "removed", "name": "c"});
    let details: Vec<_> = rows.iter().map(|row| &row["detail"]).collect();
    assert!(
        details.contains(&&set) && details.contains(&&removed),
        "{rows:?}"
    );
    let hook = json!({"url": format!("https://{host}/canary")});
    let hook = world.call("ann", "webhooks.create", hook).await;
    let rows = audited(&world, "ann", "webhook.create").await;
    assert_eq!(rows[0]["detail"]["host"], host, "{rows:?}");
    // What an address must not have is refused behind its row, which shows the host alone.
    let update = json!({"id": hook["id"], "url": url});
    world.ask(Some("ann"), "webhooks.update", &update).await;
    let rows = audited(&world, "ann", "webhook.update").await;
    assert!(!rows.is_empty());
    for row in &rows {
        assert_eq!(row["detail"]["host"], format!("{host}:8443"), "{row}");
        assert!(!row.to_string().contains("canary"), "{row}");
    }
    world.close().await;
}
