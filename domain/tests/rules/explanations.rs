//! `tasks.explain`: one reason for each way in which a task can stand. spec: semantics / Methods

use crate::support::{cancel, cancel_all, change, execute_unknown, fail, report, updating};
use taskledger_domain::TaskId;
use taskledger_domain::flow::FailureReason;
use taskledger_domain::flow::explain::{
    Again, Blocked, CHAINS_MAX, Cause, Explanation, LISTED_MAX, Reason,
};
use taskledger_domain::task::Status::{Failed, InProgress, Pending};
use taskledger_domain::testing::{START, Scenario, execute, given, group, id, retry, run, task};

pub(crate) fn explain(s: &Scenario, name: &str) -> Explanation {
    s.flow
        .explain(id(name), s.now, &s.server)
        .expect("the task lives")
}

/// The only reason.
pub(crate) fn reason(s: &Scenario, name: &str) -> Reason {
    let mut reasons = explain(s, name).reasons;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.remove(0)
}

fn chain(blocked: &Blocked) -> Vec<TaskId> {
    blocked.chain.iter().map(|link| link.task.id).collect()
}

/// The chains among the reasons.
pub(crate) fn chains(e: &Explanation) -> Vec<&Blocked> {
    let blocked = e.reasons.iter().filter_map(|r| match r {
        Reason::Blocked(blocked) => Some(blocked),
        _ => None,
    });
    blocked.collect()
}

#[test]
fn a_task_that_nobody_executed_is_covered_by_no_run() {
    let s = given(vec![task("a")]);
    let execute = Again::Accepted;
    assert_eq!(reason(&s, "a"), Reason::NotCovered { execute });
    assert_eq!((explain(&s, "a").attempt, explain(&s, "a").run), (0, None));
}

#[test]
fn a_task_that_does_not_exist_any_more_is_not_explained() {
    let s = given(vec![group("g"), task("a").under("g")]);
    let s = s.when(crate::support::delete("a")).accepted();
    assert_eq!(s.flow.explain(id("a"), s.now, &s.server), None);
    assert_eq!(s.flow.explain(id("never"), s.now, &s.server), None);
}

#[test]
fn a_pending_task_lists_what_it_waits_for() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g"),
        task("c").under("g").after(&["a"]).after_any(&["b"]),
    ])
    .when(execute("g"))
    .accepted();
    let Reason::WaitsForDependencies(list) = reason(&s, "c") else {
        panic!("{:?}", explain(&s, "c"));
    };
    let seen: Vec<_> = list
        .items
        .iter()
        .map(|d| {
            (
                d.task.id,
                d.task.status,
                d.when.is_required(),
                d.can_satisfy,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (id("a"), InProgress, true, true),
            (id("b"), InProgress, false, true)
        ]
    );
    let covering = explain(&s, "c").run.expect("covered");
    assert_eq!((covering.id, covering.root), (run("run"), id("g")));
}

#[test]
fn a_satisfied_dependency_is_not_listed() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g"),
        task("c").under("g").after(&["a", "b"]),
    ])
    .when(execute("g"))
    .accepted()
    .completes("a");
    let Reason::WaitsForDependencies(list) = reason(&s, "c") else {
        panic!("{:?}", explain(&s, "c"));
    };
    assert_eq!((list.items.len(), list.more), (1, 0));
    assert_eq!(list.items[0].task.id, id("b"));
}

#[test]
fn a_long_list_of_dependencies_is_cut_and_the_rest_is_counted() {
    let names: Vec<String> = (0..LISTED_MAX + 7).map(|n| format!("d{n}")).collect();
    let mut tasks = vec![group("g")];
    tasks.extend(names.iter().map(|n| task(n).under("g")));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    tasks.push(task("last").under("g").after(&names));
    let s = given(tasks).when(execute("g")).accepted();
    let Reason::WaitsForDependencies(list) = reason(&s, "last") else {
        panic!("{:?}", explain(&s, "last"));
    };
    assert_eq!((list.items.len(), list.more), (LISTED_MAX, 7));
    let Reason::WaitsForDescendants(below) = reason(&s, "g") else {
        panic!("{:?}", explain(&s, "g"));
    };
    assert_eq!(below.open as usize, LISTED_MAX + 8);
    assert_eq!(
        (below.listed.items.len(), below.listed.more),
        (LISTED_MAX, 8)
    );
}

