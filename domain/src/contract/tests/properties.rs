//! Arbitrary types and values.
