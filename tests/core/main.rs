//! Everything behind the doors, in the process: the application, every log, the read models, leases of
//! nodes, outgoing requests; and the shape of the source and of the documentation.

mod application;
mod architecture;
mod contract;
mod corpus;
mod egress;
mod nodes;
mod pages;
mod projections;
