//! What is measured, a file for each group.

pub(crate) mod a2a;
pub(crate) mod a2a_follow;
pub(crate) mod broker;
pub(crate) mod callers;
pub(crate) mod create;
pub(crate) mod growth;
pub(crate) mod hash_chain;
pub(crate) mod large_tree;
pub(crate) mod list;
pub(crate) mod long_log;
pub(crate) mod mixed;
pub(crate) mod read;
pub(crate) mod rebuild;
pub(crate) mod replay;
pub(crate) mod start;
pub(crate) mod trace;
pub(crate) mod wired;
pub(crate) mod workers;
pub(crate) mod workflow;
