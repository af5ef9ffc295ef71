//! What changes of a schedule, and of the workflow that it starts, make of its times.

use super::{MINUTE_MS, counts, create, definition, get, minute, minutes, named, pass, served};
use crate::application::broker::Broker;
use crate::application::script::PROGRAM;
use crate::application::world::{caller, soon};
use serde_json::Map;
use std::sync::Arc;
use taskledger::application::Context;
use taskledger::application::api::schedules::{
    CreateSchedule, Definition, Overlap, ScheduleChanges, ShownSchedule, State, Timing, Work,
};
use taskledger::application::api::workflows::{Document, SaveWorkflow};
use taskledger_auth::{Caller, Name, Scope, Scopes};

async fn update(b: &Broker, context: &Context, changes: ScheduleChanges) -> ShownSchedule {
    let updated = soon(Box::pin(b.service.update_schedule(
        context,
        named(),
        changes,
        None,
    )))
    .await;
    updated.unwrap().unwrap()
}

#[tokio::test]
async fn a_time_that_is_due_outlives_a_change_of_something_else() {
    let b = served().await;
    create(&b, definition()).await;
    b.w.clock.advance_ms(MINUTE_MS);
    let changes = ScheduleChanges {
        jitter_seconds: Some(0),
        overlap: Some(Overlap::Allow),
        ..ScheduleChanges::default()
    };
    update(&b, &caller(), changes).await;
    pass(&b, 0).await;
    let shown = get(&b).await;
    assert_eq!(minutes(&shown, State::Started), [1]);
    assert_eq!(counts(&shown.schedule), [1, 0, 0, 0]);
}

#[tokio::test]
async fn times_that_are_due_when_others_take_their_place_are_missed() {
    let b = served().await;
    create(&b, definition()).await;
    b.w.clock.advance_ms(2 * MINUTE_MS);
    let changes = ScheduleChanges {
        timing: Some(Timing::Every { seconds: 180 }),
        ..ScheduleChanges::default()
    };
    let updated = update(&b, &caller(), changes).await;
    assert_eq!(counts(&updated.schedule), [0, 0, 2, 0]);
    assert_eq!(updated.next[0], minute(3));
    pass(&b, MINUTE_MS).await;
    assert_eq!(minutes(&get(&b).await, State::Started), [3]);
}

fn ann(scopes: Scopes) -> Context {
    let name = Name::new("ann").unwrap();
    Context::of(Arc::new(Caller::user(&name, scopes)), Arc::from("request"))
}

async fn save(b: &Broker, context: &Context, method: &str) {
    let document = format!(
        "openintent: \"1.0\"\ninfo: {{name: Report}}\nworkflow:\n  a:\n    assign: {method}\n"
    );
    let save = SaveWorkflow {
        document: Document::Text(document),
        strict: false,
        owner: None,
        expected_version: None,
    };
    let saved = soon(Box::pin(b.service.save_workflow(context, save))).await;
    saved.unwrap().unwrap();
}

#[tokio::test]
async fn a_document_that_was_saved_later_starts_no_programs_with_the_rights_of_who_made_the_schedule()
 {
    let b = served().await;
    b.w.executors.add_remote(PROGRAM, 100);
    let strong = ann(Scopes::all());
    let weak = ann(Scopes::of([
        Scope::TasksRead,
        Scope::TasksWrite,
        Scope::TasksRun,
    ]));
    save(&b, &strong, PROGRAM).await;
    let new = CreateSchedule {
        named: named(),
        definition: Definition {
            work: Work::Workflow {
                name: "Report".into(),
                version: None,
                inputs: Map::new(),
            },
            overlap: Overlap::Allow,
            ..definition()
        },
        is_paused: false,
        note: None,
    };
    let made = soon(Box::pin(b.service.create_schedule(&strong, new))).await;
    made.unwrap().unwrap();
    let shown = async || {
        let found = soon(Box::pin(b.service.get_schedule(&strong, named()))).await;
        found.unwrap().unwrap()
    };
    pass(&b, MINUTE_MS).await;
    assert_eq!(minutes(&shown().await, State::Started), [1]);
    // Its text is another one, so it is another version.
    save(&b, &weak, "resize").await;
    pass(&b, MINUTE_MS).await;
    assert_eq!(
        minutes(&shown().await, State::Started),
        [1, 2],
        "what needs no such right starts"
    );
    save(&b, &weak, PROGRAM).await;
    pass(&b, MINUTE_MS).await;
    let refused = shown().await;
    assert_eq!(minutes(&refused, State::Failed), [3]);
    let reason = refused.schedule.last_error.as_deref().unwrap();
    assert!(reason.contains("exec:local"), "{reason}");
    // Whoever changes it answers for the version of that moment.
    let changes = ScheduleChanges {
        jitter_seconds: Some(0),
        ..ScheduleChanges::default()
    };
    update(&b, &strong, changes).await;
    pass(&b, MINUTE_MS).await;
    assert_eq!(minutes(&shown().await, State::Started), [1, 2, 4]);
}
