//! What is published: accepted, refused, repeated.

use super::{Bus, NOW, next, one, task};
use prost_types::Timestamp;
use prost_types::value::Kind;
use serde_json::json;
use taskledger::clock::{Clock as _, SystemClock};
use taskledger_eventbus::{
    PublishTaskProgressRequest, PublishTaskRequest, PublishTaskResultRequest, TaskMessage,
    TaskProgress, TaskResult, TaskStatus,
};
use tonic::Code;

/// What is wrong, or other, in a message.
type Change = fn(&mut TaskMessage);

/// How the refusal begins, and what is wrong with the message.
type Faulty<T> = (&'static str, fn(&mut T));

#[tokio::test]
async fn a_message_without_what_it_needs_is_refused_in_the_known_words() {
    let bus = Bus::start().await;
    let mut client = bus.client.clone();
    let none = client
        .publish_task(PublishTaskRequest { task: None })
        .await
        .unwrap_err();
    assert_eq!(
        (none.code(), none.message()),
        (Code::InvalidArgument, "task cannot be nil")
    );
    let none = client
        .publish_task_result(PublishTaskResultRequest { result: None })
        .await
        .unwrap_err();
    assert_eq!(none.message(), "result cannot be nil");
    let none = client
        .publish_task_progress(PublishTaskProgressRequest { progress: None })
        .await
        .unwrap_err();
    assert_eq!(none.message(), "progress cannot be nil");
    let faulty: [(&str, Change); 19] = [
        ("task_id cannot be empty", |t| t.task_id.clear()),
        ("task_type cannot be empty", |t| t.task_type.clear()),
        ("requester_agent_id cannot be empty", |t| {
            t.requester_agent_id.clear()
        }),
        ("created_at cannot be empty", |t| t.created_at = None),
        ("created_at: ", |t| {
            t.created_at = Some(Timestamp {
                seconds: i64::MAX,
                nanos: 0,
            })
        }),
        ("deadline: ", |t| {
            t.deadline = Some(Timestamp {
                seconds: 0,
                nanos: -1,
            })
        }),
        ("priority: 99 ", |t| t.priority = 99),
        ("parameters.n: ", |t| {
            t.parameters = Some(one("n", Kind::NumberValue(f64::NAN)))
        }),
        ("parameters.n: ", |t| {
            t.parameters = Some(one("n", Kind::NumberValue(1e17)))
        }),
        ("task_id: ", |t| t.task_id = "x".repeat(2000)),
        ("task_id: 1200 bytes", |t| t.task_id = "\u{e9}".repeat(600)),
        ("parameters: Too large", |t| {
            t.parameters = Some(one("k", Kind::StringValue("x".repeat(2_000_000))));
        }),
        ("task_type: an executor of the server has this name", |t| {
            t.task_type = "sleep_executor".to_owned();
        }),
        ("task_type: ", |t| t.task_type = "x".repeat(300)),
        ("task_type: ", |t| t.task_type = "a@b".to_owned()),
        ("task_type: `@` and `*` ", |t| t.task_type = "a*".to_owned()),
        ("task_id: ", |t| t.task_id = "a\u{0}".to_owned()),
        ("metadata.user_id: ", |t| {
            t.metadata = Some(one("user_id", Kind::BoolValue(true)))
        }),
        ("metadata.parent_id: missing; ", |t| {
            let value = prost_types::Value {
                kind: Some(Kind::StringValue("other".to_owned())),
            };
            let list = prost_types::ListValue {
                values: vec![value],
            };
            t.metadata = Some(one("dependencies", Kind::ListValue(list)));
        }),
    ];
    for (text, fault) in faulty {
        let mut message = task("t", "x");
        fault(&mut message);
        let refused = bus.publish(message).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().starts_with(text), "{text}: {refused}");
    }
    let list = bus.server.api.call("tasks.list", json!({})).await;
    assert_eq!(list["tasks"], json!([]), "nothing of it was recorded");
}