#[test]
fn a_task_behind_a_failed_one_is_told_the_whole_way_to_the_root_cause() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
        task("c").under("g").after_any(&["b"]),
        task("long").under("g"),
    ])
    .when(execute("g"))
    .accepted()
    .fails("a");
    let e = explain(&s, "c");
    let [Reason::Blocked(blocked), Reason::WaitsForDependencies(list)] = &e.reasons[..] else {
        panic!("{e:?}");
    };
    assert_eq!(chain(blocked), [id("b"), id("a")]);
    let required: Vec<_> = blocked
        .chain
        .iter()
        .map(|link| link.when.is_required())
        .collect();
    assert_eq!(required, [false, true]);
    assert_eq!((blocked.cause, blocked.skipped), (Cause::Failed, 0));
    assert_eq!(blocked.chain[1].task.status, Failed);
    assert!(!list.items[0].can_satisfy);
}

#[test]
fn after_the_run_a_blocked_task_is_told_why_before_it_is_told_that_it_is_uncovered() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
    ])
    .when(execute("g"))
    .accepted()
    .fails("a")
    .runs(false);
    let e = explain(&s, "b");
    let [Reason::Blocked(blocked), Reason::NotCovered { .. }] = &e.reasons[..] else {
        panic!("{e:?}");
    };
    assert_eq!(
        (chain(blocked), blocked.cause),
        (vec![id("a")], Cause::Failed)
    );
    let s = s.when(retry("a")).accepted();
    assert!(chains(&explain(&s, "b")).is_empty(), "the retry mends it");
}

#[test]
fn a_task_behind_a_cancelled_one_is_told_so() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
        task("long").under("g"),
    ])
    .when(execute("g"))
    .accepted()
    .when(cancel("a"))
    .accepted();
    let e = explain(&s, "b");
    assert_eq!(chains(&e)[0].cause, Cause::Cancelled);
}

#[test]
fn a_failed_dependency_that_is_optional_blocks_nobody() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("slow").under("g"),
        task("b").under("g").after_any(&["a"]).after(&["slow"]),
    ])
    .when(execute("g"))
    .accepted()
    .fails("a");
    let Reason::WaitsForDependencies(list) = reason(&s, "b") else {
        panic!("{:?}", explain(&s, "b"));
    };
    assert_eq!(list.items.len(), 1);
    assert!(list.items[0].can_satisfy);
}

#[test]
fn chains_are_bounded_in_number_and_in_length() {
    let causes: Vec<String> = (0..CHAINS_MAX + 3).map(|n| format!("f{n}")).collect();
    let mut tasks = vec![group("g"), task("slow").under("g")];
    tasks.extend(causes.iter().map(|n| task(n).under("g")));
    let causes: Vec<&str> = causes.iter().map(String::as_str).collect();
    tasks.push(task("many").under("g").after(&causes));
    tasks.push(task("c0").under("g").after(&["f0"]));
    for n in 1..5000 {
        let before = format!("c{}", n - 1);
        tasks.push(task(&format!("c{n}")).under("g").after(&[&before]));
    }
    let mut s = given(tasks).when(execute("g")).accepted();
    for name in causes {
        s = s.fails(name);
    }
    assert_eq!(chains(&explain(&s, "many")).len(), CHAINS_MAX);
    let e = explain(&s, "c4999");
    let blocked = chains(&e)[0];
    assert_eq!(blocked.chain.len() + blocked.skipped, 5000);
    assert!(blocked.chain.len() <= LISTED_MAX);
    assert_eq!(blocked.chain.last().map(|l| l.task.id), Some(id("f0")));
}

