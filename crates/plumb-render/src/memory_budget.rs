//! The memory of all renderings that run at the same time.
//!
//! Half of the container's memory belongs to renderings. One half of that is shared: each rendering reserves a part of
//! it, and waits until the part is free. The other half belongs to one large rendering at a time: one that needed more
//! than its part, and is run again. So a rendering that uses much memory delays only other such renderings. Projects that
//! wait take turns, and those whose renderings are slow have at most half of the shared memory.

use std::collections::BTreeSet;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use plumb_core::turns::{Ticket, Turns};

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

    /// Waits until the part is free and it is the project's turn.
    pub(crate) fn reserve(&self, project: &str, part: Part) -> Reservation<'_> {
        match part {
            Part::Shared(_) => self.shared.reserve(project, self.bytes(part)),
            Part::Large => self.large.reserve(project, self.bytes(part)),
        }
    }
}

struct Pool {
    total: u64,
    state: Mutex<PoolState>,
    changed: Condvar,
    created: Instant,
}

struct PoolState {
    turns: Turns,
    /// Those that were served, and that did not notice yet.
    served: BTreeSet<Ticket>,
}

/// Reserved memory, given back on drop.
pub(crate) struct Reservation<'a> {
    pool: &'a Pool,
    project: String,
    bytes: u64,
    since: Instant,
}

impl Pool {
    fn new(total: u64) -> Self {
        let state = PoolState { turns: Turns::new(total), served: BTreeSet::new() };
        Self { total, state: Mutex::new(state), changed: Condvar::new(), created: Instant::now() }
    }

    fn reserve(&self, project: &str, bytes: u64) -> Reservation<'_> {
        let bytes = bytes.min(self.total);
        let mut state = self.state.lock();
        let ticket = state.turns.ask(project, bytes, self.created.elapsed());
        self.serve(&mut state);
        while !state.served.remove(&ticket) {
            self.changed.wait(&mut state);
        }
        Reservation { pool: self, project: project.to_owned(), bytes, since: Instant::now() }
    }

    fn serve(&self, state: &mut PoolState) {
        let now = self.created.elapsed();
        while let Some(ticket) = state.turns.serve(now) {
            state.served.insert(ticket);
        }
        self.changed.notify_all();
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        let now = self.pool.created.elapsed();
        state.turns.give_back(&self.project, self.bytes, self.since.elapsed(), now);
        self.pool.serve(&mut state);
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
            let first = budget.reserve("a", Part::Shared(Work::Tool));
            let second = budget.reserve("a", Part::Shared(Work::Tool));
            let large = budget.reserve("a", Part::Large);
            scope.spawn(|| {
                let _third = budget.reserve("a", Part::Shared(Work::Tool));
                let _ = sender.send(());
            });
            while budget.shared.state.lock().turns.n_waiting() == 0 {
                std::thread::yield_now();
            }
            assert!(served.try_recv().is_err(), "the third waits");
            drop(large);
            assert!(served.try_recv().is_err(), "a large rendering gives nothing to the others");
            drop(first);
            served.recv().unwrap();
            drop(second);
        });
        assert_eq!(budget.shared.state.lock().turns.free(), budget.shared.total);
        assert_eq!(budget.large.state.lock().turns.free(), budget.large.total);
    }

    /// Ten renderings of one project wait when another one asks: it is served after the first of them. There is memory for
    /// one tool at a time.
    #[test]
    fn projects_take_turns() {
        let budget = MemoryBudget::of_container(256 << 20);
        let (sender, served) = mpsc::channel();
        std::thread::scope(|scope| {
            let held = budget.reserve("many", Part::Shared(Work::Tool));
            for (index, project) in
                [("many", 10), ("few", 1)].iter().flat_map(|(p, n)| vec![*p; *n]).enumerate()
            {
                let (sender, budget) = (sender.clone(), &budget);
                scope.spawn(move || {
                    let _part = budget.reserve(project, Part::Shared(Work::Tool));
                    let _ = sender.send(project);
                });
                while budget.shared.state.lock().turns.n_waiting() <= index {
                    std::thread::yield_now();
                }
            }
            drop(held);
        });
        drop(sender);
        let order: Vec<&str> = served.iter().collect();
        assert_eq!(order.iter().position(|project| *project == "few"), Some(1), "{order:?}");
        assert_eq!(order.len(), 11);
    }
}
