//! The matrix: use case x caller x object. Each use case has a row; one without does not compile.

use super::a2a::{self, Named};
use super::inboxes::{self, Inbox};
use super::world::{Callers, Nodes, World};
use serde_json::{Value, json};
use taskledger::application::api::UseCase;
use taskledger::clock::{Clock, SystemClock};
use taskledger_a2a::Operation;
use taskledger_auth::Scope;

/// Ids by which a use case may name something.
#[derive(Debug, Clone)]
struct Object {
    root: String,
    child: String,
    webhook: String,
    delivery: i64,
    token: String,
    /// A task that its owner has claimed, and the lease.
    claimed: String,
    lease: String,
    /// The run of that task.
    run: String,
    /// The agent that it has published tasks as.
    agent: String,
    /// Two of those, which `inboxes::fill` publishes: one that has ended, and one that says how far it is.
    published: [String; 2],
}

impl Object {
    /// Ids that nothing has.
    fn absent() -> Self {
        let clock = SystemClock::default();
        let fresh = || clock.uuid().to_string();
        Self {
            root: fresh(),
            child: fresh(),
            webhook: fresh(),
            delivery: 999_999_999,
            token: "aaaaaaaaaaaaaaaa".to_owned(),
            claimed: fresh(),
            lease: fresh(),
            run: fresh(),
            agent: "nobody-else".to_owned(),
            published: [fresh(), fresh()],
        }
    }

