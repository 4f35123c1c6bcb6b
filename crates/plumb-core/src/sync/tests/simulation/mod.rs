//! Random simulation of syncs: health, answers, watch events, pauses, new commits and engine crashes in any order.

mod laws;
mod play;
