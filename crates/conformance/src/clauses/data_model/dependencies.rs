//! Which dependencies a task may have. spec: data-model / Dependency Schema

use crate::clauses::prelude::*;

pub(super) fn clauses() -> Vec<Clause> {
    vec![
        must(
            "data-model/dependency/1-id",
            "a dependency has an `id`, a UUID v4",
            dependency_ids_are_checked,
        ),
        must(
            "data-model/dependency/2-exists",
            "the `id` of a dependency is that of a task in the same flow",
            dependencies_reference_the_flow,
        ),
        must(
            "data-model/dependency/3-required",
            "`required` is true or false, and true when it is left out",
            required_is_a_flag,
        ),
        must(
            "data-model/dependency-rules/1-exist",
            "all dependencies exist, in the same flow",
            dependencies_reference_the_flow,
        )
        .same_as(&["data-model/dependency/2-exists"]),
        must_not(
            "data-model/dependency-rules/2-self",
            "a task does not depend on itself",
            self_dependencies_are_refused,
        ),
        must_not(
            "data-model/dependency-rules/3-cycle",
            "dependencies form no cycle",
            cycles_are_refused,
        ),
        should(
            "data-model/dependency-rules/4-at-create-and-update",
            "dependencies are checked when a task is created and when it is updated",
            dependencies_reference_the_flow,
        ),
        should(
            "data-model/dependency-rules/5-cycles-found",
            "cycles are found, and the tasks refused",
            cycles_are_refused,
        ),
    ]
}

/// A flow of three tasks: the root and two below it.
async fn flow(probe: &Probe) -> Result<[String; 3], Finding> {
    let root = probe.create(&probe.task("root")).await?;
    let one = probe.create(&probe.task("one").below(&root)).await?;
    let two = probe.create(&probe.task("two").below(&root)).await?;
    Ok([root, one, two])
}

fn on(ids: &[&str]) -> Value {
    let list: Vec<_> = ids
        .iter()
        .map(|id| json!({"id": id, "required": true}))
        .collect();
    json!({"dependencies": list})
}

pub(super) async fn dependency_ids_are_checked(probe: &Probe) -> Outcome {
    let [root, one, two] = flow(probe).await?;
    let next = probe
        .task("next")
        .below(&root)
        .after(&one)
        .after_end_of(&two);
    let stored = probe.store(&next).await?;
    let list = json!([{"id": one, "required": true}, {"id": two, "required": false}]);
    expect_field(&stored, "dependencies", list)?;
    let texts = super::identity::NO_UUIDS_V4.map(Value::from).into_iter();
    let odd: Vec<Value> = texts.chain([json!(1), Value::Null, json!([])]).collect();
    let lists = odd
        .iter()
        .map(|odd| json!([{"id": odd}]))
        .chain([json!([{}]), json!([{"required": true}])]);
    let lists: Vec<Value> = lists.collect();
    let of = |list: &Value| {
        probe
            .task("never")
            .below(&root)
            .with("dependencies", list.clone())
    };
    let tasks = lists.iter().map(|list| of(list).value());
    probe
        .refuses("tasks.create", tasks, &[INVALID_PARAMS])
        .await?;
    let updates = lists.iter().map(|list| json!({"dependencies": list}));
    probe
        .refuses_updates(&two, updates, &[INVALID_PARAMS])
        .await?;
    seen("ids of stored tasks are kept; no id, and ids that are no UUID v4, are -32602")
}

pub(in super::super) async fn missing_dependencies_are_refused(probe: &Probe) -> Outcome {
    let [root, one, two] = flow(probe).await?;
    let tasks = [
        probe.task("never").below(&root).after(UNKNOWN_ID),
        probe
            .task("never")
            .below(&root)
            .after(&one)
            .after_end_of(UNKNOWN_ID),
    ];
    let errors = probe
        .refuses("tasks.create", tasks.map(|task| task.value()), ANY)
        .await?;
    probe
        .refuses_updates(&two, [on(&[UNKNOWN_ID]), on(&[&one, UNKNOWN_ID])], ANY)
        .await?;
    let list = [
        probe.task("a"),
        probe.task("b").below("a").after(UNKNOWN_ID),
    ];
    let list = list.map(|task| task.element());
    probe
        .refuses("tasks.execute", [json!({"tasks": list})], ANY)
        .await?;
    seen(format!(
        "refused by create, update and execute: {}",
        errors[0]
    ))
}

pub(in super::super) async fn other_flows_are_refused(probe: &Probe) -> Outcome {
    let [root, one, two] = flow(probe).await?;
    let other = probe.create(&probe.task("other flow")).await?;
    let task = probe.task("never").below(&root).after(&other);
    let errors = probe.refuses("tasks.create", [task.value()], ANY).await?;
    let alone = probe.task("never").after(&one);
    probe.refuses("tasks.create", [alone.value()], ANY).await?;
    probe
        .refuses_updates(&two, [on(&[&other]), on(&[&one, &other])], ANY)
        .await?;
    seen(format!("a task of another flow: {}", errors[0]))
}