    /// A text without the ids, so that answers about different objects can be compared.
    fn without(&self, text: &str) -> String {
        let delivery = format!(r#""actual":{}"#, self.delivery);
        text.replace(&self.root, "ROOT")
            .replace(&self.child, "CHILD")
            .replace(&self.webhook, "WEBHOOK")
            .replace(&self.token, "TOKEN")
            .replace(&self.claimed, "CLAIMED")
            .replace(&self.lease, "LEASE")
            .replace(&self.run, "RUN")
            .replace(&self.published[0], "ENDED")
            .replace(&self.published[1], "WORKING")
            .replace(&delivery, "DELIVERY")
    }
}

/// How a use case is asked for.
enum Asked {
    /// A call.
    Call(&'static str, Value),
    /// `GET` of a path.
    Get(String),
    /// An operation of Agent2Agent, over every binding.
    A2a(Operation, Value),
    /// What a requester of the EventBus is told.
    Inbox(Inbox),
}

/// Every way in which a use case can name an object; empty for those that name none.
fn row(case: UseCase, object: &Object, own: &Object) -> Vec<Asked> {
    use Asked::{Call, Get};
    let (root, child, webhook) = (&object.root, &object.child, &object.webhook);
    let both = |method: &'static str, member: &str, more: Value| {
        let ids = [root, child].into_iter();
        ids.map(|id| {
            let mut params = more.clone();
            params[member] = json!(id);
            Call(method, params)
        })
        .collect::<Vec<_>>()
    };
    let of_webhook = |method, mut params: Value| {
        params["id"] = json!(webhook);
        vec![Call(method, params)]
    };
    let of_lease = |method, mut params: Value| {
        params["task_id"] = json!(object.claimed);
        params["lease"] = json!(object.lease);
        vec![Call(method, params)]
    };
    match case {
        UseCase::CreateTasks => {
            let depends = json!({"name": "x", "parent_id": own.root,
                "dependencies": [{"id": child}]});
            let program = json!({"name": "x", "schemas": {"method": "command_executor"},
                "inputs": {"program": "true"}});
            let mut row = both("tasks.create", "parent_id", json!({"name": "x"}));
            row.extend(both("tasks.create", "parent_id", program));
            row.push(Call("tasks.create", depends));
            row
        }
        UseCase::ExecuteTasks => {
            let below = json!({"tasks": [{"id": "a", "name": "a", "parent_id": root}]});
            let behind =
                json!({"tasks": [{"id": "a", "name": "a", "dependencies": [{"id": child}]}]});
            let mut row = both("tasks.execute", "task_id", json!({}));
            row.extend([Call("tasks.execute", below), Call("tasks.execute", behind)]);
            row
        }
        UseCase::RetryTask => both("tasks.retry", "task_id", json!({})),
        UseCase::UpdateTask => {
            let moved = json!({"task_id": own.child, "updates": {"parent_id": root}});
            let behind =
                json!({"task_id": own.child, "updates": {"dependencies": [{"id": child}]}});
            let mut row = both("tasks.update", "task_id", json!({"updates": {"name": "y"}}));
            let inputs = json!({"updates": {"inputs": {"a": 1}}});
            row.extend(both("tasks.update", "task_id", inputs));
            let given_away = json!({"updates": {"user_id": "zed"}});
            row.extend(both("tasks.update", "task_id", given_away));
            row.extend([Call("tasks.update", moved), Call("tasks.update", behind)]);
            row
        }
        UseCase::DeleteTasks => both("tasks.delete", "task_id", json!({"cascade": true})),
        UseCase::CancelTasks => both("tasks.cancel", "task_id", json!({})),
        UseCase::CopyTasks => {
            let mut row = both("tasks.copy", "task_id", json!({"copy_children": true}));
            let into = json!({"task_id": own.child, "parent_id": root});
            row.push(Call("tasks.copy", into));
            row
        }
        UseCase::GetTask => {
            let mut row = both("tasks.get", "task_id", json!({}));
            let eventual = json!({"consistency": "eventual"});
            row.extend(both("tasks.get", "task_id", eventual));
            row.extend(both("tasks.get", "task_id", json!({"as_of": 1})));
            row
        }
        UseCase::GetTree => {
            let mut row = both("tasks.tree", "task_id", json!({}));
            row.extend(both("tasks.tree", "task_id", json!({"as_of": 1})));
            row
        }
        UseCase::GetChildren => both("tasks.children", "parent_id", json!({})),
        UseCase::ListTasks => both("tasks.list", "parent_id", json!({})),
        UseCase::ReadHistory => {
            let mut row = both("tasks.history", "task_id", json!({}));
            row.extend(both("tasks.history", "task_id", json!({"scope": "flow"})));
            row
        }
        UseCase::QueryEvents => {
            let mut row = both("events.query", "task_id", json!({}));
            row.extend(both("events.query", "task_id", json!({"order": "desc"})));
            row.push(Call("events.query", json!({"flow": root})));
            row
        }
        UseCase::ExplainTask => both("tasks.explain", "task_id", json!({})),
        UseCase::ReadProgress => both("workflows.progress", "root_task_id", json!({})),
        UseCase::SubscribeTask => {
            let mut row = both("tasks.subscribe", "task_id", json!({}));
            let behind = json!({"last_event_id": "x"});
            row.extend(both("tasks.resubscribe", "task_id", behind));
            row
        }
        UseCase::WatchEvents => vec![
            Get(format!("/events?flow={root}")),
            Get(format!("/events?task={child}")),
        ],
        UseCase::CreateWebhook => {
            let url = "https://receiver.example.com/hook";
            vec![Call(
                "webhooks.create",
                json!({"url": url, "flow_id": root}),
            )]
        }
        UseCase::GetWebhook => of_webhook("webhooks.get", json!({})),
        UseCase::UpdateWebhook => {
            let change = json!({"description": "z"});
            of_webhook("webhooks.update", change)
        }
        UseCase::DeleteWebhook => of_webhook("webhooks.delete", json!({})),
        UseCase::EnableWebhook => of_webhook("webhooks.enable", json!({})),
        UseCase::DisableWebhook => of_webhook("webhooks.disable", json!({})),
        UseCase::RotateWebhookSecret => of_webhook("webhooks.rotate_secret", json!({})),
        UseCase::ReadWebhookSecret => of_webhook("webhooks.secret", json!({})),
        UseCase::TestWebhook => of_webhook("webhooks.test", json!({})),
        UseCase::ListDeliveries => of_webhook("webhooks.deliveries", json!({})),
        UseCase::Redeliver => {
            let params = json!({"delivery_id": object.delivery});
            vec![Call("webhooks.redeliver", params)]
        }
        UseCase::RecoverDeliveries => {
            let since = json!({"since": "2026-01-31T12:00:00Z"});
            of_webhook("webhooks.recover", since)
        }
        UseCase::ClaimTasks => both("tasks.claim", "task_id", json!({})),
        UseCase::RenewLease => of_lease("tasks.renew", json!({})),
        UseCase::CompleteTask => of_lease("tasks.complete", json!({"output": {}})),
        UseCase::FailTask => of_lease("tasks.fail", json!({"error": "e"})),
        UseCase::ReleaseTask => of_lease("tasks.release", json!({})),
        UseCase::SuspendTask => {
            let asks = json!({"request": {"question": "?"}});
            of_lease("tasks.suspend", asks)
        }
        UseCase::RespondTask => {
            let says = json!({"suspension_id": object.lease, "value": true});
            both("tasks.respond", "task_id", says)
        }
        UseCase::ReadSibling => of_lease("tasks.sibling_output", json!({"name": "remote"})),
        UseCase::RotateToken => vec![Call("tokens.rotate", json!({"id": object.token}))],
        UseCase::RevokeToken => vec![Call("tokens.revoke", json!({"id": object.token}))],
        UseCase::StartRun
        | UseCase::CancelRun
        | UseCase::MessageRun
        | UseCase::ReadRun
        | UseCase::ListRuns
        | UseCase::FollowRun
        | UseCase::ReportRun
        | UseCase::ReadReports => {
            let named = Named {
                root,
                child,
                run: &object.run,
                context: &object.claimed,
            };
            let rows = a2a::rows(case, &named).into_iter();
            rows.map(|(operation, request)| Asked::A2a(operation, request))
                .collect()
        }
        UseCase::ReadInbox => {
            let rows = inboxes::rows(&object.agent, &own.agent, &object.published);
            rows.into_iter().map(Asked::Inbox).collect()
        }
        // They name no object: `owners.rs` looks at what they show.
        UseCase::WatchRun
        // Asked for behind a message alone, which names the run.
        | UseCase::AwaitRun
        | UseCase::ListWebhooks
        | UseCase::SetSecret
        | UseCase::ListSecrets
        | UseCase::DeleteSecret
        | UseCase::DeclareMethod
        | UseCase::UndeclareMethod
        | UseCase::ListMethods
        | UseCase::ListWorkers
        | UseCase::DrainWorker
        | UseCase::ReadMetrics
        | UseCase::CreateToken
        | UseCase::DenyJwt
        | UseCase::ListTokens
        | UseCase::ReadAudit
        | UseCase::WhoAmI
        | UseCase::ReadHealth
        | UseCase::CheckReadiness
        | UseCase::ListExecutors
        // It names nothing that is stored.
        | UseCase::ValidateWorkflow
        | UseCase::DryRunWorkflow
        // They name no object but by a name that everybody may use: `owners.rs`.
        | UseCase::SaveWorkflow
        | UseCase::GetWorkflow
        | UseCase::ListWorkflows
        | UseCase::ListWorkflowVersions
        | UseCase::DiffWorkflow
        | UseCase::DeleteWorkflow
        | UseCase::CreateSchedule
        | UseCase::GetSchedule
        | UseCase::ListSchedules
        | UseCase::UpdateSchedule
        | UseCase::PauseSchedule
        | UseCase::DeleteSchedule
        | UseCase::RunSchedule
        | UseCase::RebuildReadModels
        | UseCase::DrainServer => Vec::new(),
    }
}

async fn answer(world: &Callers, token: Option<&str>, asked: &Asked) -> (u16, String) {
    match asked {
        Asked::Call(method, params) => world.ask(token, method, params).await,
        Asked::Get(path) => {
            let request = world.client.get(format!("{}{path}", world.url()));
            world.send(world.as_caller(request, token)).await
        }
        Asked::A2a(operation, request) => a2a::answers(world, token, *operation, request).await,
        Asked::Inbox(inbox) => inboxes::answer(world, token, inbox).await,
    }
}

fn shown(asked: &Asked) -> String {
    match asked {
        Asked::Call(method, params) => format!("{method} {params}"),
        Asked::Get(path) => format!("GET {path}"),
        Asked::A2a(operation, request) => format!("{operation:?} {request}"),
        Asked::Inbox(inbox) => format!("{inbox:?}"),
    }
}

/// A flow with a child, and a webhook with a delivery, of this caller. The tasks of its agent are not published yet.
async fn given_object(world: &Callers, token: &str) -> Object {
    let tasks = json!({"tasks": [{"id": "root", "name": "root"},
        {"id": "child", "name": "child", "parent_id": "root"}]});
    let created = world.call(token, "tasks.create", tasks).await;
    let url = "https://receiver.example.com/hook";
    let webhook = world.call(token, "webhooks.create", json!({"url": url}));
    let webhook = webhook.await["id"].as_str().unwrap().to_owned();
    let id = |alias: &str| created["task_ids"][alias].as_str().unwrap().to_owned();
    let (root, child) = (id("root"), id("child"));
    // Something to be told of.
    let cancelled = world.call(token, "tasks.create", json!({"name": "told"}));
    let told = cancelled.await["id"].clone();
    world
        .call(token, "tasks.cancel", json!({"task_id": told}))
        .await;
    let delivery = loop {
        let deliveries = world.call(token, "webhooks.deliveries", json!({"id": webhook}));
        if let Some(id) = deliveries.await["deliveries"][0]["id"].as_i64() {
            break id;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    let new = json!({"name": token, "scopes": ["tasks:read"]});
    let made = world.call("chief", "tokens.create", new).await;
    let remote =
        json!({"tasks": [{"name": "remote", "schemas": {"type": "remote", "method": "m"}}]});
    let started = world.call(token, "tasks.execute", remote).await;
    let claimed = started["root_task_id"].as_str().unwrap().to_owned();
    // Longer than the test takes: a lease that ends is an event.
    let claim = json!({"task_id": claimed, "lease_seconds": 300});
    let claim = world.call(token, "tasks.claim", claim).await;
    let lease = claim["claims"][0]["lease"]["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let clock = SystemClock::default();
    Object {
        agent: token.to_owned(),
        published: [clock.uuid().to_string(), clock.uuid().to_string()],
        run: started["run_id"].as_str().unwrap().to_owned(),
        claimed,
        lease,
        root,
        child,
        webhook,
        delivery,
        token: made["id"].as_str().unwrap().to_owned(),
    }
}

/// What a caller is told of an object, without its ids.
async fn told(world: &Callers, token: &str, asked: &Asked, object: &Object) -> (u16, String) {
    let (status, text) = answer(world, Some(token), asked).await;
    (status, object.without(&text))
}

/// Asks `bob` for what is Ann's, or was, and for what never was.
async fn assert_foreign_is_absent(world: &Callers) {
    let foreign = given_object(world, "ann").await;
    let own = given_object(world, "bob").await;
    let deleted = given_object(world, "ann").await;
    let gone = json!({"task_id": deleted.root, "cascade": true});
    world.call("ann", "tasks.delete", gone).await;
    for (token, object) in [("ann", &foreign), ("bob", &own), ("ann", &deleted)] {
        inboxes::fill(world, token, &object.published).await;
    }
    let absent = Object::absent();
    for case in UseCase::ALL {
        let rows = row(*case, &absent, &own);
        for (n, asked) in rows.iter().enumerate() {
            let expected = told(world, "bob", asked, &absent).await;
            for object in [&foreign, &deleted] {
                let before = world.head().await;
                let asked = &row(*case, object, &own)[n];
                let found = told(world, "bob", asked, object).await;
                assert_eq!(found, expected, "{case:?}: {}", shown(asked));
                assert_eq!(world.head().await, before, "{case:?}: {}", shown(asked));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_somebody_else_is_as_absent_in_every_use_case() {
    let world = World::start().await;
    assert_foreign_is_absent(&world).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_somebody_else_is_as_absent_through_every_node_on_postgres() {
    let nodes = Nodes::start().await;
    assert_foreign_is_absent(&nodes).await;
    nodes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_owns_it_and_whoever_acts_for_all_users_gets_another_answer() {
    let world = World::start().await;
    let absent = Object::absent();
    for token in ["ann", "chief"] {
        let given = async || {
            let object = given_object(&world, "ann").await;
            [object, given_object(&world, token).await]
        };
        let read = given().await;
        for case in UseCase::ALL {
            let reads = case.scope() == Some(Scope::TasksRead) && *case != UseCase::ReadInbox;
            for n in 0..row(*case, &absent, &absent).len() {
                // Fresh ones where a use case may change or remove them.
                let fresh = if reads { None } else { Some(given().await) };
                let [object, own] = fresh.as_ref().unwrap_or(&read);
                if *case == UseCase::ReadInbox {
                    inboxes::fill(&world, "ann", &object.published).await;
                }
                let missing = &row(*case, &absent, own)[n];
                let refused = told(&world, token, missing, &absent).await;
                let asked = &row(*case, object, own)[n];
                let found = told(&world, token, asked, object).await;
                // Nothing joins two flows, whoever owns them; a list below a parent is empty for all; a lease is
                // good only together with the principal that claimed; a receiver that was not made is absent; an inbox is
                // the principal's own, whatever agents it may speak for.
                let is_alike = shown(asked).contains("dependencies")
                    || shown(asked).contains(r#""tasks""#)
                    || shown(asked).contains(r#""updates":{"parent_id""#)
                    || shown(asked).contains(r#""as_of":1"#)
                    || (token == "chief" && shown(asked).contains(r#""lease""#))
                    || (token == "chief" && *case == UseCase::ReadInbox)
                    || shown(asked).starts_with("GetTaskPushNotificationConfig")
                    || *case == UseCase::ListTasks;
                assert!(
                    is_alike || found != refused,
                    "{token}, {case:?}: {}: {found:?}",
                    shown(asked)
                );
                // Else each would be told of all that come after it. Some are removed already.
                for (owner, it) in ["ann", token].iter().zip(fresh.iter().flatten()) {
                    let id = json!({"id": it.webhook});
                    world.ask(Some(owner), "webhooks.delete", &id).await;
                }
            }
        }
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_without_the_scope_of_a_use_case_are_told_which_is_missing() {
    let world = World::start().await;
    let own = given_object(&world, "ann").await;
    let before = world.head().await;
    for case in UseCase::ALL {
        let Some(scope) = case.scope() else { continue };
        for asked in row(*case, &own, &own) {
            let (status, text) = answer(&world, Some("reader"), &asked).await;
            let is_refused = match asked {
                Asked::A2a(..) | Asked::Inbox(_) => status == 403,
                Asked::Call(..) | Asked::Get(_) => {
                    text.contains("-32004") && text.contains(scope.as_str())
                }
            };
            assert_eq!(
                is_refused,
                scope != Scope::TasksRead,
                "{case:?}: {}: {status} {text}",
                shown(&asked)
            );
        }
    }
    assert_eq!(world.head().await, before);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_credentials_every_use_case_is_refused_with_401() {
    let world = World::start().await;
    let own = given_object(&world, "ann").await;
    let before = world.head().await;
    for case in UseCase::ALL {
        for asked in row(*case, &own, &own) {
            for token in [None, Some("nobody")] {
                let (status, text) = answer(&world, token, &asked).await;
                assert_eq!(status, 401, "{case:?}: {}: {text}", shown(&asked));
                let told = ["-32004", "UNAUTHENTICATED", "Unauthenticated"];
                assert!(told.iter().any(|it| text.contains(it)), "{text}");
            }
        }
    }
    assert_eq!(world.head().await, before);
    world.close().await;
}
