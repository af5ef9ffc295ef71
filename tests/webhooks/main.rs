//! Webhooks: what must be sent, to whom, and what callers order of them, on both engines.
#![allow(clippy::unwrap_used, reason = "in a test a panic is a failure")]

mod api;
mod outbox;
#[path = "../common/postgres.rs"]
mod postgres;
mod store;
mod world;

/// Each test runs on a file of SQLite and on PostgreSQL.
macro_rules! on_both_engines {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name($crate::world::World::of_folder().await).await;
            })*
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                super::$name($crate::world::World::of_database().await).await;
            })*
        }
    };
}
use on_both_engines;
