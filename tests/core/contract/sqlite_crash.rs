//! SIGKILL under load: what was acknowledged is there, and nothing is there by half.
//! The test starts itself as a child process that writes until it is killed.

use crate::contract::fixture::{START, append, appended, flow, ledger, manual_clock, open};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use taskledger::store::sqlite::verify;
use taskledger::store::{Append, ClaimKey, EventStore, NewClaim};
use taskledger_domain::{FlowId, TaskId};

const CHILD: &str = "TASKLEDGER_TEST_CRASH_CHILD";
const NAME: &str =
    "contract::sqlite_crash::a_killed_writer_loses_nothing_acknowledged_and_leaves_no_half";
const KILLS: u64 = 6;
const WRITERS: usize = 16;
/// Events in each append.
const EVENTS: u64 = 3;
/// Appends of a child that nobody kills, so that it ends.
const APPENDS_MAX: u64 = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_writer_loses_nothing_acknowledged_and_leaves_no_half() {
    if let Ok(folder) = std::env::var(CHILD) {
        return write_until_killed(Path::new(&folder)).await;
    }
    let seed = u64::from(std::process::id()) << 20 | 0x5eed;
    println!("seed {seed:#x}");
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = HashMap::new();
    let mut random = seed;
    for kill in 0..KILLS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let after = 1 + (random >> 33) % 800;

        let lines = kill_after(folder.path(), after);
        println!("kill {kill} after {after} answers, {} seen", lines.len());
        for line in lines {
            let (flow, version, claim) = parse(&line);
            acknowledged.insert(flow, (version, claim));
        }

        assert_recovered(folder.path(), &acknowledged).await;
    }
}

async fn assert_recovered(folder: &Path, acknowledged: &HashMap<FlowId, (u64, ClaimKey)>) {
    let s = open(folder, manual_clock());
    for (flow, (version, claim)) in acknowledged {
        let (found, _) = s.stream_head(*flow).await.unwrap().unwrap();
        assert!(found >= *version, "{flow} lost {version}, has {found}");
        assert_eq!(found % EVENTS, 0, "{flow} has half an append");
        let events = s
            .read_stream(*flow, 0, usize::MAX, usize::MAX)
            .await
            .unwrap();
        assert_eq!(events.len() as u64, found);
        let held = s.claims(std::slice::from_ref(claim), START).await.unwrap();
        assert_eq!(held[0].as_deref(), Some(version.to_string().as_str()));
    }
    s.close().await;
    let report = verify(&ledger(folder), None, |_, _| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!(report.events % EVENTS, 0);
}

/// The lines that the child wrote, at least `after` of them.
fn kill_after(folder: &Path, after: u64) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(CHILD, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = Vec::new();
    let mut left = after;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if !line.starts_with("acknowledged ") {
            continue;
        }
        lines.push(line);
        left = left.saturating_sub(1);
        if left == 0 {
            // Reading goes on to the end: what is in the pipe was acknowledged too.
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert!(!status.success(), "the child was killed: {status}");
    // The last line may be cut off.
    lines.retain(|line| line.ends_with('.'));
    assert!(lines.len() as u64 >= after);
    lines
}

fn parse(line: &str) -> (FlowId, u64, ClaimKey) {
    let words: Vec<_> = line.trim_end_matches('.').split(' ').collect();
    let flow = FlowId::parse(words[1]).unwrap();
    let claim = ClaimKey::Task(TaskId::parse(words[3]).unwrap());
    (flow, words[2].parse().unwrap(), claim)
}

async fn write_until_killed(folder: &Path) {
    let s = Arc::new(open(folder, manual_clock()));
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let s = s.clone();
            tokio::spawn(async move {
                let mut stream = flow();
                for n in 0..APPENDS_MAX {
                    let round = n % 10;
                    if round == 0 {
                        stream = flow();
                    }
                    write_one(&*s, stream, round * EVENTS).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

async fn write_one(s: &impl EventStore, stream: FlowId, expected: u64) {
    let task = TaskId(crate::contract::fixture::uuid());
    let version = expected + EVENTS;
    let claim = NewClaim {
        key: ClaimKey::Task(task),
        value: Arc::from(version.to_string()),
        expires_at: None,
    };
    let three = Append {
        claims: vec![claim],
        ..append(stream, expected, 3)
    };
    appended(s.append(three).await.unwrap());
    println!("acknowledged {stream} {version} {task}.");
}
