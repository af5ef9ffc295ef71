//! What may break is broken on purpose, under load, with one server or three on one database. After
//! each fault: nothing acknowledged is lost, nothing denied was done, nothing happened twice, every
//! run ends, and the read models are what a replay of the log makes (`Cluster::check`).
//! `TASKLEDGER_TEST_SEED` repeats what the clients do, as far as scheduling allows.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod broker;
mod clock;
mod connections;
mod cut_off;
mod end_sessions;
mod full_disk;
mod head_row;
mod nodes;
mod people;
mod restarts;
mod schedules;
mod workers;

use taskledger_testkit::model::Client;

const CLIENTS: usize = 8;
/// Commands that all clients together get through before, between and after faults.
const COMMANDS: usize = 100;

/// The seed of a run, which it prints.
fn seed() -> u64 {
    let given = std::env::var("TASKLEDGER_TEST_SEED");
    let seed = given.map_or(u64::from(std::process::id()) << 16 | 0xfa17, |text| {
        text.parse().expect("TASKLEDGER_TEST_SEED is a number")
    });
    println!("TASKLEDGER_TEST_SEED={seed}");
    seed
}

/// Clients that know that something may be broken.
fn clients() -> Vec<Client> {
    let seed = seed();
    (0..CLIENTS)
        .map(|n| Client::under_faults(n, seed))
        .collect()
}
