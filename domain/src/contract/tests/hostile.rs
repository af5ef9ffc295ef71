//! What hostile types and values cost.
