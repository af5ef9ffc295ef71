//! Many schedules at once, and schedules of which many runs go on.

use super::{MINUTE_MS, counts, create, definition, get, named, pass, served};
use crate::application::broker::Broker;
use crate::application::world::{caller, soon};
use taskledger::application::api::schedules::{
    CreateSchedule, Definition, Named, Overlap, State, Timing,
};
use taskledger_domain::flow::Event;
use taskledger_schedules::OPEN_MAX;

/// Times that one look decides.
const IN_ONE_LOOK: u64 = 16;

async fn started(b: &Broker, name: &str) -> u64 {
    let named = Named {
        name: name.into(),
        ..named()
    };
    let shown = soon(b.service.get_schedule(&caller(), named)).await;
    shown.unwrap().unwrap().schedule.counters.started
}

#[tokio::test]
async fn more_schedules_than_are_looked_at_at_once_start_their_runs_in_one_pass() {
    let b = served().await;
    let names: Vec<String> = (0..30).map(|n| format!("schedule {n}")).collect();
    for name in &names {
        let create = CreateSchedule {
            named: Named {
                name: name.as_str().into(),
                ..named()
            },
            definition: definition(),
            is_paused: false,
            note: None,
        };
        let made = soon(b.service.create_schedule(&caller(), create)).await;
        made.unwrap().unwrap();
    }
    pass(&b, MINUTE_MS).await;
    for name in &names {
        assert_eq!(started(&b, name).await, 1, "{name}");
    }
}

#[tokio::test]
async fn a_thousand_runs_go_on_at_a_time_and_the_next_one_starts_once_one_has_ended() {
    let b = served().await;
    let each_second = Definition {
        timing: Timing::Every { seconds: 1 },
        overlap: Overlap::Allow,
        ..definition()
    };
    create(&b, each_second).await;
    let seconds = async |n: u64| {
        for _ in 0..n.div_ceil(IN_ONE_LOOK) {
            pass(&b, IN_ONE_LOOK * 1_000).await;
        }
        counts(&get(&b).await.schedule)
    };
    let open = OPEN_MAX as u64;
    let [all, skipped, missed, failed] = seconds(open).await;
    assert_eq!((all, missed, failed), (open, 0, 0));
    assert_eq!(skipped, open.next_multiple_of(IN_ONE_LOOK) - open);
    // No more, however long they go on.
    let [all, later, ..] = seconds(2 * IN_ONE_LOOK).await;
    assert_eq!((all, later), (open, skipped + 2 * IN_ONE_LOOK));
    let shown = get(&b).await;
    assert!(shown.runs.iter().all(|run| run.state == State::Skipped));
    // One of them ends; a look finds that among those that it asks.
    let ended = b.w.whole_log().await;
    let first = ended.iter().find_map(|recorded| match &*recorded.event {
        Event::TaskCreated(created) => Some(created.task_id),
        _ => None,
    });
    let context = caller();
    let done = b.w.app.cancel(&context, first.unwrap(), true, None);
    soon(done).await.unwrap();
    let looks = OPEN_MAX as u64 / 32 + 2;
    let [all, ..] = seconds(looks * IN_ONE_LOOK).await;
    assert_eq!(all, open + 1);
}
