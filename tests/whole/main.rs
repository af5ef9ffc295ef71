//! The program as its users have it: a process that is started, asked, killed and started again, the
//! clauses of the protocol, random scripts against an oracle, clients of others, the commands of the
//! documentation, what packages say of themselves.

mod clients;
mod conformance;
mod differential;
mod faults;
mod packages;
mod pages;
mod real_workflow;
mod system;
