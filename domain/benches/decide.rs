//! What a command costs (decide, apply, settle), and that it does not grow with the flow.
//!
//! `cargo bench -p taskledger-domain` prints medians for flows of 100 and of 100,000 tasks, their
//! ratio, and what loading a flow costs. A ratio near 1 is the claim; some growth comes from
//! memory that no longer fits the processor's caches.

use std::hint::black_box;
use std::time::Instant;
use taskledger_domain::codec::snapshot;
use taskledger_domain::flow::{
    Command, Dependency, Execute, FailureReason, Flow, Handover, Include, RunKind, Update, When,
};
use taskledger_domain::task::call::NewTask;
use taskledger_domain::task::spec::Updates;
use taskledger_domain::task::{Priority, Progress};
use taskledger_domain::testing::{Scenario, execute, given, group, id, run, task};
use taskledger_domain::{Payload, limits};

/// Tasks of one chain; a flow is a root, groups below it, and a chain in each.
const CHAIN: usize = 49;
/// Commands of a kind on one flow, so that a flow of 100 tasks is not used up.
const COMMANDS_PER_FLOW: usize = 2;
/// Samples of each figure.
const SAMPLES: usize = 200;

fn main() {
    let small = flow(100, false);
    let large = flow(limits::TASKS_PER_FLOW_MAX - 500, false);
    let (small_knot, large_knot) = (
        flow(100, true),
        flow(limits::TASKS_PER_FLOW_MAX - 500, true),
    );
    println!(
        "{:46} {:>10} {:>10} {:>7}",
        "microseconds per command (median)", "100", "100,000", "ratio"
    );
    for (name, command) in commands() {
        line(name, sample(&small, &command), sample(&large, &command));
    }
    for (name, command) in commands()
        .into_iter()
        .filter(|(n, _)| n.starts_with("create"))
    {
        let name = format!("{name}, waits on a group");
        line(
            &name,
            sample(&small_knot, &command),
            sample(&large_knot, &command),
        );
    }
    let leaf: Give = Box::new(|_, k| {
        Command::Execute(Execute {
            create: Vec::new(),
            task: id(&format!("{k}-0")),
            kind: RunKind::Execute,
            include: Include::Needed,
            run_id: run(&format!("leaf {k}")),
            allow_unknown_executors: false,
            executor_wait_ms: 0,
            wait_bounds: Default::default(),
            callback: None,
            origin: None,
        })
    });
    for (name, knot) in [
        ("execute one leaf of an idle flow", false),
        ("execute one leaf, a task waits on a group", true),
    ] {
        let (small, large) = (
            idle(100, knot),
            idle(limits::TASKS_PER_FLOW_MAX - 500, knot),
        );
        line(name, sample(&small, &leaf), sample(&large, &leaf));
    }
    loading(&large);
}

type Give = Box<dyn Fn(&Flow, usize) -> Command>;

/// The k-th command of each kind, for the k-th chain of the flow.
fn commands() -> Vec<(&'static str, Give)> {
    let head = |k: usize| id(&format!("{k}-0"));
    let last = |k: usize| id(&format!("{k}-{}", CHAIN - 1));
    let update = move |k: usize| Update {
        task: last(k),
        updates: Updates::default(),
        dependencies: None,
        parent: None,
        current: None,
        looked: None,
        handover: Handover::default(),
    };
    let attempt = 1;
    vec![
        (
            "create below a leaf",
            Box::new(move |flow, k| Command::Create(vec![new(flow, k, &[])])),
        ),
        (
            "create below a leaf with a dependency",
            Box::new(move |flow, k| Command::Create(vec![new(flow, k, &[last(k)])])),
        ),
        (
            "complete in a chain",
            Box::new(move |_, k| Command::Complete {
                task: head(k),
                attempt,
                result: Payload::empty(),
                lease: None,
            }),
        ),
        (
            "fail with retry",
            Box::new(move |_, k| Command::Fail {
                task: head(k),
                attempt,
                error: "boom".to_owned(),
                reason: FailureReason::Executor,
                progress: Progress::ZERO,
                lease: None,
                retry_after_ms: 0,
            }),
        ),
        (
            "report progress",
            Box::new(move |_, k| Command::Report {
                task: head(k),
                attempt,
                progress: Progress::from_millionths(500_000),
                message: None,
                lease: None,
            }),
        ),
        (
            "update name",
            Box::new(move |_, k| {
                let mut update = update(k);
                update.updates.name = Some("new name".to_owned());
                Command::Update(update)
            }),
        ),
        (
            "update priority",
            Box::new(move |_, k| {
                let mut update = update(k);
                update.updates.priority = Priority::new(0);
                Command::Update(update)
            }),
        ),
        (
            "update dependencies",
            Box::new(move |_, k| {
                let mut update = update(k);
                update.dependencies = Some(vec![Dependency {
                    id: head(k),
                    when: When::Completed,
                }]);
                Command::Update(update)
            }),
        ),
        (
            "cancel a leaf",
            Box::new(move |_, k| Command::Cancel {
                task: last(k),
                cascade: false,
                reason: None,
            }),
        ),
        (
            "delete a leaf",
            Box::new(move |_, k| Command::Delete {
                task: last(k),
                cascade: false,
            }),
        ),
        ("wake with nothing due", Box::new(move |_, _| Command::Wake)),
    ]
}

