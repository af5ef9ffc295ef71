//! What an explanation says can be done is what the rules accept. spec: semantics / Methods

use crate::explanations::{chains, explain, reason};
use crate::support::cancel;
use taskledger_domain::flow::explain::{Again, Reason};
use taskledger_domain::flow::{Kind, Refusal};
use taskledger_domain::testing::{Scenario, execute, given, group, id, retry, task};

#[test]
fn a_rerun_is_told_as_possible_only_when_the_rules_accept_it() {
    let s = given(vec![
        group("g"),
        task("a").under("g"),
        task("b").under("g").after(&["a"]),
        task("long").under("g"),
    ])
    .when(execute("g"))
    .accepted()
    .fails("a");
    let told = |s: &Scenario| {
        let Reason::Failed { retry, .. } = reason(s, "a") else {
            panic!("{:?}", explain(s, "a"));
        };
        assert_eq!(chains(&explain(s, "b"))[0].again, retry);
        retry
    };
    assert_eq!(told(&s), Again::AfterRun);
    let _ = s.clone().when(retry("a")).rejects(Kind::AlreadyExecuting);
    let mut s = s.completes("long").runs(false);
    assert_eq!(told(&s), Again::Accepted);
    s.server.executors.clear();
    assert!(matches!(
        told(&s),
        Again::Refused(Refusal::ExecutorsNotFound(_))
    ));
    assert!(s.when(retry("a")).last.is_err());
}

#[test]
fn the_task_that_waits_for_the_root_cause_is_named_though_its_link_is_left_out() {
    let mut tasks = vec![group("g"), task("bad").under("g"), task("slow").under("g")];
    tasks.push(task("c0").under("g").after(&["bad"]));
    for n in 1..60 {
        let before = format!("c{}", n - 1);
        tasks.push(task(&format!("c{n}")).under("g").after(&[&before]));
    }
    let s = given(tasks).when(execute("g")).accepted().fails("bad");
    let e = explain(&s, "c59");
    let blocked = chains(&e)[0];
    assert!(blocked.skipped > 0);
    assert_eq!((blocked.waiting, blocked.room), (id("c0"), id("g")));
}

#[test]
fn a_retry_that_a_cancelled_task_would_make_fail_again_is_not_advised() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("g"),
        task("c").under("r").after(&["g"]),
    ]);
    let s = s.when(execute("r")).accepted().fails("a");
    let advice = |s: &Scenario, name: &str| {
        let Reason::Failed { retry, .. } = reason(s, name) else {
            panic!("{:?}", explain(s, name));
        };
        retry
    };
    let failed = s.clone().fails("b").runs(false);
    assert_eq!(advice(&failed, "g"), Again::Accepted);
    let s = s.when(cancel("b")).accepted().runs(false);
    for name in ["g", "r"] {
        assert_eq!(advice(&s, name), Again::OnlyCopy);
    }
    assert_eq!(chains(&explain(&s, "c"))[0].again, Again::OnlyCopy);
    assert_eq!(advice(&s, "a"), Again::Accepted);
}
