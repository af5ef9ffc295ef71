//! The rules of the protocol and of the decided semantics, one test each.
use taskledger_domain::flow::*;
use taskledger_domain::task::Status::*;
use taskledger_domain::testing::*;

#[test]
fn a_chain_runs_in_order_and_its_group_completes() {
    let _ = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
    ])
    .when(execute("g"))
    .accepted()
    .then(&[("g", InProgress), ("a", InProgress), ("b", Pending)])
    .completes("a")
    .then(&[("b", InProgress)])
    .completes("b")
    .then(&[("g", Completed)])
    .runs(false);
}

#[test]
fn a_group_does_not_wait_for_a_descendant_that_depends_on_it() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        group("h").under("g"),
        task("x").under("h").after(&["g"]),
        task("slow").under("r"),
    ])
    .when(execute("r"))
    .accepted()
    .then(&[("g", InProgress), ("a", InProgress), ("x", Pending)])
    .completes("a")
    .then(&[
        ("g", Completed),
        ("x", InProgress),
        ("h", InProgress),
        ("r", InProgress),
    ])
    .completes("x")
    .then(&[("h", Completed)])
    .completes("slow")
    .then(&[("r", Completed)])
    .runs(false);
    assert_eq!(s.flow, s.replayed());
    let bytes = taskledger_domain::codec::snapshot::encode(&s.flow);
    assert_eq!(
        s.flow,
        taskledger_domain::codec::snapshot::decode(&bytes).unwrap()
    );
}

#[test]
fn a_blocked_task_fails_its_group_and_the_run_ends() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
        task("c").under("g").after_any(&["b"]),
    ])
    .when(execute("g"))
    .accepted()
    .fails("a")
    .then(&[("a", Failed), ("b", Pending), ("c", Pending), ("g", Failed)])
    .runs(false)
    .when(retry("a"))
    .accepted()
    .then(&[("a", InProgress), ("g", InProgress)])
    .completes("a")
    .completes("b")
    .completes("c")
    .then(&[("g", Completed)])
    .runs(false);
    assert_eq!(s.flow, s.replayed());
}
