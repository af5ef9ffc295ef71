//! No space: appends are refused with nothing written, reads go on, and writing resumes by itself.

use crate::contract::fixture::{
    append, appended, event, flow, given_stream, ledger, manual_clock, open, options, whole_log,
};
use futures_util::future::join_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::Path;
use std::process::Command;
use taskledger::store::sqlite::{SqliteStore, verify};
use taskledger::store::{Append, Error, EventStore};

const CHILD: &str = "TASKLEDGER_TEST_FULL_CHILD";
const NAME: &str = "contract::sqlite_full::a_file_that_may_not_grow_refuses_appends_until_it_may";
const DONE: &str = "the child came to its end";

fn large() -> Append {
    Append {
        events: vec![event(&"x".repeat(1024 * 1024))],
        ..append(flow(), 0, 0)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_full_refuses_the_batch_and_still_reads() {
    let folder = tempfile::tempdir().unwrap();
    let mut limited = options(folder.path(), manual_clock());
    limited.pages_max = Some(40);
    let s = SqliteStore::open(limited).unwrap();
    let stream = given_stream(&s, 3).await;

    let refused = s.append(large()).await.unwrap_err();

    assert!(matches!(refused, Error::NotWritable(_)), "{refused}");
    assert_eq!(
        s.read_stream(stream, 0, 9, usize::MAX).await.unwrap().len(),
        3
    );
    let small = appended(s.append(append(stream, 3, 1)).await.unwrap());
    assert_eq!(small[0].position, 4, "a refused append takes no position");
    let mut kept = 4;
    for outcome in join_all((0..400).map(|_| s.append(append(flow(), 0, 2)))).await {
        match outcome {
            Ok(outcome) => kept += appended(outcome).len(),
            Err(error) => assert!(matches!(error, Error::NotWritable(_)), "{error}"),
        }
    }
    assert!(kept < 804, "the file was full before that");
    assert_eq!(whole_log(&s).await.len(), kept);
    s.close().await;

    let s = open(folder.path(), manual_clock());
    appended(s.append(large()).await.unwrap());
    assert_eq!(whole_log(&s).await.len(), kept + 1);
}

/// A limit on file sizes meets the COMMIT itself. It holds for a whole process, so the test starts
/// itself as a child, in which the signal that the limit sends is ignored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_may_not_grow_refuses_appends_until_it_may() {
    if let Ok(folder) = std::env::var(CHILD) {
        return fill_and_recover(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let exe = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(exe)
        .args(["--exact", NAME, "--nocapture"])
        .env(CHILD, folder.path())
        .output()
        .unwrap();

    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains(DONE), "{text}");
}

fn limit_file_size(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = bytes.or(maximum);
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).unwrap();
}

async fn fill_and_recover(folder: &Path) {
    let s = open(folder, manual_clock());
    let stream = given_stream(&s, 3).await;
    let mut written = 3;
    limit_file_size(Some(2 * 1024 * 1024));

    let refused = loop {
        match s.append(large()).await {
            Ok(outcome) => written += appended(outcome).len(),
            Err(error) => break error,
        }
        assert!(written < 10, "the limit holds");
    };

    assert!(matches!(refused, Error::NotWritable(_)), "{refused}");
    let again = s.append(large()).await.unwrap_err();
    assert!(matches!(again, Error::NotWritable(_)), "{again}");
    assert_eq!(whole_log(&s).await.len(), written);
    assert_eq!(
        s.read_stream(stream, 0, 9, usize::MAX).await.unwrap().len(),
        3
    );

    limit_file_size(None);
    let next = appended(s.append(large()).await.unwrap());
    assert_eq!(next[0].position, written as u64 + 1);
    appended(s.append(append(stream, 3, 1)).await.unwrap());
    s.close().await;
    let report = verify(&ledger(folder), None, |_, _| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!(report.events, written as u64 + 2);
    println!("{DONE}");
}
