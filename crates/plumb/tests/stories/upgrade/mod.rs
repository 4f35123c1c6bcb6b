//! From an earlier version to this one.

mod from_0_1_0;