#[tokio::test]
async fn results_and_progress_without_what_they_need_are_refused() {
    let bus = Bus::start().await;
    for (id, agent, text) in [
        ("", "a", "task_id cannot be empty"),
        ("t", "", "executor_agent_id cannot be empty"),
    ] {
        let refused = bus.complete(agent, id).await.unwrap_err();
        assert_eq!(
            (refused.code(), refused.message()),
            (Code::InvalidArgument, text)
        );
    }
    for percent in [-5, 101, 150] {
        let refused = bus.progress("a", "t", percent).await.unwrap_err();
        assert!(
            refused.message().starts_with("progress_percentage: "),
            "{refused}"
        );
    }
    for status in [
        TaskStatus::Unspecified,
        TaskStatus::Pending,
        TaskStatus::InProgress,
    ] {
        let refused = bus.end("a", "t", status, None, "").await.unwrap_err();
        assert!(refused.message().starts_with("status: "), "{refused}");
    }
    let mut client = bus.client.clone();
    let result = |change: fn(&mut TaskResult)| {
        let mut result = TaskResult {
            task_id: "t".to_owned(),
            status: TaskStatus::Completed.into(),
            executor_agent_id: "a".to_owned(),
            completed_at: Some(NOW),
            ..TaskResult::default()
        };
        change(&mut result);
        PublishTaskResultRequest {
            result: Some(result),
        }
    };
    let faulty: [Faulty<TaskResult>; 4] = [
        ("completed_at cannot be empty", |it| it.completed_at = None),
        ("status: ", |it| it.status = 6),
        ("result.n: ", |it| {
            it.result = Some(one("n", Kind::NumberValue(f64::INFINITY)));
        }),
        ("execution_metadata.n: ", |it| {
            it.execution_metadata = Some(one("n", Kind::NumberValue(f64::NAN)));
        }),
    ];
    for (text, fault) in faulty {
        let refused = client.publish_task_result(result(fault)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().starts_with(text), "{text}: {refused}");
    }
    let progress = |change: fn(&mut TaskProgress)| {
        let mut progress = TaskProgress {
            task_id: "t".to_owned(),
            executor_agent_id: "a".to_owned(),
            updated_at: Some(NOW),
            ..TaskProgress::default()
        };
        change(&mut progress);
        PublishTaskProgressRequest {
            progress: Some(progress),
        }
    };
    let faulty: [Faulty<TaskProgress>; 3] = [
        ("updated_at cannot be empty", |it| it.updated_at = None),
        ("status: ", |it| it.status = TaskStatus::Completed.into()),
        ("progress_data.n: ", |it| {
            it.progress_data = Some(one("n", Kind::NumberValue(f64::NAN)));
        }),
    ];
    for (text, fault) in faulty {
        let refused = client.publish_task_progress(progress(fault)).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().starts_with(text), "{text}: {refused}");
    }
    let refused = bus.complete("a", "unknown").await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let unknown = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11";
    let refused = bus.progress("a", unknown, 1).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
}

