//! The database has no room for more.

use crate::faults::{COMMANDS, clients};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use taskledger_testkit::cluster::{Cluster, Load};
use taskledger_testkit::postgres::admin::Admin;
use taskledger_testkit::postgres::server::Server as Postgres;
use taskledger_testkit::random::Random;
use taskledger_testkit::server::{Api, FAILED, Folder, NoResult, Server, TOO_BUSY};
use tempfile::TempDir;
use tokio::task::block_in_place;

const NODES: usize = 2;
/// Characters in the inputs of a task that helps to fill the disk.
const FILLING: usize = 400_000;
/// Such tasks: more than fit.
const FILLINGS_MAX: usize = 200;
/// Times that a task is refused for which there is no room, before there is room again.
const REFUSALS: usize = 5;
/// Bytes that a file may have: somewhat more than those of the write-ahead log have.
const LIMIT: u64 = 17 << 20;

/// Texts that do not compress.
fn noise(random: &mut Random) -> String {
    let words = (0..FILLING / 16).map(|_| format!("{:016x}", random.next()));
    words.collect()
}

/// Creates a task that takes much room; the code of the refusal.
async fn create_large(api: &Api, random: &mut Random) -> Result<(), i64> {
    let params = json!({"name": "filling.large", "inputs": {"text": noise(random)}});
    match api.try_call("tasks.create", params, None).await {
        Ok(_) => Ok(()),
        Err(NoResult::Refused(refusal)) => Err(refusal.code),
        Err(NoResult::Broken) => panic!("there is an answer also when the disk is full"),
    }
}

/// Fills the disk under load until calls are refused with `code`, gives it room again, and sees to it
/// that both were noticed.
async fn filled_up(cluster: Cluster, code: i64, room: impl AsyncFnOnce()) {
    let load = Load::start(clients(), &cluster.apis());
    let api = cluster.nodes[0].api.clone();
    load.more(&api, COMMANDS).await;
    let mut random = Random::new(1);
    let mut refused = Vec::new();
    let mut fitted = 0;
    while refused.len() < REFUSALS {
        match create_large(&api, &mut random).await {
            Ok(()) => fitted += 1,
            Err(code) => refused.push(code),
        }
        assert!(fitted < FILLINGS_MAX, "the disk is not full");
    }
    println!("{fitted} fitted, then {refused:?}");
    assert_eq!(refused, [code; REFUSALS]);
    let says = "the event log cannot be written";
    let logged = async || {
        let mut logs = cluster.nodes.iter().map(Server::logged);
        logs.any(|log| log.contains(says)).then_some(())
    };
    api.eventually(says, logged).await;
    room().await;
    let create = async || create_large(&api, &mut random).await.ok();
    api.eventually("there is room again", create).await;
    load.more(&api, COMMANDS).await;
    let clients = load.stop().await;
    cluster.check(&clients).await;
}

/// A file system of its own in memory, for a tablespace; needs root.
struct Mounted(TempDir);

impl Mounted {
    /// `None` when file systems cannot be mounted here.
    fn with(size: &str) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=0777");
        let mounted = mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], place.path());
        // Postgres must be able to get there.
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path(), all).unwrap();
        mounted.then_some(Self(place))
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(mount(&["-o", &options], self.0.path()));
    }

    fn folder(&self) -> PathBuf {
        let folder = self.0.path().join("tables");
        std::fs::create_dir(&folder).unwrap();
        folder
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The database may have files open still; they go with it.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.0.path())
            .status();
    }
}

fn mount(arguments: &[&str], place: &Path) -> bool {
    let done = Command::new("mount").args(arguments).arg(place).output();
    done.is_ok_and(|done| done.status.success())
}

/// Files of Postgres may not grow beyond so many bytes; without a number, as far as they like. Holds
/// for its sessions, and for those to come.
async fn limit_files(postgres: &Postgres, admin: &mut Admin, bytes: Option<u64>) {
    let sessions = "SELECT pid::bigint FROM pg_stat_activity";
    let pids = admin.numbers(sessions).await.into_iter();
    let pids: Vec<i64> = pids.chain([postgres.pid()]).collect();
    block_in_place(|| postgres.limit_files(&pids, bytes));
}

async fn under_limits() {
    let postgres = Postgres::begin();
    let mut admin = Admin::at(&postgres.url()).await;
    let cluster = Cluster::start(Folder::at(postgres.url()), NODES, &[]).await;
    limit_files(&postgres, &mut admin, Some(LIMIT)).await;
    // Postgres has no code of its own for it: to callers it is an error that may pass.
    let room = async || limit_files(&postgres, &mut admin, None).await;
    filled_up(cluster, TOO_BUSY, room).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_may_not_grow_are_reported_and_work_goes_on_when_they_may() {
    under_limits().await;
}

/// Where file systems can be mounted; elsewhere the limits have to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_file_system_is_reported_and_work_goes_on_when_there_is_room() {
    let Some(small) = Mounted::with("24m") else {
        println!("file systems cannot be mounted here");
        return under_limits().await;
    };
    let postgres = Postgres::begin();
    let folder = small.folder();
    postgres.own(&folder);
    let mut admin = Admin::at(&postgres.url()).await;
    let place = folder.to_str().unwrap();
    let sql = format!("CREATE TABLESPACE small LOCATION '{place}'");
    admin.run(&sql).await;
    admin.run("CREATE DATABASE small TABLESPACE small").await;
    let url = postgres.url();
    let url = url.strip_suffix("postgres").unwrap();
    let place = Folder::at(format!("{url}small"));
    let cluster = Cluster::start(place, NODES, &[]).await;
    filled_up(cluster, FAILED, async || small.resize("256m")).await;
}
