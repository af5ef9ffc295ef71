//! The whole server as a process: the real program on a free port with a data folder of its own,
//! spoken to as its users do. What happened is read from the recorded events, not from memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod a2a_cli;
mod backup;
mod bad_bodies;
mod bad_calls;
mod broker;
mod bulk;
mod canaries;
mod chain;
mod cli;
mod command_line;
mod crash;
mod damage;
mod databases;
mod doctor;
mod drain;
mod first_hour;
mod folders;
mod full_disk;
mod guidance;
mod hints;
mod hostile_schemas;
mod http_executor;
mod long_answers;
mod lost_log;
mod migrate;
mod nodes;
mod orphans;
mod past;
mod private;
mod read_models;
mod retention;
mod schedules;
mod secrets;
mod signals;
mod tls;
mod transfer;
mod watch;
mod ways_to_a_server;
mod webhooks_cli;
mod worker;
mod workflow;
mod workflows;
