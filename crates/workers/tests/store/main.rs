//! The store of workers, on SQLite and on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod kill;
mod methods;
mod presence;
mod renewals;
mod tickets;
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
