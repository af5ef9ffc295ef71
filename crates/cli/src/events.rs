//! `taskledger events query` and `taskledger events tail`: what a server tells of its log.

pub mod query;
pub mod tail;
