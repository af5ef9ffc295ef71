//! A process that is killed forgets nothing that it said it keeps.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use taskledger_clock::{Clock, SystemClock};
use taskledger_domain::{FlowId, LeaseId, TaskId, Timestamp};
use taskledger_workers::{Renewal, WorkerStore};
use uuid::Uuid;

/// The folder of the process that is killed.
const FOLDER: &str = "TASKLEDGER_TEST_WORKERS_FOLDER";
/// What it was told to write down after each renewal: what its worker was told.
const SEEN: &str = "seen";
const ROUNDS: u64 = 4;
const FLOW: FlowId = FlowId(Uuid::from_u128(7));

/// Renews leases until it is killed. Does nothing when it is run as a test.
#[tokio::test]
async fn the_process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let store = WorkerStore::of_folder(folder).await.unwrap();
    let path = folder.join(SEEN);
    let mut seen = OpenOptions::new().create(true).append(true).open(path);
    let seen = seen.as_mut().unwrap();
    let clock = SystemClock::default();
    for expires_at in 0.. {
        let renewal = Renewal {
            flow: FLOW,
            task: TaskId(clock.uuid()),
            attempt: 1,
            lease: LeaseId(clock.uuid()),
            expires_at: Timestamp(expires_at),
            graces: 0,
        };
        store.renew(&[renewal]).await.unwrap();
        // One write: a kill leaves a whole line or none.
        let line = format!("{} {expires_at}\n", renewal.lease.0);
        seen.write_all(line.as_bytes()).unwrap();
    }
}

#[tokio::test]
async fn a_renewal_that_was_answered_outlives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new(program)
            .args(["--exact", "kill::the_process_that_is_killed"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let before = lines(folder.path()).len();
        while lines(folder.path()).len() < before + 20 {
            tokio::time::sleep(Duration::from_millis(5 + round)).await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let seen = lines(folder.path());
        let store = WorkerStore::of_folder(folder.path()).await.unwrap();
        let kept = store.renewals(FLOW).await.unwrap();
        for line in &seen {
            let (lease, expires_at) = line.split_once(' ').unwrap();
            let lease = LeaseId(lease.parse().unwrap());
            let expires_at = Timestamp(expires_at.parse().unwrap());
            let kept = kept.get(&lease).map(|kept| kept.expires_at);
            assert_eq!(kept, Some(expires_at), "round {round}: {line}");
        }
        store.close().await;
    }
}

/// Whole lines only: the last one may be half written.
fn lines(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(SEEN)).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::to_owned).collect()
}
