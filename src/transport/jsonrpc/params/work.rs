//! The parameters of the calls by which workers claim tasks and say what became of them.

pub mod claim;
pub mod complete;
pub mod fail;
pub mod kinds;
pub mod release;
pub mod renew;
pub mod respond;
pub mod sibling_output;
pub mod suspend;