#[test]
fn between_two_attempts_a_task_waits_for_the_time_of_the_next() {
    let s = given(vec![task("a").attempts(3, 500)])
        .when(execute("a"))
        .accepted()
        .fails("a");
    let at = START.plus_ms(500);
    assert_eq!(reason(&s, "a"), Reason::WaitsForRetry { at });
    let e = explain(&s, "a");
    assert_eq!((e.attempts.used, e.attempts.max), (1, 3));
}

#[test]
fn a_ready_task_without_a_slot_knows_its_place() {
    let mut s = given(vec![
        group("g"),
        task("first").under("g").priority(0),
        task("second").under("g").priority(1),
        task("third").under("g").priority(1),
    ]);
    s.server.slots = 1;
    let s = s.when(execute("g")).accepted();
    let Reason::WaitsForSlot(place) = reason(&s, "third") else {
        panic!("{:?}", explain(&s, "third"));
    };
    assert_eq!((place.priority.get(), place.ahead_in_flow), (1, 1));
    assert_eq!(place.since, START);
    assert!(matches!(reason(&s, "second"), Reason::WaitsForSlot(p) if p.ahead_in_flow == 0));
}

#[test]
fn tasks_of_an_alias_are_ahead_in_the_same_line() {
    let mut s = given(vec![
        group("g"),
        task("runs").under("g").priority(0),
        task("alias").under("g").method("echo2").priority(1),
        task("other").under("g").method("once").priority(1),
        task("last").under("g").priority(2),
    ]);
    s.server.executors.insert("echo2".to_owned(), true);
    let alias = ("echo2".to_owned(), "echo".to_owned());
    s.server.aliases.extend([alias]);
    s.server.slots = 1;
    let s = s.when(execute("g")).accepted();
    assert!(matches!(reason(&s, "last"), Reason::WaitsForSlot(p) if p.ahead_in_flow == 1));
}

#[test]
fn a_task_whose_executor_is_missing_waits_until_it_gives_up() {
    let s = given(vec![task("a").method("absent")])
        .when(execute_unknown("a", "run", 700))
        .accepted();
    let until = START.plus_ms(700);
    assert_eq!(reason(&s, "a"), Reason::WaitsForExecutor { until });
    let s = s.after_ms(700);
    assert!(matches!(reason(&s, "a"), Reason::Failed { .. }));
}

#[test]
fn a_running_task_shows_its_attempt_progress_and_deadline() {
    let s = given(vec![
        group("g").deadline_ms(9000),
        task("a").under("g").attempts(2, 0),
    ])
    .when(execute("g"))
    .accepted()
    .when(report("a", 1, 0.5))
    .accepted();
    assert_eq!(reason(&s, "a"), Reason::Running);
    let e = explain(&s, "a");
    assert_eq!((e.attempt, e.attempts.used, e.attempts.max), (1, 1, 2));
    assert_eq!(e.progress.millionths(), 500_000);
    let deadline = e.deadline.expect("inherited");
    assert_eq!(
        (deadline.at, deadline.of.id),
        (START.plus_ms(9000), id("g"))
    );
}

#[test]
fn a_group_under_way_counts_its_descendants_and_names_running_ones_first() {
    let s = given(vec![
        group("g"),
        group("inner").under("g"),
        task("later").under("inner").after(&["now"]),
        task("now").under("inner"),
        task("done").under("inner"),
    ])
    .when(execute("g"))
    .accepted()
    .completes("done");
    let Reason::WaitsForDescendants(below) = reason(&s, "g") else {
        panic!("{:?}", explain(&s, "g"));
    };
    assert_eq!((below.open, below.completed), (2, 1));
    let listed: Vec<_> = below.listed.items.iter().map(|t| t.id).collect();
    assert_eq!(listed, [id("now"), id("later"), id("inner")]);
}

#[test]
fn a_completed_task_says_so() {
    let s = given(vec![task("a")])
        .when(execute("a"))
        .accepted()
        .completes("a");
    assert_eq!(reason(&s, "a"), Reason::Completed);
    assert!(explain(&s, "a").task.outcome_at > 0);
}

