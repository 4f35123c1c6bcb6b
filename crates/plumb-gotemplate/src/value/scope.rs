//! The budget that is left, and the values that a rendering created.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use jiff::Timestamp;
use regex::Regex;

use super::data::{ListData, MapData};
use crate::budget::{Fault, Limits};

/// Most compiled regular expressions that a scope keeps.
const MAX_REGEXES: usize = 16;

/// What all renderings with the same parameters share: the budget, the values they create, the time, and the seed of
/// random functions.
pub struct Scope {
    limits: Limits,
    steps_left: Cell<u64>,
    bytes_left: Cell<u64>,
    /// The time that `now` returns.
    pub now: Timestamp,
    seed: [u8; 32],
    random_draws: Cell<u64>,
    /// Regular expressions and about how many states they have. They are kept because a loop uses the same one often.
    regexes: RefCell<HashMap<String, (Regex, u64)>>,
    // Every list and map that was created. Values can refer to each other in chains and circles; they are taken apart
    // one by one when the scope ends, because dropping a long chain recursively would overflow the stack.
    lists: RefCell<Vec<Rc<ListData>>>,
    maps: RefCell<Vec<Rc<MapData>>>,
}

impl Scope {
    /// A scope with a full budget. Random functions draw from `seed`.
    pub fn new(limits: Limits, now: Timestamp, seed: [u8; 32]) -> Self {
        Self {
            limits,
            steps_left: Cell::new(limits.steps),
            bytes_left: Cell::new(limits.bytes),
            now,
            seed,
            random_draws: Cell::new(0),
            regexes: RefCell::default(),
            lists: RefCell::default(),
            maps: RefCell::default(),
        }
    }

    /// The bounds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes steps from the budget.
    pub fn step(&self, n: usize) -> Result<(), Fault> {
        let left = self.steps_left.get().checked_sub(n as u64);
        let left = left.ok_or_else(|| {
            Fault(format!("the template exceeds its limit of {} steps; make it simpler", self.limits.steps))
        })?;
        self.steps_left.set(left);
        Ok(())
    }

    /// Takes bytes from the budget, before they are allocated.
    pub fn allocate(&self, n: usize) -> Result<(), Fault> {
        let left = self.bytes_left.get().checked_sub(n as u64);
        let left = left.ok_or_else(|| {
            let limit = self.limits.bytes >> 20;
            Fault(format!(
                "the template exceeds its limit of {limit} MiB of text and values; make it smaller"
            ))
        })?;
        self.bytes_left.set(left);
        Ok(())
    }

    /// Fails if a text that is being made is longer than what is left; it is paid for when it is complete.
    pub(crate) fn check_growth(&self, n: usize) -> Result<(), Fault> {
        if n as u64 <= self.bytes_left.get() { Ok(()) } else { self.allocate(n) }
    }

    /// Steps that are left.
    pub fn steps_left(&self) -> u64 {
        self.steps_left.get()
    }

    /// Bytes that are left.
    pub fn bytes_left(&self) -> u64 {
        self.bytes_left.get()
    }

    /// A regular expression that was compiled before, with the number of its states.
    pub(crate) fn known_regex(&self, pattern: &str) -> Option<(Regex, u64)> {
        self.regexes.borrow().get(pattern).cloned()
    }

    pub(crate) fn keep_regex(&self, pattern: &str, regex: Regex, weight: u64) {
        let mut regexes = self.regexes.borrow_mut();
        if regexes.len() >= MAX_REGEXES {
            regexes.clear();
        }
        regexes.insert(pattern.to_owned(), (regex, weight));
    }

    /// Random bytes that depend only on the seed and on how many were drawn before.
    pub fn random_bytes(&self, out: &mut [u8]) {
        use sha2::Digest as _;
        for chunk in out.chunks_mut(32) {
            let draw = self.random_draws.get();
            self.random_draws.set(draw + 1);
            let mut hasher = sha2::Sha256::new();
            hasher.update(self.seed);
            hasher.update(draw.to_le_bytes());
            let block = hasher.finalize();
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }

    /// A random number below `end`, which must not be zero.
    pub fn random_below(&self, end: u64) -> u64 {
        let mut bytes = [0; 8];
        self.random_bytes(&mut bytes);
        u64::from_le_bytes(bytes) % end.max(1)
    }

    pub(super) fn remember_list(&self, list: &Rc<ListData>) {
        self.lists.borrow_mut().push(Rc::clone(list));
    }

    pub(super) fn remember_map(&self, map: &Rc<MapData>) {
        self.maps.borrow_mut().push(Rc::clone(map));
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        for map in self.maps.get_mut().drain(..) {
            map.clear();
        }
        // A list can only hold lists that were created before it.
        let lists = self.lists.get_mut();
        while lists.pop().is_some() {}
    }
}
