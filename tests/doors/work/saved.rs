//! Workflow documents that are kept by name, and runs of them, on both engines.

use super::held;
use serde_json::{Value, json};
use taskledger_testkit::cluster::Cluster;
use taskledger_testkit::server::{Api, Folder, NoResult, Server};

fn document(assign: &str, more: &str) -> String {
    format!(
        "openintent: \"1.0\"\ninfo: {{name: Report, version: \"7\"}}\nworkflow:\n  fetch:\n    assign: {assign}\n    inputs: {{q: $trigger.q}}\n    outputs: {{n: number}}\n  report:\n    assign: reporter\n    depends_on: [fetch]\n    inputs: {{n: fetch.n}}\n{more}"
    )
}

async fn saved(api: &Api, text: &str) -> Value {
    api.call("workflows.save", json!({"document": text})).await
}

async fn keyed(api: &Api, run: Value) -> Value {
    let answer = api.try_call("workflows.run", run, Some("k")).await;
    answer.expect("a run")
}

/// Each through the next of the servers.
async fn documents_are_kept_compared_run_and_deleted(apis: [&Api; 2]) {
    let [one, other] = apis;
    let first = saved(one, &document("fetcher", "")).await;
    let told = |saved: &Value| (saved["version"].clone(), saved["created"].clone());
    assert_eq!(told(&first), (json!(1), json!(true)));
    assert_eq!(first["info_version"], "7");
    assert_eq!(first["breaking"], Value::Null);
    let same = saved(other, &format!("# as before\n{}", document("fetcher", ""))).await;
    assert_eq!(told(&same), (json!(1), json!(false)));
    let second = saved(other, &document("crawler", "    constraints: [short]\n")).await;
    assert_eq!(told(&second), (json!(2), json!(true)));
    assert_eq!(
        (&second["breaking"], &second["count"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(second["changes"][0]["path"], "workflow.fetch.assign");
    assert_eq!(second["changes"][0]["reason"], "other workers are needed");

    let list = one.call("workflows.list", json!({})).await;
    assert_eq!(list["workflows"][0]["version"], 2);
    assert_eq!(list["next_after"], Value::Null);
    let old = json!({"name": "Report", "version": 1});
    let old = other.call("workflows.get", old).await;
    assert_eq!(old["document"], document("fetcher", ""));
    let diff = json!({"name": "Report"});
    let diff = one.call("workflows.diff", diff).await;
    assert_eq!((&diff["from"], &diff["to"]), (&json!(1), &json!(2)));
    assert_eq!(diff["changes"], second["changes"]);
    let back = json!({"name": "Report", "from": 2, "to": 1});
    let back = one.call("workflows.diff", back).await;
    assert_eq!(back["changes"][1]["change"], "removed");
    let page = json!({"name": "Report", "limit": 1});
    let page = other.call("workflows.versions", page).await;
    assert_eq!(
        (&page["versions"][0]["version"], &page["next_before"]),
        (&json!(2), &json!(2))
    );

    // A repeated call runs what the first one ran, whatever was saved since.
    let run = json!({"name": "Report", "trigger": {"q": 1}});
    let begun = keyed(one, run.clone()).await;
    assert_eq!(begun["version"], 2);
    saved(one, &document("third", "")).await;
    let again = keyed(other, run.clone()).await;
    assert_eq!(again, begun);
    // A call that was refused has run nothing: its key takes what is the newest then.
    let typed =
        document("third", "").replace("q: $trigger.q", "q: {from: $trigger.q, type: string}");
    saved(one, &typed).await;
    let refused = one
        .try_call("workflows.run", run.clone(), Some("other"))
        .await;
    assert!(refused.is_err());
    saved(one, &document("third", "    constraints: [mended]\n")).await;
    let mended = one
        .try_call("workflows.run", run.clone(), Some("other"))
        .await;
    assert_eq!(mended.expect("a run")["version"], 5);
    let newest = other.call("workflows.run", run.clone()).await;
    assert_eq!(newest["version"], 5);
    assert_ne!(newest["root_task_id"], begun["root_task_id"]);
    let prepared = json!({"name": "Report", "version": 1, "trigger": {"q": 1}, "execute": false});
    let prepared = one.call("workflows.run", prepared).await;
    assert_eq!(
        (prepared["version"].clone(), prepared.get("run_id")),
        (json!(1), None)
    );

    let deleted = json!({"name": "Report"});
    assert_eq!(
        other.call("workflows.delete", deleted.clone()).await["deleted"],
        true
    );
    assert_eq!(
        one.call("workflows.delete", deleted.clone()).await["deleted"],
        false
    );
    let refusal = one.refusal("workflows.run", run).await;
    assert_eq!(refusal.code, -31012, "{refusal:?}");
    let events = one.call("workflows.versions", deleted).await;
    let events = events["versions"].as_array().unwrap();
    let kinds: Vec<_> = events
        .iter()
        .map(|it| (&it["event"], &it["kept"]))
        .collect();
    let (saved, deleted, gone) = (json!("saved"), json!("deleted"), json!(false));
    let mut all = vec![(&saved, &gone); 5];
    all.insert(0, (&deleted, &gone));
    assert_eq!(kinds, all);

    // What runs holds all that it needs.
    let root = json!({"root_task_id": begun["root_task_id"]});
    let wanted = json!({"methods": ["crawler"], "worker": "w", "wait_seconds": 30});
    let claimed = one.call("tasks.claim", wanted).await;
    let claim = &claimed["claims"][0];
    assert_eq!(claim["input"], json!({"q": 1}));
    let progress = other.call("workflows.progress", root.clone()).await;
    assert_eq!(
        (&progress["status"], &progress["counts"]["in_progress"]),
        (&json!("in_progress"), &json!(1))
    );
    other
        .call("tasks.complete", held(claim, json!({"output": {"n": 1}})))
        .await;
    let progress = one.call("workflows.progress", root).await;
    assert_eq!(
        (
            &progress["counts"]["completed"],
            &progress["counts"]["ready"]
        ),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn what_is_kept_changes_only_from_the_version_that_is_expected() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let save = |assign: &str, expected: u32| json!({"document": document(assign, ""), "expected_version": expected});
    let delete = |expected: u32| json!({"name": "Report", "expected_version": expected});
    let changed = async |method: &str, params: Value| {
        let refusal = api.refusal(method, params).await;
        assert_eq!(
            (refusal.code, &refusal.data["field"]),
            (-31013, &json!("expected_version")),
            "{refusal:?}"
        );
        refusal.data["version"].clone()
    };
    assert_eq!(changed("workflows.save", save("a", 1)).await, Value::Null);
    let first = api.call("workflows.save", save("a", 0)).await;
    assert_eq!(first["version"], 1);
    assert_eq!(changed("workflows.save", save("b", 0)).await, 1);
    let second = api.call("workflows.save", save("b", 1)).await;
    assert_eq!(second["version"], 2);
    // A repetition whose answer was lost.
    let again = api.call("workflows.save", save("b", 1)).await;
    assert_eq!(
        (&again["version"], &again["created"]),
        (&json!(2), &json!(false))
    );
    assert_eq!(changed("workflows.delete", delete(1)).await, 2);
    let deleted = api.call("workflows.delete", delete(2)).await;
    assert_eq!(deleted["deleted"], true);
    let deleted = api.call("workflows.delete", delete(2)).await;
    assert_eq!(deleted["deleted"], false);
    let third = api.call("workflows.save", save("c", 0)).await;
    assert_eq!(third["version"], 4, "a deletion takes a number");
}

#[tokio::test]
async fn a_key_that_created_a_run_begins_no_other_one() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    saved(api, &document("fetcher", "")).await;
    for (method, params) in [
        (
            "workflows.create",
            json!({"document": document("fetcher", ""), "trigger": {"q": 1}}),
        ),
        (
            "workflows.run",
            json!({"name": "Report", "trigger": {"q": 1}}),
        ),
    ] {
        let execute = |execute: bool| {
            let mut params = params.clone();
            params["execute"] = json!(execute);
            api.try_call(method, params, Some("key"))
        };
        let created = execute(false).await.expect("a run");
        let refusal = execute(true).await.expect_err("another body");
        let NoResult::Refused(refusal) = refusal else {
            panic!("{refusal:?}")
        };
        assert_eq!(refusal.code, -32602, "{refusal:?}");
        assert_eq!(execute(false).await.expect("the same"), created);
    }
    let list = json!({"root_only": true});
    let roots = api.call("tasks.list", list).await;
    assert_eq!(roots["tasks"].as_array().unwrap().len(), 2, "{roots}");
}

#[tokio::test]
async fn a_run_says_of_which_document_it_is_and_what_was_left_out() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let text = document(
        "fetcher",
        "  mail:\n    assign: mailer\n    skip_when: $trigger.quiet\n",
    );
    saved(api, &text).await;
    let progress = async |root: &Value| {
        api.call("workflows.progress", json!({"root_task_id": root}))
            .await
    };
    let quiet = json!({"name": "Report", "trigger": {"q": 1, "quiet": true}});
    let quiet = api.call("workflows.run", quiet).await;
    let shown = progress(&quiet["root_task_id"]).await;
    assert_eq!(shown["skipped_phases"], json!(["mail"]));
    assert_eq!(shown["counts"]["total"], 2);
    let of = &shown["workflow"];
    assert_eq!(
        (&of["name"], &of["version"], &of["saved_version"]),
        (&json!("Report"), &json!("7"), &json!(1))
    );
    let loud = json!({"document": text, "trigger": {"q": 1}});
    let loud = api.call("workflows.create", loud).await;
    let shown = progress(&loud["root_task_id"]).await;
    assert_eq!(
        (
            &shown["skipped_phases"],
            &shown["workflow"]["saved_version"]
        ),
        (&json!([]), &Value::Null)
    );
    // A copy is a run of the same document; a phase of it is none.
    let copy = api
        .call("tasks.copy", json!({"task_id": quiet["root_task_id"]}))
        .await;
    let copied = progress(&copy["copied_task_id"]).await;
    assert_eq!(copied["skipped_phases"], json!(["mail"]), "{copy}");
    let phase = progress(&loud["phases"][0]["task_id"]).await;
    assert_eq!(phase.get("workflow"), None);
}

#[tokio::test]
async fn phases_of_a_saved_document_begin_when_it_says() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let later = "  mail:\n    assign: mailer\n    start_at: $trigger.due\n  remind:\n    assign: mailer\n    delay_seconds: 3600\n";
    saved(api, &document("fetcher", later)).await;
    let run = json!({"name": "Report", "trigger": {"q": 1, "due": "2126-01-01T00:00:00+01:00"}});
    let run = api.call("workflows.run", run).await;
    let of = async |phase: usize| {
        let id = &run["phases"][phase]["task_id"];
        api.call("tasks.get", json!({"task_id": id})).await
    };
    let mail = of(2).await;
    assert_eq!(mail["start_at"], "2125-12-31T23:00:00.000000Z", "{mail}");
    assert_eq!(mail["next_attempt_at"], mail["start_at"]);
    let remind = of(3).await;
    assert_eq!(remind["params"]["delay_seconds"], 3600);
    assert!(remind["next_attempt_at"].is_string(), "{remind}");
    let claims = json!({"methods": ["mailer"], "worker": "w", "max": 5});
    assert_eq!(api.call("tasks.claim", claims).await["claims"], json!([]));
    let wrong = json!({"name": "Report", "trigger": {"q": 1, "due": "soon"}});
    let refusal = api.refusal("workflows.run", wrong).await;
    assert_eq!(
        (refusal.code, &refusal.data["field"]),
        (-32602, &json!("trigger")),
        "{refusal:?}"
    );
}

#[tokio::test]
async fn documents_outlive_a_restart_of_the_server() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    documents_are_kept_compared_run_and_deleted([&server.api, &server.api]).await;
    saved(&server.api, &document("fetcher", "")).await;
    server.kill().await;
    let server = Server::start(&folder).await;
    let found = server
        .api
        .call("workflows.get", json!({"name": "Report"}))
        .await;
    assert_eq!(
        (&found["version"], &found["document"]),
        (&json!(7), &json!(document("fetcher", "")))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_the_same_at_every_node_on_postgres() {
    let cluster = Cluster::of(2).await;
    let [one, other] = &cluster.nodes[..] else {
        panic!("two nodes")
    };
    documents_are_kept_compared_run_and_deleted([&one.api, &other.api]).await;
}

#[tokio::test]
async fn documents_with_faults_and_runs_that_cannot_be_are_refused_with_the_member() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let api = &server.api;
    let faulty = document("fetcher", "").replace("fetch.n", "fetch.m");
    let refusal = api
        .refusal("workflows.save", json!({"document": faulty}))
        .await;
    assert_eq!(refusal.code, -31021, "{refusal:?}");
    assert_eq!(refusal.data["invalid_refs"], json!(["fetch.m"]));
    assert_eq!(
        api.call("workflows.list", json!({})).await["workflows"],
        json!([])
    );

    saved(api, &document("fetcher", "")).await;
    for (method, params, field) in [
        (
            "workflows.get",
            json!({"name": "Report", "version": 2}),
            "version",
        ),
        ("workflows.get", json!({"name": "Other"}), "name"),
        (
            "workflows.run",
            json!({"name": "Report", "version": 2}),
            "version",
        ),
        (
            "workflows.diff",
            json!({"name": "Report", "from": 2}),
            "from",
        ),
        ("workflows.diff", json!({"name": "Report", "to": 3}), "to"),
    ] {
        let refusal = api.refusal(method, params).await;
        assert_eq!(
            (refusal.code, &refusal.data["field"]),
            (-31012, &json!(field)),
            "{method}"
        );
    }
    for (method, params, field) in [
        ("workflows.save", json!({"document": 7}), "document"),
        (
            "workflows.get",
            json!({"name": "Report", "version": 0}),
            "version",
        ),
        (
            "workflows.diff",
            json!({"name": "Report", "to": 1, "document": "x"}),
            "to",
        ),
        (
            "workflows.dry_run",
            json!({"document": document("f", ""), "outputs": {"none": {}}}),
            "outputs",
        ),
    ] {
        let refusal = api.refusal(method, params).await;
        assert_eq!(
            (refusal.code, &refusal.data["field"]),
            (-32602, &json!(field)),
            "{method}"
        );
    }
    // There is nothing before the first version.
    let refusal = api
        .refusal("workflows.diff", json!({"name": "Report"}))
        .await;
    assert_eq!(
        (refusal.code, &refusal.data["field"]),
        (-31012, &json!("from"))
    );
}
