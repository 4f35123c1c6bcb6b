//! `kill -9` at random moments, many times: what must hold in the end.

mod proof;
mod round;
mod story;