fn new(flow: &Flow, k: usize, after: &[taskledger_domain::TaskId]) -> NewTask {
    let mut new = task(&format!("new {k} {}", flow.size()));
    new.parent = Some(id(&format!("{k}-0")));
    let edge = |id: &taskledger_domain::TaskId| Dependency {
        id: *id,
        when: When::Completed,
    };
    new.dependencies = after.iter().map(edge).collect();
    new
}

/// About `size` tasks in chains, created in calls of the greatest size, not running; `knot`: with a
/// task that waits for a group.
fn idle(size: usize, knot: bool) -> Scenario {
    let mut s = given(vec![group("r")]);
    let mut call = Vec::new();
    for k in 0..size / (CHAIN + 1) {
        call.push(group(&format!("g{k}")).under("r"));
        for n in 0..CHAIN {
            let link = task(&format!("{k}-{n}"))
                .under(&format!("g{k}"))
                .attempts(3, 1000);
            let before = n.checked_sub(1).map(|b| format!("{k}-{b}"));
            call.push(match &before {
                Some(before) => link.after(&[before]),
                None => link,
            });
        }
        if call.len() + CHAIN >= limits::TASKS_PER_CALL_MAX {
            s = s
                .when(Command::Create(std::mem::take(&mut call)))
                .accepted();
        }
    }
    if knot {
        call.push(task("knot").under("r").after(&["g0"]));
    }
    s.when(Command::Create(call)).accepted()
}

/// The same, running.
fn flow(size: usize, knot: bool) -> Scenario {
    idle(size, knot).when(execute("r")).accepted()
}

/// Microseconds.
fn sample(base: &Scenario, give: &Give) -> f64 {
    let chains = base.flow.size() / (CHAIN + 1);
    // Many commands on one copy where there are many chains: copying is not measured, but slow.
    let per_copy = COMMANDS_PER_FLOW.max(chains.min(SAMPLES));
    let mut times = Vec::with_capacity(SAMPLES);
    while times.len() < SAMPLES {
        let (mut flow, mut server) = (base.flow.clone(), base.server.clone());
        for k in 0..per_copy.min(chains) {
            let command = give(&flow, k);
            let start = Instant::now();
            let answer = flow.handle(&command, base.now, &mut server);
            times.push(start.elapsed().as_secs_f64() * 1e6);
            black_box(answer.expect("each command is acceptable"));
        }
    }
    median(times)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn line(name: &str, small: f64, large: f64) {
    println!(
        "{name:46} {small:>10.2} {large:>10.2} {:>7.2}",
        large / small
    );
}

/// What bringing a flow into memory costs.
fn loading(s: &Scenario) {
    let tasks = s.flow.size() as f64;
    let ms = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let bytes = snapshot::encode(&s.flow);
    let encoded = ms(start);
    let start = Instant::now();
    let read = snapshot::decode(&bytes).expect("readable");
    println!(
        "snapshot of {tasks} tasks: {encoded:.1} ms to write, {:.1} ms to read, {:.0} bytes a task",
        ms(start),
        bytes.len() as f64 / tasks
    );
    let start = Instant::now();
    let replayed = s.replayed();
    println!(
        "replay of {} events: {:.1} ms, {:.2} us an event",
        s.history.len(),
        ms(start),
        ms(start) * 1e3 / s.history.len() as f64
    );
    assert!(
        read == s.flow && replayed == s.flow,
        "loading gives the same state"
    );
    drop((read, replayed));
    let before = resident();
    let copies: Vec<Flow> = (0..4).map(|_| s.flow.clone()).collect();
    let each = (resident() - before) / 4.0 / tasks;
    let weighed = s.flow.weight_bytes() as f64 / tasks;
    println!("memory: {each:.0} bytes a task in a copy, {weighed:.0} by `weight_bytes`");
    drop(copies);
}

/// Bytes of resident memory of this process, or 0 where that cannot be read.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|p| p.parse::<f64>().ok());
    pages.unwrap_or(0.0) * 4096.0
}
