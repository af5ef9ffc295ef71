//! Commands and queries.

pub mod schema_cache;
