//! The rules of the protocol and of the decided semantics: given / when / then, one claim a test.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks for one kind of event among all"
)]

mod always;
mod archives;
mod cancels;
mod contracts;
mod copies;
mod deadlines;
mod deletes;
mod dependencies;
mod explanations;
mod fields;
mod group_sums;
mod groups;
mod hostile;
mod ids_and_aliases;
mod leases;
mod limits;
mod messages;
mod next_steps;
mod order;
mod outputs;
mod precedence;
mod recovery;
mod remarks;
mod reruns;
mod retries;
mod runs;
mod support;
mod suspensions;
mod timers;
mod transitions;
mod trees;
mod unknown_executors;
mod updates;
mod wait_bounds;
mod waiting;
mod wiring;
