//! Nothing waits for itself: neither through dependencies nor through groups, which wait for what is below them.
//! spec: semantics / Trees and flows

use crate::support::{change, create, cycle, refusal, updating};
use taskledger_domain::TaskId;
use taskledger_domain::flow::{ClosedBy, Kind, Refusal, Rejection, When};
use taskledger_domain::task::Status::{Completed, InProgress};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::testing::{Scenario, execute, given, group, id, task};

/// All cycles that the latest command was refused for, with what closes them.
fn cycles(s: &Scenario) -> Vec<(Vec<TaskId>, ClosedBy, bool)> {
    let Err(Rejection::Refused(refusals)) = &s.last else {
        panic!("not refused: {:?}", s.last);
    };
    let all = refusals.clone().into_iter();
    all.map(|refusal| match refusal {
        Refusal::CircularDependency {
            cycle,
            closed_by,
            has_group,
            ..
        } => (cycle, closed_by, has_group),
        other => panic!("no cycle: {other:?}"),
    })
    .collect()
}

fn ids<const N: usize>(names: [&str; N]) -> Vec<TaskId> {
    names.map(id).to_vec()
}

#[test]
fn a_task_cannot_depend_on_a_group_above_it_however_it_depends() {
    let s = given(vec![]).when(create(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g").after(&["r"]),
        task("b").under("g").after_any(&["g"]),
        task("c").under("b").after(&["b"]),
        task("d").under("b").after(&["b", "g"]),
    ]));
    let s = s.rejects(Kind::Circular);
    let expected = [
        (ids(["a", "r", "a"]), ClosedBy::GroupAbove(0), true),
        (ids(["b", "g", "b"]), ClosedBy::GroupAbove(0), true),
        (ids(["d", "g", "d"]), ClosedBy::GroupAbove(1), true),
    ];
    assert_eq!(cycles(&s), expected, "one fault for each such dependency");
    let s = given(vec![group("r"), task("a").under("r")]);
    let s = updating(s, change("a").dependency("r", When::Always));
    let expected = [(ids(["a", "r", "a"]), ClosedBy::GroupAbove(0), true)];
    assert_eq!(cycles(&s), expected);
}

#[test]
fn a_task_cannot_wait_for_a_group_above_it_through_others() {
    // The group waits for `a`, `a` for `x`, and `x` for the group.
    let tree = |last: NewTask| {
        vec![
            group("r"),
            group("g").under("r"),
            task("a").under("g").after(&["x"]),
            last,
        ]
    };
    let s = given(vec![]).when(create(tree(task("x").under("r").after(&["g"]))));
    let s = s.rejects(Kind::Circular);
    let expected = [(ids(["a", "x", "g", "a"]), ClosedBy::Dependencies, true)];
    assert_eq!(cycles(&s), expected);
    // Two groups, each of which waits for a task that waits for the other.
    let s = given(vec![])
        .when(create(vec![
            group("r"),
            group("g").under("r"),
            group("h").under("r"),
            task("a").under("g").after(&["h"]),
            task("b").under("h").after(&["g"]),
        ]))
        .rejects(Kind::Circular);
    let expected = [(ids(["a", "h", "b", "g", "a"]), ClosedBy::Dependencies, true)];
    assert_eq!(cycles(&s), expected);
    // By an update.
    let s = given(tree(task("x").under("r")));
    let s = updating(s, change("x").dependencies(&["g"])).rejects(Kind::Circular);
    let expected = [(ids(["x", "g", "a", "x"]), ClosedBy::Dependency(0), true)];
    assert_eq!(cycles(&s), expected);
}

