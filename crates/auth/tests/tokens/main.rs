//! Tokens and the audit log, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod access;
mod audit;
mod changes;
mod counted;
mod denied;
mod first;
mod kill;
mod kill_more;
mod secrets;
mod world;

/// Runs each of these on both engines.
macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test] async fn $name() {
                super::$name(crate::world::World::on_sqlite().await).await;
            })+
        }
        mod on_postgres {
            $(#[tokio::test] async fn $name() {
                super::$name(crate::world::World::on_postgres().await).await;
            })+
        }
    };
}
pub(crate) use on_both_engines;
