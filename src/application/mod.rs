//! Between the doors and the rules: who calls, what a call becomes, and what it is answered.

pub mod caller;
