//! Push notifications: configurations on every binding, what is sent, and to whom nothing is said of them.

use super::binding::{Binding, all};
use super::{echo, endless, message, question, runs};
use crate::isolation::world::World;
use crate::webhooks::in_both_places;
use crate::webhooks::site::arguments;
use serde_json::{Value, json};
use taskledger_a2a::Operation::{
    self, CancelTask, CreateTaskPushNotificationConfig as Create,
    DeleteTaskPushNotificationConfig as Delete, GetTaskPushNotificationConfig as Get,
    ListTaskPushNotificationConfigs as List, SendMessage,
};
use taskledger_testkit::receiver::{Behaviour, Receiver, Request, Then};
use taskledger_testkit::server::{Folder, Server};

in_both_places!(
    every_change_is_reported_once_in_order_with_the_headers_of_the_configuration,
    what_was_not_sent_before_a_kill_is_sent_by_the_next_server,
);

async fn started(folder: &Folder, more: &[&str]) -> Server {
    let all = arguments(folder);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    Server::start_with(folder, &[&all, more].concat()).await
}

fn http() -> reqwest::Client {
    taskledger::tls::client().build().unwrap()
}

fn at(server: &Server) -> &str {
    server.api.url.trim_end_matches('/')
}

/// A message whose task is answered as soon as it exists, with a receiver.
fn reported(tasks: Value, config: Value) -> Value {
    let mut request = runs(tasks);
    request["configuration"] =
        json!({"returnImmediately": true, "taskPushNotificationConfig": config});
    request
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

/// What the requests tell, in words.
fn told(requests: &[Request]) -> Vec<String> {
    let word = |item: Value| {
        let update = item["statusUpdate"]["status"]["state"].as_str();
        let made = item["artifactUpdate"]["artifact"]["artifactId"].as_str();
        update.or(made).unwrap_or("?").to_owned()
    };
    requests.iter().map(body).map(word).collect()
}

async fn ended(binding: &mut dyn Binding, task: &Value) {
    let read = json!({"id": task});
    let cancelled = binding.ask(CancelTask, read).await.unwrap();
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configurations_are_kept_by_their_ids_on_every_binding() {
    let folder = Folder::new();
    let server = started(&folder, &[]).await;
    let receiver = Receiver::start().await;
    let url = receiver.url("/a");
    for mut binding in all(&server.api.url).await {
        let binding = &mut *binding;
        let given = json!({"id": "first", "url": url, "token": "t0ken-t0ken",
            "authentication": {"scheme": "Bearer", "credentials": "hunter2-hunter2"}});
        let sent = reported(json!([endless()]), given);
        let sent = binding.ask(SendMessage, sent).await.unwrap();
        let task = sent["task"]["id"].clone();
        let of = |id: &str| json!({"taskId": task, "id": id});

        // It is there once the message was answered, without what is secret.
        let found = binding.ask(Get, of("first")).await.unwrap();
        let expected = json!({"id": "first", "taskId": task, "url": url,
            "authentication": {"scheme": "Bearer"}});
        assert_eq!(found, expected, "{}", binding.name());

        // Another one gets a name of its own; one of the same name takes its place.
        let second = json!({"taskId": task, "url": url});
        let second = binding.ask(Create, second).await.unwrap();
        assert!(second["id"].as_str().is_some_and(|id| !id.is_empty()));
        let elsewhere = json!({"taskId": task, "id": "first", "url": receiver.url("/b")});
        let replaced = binding.ask(Create, elsewhere.clone()).await.unwrap();
        assert_eq!(replaced, elsewhere);
        let listed = binding.ask(List, json!({"taskId": task})).await.unwrap();
        let urls = listed["configs"].as_array().unwrap();
        assert_eq!(urls, &[elsewhere, second.clone()], "{}", binding.name());

        // Deleting it twice is deleting it.
        for _ in 0..2 {
            let deleted = binding.ask(Delete, of("first")).await.unwrap();
            assert_eq!(deleted, json!({}), "{}", binding.name());
        }
        let gone = binding.ask(Get, of("first")).await.unwrap_err();
        assert_eq!(gone.reasons[0], "TASK_NOT_FOUND");

        // A task that has ended takes configurations, and keeps those that it had.
        ended(binding, &task).await;
        let late = json!({"taskId": task, "id": "late", "url": url});
        assert_eq!(binding.ask(Create, late.clone()).await.unwrap(), late);
        let listed = binding.ask(List, json!({"taskId": task})).await.unwrap();
        assert_eq!(listed["configs"].as_array().unwrap(), &[second, late]);

        // The same id may name a configuration of another task.
        let other = reported(json!([endless()]), json!({"id": "late", "url": url}));
        let other = binding.ask(SendMessage, other).await.unwrap();
        let other = other["task"]["id"].clone();
        ended(binding, &other).await;

        // What is wrong is told with its field, and nothing is begun.
        for (config, field) in [
            (json!({"url": "http://10.0.0.1/"}), "url"),
            (json!({"url": "nowhere"}), "url"),
            (json!({"url": url, "token": "a\nb"}), "token"),
            (
                json!({"url": url, "authentication": {"scheme": "two words"}}),
                "authentication.scheme",
            ),
        ] {
            let request = reported(json!([echo("a")]), config.clone());
            let refused = binding.ask(SendMessage, request).await.unwrap_err();
            let at = format!("configuration.taskPushNotificationConfig.{field}");
            assert_eq!(refused.fields, [at], "{} {config}", binding.name());
            let mut config = config;
            config["taskId"] = task.clone();
            let refused = binding.ask(Create, config).await.unwrap_err();
            assert_eq!(refused.fields, [field], "{}", binding.name());
        }
    }
    server.stop().await;
}

async fn every_change_is_reported_once_in_order_with_the_headers_of_the_configuration(
    folder: Folder,
) {
    let server = started(&folder, &[]).await;
    let receiver = Receiver::start().await;
    let mut bindings = all(&server.api.url).await;
    let binding = &mut *bindings[0];
    let config = json!({"url": receiver.url("/talk"), "token": "t0ken-t0ken",
        "authentication": {"scheme": "Basic", "credentials": "abcdefgh"}});
    let tasks = json!([
        {"id": "root", "name": "root", "schemas": {"method": "echo_executor"}, "inputs": {"n": 1}},
        {"id": "ask", "name": "ask", "parent_id": "root", "schemas": {"method": "approval_executor"},
            "inputs": {"question": "Which colour?", "response_type": "text"}}]);
    let sent = reported(tasks, config);
    let sent = binding.ask(SendMessage, sent).await.unwrap();
    let (task, context) = (
        sent["task"]["id"].clone(),
        sent["task"]["contextId"].clone(),
    );
    let before = receiver.wait_for(3).await;
    let words = told(&before);
    assert!(
        words.contains(&"TASK_STATE_INPUT_REQUIRED".to_owned()),
        "{words:?}"
    );
    let asked = before
        .iter()
        .map(body)
        .find(|it| it["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED");
    let asked = asked.unwrap();
    let update = &asked["statusUpdate"];
    assert_eq!((&update["taskId"], &update["contextId"]), (&task, &context));
    assert_eq!(
        update["status"]["message"]["parts"][0]["text"],
        "Which colour?"
    );

    // Another receiver joins, and is told what happens from then on.
    let other = Receiver::start().await;
    let joins = json!({"taskId": task, "url": other.url("/other")});
    binding.ask(Create, joins).await.unwrap();
    let mut answer = message(json!([{"text": "red"}]));
    answer["message"]["taskId"] = task.clone();
    let ended = binding.ask(SendMessage, answer).await.unwrap();
    assert_eq!(
        ended["task"]["status"]["state"], "TASK_STATE_COMPLETED",
        "{ended}"
    );
    let ending = ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"];
    let others = other.wait_for(3).await;
    let words = told(&others);
    assert_eq!(
        (
            words.first().unwrap().as_str(),
            words.last().unwrap().as_str()
        ),
        (ending[0], ending[1])
    );
    let all = receiver.wait_for(before.len() + others.len()).await;
    let words = told(&all);
    assert_eq!(&words[before.len()..], told(&others));
    assert_eq!(
        words.iter().filter(|it| *it == "result").count(),
        1,
        "{words:?}"
    );
    for request in &all {
        assert_eq!(request.header("content-type"), Some("application/a2a+json"));
        assert_eq!(request.header("authorization"), Some("Basic abcdefgh"));
        assert_eq!(
            request.header("x-a2a-notification-token"),
            Some("t0ken-t0ken")
        );
    }
    assert!(others[0].header("authorization").is_none());
    assert!(others[0].header("x-a2a-notification-token").is_none());
    let made = body(&all[words.iter().position(|it| it == "result").unwrap()]);
    let artifact = &made["artifactUpdate"]["artifact"];
    assert_eq!(
        artifact["parts"], ended["task"]["artifacts"][0]["parts"],
        "{made}"
    );
    server.stop().await;
}

async fn what_was_not_sent_before_a_kill_is_sent_by_the_next_server(folder: Folder) {
    let server = started(&folder, &[]).await;
    let receiver = Receiver::start().await;
    receiver.answers([Behaviour::raw("", Then::Hang)]);
    let mut bindings = all(&server.api.url).await;
    let sent = reported(
        json!([question()]),
        json!({"id": "a", "url": receiver.url("/")}),
    );
    let sent = bindings[0].ask(SendMessage, sent).await.unwrap();
    let task = sent["task"]["id"].clone();
    receiver.wait_for(1).await;
    server.kill().await;
    if folder.url().is_some() {
        // As if the minute were over for which other servers leave alone what this one held.
        let table = "taskledger_webhooks.endpoints";
        let sql = format!("UPDATE {table} SET lease_until = 0 WHERE lease_until IS NOT NULL");
        folder.execute(&sql).await;
    }

    let server = started(&folder, &[]).await;
    let mut bindings = all(&server.api.url).await;
    let binding = &mut *bindings[0];
    let found = json!({"taskId": task, "id": "a"});
    binding.ask(Get, found).await.unwrap();
    let mut answer = message(json!([{"text": "red"}]));
    answer["message"]["taskId"] = task.clone();
    binding.ask(SendMessage, answer).await.unwrap();
    let requests = receiver.wait_for(6).await;
    let words = told(&requests);
    // What was under way is sent again; everything else once, in order.
    assert_eq!(requests[0].body, requests[1].body);
    let expected = [
        "TASK_STATE_WORKING",
        "TASK_STATE_INPUT_REQUIRED",
        "TASK_STATE_WORKING",
        "result",
        "TASK_STATE_COMPLETED",
    ];
    assert_eq!(words[1..], expected);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_repeated_under_its_key_is_reported_once() {
    let folder = Folder::new();
    let server = started(&folder, &[]).await;
    let receiver = Receiver::start().await;
    let sent = reported(json!([endless()]), json!({"url": receiver.url("/")}));
    let send = async || {
        let request = http().post(format!("{}/a2a/rest/message:send", at(&server)));
        let request = request
            .header("a2a-version", "1.0")
            .header("idempotency-key", "k-1");
        let answer = request.json(&sent).send().await.unwrap();
        answer.json::<Value>().await.unwrap()["task"]["id"].clone()
    };
    let (first, second) = (send().await, send().await);
    assert_eq!(first, second);
    let mut bindings = all(&server.api.url).await;
    let listed = bindings[0]
        .ask(List, json!({"taskId": first}))
        .await
        .unwrap();
    assert_eq!(listed["configs"].as_array().unwrap().len(), 1, "{listed}");
    ended(&mut *bindings[0], &first).await;
    let words = told(&receiver.wait_for(2).await);
    // Nothing says that it worked again before it was cancelled.
    assert_eq!(words, ["TASK_STATE_WORKING", "TASK_STATE_CANCELED"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_push_notifications_all_of_it_is_refused_and_the_card_says_so() {
    let folder = Folder::new();
    let server = started(&folder, &["--a2a-push", "off"]).await;
    let card = http().get(format!("{}/.well-known/agent-card.json", at(&server)));
    let card: Value = card.send().await.unwrap().json().await.unwrap();
    assert_eq!(card["capabilities"]["pushNotifications"], false);
    let unknown = "00000000-0000-4000-8000-000000000000";
    let config = json!({"url": "https://a.example/"});
    for mut binding in all(&server.api.url).await {
        for (operation, request) in [
            (SendMessage, reported(json!([echo("a")]), config.clone())),
            (
                Create,
                json!({"taskId": unknown, "url": "https://a.example/"}),
            ),
            (Get, json!({"taskId": unknown, "id": "a"})),
            (List, json!({"taskId": unknown})),
            (Delete, json!({"taskId": unknown, "id": "a"})),
        ] {
            let refused = binding.ask(operation, request).await.unwrap_err();
            assert_eq!(refused.reasons[0], "PUSH_NOTIFICATION_NOT_SUPPORTED");
        }
        let listed = binding.ask(Operation::ListTasks, json!({})).await.unwrap();
        assert_eq!(listed["totalSize"], 0, "nothing was begun");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configurations_of_others_do_not_exist() {
    let world = World::start().await;
    let call = async |token: &str, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = world.client.post(format!("{}/a2a", world.url()));
        let request = request.header("a2a-version", "1.0").bearer_auth(token);
        let answer = request.json(&body).send().await.unwrap();
        answer.json::<Value>().await.unwrap()
    };
    let config = json!({"id": "a", "url": "https://a.example/"});
    let sent = call("ann", "SendMessage", reported(json!([endless()]), config)).await;
    let task = sent["result"]["task"]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{sent}"))
        .to_owned();
    let absent = "00000000-0000-4000-8000-000000000000";
    for (operation, mut params) in [
        (Create, json!({"id": "b", "url": "https://a.example/"})),
        (Get, json!({"id": "a"})),
        (List, json!({})),
        (Delete, json!({"id": "a"})),
    ] {
        let mut answers = Vec::new();
        for of in [&*task, absent] {
            params["taskId"] = json!(of);
            let answer = call("bob", operation.name(), params.clone()).await;
            assert_eq!(answer["error"]["code"], -32001, "{answer}");
            answers.push(answer.to_string().replace(of, "ID"));
        }
        assert_eq!(answers[0], answers[1], "{operation:?}");
    }
    // Reading is not changing.
    let params = json!({"taskId": task, "id": "a"});
    let read = call("reader", Get.name(), params.clone()).await;
    assert_eq!(read["result"]["id"], "a", "{read}");
    let refused = call("reader", Delete.name(), params.clone()).await;
    assert_eq!(refused["error"]["data"][0]["reason"], "PERMISSION_DENIED");
    let kept = call("ann", Get.name(), params).await;
    assert_eq!(kept["result"]["url"], "https://a.example/", "{kept}");
}
