//! Task specification.