#[test]
fn a_failed_task_shows_whether_retries_were_left() {
    let s = given(vec![task("a").attempts(2, 0)])
        .when(execute("a"))
        .accepted()
        .fails("a")
        .fails("a");
    assert!(matches!(reason(&s, "a"), Reason::Failed { .. }));
    let e = explain(&s, "a");
    assert_eq!((e.attempts.used, e.attempts.max, e.attempt), (2, 2, 2));
}

#[test]
fn a_failed_group_names_the_children_that_harmed_it_and_what_was_not_done() {
    let s = given(vec![
        group("g"),
        task("bad").under("g"),
        task("tolerated").under("g"),
        task("good").under("g").after_any(&["tolerated"]),
        task("behind").under("g").after(&["bad"]),
    ])
    .when(execute("g"))
    .accepted()
    .fails("bad")
    .fails("tolerated")
    .completes("good")
    .then(&[("g", Failed), ("behind", Pending)]);
    let Reason::Failed {
        harmed_by,
        not_done,
        retry: _,
    } = reason(&s, "g")
    else {
        panic!("{:?}", explain(&s, "g"));
    };
    let ids = |list: Vec<taskledger_domain::flow::explain::TaskRef>| {
        list.into_iter().map(|t| t.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(harmed_by.items), [id("bad")]);
    assert_eq!(ids(not_done.items), [id("behind")]);
}

#[test]
fn a_task_cancelled_with_a_group_names_the_cancelled_tasks_around_it() {
    let s = given(vec![
        group("top"),
        group("g").under("top"),
        task("a").under("g"),
        task("other").under("top"),
    ])
    .when(execute("top"))
    .accepted()
    .when(cancel_all("g"))
    .accepted();
    let Reason::Cancelled { around } = reason(&s, "a") else {
        panic!("{:?}", explain(&s, "a"));
    };
    assert_eq!(around.iter().map(|t| t.id).collect::<Vec<_>>(), [id("g")]);
}

#[test]
fn a_pending_task_under_a_deadline_says_whose_it_is() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]).deadline_ms(100),
    ])
    .when(execute("g"))
    .accepted();
    let deadline = explain(&s, "b").deadline.expect("its own");
    assert_eq!((deadline.at, deadline.of.id), (START.plus_ms(100), id("b")));
    assert_eq!(explain(&s, "a").deadline, None);
    let s = s.after_ms(100);
    assert!(matches!(reason(&s, "b"), Reason::Cancelled { around } if around.is_empty()));
}

#[test]
fn dependencies_that_were_mended_block_no_more() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
        task("long").under("g"),
    ])
    .when(execute("g"))
    .accepted()
    .when(fail("a", 1, FailureReason::Executor))
    .accepted();
    assert_eq!(chains(&explain(&s, "b")).len(), 1);
    let s = updating(s, change("b").dependencies(&["long"])).accepted();
    assert!(chains(&explain(&s, "b")).is_empty());
}

#[test]
fn an_explanation_of_a_flow_rebuilt_from_its_history_is_the_same() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
        task("c").under("g").after(&["b"]),
        task("long").under("g"),
    ])
    .when(execute("g"))
    .accepted()
    .fails("a");
    let replayed = s.replayed();
    for name in ["g", "a", "b", "c", "long"] {
        let again = replayed.explain(id(name), s.now, &s.server);
        assert_eq!(again, Some(explain(&s, name)), "{name}");
    }
}

#[test]
fn a_task_that_joined_a_run_may_wait_for_one_that_no_run_covers() {
    let s = given(vec![
        group("root"),
        group("g").under("root"),
        task("a").under("g"),
        task("outside").under("root"),
    ])
    .when(execute("g"))
    .accepted()
    .when(crate::support::create(vec![
        task("late").under("g").after(&["outside"]),
    ]))
    .accepted();
    let e = explain(&s, "late");
    let blocked = chains(&e)[0];
    assert_eq!(
        (chain(blocked), blocked.cause),
        (vec![id("outside")], Cause::NotCovered)
    );
}
