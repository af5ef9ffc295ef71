//! Priorities and slots. spec: semantics / Dependencies and failure

use crate::support::create;
use taskledger_domain::task::Status::{InProgress, Pending};
use taskledger_domain::testing::{Scenario, execute, given, group, id, task};

fn with_slots(slots: usize, mut s: Scenario) -> Scenario {
    s.server.slots = slots;
    s
}

#[test]
fn ready_tasks_start_in_order_of_priority() {
    let tasks = [3, 1, 2, 0].map(|p| task(&p.to_string()).under("r").priority(p));
    let tasks = std::iter::once(group("r")).chain(tasks).collect();
    let s = given(tasks).when(execute("r")).accepted();
    assert_eq!(s.server.granted, ["0", "1", "2", "3"].map(id));
}

#[test]
fn tasks_of_equal_priority_start_in_order_of_becoming_ready() {
    let s = with_slots(
        2,
        given(vec![
            group("r"),
            task("late").under("r").after(&["x"]),
            task("x").under("r"),
            task("y").under("r"),
            task("early").under("r").after(&["y"]),
            task("hog").under("r").priority(0).after_any(&["x"]),
        ]),
    );
    let s = s.when(execute("r")).accepted();
    let s = s.after_ms(1).completes("y").then(&[("early", InProgress)]);
    let s = s
        .after_ms(1)
        .completes("x")
        .then(&[("hog", InProgress), ("late", Pending)]);
    let _ = s.completes("early").then(&[("late", InProgress)]);
}

#[test]
fn priority_beats_age() {
    let s = with_slots(
        1,
        given(vec![
            group("r"),
            task("x").under("r"),
            task("old").under("r"),
        ]),
    );
    let s = s.when(execute("r")).accepted().after_ms(50);
    let s = s
        .when(create(vec![task("urgent").under("r").priority(1)]))
        .accepted();
    let _ = s
        .completes("x")
        .then(&[("urgent", InProgress), ("old", Pending)]);
}

#[test]
fn tasks_that_became_ready_together_start_in_order_of_creation() {
    let tasks = ["c", "a", "b"].map(|n| task(n).under("r"));
    let tasks = std::iter::once(group("r")).chain(tasks).collect();
    let s = given(tasks).when(execute("r")).accepted();
    assert_eq!(s.server.granted, ["c", "a", "b"].map(id));
}

#[test]
fn without_a_slot_nothing_starts_and_a_freed_slot_is_used() {
    let s = with_slots(
        1,
        given(vec![group("r"), task("a").under("r"), task("b").under("r")]),
    );
    let s = s
        .when(execute("r"))
        .accepted()
        .then(&[("a", InProgress), ("b", Pending)]);
    let s = s
        .after_ms(5)
        .then(&[("b", Pending)])
        .completes("a")
        .then(&[("b", InProgress)]);
    assert_eq!(s.server.slots, 0);
}

#[test]
fn a_delayed_retry_does_not_keep_others_from_starting() {
    let s = given(vec![
        group("r"),
        task("a").under("r").priority(0).attempts(2, 1000),
        task("b").under("r").priority(0).after_any(&["x"]),
        task("x").under("r"),
    ]);
    let s = s
        .when(execute("r"))
        .accepted()
        .fails("a")
        .then(&[("a", Pending)]);
    let _ = s.completes("x").then(&[("a", Pending), ("b", InProgress)]);
}

#[test]
fn an_executor_without_slots_does_not_hold_up_another_one() {
    // Slots are the server's business: a refused slot only stops the tasks of that executor.
    struct Half(Vec<String>);
    impl taskledger_domain::flow::Capacity for Half {
        fn knows(&self, _: &str) -> bool {
            true
        }
        fn is_idempotent(&self, _: &str) -> bool {
            true
        }
        fn take_slot(&mut self, attempt: &taskledger_domain::flow::SlotRequest<'_>) -> bool {
            self.0.push(format!(
                "{} {} {}",
                attempt.method,
                attempt.attempt,
                attempt.priority.get()
            ));
            attempt.method == "once"
        }
    }
    let mut s = given(vec![
        group("r"),
        task("a").under("r").priority(0),
        task("b").under("r").priority(1),
        task("c").under("r").method("once").priority(3),
    ]);
    let mut half = Half(Vec::new());
    s.flow.handle(&execute("r"), s.now, &mut half).unwrap();
    assert!(half.0.contains(&"once 1 3".to_owned()));
    let _ = s.then(&[("a", Pending), ("b", Pending), ("c", InProgress)]);
}