#[tokio::test]
async fn an_equal_publication_is_one_task_and_another_body_is_refused() {
    let bus = Bus::start().await;
    bus.publish(task("t", "x")).await.unwrap();
    // Publishers that repeat themselves write these anew.
    let mut again = task("t", "x");
    again.created_at = Some(Timestamp {
        seconds: NOW.seconds + 60,
        nanos: 0,
    });
    again.metadata = Some(one("published_at", Kind::StringValue("later".to_owned())));
    bus.publish(again).await.unwrap();
    let others: [Change; 4] = [
        |t| t.task_type = "y".to_owned(),
        |t| t.parameters = None,
        |t| t.priority = 4,
        |t| {
            t.deadline = Some(Timestamp {
                seconds: 4_000_000_000,
                nanos: 0,
            })
        },
    ];
    for change in others {
        let mut other = task("t", "x");
        change(&mut other);
        let refused = bus.publish(other).await.unwrap_err();
        assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");
    }
    let mut of_another = task("t", "x");
    of_another.requester_agent_id = "another".to_owned();
    bus.publish(of_another).await.unwrap();
    let list = bus.server.api.call("tasks.list", json!({})).await;
    assert_eq!(list["tasks"].as_array().unwrap().len(), 2, "{list}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_publications_at_once_are_one_task_and_another_body_is_refused() {
    let bus = Bus::start().await;
    let group = json!({"tasks": [{"id": "group", "name": "group"}, {"name": "first", "parent_id": "group",
        "schemas": {"type": "remote", "method": "y"}}]});
    let started = bus.server.api.call("tasks.execute", group).await;
    let parent = started["root_task_id"].as_str().unwrap();
    for n in 0..30 {
        #[allow(clippy::disallowed_methods, reason = "an id that nobody else has")]
        let id = match n % 2 {
            0 => format!("t{n}"),
            _ => uuid::Uuid::new_v4().to_string(),
        };
        let mut message = task(&id, "x");
        match n % 3 {
            0 => {}
            1 => message.deadline = Some(NOW),
            _ => {
                let parent = Kind::StringValue(parent.to_owned());
                message.metadata = Some(one("parent_id", parent));
            }
        }
        let other = TaskMessage {
            priority: 4,
            ..message.clone()
        };
        let equal = (0..8).map(|_| bus.publish(message.clone()));
        for answer in futures_util::future::join_all(equal).await {
            answer.unwrap();
        }
        let refused = bus.publish(other).await.unwrap_err();
        assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");
    }
    let count = json!({"limit": 100});
    let list = bus.server.api.call("tasks.list", count).await;
    assert_eq!(list["tasks"].as_array().unwrap().len(), 32, "{list}");
}

#[tokio::test]
async fn a_requester_names_its_own_tasks_by_their_ids_where_tasks_depend_on_others() {
    let bus = Bus::start().await;
    let group = json!({"tasks": [{"id": "group", "name": "group"}, {"name": "first", "parent_id": "group",
        "schemas": {"type": "remote", "method": "y"}}]});
    let started = bus.server.api.call("tasks.execute", group).await;
    let parent = Kind::StringValue(started["root_task_id"].as_str().unwrap().to_owned());
    let place = |dependency: Option<&str>| {
        let mut metadata = one("parent_id", parent.clone());
        if let Some(id) = dependency {
            let value = prost_types::Value {
                kind: Some(Kind::StringValue(id.to_owned())),
            };
            let values = vec![value];
            let list = Kind::ListValue(prost_types::ListValue { values });
            let list = one("dependencies", list);
            metadata.fields.extend(list.fields);
        }
        Some(metadata)
    };
    let mut stream = bus.subscribe("a", &["x"]).await;
    let mut first = task("first of mine", "x");
    first.metadata = place(None);
    bus.publish(first).await.unwrap();
    let mut second = task("second of mine", "x");
    second.metadata = place(Some("first of mine"));
    bus.publish(second.clone()).await.unwrap();
    bus.publish(second).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "first of mine");
    super::nothing(&mut stream).await;
    bus.complete("a", "first of mine").await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "second of mine");
    // What can never run is told once, whatever ends it later.
    let now = SystemClock::default().now();
    let mut never = task("never", "x");
    never.metadata = place(Some("second of mine"));
    never.deadline = Some(Timestamp {
        seconds: now.0 / 1_000_000 + 4,
        nanos: 0,
    });
    bus.publish(never).await.unwrap();
    bus.end("a", "second of mine", TaskStatus::Failed, None, "no")
        .await
        .unwrap();
    let mut results = bus.results("requester", &[]).await;
    for (id, reason) in [
        ("first of mine", ""),
        ("second of mine", "no"),
        (
            "never",
            "DEPENDENCY_FAILED: `second of mine` failed, so this task cannot run",
        ),
    ] {
        let told = next(&mut results).await;
        assert_eq!((&*told.task_id, &*told.error_message), (id, reason));
    }
    let api = &bus.server.api;
    api.eventually("the deadline has passed", async || {
        let ended = json!({"status": "cancelled"});
        let list = api.call("tasks.list", ended).await;
        (list["total"] == 1).then_some(())
    })
    .await;
    super::nothing(&mut results).await;
    let mut unknown = task("unknown", "x");
    unknown.metadata = place(Some("of nobody"));
    let refused = bus.publish(unknown).await.unwrap_err();
    let text = "metadata.dependencies";
    assert!(refused.message().starts_with(text), "{refused}");
}