async fn dependencies_reference_the_flow(probe: &Probe) -> Outcome {
    let [root, one, two] = flow(probe).await?;
    probe
        .store(&probe.task("sound").below(&root).after(&one))
        .await?;
    let updates = json!({"task_id": two, "updates": on(&[&one])});
    probe.result("tasks.update", updates).await?;
    let list = json!([{"id": one, "required": true}]);
    expect_field(&probe.get(&two).await?, "dependencies", list)?;
    missing_dependencies_are_refused(probe).await?;
    other_flows_are_refused(probe).await
}

async fn required_is_a_flag(probe: &Probe) -> Outcome {
    let [root, one, two] = flow(probe).await?;
    let task = |list: Value| probe.task("flag").below(&root).with("dependencies", list);
    let stored = probe.store(&task(json!([{"id": one}]))).await?;
    let shown_flag = &stored["dependencies"][0]["required"];
    ensure!(
        shown_flag.is_null() || *shown_flag == true,
        "`required` is {shown_flag} when it is left out"
    );
    for flag in [true, false] {
        let list = json!([{"id": one, "required": flag}]);
        expect_field(
            &probe.store(&task(list.clone())).await?,
            "dependencies",
            list,
        )?;
    }
    let odd = [json!("true"), json!(1), json!(0), Value::Null, json!([])];
    let lists: Vec<_> = odd
        .iter()
        .map(|odd| json!([{"id": one, "required": odd}]))
        .collect();
    let tasks = lists.iter().map(|list| task(list.clone()).value());
    probe
        .refuses("tasks.create", tasks, &[INVALID_PARAMS])
        .await?;
    let updates = lists.iter().map(|list| json!({"dependencies": list}));
    probe
        .refuses_updates(&two, updates, &[INVALID_PARAMS])
        .await?;
    default_is_required(probe).await?;
    seen("true and false are kept, others are -32602; left out, a failure blocks as with true")
}

/// What is left out means required: a failure keeps the dependent from running.
async fn default_is_required(probe: &Probe) -> Result<(), Finding> {
    let blocked = probe
        .task("blocked")
        .with("dependencies", json!([{"id": "bad"}]));
    let started = probe
        .run(&[
            probe.task("root"),
            probe.failing("bad").below("root"),
            blocked.below("root"),
            probe.task("witness").below("root").after_end_of("bad"),
        ])
        .await?;
    probe.wait_for(started.id("bad")?, "failed").await?;
    probe.wait_for(started.id("witness")?, "completed").await?;
    let blocked = probe.get(started.id("blocked")?).await?;
    expect_field(&blocked, "started_at", Value::Null)
}

pub(in super::super) async fn self_dependencies_are_refused(probe: &Probe) -> Outcome {
    let [_, one, two] = flow(probe).await?;
    let errors = probe
        .refuses_updates(&one, [on(&[&one]), on(&[&two, &one])], ANY)
        .await?;
    let task = probe.task("self");
    let own = task.with("dependencies", json!([{"id": "self"}]));
    probe
        .refuses("tasks.execute", [json!({"tasks": [own.element()]})], ANY)
        .await?;
    seen(format!("{}", errors[0]))
}

pub(in super::super) async fn cycles_are_refused(probe: &Probe) -> Outcome {
    let [root, one, two] = flow(probe).await?;
    let three = probe.task("three").below(&root).after(&two).after(&one);
    let three = probe.create(&three).await?;
    let updates = json!({"task_id": two, "updates": on(&[&one])});
    probe.result("tasks.update", updates).await?;
    // One depends on two, or on three: cycles of two and of three tasks.
    let closing = [on(&[&two]), on(&[&three]), on(&[&three, &two])];
    let errors = probe.refuses_updates(&one, closing, &[CIRCULAR]).await?;
    let optional = json!({"dependencies": [{"id": two, "required": false}]});
    probe.refuses_updates(&one, [optional], &[CIRCULAR]).await?;
    let ring = |length: usize| {
        let alias = |n: usize| format!("t{n}");
        let task = |n| {
            probe
                .task(&alias(n))
                .below("root")
                .after(&alias((n + 1) % length))
        };
        let tasks = (0..length).map(|n| task(n).element());
        let tasks: Vec<_> = [probe.task("root").element()]
            .into_iter()
            .chain(tasks)
            .collect();
        json!({"tasks": tasks})
    };
    let rings = [2, 3, 20].map(ring);
    probe.refuses("tasks.execute", rings, &[CIRCULAR]).await?;
    diamonds_are_no_cycles(probe).await?;
    seen(format!(
        "cycles of 2, 3 and 20 tasks: {}; a diamond is taken",
        errors[0]
    ))
}

/// A task that is reached twice is no cycle.
async fn diamonds_are_no_cycles(probe: &Probe) -> Result<(), Finding> {
    let started = probe
        .run(&[
            probe.task("top"),
            probe.task("left").below("top").after("top"),
            probe.task("right").below("top").after("top"),
            probe
                .task("bottom")
                .below("top")
                .after("left")
                .after("right"),
        ])
        .await?;
    let bottom = probe.wait_for(started.id("bottom")?, "completed").await?;
    for alias in ["left", "right"] {
        let side = probe.get(started.id(alias)?).await?;
        ensure!(
            instant(&side, "completed_at")? <= instant(&bottom, "started_at")?,
            "{} started before {} had ended",
            shown(&bottom),
            shown(&side)
        );
    }
    Ok(())
}