#[test]
fn a_task_that_joins_a_group_cannot_wait_for_what_waits_for_the_group() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        group("h").under("g"),
        task("x").under("r").after(&["g"]),
        task("y").under("r").after(&["x"]),
    ]);
    let created = s.clone().when(create(vec![
        group("new").under("h"),
        task("in").under("new").after(&["y"]),
    ]));
    let expected = [(
        ids(["in", "y", "x", "g", "h", "new", "in"]),
        ClosedBy::Dependencies,
        true,
    )];
    assert_eq!(cycles(&created), expected);
    // Two new tasks, of which one joins a stored group and the other waits for it.
    let both = s.clone().when(create(vec![
        task("late").under("r").after(&["h"]),
        task("joins").under("h").after(&["late"]),
    ]));
    let expected = [(
        ids(["late", "h", "joins", "late"]),
        ClosedBy::Dependencies,
        true,
    )];
    assert_eq!(cycles(&both), expected);
    let moved = updating(s.clone(), change("y").parent(Some("h")));
    let by_parent = ClosedBy::Parent { task: id("y") };
    let expected = [(ids(["y", "x", "g", "h", "y"]), by_parent, true)];
    assert_eq!(cycles(&moved), expected);
    let moved = updating(s.clone(), change("x").parent(Some("h")));
    let by_parent = ClosedBy::Parent { task: id("x") };
    let expected = [(ids(["x", "g", "x"]), by_parent, true)];
    assert_eq!(cycles(&moved), expected, "the dependency was there before");
    // Together with what it depends on.
    let both = change("x").parent(Some("h")).dependencies(&[]);
    let _ = updating(s, both).accepted();
}

#[test]
fn a_copy_that_keeps_a_dependency_cannot_join_what_waits_for_it() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("x").under("r").after(&["g"]),
    ]);
    let mut copy = task("copy").under("g").after(&["g"]);
    copy.copied_from = Some(id("x"));
    let s = s.when(create(vec![copy]));
    let by_parent = ClosedBy::Parent { task: id("copy") };
    let expected = [(ids(["copy", "g", "copy"]), by_parent, true)];
    assert_eq!(cycles(&s), expected);
}

#[test]
fn a_task_on_which_one_below_it_depends_does_not_become_a_group() {
    let s = given(vec![task("t"), task("a").under("t").after(&["t"])]);
    let s = updating(s, change("t").method(None));
    let by_method = ClosedBy::Method { task: id("t") };
    let expected = [(ids(["t", "a", "t"]), by_method, true)];
    assert_eq!(cycles(&s), expected);
}

#[test]
fn the_root_of_a_run_ends_after_everything_below_it() {
    let s = given(vec![
        group("r"),
        group("g").under("r"),
        task("a").under("g"),
        task("b").under("r").after(&["g"]),
    ])
    .when(execute("r"))
    .accepted()
    .completes("a")
    .then(&[("g", Completed), ("b", InProgress), ("r", InProgress)])
    // It can be cancelled as long as anything below it goes on.
    .when(crate::support::cancel("r"))
    .accepted()
    .runs(false);
    assert_eq!(s.flow, s.replayed());
}

#[test]
fn a_long_way_round_is_found_without_recursion() {
    let n = 10_000;
    let name = |k: usize| k.to_string();
    let mut tasks = vec![group("r"), group("g").under("r")];
    tasks.push(task("0").under("r"));
    tasks.extend((1..n).map(|k| task(&name(k)).under("r").after(&[&name(k - 1)])));
    tasks.push(task("in").under("g").after(&[&name(n - 1)]));
    let s = updating(given(tasks), change("0").dependencies(&["g"]));
    let s = s.rejects(Kind::Circular);
    assert_eq!(cycle(refusal(&s)).len(), n + 3);
}

/// A tree of five tasks below a group, with two dependencies.
struct Plan {
    parents: [usize; 4],
    groups: u8,
    edges: [(usize, usize); 2],
}

const NAMES: [&str; 5] = ["t0", "t1", "t2", "t3", "t4"];

impl Plan {
    fn is_group(&self, i: usize) -> bool {
        i == 0 || self.groups & (1 << (i - 1)) != 0
    }

