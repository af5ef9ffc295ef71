//! The matrix: use case x caller x object. Each use case has a row, by hand or by what its method says of itself; one
//! that is not decided about does not compile.

use super::a2a::{self, Named};
use super::a2a_v03;
use super::asked::{Asked, answer, shown, twins};
use super::inboxes;
use super::{bus, named, world};
use serde_json::{Value, json};
use taskledger::application::api::UseCase;
use taskledger::clock::{Clock, SystemClock};
use taskledger_auth::Scope;
use taskledger_testkit::server::Folder;
use world::{Callers, Nodes, World};

/// Ids by which a use case may name something.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) root: String,
    pub(super) child: String,
    webhook: String,
    delivery: i64,
    token: String,
    /// A task that its owner has claimed, and the lease.
    claimed: String,
    lease: String,
    /// The run of that task.
    pub(super) run: String,
    /// The agent that it has published tasks as.
    pub(super) agent: String,
    /// Two of those, which `inboxes::fill` publishes: one that has ended, and one that says how far it is.
    pub(super) published: [String; 2],
}

impl Object {
    /// Ids that nothing has.
    pub(super) fn absent() -> Self {
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

    pub(super) fn webhook(&self) -> &String {
        &self.webhook
    }

    /// The flow of the run.
    pub(super) fn run_flow(&self) -> &String {
        &self.claimed
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

/// Every way in which a use case can name an object, through every door; empty for those that name none.
pub(super) fn rows(case: UseCase, object: &Object, own: &Object) -> Vec<Asked> {
    let mut rows = row(case, object, own);
    rows.extend(twins(&rows));
    rows.extend(bus::rows(case, object, own).into_iter().map(Asked::Bus));
    rows
}

/// The same by calls, but for those of the EventBus.
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
            let rows = rows.map(|(operation, request)| Asked::A2a(operation, request));
            let older = a2a_v03::rows(case, &named).into_iter();
            let older = older.map(|(operation, request)| Asked::A2aV03(operation, request));
            rows.chain(older).collect()
        }
        UseCase::ReadInbox => {
            let rows = inboxes::rows(&object.agent, &own.agent, &object.published);
            rows.into_iter().map(Asked::Inbox).collect()
        }
        // They name no object, or one by a name that everybody may use: `covered.rs` names the test that looks at what
        // each of them shows.
        UseCase::WatchRun
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
        | UseCase::ValidateWorkflow
        | UseCase::DryRunWorkflow
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
        // What the examples of their methods say of themselves: `named::rows` panics if there are none.
        UseCase::RetryTask
        | UseCase::CancelTasks
        | UseCase::ReadProgress
        | UseCase::GetChildren
        | UseCase::ExplainTask
        | UseCase::ClaimTasks => named::rows(case, [root, child].map(String::as_str)),
    }
}

/// A flow with a child, and a webhook with a delivery, of this caller. The tasks of its agent are not published yet.
pub(super) async fn given_object(world: &Callers, token: &str) -> Object {
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

/// Asks `bob` for what is Ann's, or was, and for what never was. `archived`: what was hers before it left the log.
async fn assert_foreign_is_absent(world: &Callers, archived: Object) {
    let foreign = given_object(world, "ann").await;
    let own = given_object(world, "bob").await;
    let deleted = given_object(world, "ann").await;
    let gone = json!({"task_id": deleted.root, "cascade": true});
    world.call("ann", "tasks.delete", gone).await;
    for (token, object) in [("ann", &foreign), ("bob", &own), ("ann", &deleted)] {
        inboxes::fill(world, token, &object.published).await;
    }
    let absent = Object::absent();
    let objects = [foreign, deleted, archived];
    for case in UseCase::ALL {
        let of_absent = rows(*case, &absent, &own);
        for (n, asked) in of_absent.iter().enumerate() {
            let expected = told(world, "bob", asked, &absent).await;
            for object in &objects {
                let before = world.head().await;
                let asked = &rows(*case, object, &own)[n];
                let found = told(world, "bob", asked, object).await;
                assert_eq!(found, expected, "{case:?}: {}", shown(asked));
                assert_eq!(world.head().await, before, "{case:?}: {}", shown(asked));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_somebody_else_is_as_absent_in_every_use_case() {
    assert_archived_is_absent_too(World::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_somebody_else_is_as_absent_in_every_use_case_on_postgres() {
    assert_archived_is_absent_too(World::on_postgres().await).await;
}

/// The same, with what has left the log.
async fn assert_archived_is_absent_too(world: World) {
    let archived = archived(&world).await;
    assert_foreign_is_absent(&world, archived).await;
    world.close().await;
}

/// What was Ann's before it left the log.
async fn archived(world: &World) -> Object {
    let archived = given_object(world, "ann").await;
    for task in [&archived.root, &archived.claimed] {
        let cancel = json!({"task_id": task});
        world.call("ann", "tasks.cancel", cancel).await;
    }
    world.archive(&[&archived.root, &archived.claimed]).await;
    archived
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_belongs_to_somebody_else_is_as_absent_through_every_node_on_postgres() {
    let folder = Folder::with_database().await;
    let before = World::on(folder.url().unwrap()).await;
    let archived = archived(&before).await;
    before.close().await;
    let nodes = Nodes::start_in(folder, &[]).await;
    assert_foreign_is_absent(&nodes, archived).await;
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
            // As over HTTP: sockets call the same methods.
            let of_case = |object: &Object, own: &Object| {
                let rows = rows(*case, object, own).into_iter();
                rows.filter(|asked| !asked.is_on_a_socket())
                    .collect::<Vec<_>>()
            };
            for n in 0..of_case(&absent, &absent).len() {
                // Fresh ones where a use case may change or remove them.
                let fresh = if reads { None } else { Some(given().await) };
                let [object, own] = fresh.as_ref().unwrap_or(&read);
                let missing = &of_case(&absent, own)[n];
                if matches!(missing, Asked::Inbox(_) | Asked::Bus(_)) {
                    inboxes::fill(&world, "ann", &object.published).await;
                }
                let refused = told(&world, token, missing, &absent).await;
                let asked = &of_case(object, own)[n];
                let found = told(&world, token, asked, object).await;
                // Nothing joins two flows, whoever owns them; a list below a parent is empty for all; a lease is
                // good only together with the principal that claimed; a receiver that was not made is absent; an inbox
                // is the principal's own, whatever agents it may speak for, and so are the tasks of agents.
                let is_alike = shown(asked).contains("dependencies")
                    || shown(asked).contains(r#""tasks""#)
                    || shown(asked).contains(r#""updates":{"parent_id""#)
                    || shown(asked).contains(r#""as_of":1"#)
                    || (token == "chief" && shown(asked).contains(r#""lease""#))
                    || (token == "chief" && matches!(asked, Asked::Inbox(_) | Asked::Bus(_)))
                    || shown(asked).contains("depends_on: [")
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
