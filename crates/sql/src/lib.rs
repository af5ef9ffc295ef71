//! Statements on either engine: transactions, parameters, rows, and statements that carry many rows.
//!
//! Owns everything in which SQLite and PostgreSQL differ below the texts: a [`Tx`] is a transaction
//! on one of them, and whoever works with it cannot tell which. SQLite is reached in two ways: small
//! stores through `sqlx`, large tables and their readers directly (`direct`, [`readers`]). Texts are shared
//! where they can be (`$1` works in both, in ascending order); where not, both stand beside each other where
//! they are used.

mod args;
pub mod beside;
mod calls;
mod columns;
mod direct;
mod engine;
mod error;
pub mod migrations;
mod multi_row;
mod postgres;
pub mod readers;
mod release;
mod row;
mod slices;
mod sqlite;
mod text;
mod tx;
mod values;

pub use args::{Args, int};
pub use columns::{Columns, json, original};
pub use engine::Engine;
pub use error::{Error, with_sources};
pub use multi_row::MultiRow;
pub use release::is_at_rest;
pub use row::Row;
pub use slices::in_slices;
pub use tx::Tx;
pub use values::Values;