#[tokio::test]
async fn whole_numbers_that_a_double_cannot_hold_are_given_as_texts() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    let create = json!({"tasks": [{"name": "n", "inputs": {"exact": 9_007_199_254_740_992_u64, "beyond": 9_007_199_254_740_993_u64},
        "schemas": {"type": "remote", "method": "x"}}]});
    bus.server.api.call("tasks.execute", create).await;
    let given = next(&mut stream).await.parameters.unwrap().fields;
    assert_eq!(
        given["exact"].kind,
        Some(Kind::NumberValue(9_007_199_254_740_992.0))
    );
    let text = Kind::StringValue("9007199254740993".to_owned());
    assert_eq!(given["beyond"].kind, Some(text));
}

#[tokio::test]
async fn what_was_published_is_known_after_a_kill() {
    let bus = Bus::start().await;
    bus.publish(task("t", "x")).await.unwrap();
    let bus = bus.killed().await;
    bus.publish(task("t", "x")).await.unwrap();
    let mut stream = bus.subscribe("a", &["x"]).await;
    assert_eq!(next(&mut stream).await.task_id, "t");
    super::nothing(&mut stream).await;
}

#[tokio::test]
async fn a_deadline_that_has_passed_is_accepted_and_never_handed_out() {
    let bus = Bus::start().await;
    let mut stream = bus.subscribe("a", &["x"]).await;
    let mut late = task("late", "x");
    late.deadline = Some(NOW);
    late.created_at = Some(NOW);
    let mut late_uuid = late.clone();
    late_uuid.task_id = "6f0f1b1e-4c55-4d1c-9a7e-0d5a3f0e9d11".to_owned();
    late_uuid.deadline = Some(Timestamp {
        seconds: 1,
        nanos: 0,
    });
    bus.publish(late_uuid.clone()).await.unwrap();
    bus.publish(late_uuid.clone()).await.unwrap();
    super::nothing(&mut stream).await;
    let found = bus
        .server
        .api
        .call("tasks.get", json!({"task_id": late_uuid.task_id}))
        .await;
    assert_eq!(
        (&found["status"], &found["error"]),
        (&json!("cancelled"), &json!("DEADLINE_EXCEEDED"))
    );
}

#[tokio::test]
async fn metadata_places_a_task_below_another_one() {
    let bus = Bus::start().await;
    let api = &bus.server.api;
    let group = json!({"tasks": [{"id": "group", "name": "group"}, {"id": "first", "name": "first", "parent_id": "group",
        "schemas": {"type": "remote", "method": "y"}}]});
    let started = api.call("tasks.execute", group).await;
    let root = &started["root_task_id"];
    let children = api.call("tasks.list", json!({"parent_id": root})).await;
    let first = &children["tasks"][0]["id"];
    let text = |it: &serde_json::Value| prost_types::Value {
        kind: Some(Kind::StringValue(it.as_str().unwrap().to_owned())),
    };
    let list = prost_types::ListValue {
        values: vec![text(first)],
    };
    let mut message = task("t", "x");
    let mut metadata = one("parent_id", text(root).kind.unwrap());
    metadata.fields.insert(
        "dependencies".to_owned(),
        prost_types::Value {
            kind: Some(Kind::ListValue(list)),
        },
    );
    message.metadata = Some(metadata);
    bus.publish(message.clone()).await.unwrap();
    bus.publish(message).await.unwrap();
    let children = api.call("tasks.list", json!({"parent_id": root})).await;
    assert_eq!(children["tasks"].as_array().unwrap().len(), 2, "{children}");
    let mut stream = bus.subscribe("a", &["x", "y"]).await;
    let given = next(&mut stream).await;
    assert_eq!(given.task_id, first.as_str().unwrap());
    super::nothing(&mut stream).await;
    bus.complete("a", &given.task_id).await.unwrap();
    assert_eq!(next(&mut stream).await.task_id, "t");
}