    /// By the text: tasks wait for their dependencies, groups for everything below them.
    fn has_cycle(&self) -> bool {
        let mut waits = [[false; 5]; 5];
        self.edges
            .iter()
            .for_each(|(from, to)| waits[*from][*to] = true);
        for (at, _) in self.parents.iter().enumerate() {
            let i = at + 1;
            let mut above = i;
            while above != 0 {
                above = self.parents[above - 1];
                waits[above][i] |= self.is_group(above);
            }
        }
        for k in 0..5 {
            for i in 0..5 {
                for j in 0..5 {
                    waits[i][j] |= waits[i][k] && waits[k][j];
                }
            }
        }
        (0..5).any(|i| waits[i][i])
    }

    fn tasks(&self, edges: &[(usize, usize)]) -> Vec<NewTask> {
        let build = |i: usize| {
            let new = if self.is_group(i) {
                group(NAMES[i])
            } else {
                task(NAMES[i])
            };
            let new = if i == 0 {
                new
            } else {
                new.under(NAMES[self.parents[i - 1]])
            };
            let targets = edges.iter().filter(|(from, _)| *from == i);
            let targets: Vec<&str> = targets.map(|(_, to)| NAMES[*to]).collect();
            new.after(&targets)
        };
        (0..5).map(build).collect()
    }
}

#[test]
fn exactly_the_plans_in_which_something_waits_for_itself_are_refused_however_they_come_about() {
    let pairs: Vec<(usize, usize)> = (0..5)
        .flat_map(|from| (0..5).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
        .collect();
    let shapes = (0..24).map(|n| [0, n % 2, n / 2 % 3, n / 6]);
    let mut refused = [0, 0];
    for (shape, parents) in shapes.enumerate() {
        for groups in 0..16 {
            // Each pair of dependencies with some of the shapes.
            let first = (shape * 16 + usize::from(groups)) % pairs.len();
            for second in (0..pairs.len()).filter(|k| *k != first) {
                let edges = [pairs[first], pairs[second]];
                let plan = Plan {
                    parents,
                    groups,
                    edges,
                };
                let expected = plan.has_cycle();
                refused[usize::from(expected)] += 1;
                let at_once = given(vec![]).when(create(plan.tasks(&edges)));
                assert_eq!(
                    at_once.last.is_err(),
                    expected,
                    "{parents:?} {groups:b} {edges:?}"
                );
                // The second dependency by an update.
                let s = given(vec![]).when(create(plan.tasks(&edges[..1])));
                if s.last.is_ok() {
                    let (from, _) = edges[1];
                    let own = edges.iter().filter(|(it, _)| *it == from);
                    let own: Vec<&str> = own.map(|(_, to)| NAMES[*to]).collect();
                    let s = updating(s, change(NAMES[from]).dependencies(&own));
                    assert_eq!(
                        s.last.is_err(),
                        expected,
                        "{parents:?} {groups:b} {edges:?}"
                    );
                }
                // The last task by a second call, or moved from below the root, unless something depends on it.
                if edges.iter().all(|(_, to)| *to != 4) {
                    let mut tasks = plan.tasks(&edges);
                    let last = tasks.pop().expect("five");
                    let s = given(vec![]).when(create(tasks));
                    if s.last.is_ok() {
                        let s = s.when(create(vec![last]));
                        assert_eq!(
                            s.last.is_err(),
                            expected,
                            "{parents:?} {groups:b} {edges:?}"
                        );
                    }
                }
                let below_root = Plan {
                    parents: [parents[0], parents[1], parents[2], 0],
                    ..plan
                };
                let s = given(vec![]).when(create(below_root.tasks(&edges)));
                if s.last.is_ok() && parents[3] != 0 {
                    let s = updating(s, change("t4").parent(Some(NAMES[parents[3]])));
                    assert_eq!(
                        s.last.is_err(),
                        expected,
                        "{parents:?} {groups:b} {edges:?}"
                    );
                }
            }
        }
    }
    assert!(refused.iter().all(|n| *n > 500), "{refused:?}");
}
