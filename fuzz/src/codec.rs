//! Bytes as what is stored: an event (`Kind version` on the first line, its JSON after it) or a
//! snapshot (`snapshot` on the first line, its bytes after it).
//!
//! What can be read can be written, and reads as the same. (What an event carries as payload is
//! taken as it stands: rows of the log have checksums, so no stranger writes there.) A damaged snapshot is an error;
//! one that can be read takes commands without a panic, whatever state it claims.

use hashbrown::HashSet;
use taskledger_domain::codec::{self, snapshot};
use taskledger_domain::flow::{Command, Execute, FailureReason, Flow, Include, RunKind, Update};
use taskledger_domain::task::Progress;
use taskledger_domain::task::spec::Updates;
use taskledger_domain::testing::{START, Server, run as run_id, task};
use taskledger_domain::{Payload, TaskId, limits, schedule};

/// Tasks of a snapshot that are given a command each.
const TASKS_TRIED_MAX: usize = 4;

/// Reads `bytes` as an event or as a snapshot.
///
/// # Panics
/// When a claim does not hold.
pub fn run(bytes: &[u8]) {
    let end = bytes
        .iter()
        .position(|b| *b == b'\n')
        .unwrap_or(bytes.len());
    let rest = bytes.get(end + 1..).unwrap_or_default();
    let Ok(first) = std::str::from_utf8(&bytes[..end]) else {
        return;
    };
    if first == "snapshot" {
        stored_state(rest);
    } else if let (Some((kind, version)), Ok(data)) =
        (first.split_once(' '), std::str::from_utf8(rest))
    {
        stored_event(kind, version.parse().unwrap_or(u16::MAX), data);
    }
}

fn stored_event(kind: &str, version: u16, data: &str) {
    let Ok(event) = codec::decode(kind, version, data) else {
        return;
    };
    let stored = codec::encode(&event);
    assert_eq!(stored.kind, kind, "an event keeps its name");
    let read = codec::decode(stored.kind, stored.schema_version, &stored.data);
    assert_eq!(read.as_ref().ok(), Some(&event), "{}", stored.data);
    assert_eq!(codec::encode(&event), stored, "writing is always the same");
}

fn stored_state(bytes: &[u8]) {
    let Ok(flow) = snapshot::decode(bytes) else {
        return;
    };
    let again = snapshot::decode(&snapshot::encode(&flow));
    assert_eq!(
        again.ok().as_ref(),
        Some(&flow),
        "a state reads as it was written"
    );
    assert!(flow.size() <= limits::TASKS_PER_FLOW_MAX);
    let due = schedule::next_due(&flow, START, &Server::default());
    let launched = schedule::resume(&flow);
    assert!(launched.len() <= flow.size());
    let mut server = Server::default();
    let mut woken = flow.clone();
    give(&mut woken, &Command::Wake, &mut server);
    let alive = HashSet::new();
    give(&mut woken, &Command::Recover { alive }, &mut server);
    if let Some(due) = due {
        // What is due may be refused, never crash.
        let _ = woken.handle(&Command::Wake, due, &mut server);
    }
    for task in flow.task_ids().into_iter().take(TASKS_TRIED_MAX) {
        for command in commands(&flow, task) {
            give(&mut flow.clone(), &command, &mut server);
            give(&mut woken, &command, &mut server);
        }
    }
}

/// Gives a command; events that come of it, replayed on the state before, give the state after.
fn give(flow: &mut Flow, command: &Command, server: &mut Server) {
    let before = flow.clone();
    match flow.handle(command, START, server) {
        Err(_) => assert_eq!(&before, flow, "a refusal changes nothing"),
        Ok((events, _)) => {
            let mut replica = before;
            for event in &events {
                replica.apply(event, START);
            }
            replica.settle_indexes();
            assert_eq!(&replica, flow, "replay gives another state");
        }
    }
}

fn commands(flow: &Flow, id: TaskId) -> Vec<Command> {
    let attempt = flow.task(id).map_or(0, |t| t.attempt);
    let mut child = task("a new child");
    child.parent = Some(id);
    let execute = |kind| {
        Command::Execute(Execute {
            create: Vec::new(),
            task: id,
            kind,
            include: Include::Needed,
            run_id: run_id("a new run"),
            allow_unknown_executors: true,
            executor_wait_ms: 1000,
            wait_bounds: Default::default(),
            callback: None,
            origin: None,
        })
    };
    let update = Update {
        task: id,
        updates: Updates {
            name: Some("new".to_owned()),
            user_id: Some(None),
            ..Updates::default()
        },
        dependencies: Some(Vec::new()),
        parent: None,
        current: None,
        looked: None,
        handover: taskledger_domain::flow::Handover::default(),
    };
    vec![
        Command::Create(vec![child]),
        execute(RunKind::Execute),
        execute(RunKind::Retry),
        Command::Update(update),
        Command::Complete {
            task: id,
            attempt,
            result: Payload::empty(),
            lease: None,
        },
        Command::Fail {
            task: id,
            attempt,
            error: "boom".to_owned(),
            reason: FailureReason::Executor,
            progress: Progress::ZERO,
            lease: None,
            retry_after_ms: 0,
        },
        Command::Cancel {
            task: id,
            cascade: true,
            reason: None,
        },
        Command::Delete {
            task: id,
            cascade: true,
        },
    ]
}
