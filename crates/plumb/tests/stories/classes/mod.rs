//! Every drift class in both directions: noise stays `Synced` beside a real change that is `OutOfSync` by exactly
//! its own fields, and an app becomes `Synced` when the cause is gone.
//!
//! Charts with random values are in [`residuals`](crate::residuals).

mod another_day;
mod hooks;
mod made_up;
mod noise;
mod red;
mod report;
mod shared;
mod tug;
