//! The memory of all renderings that run at the same time.
//!
//! Half of the container's memory belongs to renderings. One half of that is shared: each rendering reserves a part of
//! it, and waits until the part is free. The other half belongs to one large rendering at a time: one that needed more
//! than its part, and is run again. So a rendering that uses much memory delays only other such renderings.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

/// Most memory of one large rendering, whatever the machine has.
const MAX_LARGE: u64 = 4 << 30;
/// Most memory that renderings share.
const MAX_SHARED: u64 = 16 << 30;
/// What a tool gets at first, if the shared memory is large enough for two.
const TOOL_PART: u64 = 512 << 20;
/// What a tool gets at least, however small the container is. With less, no tool starts.
const MIN_TOOL_PART: u64 = 128 << 20;
/// What reading plain files gets at first.
const READ_PART: u64 = 32 << 20;

/// The memory of all renderings.
pub(crate) struct MemoryBudget {
    shared: Pool,
    large: Pool,
}

/// What a rendering mainly does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// It reads files.
    Read,
    /// It runs a tool.
    Tool,
}

/// Which part of the budget a rendering uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A part of the shared memory.
    Shared(Work),
    /// The memory of the one large rendering.
    Large,
}

impl MemoryBudget {
    /// The budget in a container with this much memory.
    pub(crate) fn of_container(memory: u64) -> Self {
        let quarter = (memory / 4).max(MIN_TOOL_PART);
        Self { shared: Pool::new(quarter.min(MAX_SHARED)), large: Pool::new(quarter.min(MAX_LARGE)) }
    }

    /// How many bytes a part has.
    pub(crate) fn bytes(&self, part: Part) -> u64 {
        match part {
            Part::Shared(Work::Read) => READ_PART.min(self.shared.total),
            Part::Shared(Work::Tool) => TOOL_PART.min((self.shared.total / 2).max(MIN_TOOL_PART)),
            Part::Large => self.large.total,
        }
    }

    /// Waits until the part is free. Renderings are served in the order in which they ask.
    pub(crate) fn reserve(&self, part: Part) -> Reservation<'_> {
        match part {
            Part::Shared(_) => self.shared.reserve(self.bytes(part)),
            Part::Large => self.large.reserve(self.bytes(part)),
        }
    }
}

struct Pool {
    total: u64,
    state: Mutex<PoolState>,
    changed: Condvar,
}

struct PoolState {
    free: u64,
    /// Those that wait, by ticket.
    queue: VecDeque<u64>,
    next_ticket: u64,
}

/// Reserved memory, given back on drop.
pub(crate) struct Reservation<'a> {
    pool: &'a Pool,
    bytes: u64,
}

impl Pool {
    fn new(total: u64) -> Self {
        let state = PoolState { free: total, queue: VecDeque::new(), next_ticket: 0 };
        Self { total, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn reserve(&self, bytes: u64) -> Reservation<'_> {
        let bytes = bytes.min(self.total);
        let mut state = self.state.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.queue.push_back(ticket);
        while state.queue.front() != Some(&ticket) || state.free < bytes {
            self.changed.wait(&mut state);
        }
        state.queue.pop_front();
        state.free -= bytes;
        // The next one may fit too.
        self.changed.notify_all();
        Reservation { pool: self, bytes }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.pool.state.lock().free += self.bytes;
        self.pool.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn parts_are_shares_of_the_container() {
        const MIB: u64 = 1 << 20;
        for (memory, read, tool, large) in [
            (256 * MIB, 32 * MIB, 128 * MIB, 128 * MIB),
            (1024 * MIB, 32 * MIB, 128 * MIB, 256 * MIB),
            (2048 * MIB, 32 * MIB, 256 * MIB, 512 * MIB),
            (4096 * MIB, 32 * MIB, 512 * MIB, 1024 * MIB),
            (65536 * MIB, 32 * MIB, 512 * MIB, 4096 * MIB),
        ] {
            let budget = MemoryBudget::of_container(memory);
            let parts = [Part::Shared(Work::Read), Part::Shared(Work::Tool), Part::Large];
            assert_eq!(parts.map(|part| budget.bytes(part)), [read, tool, large], "{memory}");
            assert!(budget.shared.total + budget.large.total <= (memory / 2).max(256 * MIB));
        }
    }

    #[test]
    fn no_more_than_the_budget_is_reserved_at_once() {
        let budget = MemoryBudget::of_container(2 << 30);
        let (sender, served) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = budget.reserve(Part::Shared(Work::Tool));
            let second = budget.reserve(Part::Shared(Work::Tool));
            let large = budget.reserve(Part::Large);
            scope.spawn(|| {
                let _third = budget.reserve(Part::Shared(Work::Tool));
                let _ = sender.send(());
            });
            while budget.shared.state.lock().queue.is_empty() {
                std::thread::yield_now();
            }
            assert!(served.try_recv().is_err(), "the third waits");
            drop(large);
            assert!(served.try_recv().is_err(), "a large rendering gives nothing to the others");
            drop(first);
            served.recv().unwrap();
            drop(second);
        });
        assert_eq!(budget.shared.state.lock().free, budget.shared.total);
        assert_eq!(budget.large.state.lock().free, budget.large.total);
    }
}
