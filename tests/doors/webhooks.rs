//! Webhooks: what must be sent, to whom, what callers order of them, and how it arrives.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod api;
mod attempts;
mod databases;
mod faults;
mod kill;
mod orders;
mod outbox;
mod payloads;
mod secrets;
mod sending;
mod signing;
pub(crate) mod site;
mod store;
mod world;

/// Each test runs on a file of SQLite and on PostgreSQL.
macro_rules! on_both_engines {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name($crate::webhooks::world::World::of_folder().await).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name($crate::webhooks::world::World::of_database().await).await;
            })*
        }
    };
}
use on_both_engines;

/// Each test runs with a server whose data is in a folder, and with one whose data is on PostgreSQL.
macro_rules! in_both_places {
    ($($name:ident),* $(,)?) => {
        mod folder {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(taskledger_testkit::server::Folder::new()).await;
            })*
        }
        mod database {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(taskledger_testkit::server::Folder::with_database().await).await;
            })*
        }
    };
}
pub(crate) use in_both_places;
