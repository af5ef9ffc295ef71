//! Task inputs.
