//! The memory of all renderings that run at the same time.
//!
//! Half of the container's memory belongs to tools. One half of that is divided into places: a tool takes one of them, and
//! waits until one is free. The other half belongs to one large rendering at a time: one that needed more than its place
//! has, and is run again. So a rendering that uses much memory delays only other such renderings. Reading plain files has
//! places of its own, a sixteenth of the container's memory, so that it never waits for a tool. Apps that wait take turns,
//! and slow ones leave room for others.

use std::collections::BTreeSet;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use plumb_core::turns::{Tenant, Ticket, Turns};

/// Most memory of one large rendering, whatever the machine has.
const MAX_LARGE: u64 = 4 << 30;
/// Most memory of the places for tools.
const MAX_TOOLS: u64 = 16 << 30;
/// What a tool gets at first, if there is enough for two.
const TOOL_PART: u64 = 512 << 20;
/// What a tool gets at least, however small the container is. With less, no tool starts.
const MIN_TOOL_PART: u64 = 128 << 20;
/// What reading plain files gets at first.
const READ_PART: u64 = 32 << 20;
/// Most memory of the places for reading.
const MAX_READS: u64 = 512 << 20;

/// The memory of all renderings.
pub(crate) struct MemoryBudget {
    reads: Pool,
    tools: Pool,
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
    /// One of several places.
    Place(Work),
    /// The memory of the one large rendering.
    Large,
}

impl MemoryBudget {
    /// The budget in a container with this much memory.
    pub(crate) fn of_container(memory: u64) -> Self {
        let quarter = (memory / 4).max(MIN_TOOL_PART);
        let tools = quarter.min(MAX_TOOLS);
        Self {
            reads: Pool::new((memory / 16).clamp(READ_PART, MAX_READS), READ_PART),
            tools: Pool::new(tools, TOOL_PART.min((tools / 2).max(MIN_TOOL_PART))),
            large: Pool::new(quarter.min(MAX_LARGE), quarter.min(MAX_LARGE)),
        }
    }

    /// How many bytes a rendering in this part has.
    pub(crate) fn bytes(&self, part: Part) -> u64 {
        self.pool(part).bytes
    }

    /// How many renderings this part is for.
    pub(crate) fn n_places(&self, part: Part) -> usize {
        self.pool(part).n_places
    }

    /// Waits until a place in the part is free and it is the app's turn.
    pub(crate) fn reserve(&self, tenant: &Tenant, part: Part) -> Reservation<'_> {
        self.pool(part).reserve(tenant)
    }

    fn pool(&self, part: Part) -> &Pool {
        match part {
            Part::Place(Work::Read) => &self.reads,
            Part::Place(Work::Tool) => &self.tools,
            Part::Large => &self.large,
        }
    }
}

/// Places that have the same number of bytes.
struct Pool {
    n_places: usize,
    bytes: u64,
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
    ticket: Ticket,
}

impl Pool {
    fn new(total: u64, bytes: u64) -> Self {
        let n_places = usize::try_from(total / bytes).unwrap_or(usize::MAX).max(1);
        let state = PoolState { turns: Turns::new(n_places), served: BTreeSet::new() };
        Self { n_places, bytes, state: Mutex::new(state), changed: Condvar::new(), created: Instant::now() }
    }

    fn reserve(&self, tenant: &Tenant) -> Reservation<'_> {
        let mut state = self.state.lock();
        let ticket = state.turns.ask(tenant, self.created.elapsed());
        self.serve(&mut state);
        while !state.served.remove(&ticket) {
            self.changed.wait(&mut state);
        }
        state.turns.begin(ticket, self.created.elapsed());
        Reservation { pool: self, ticket }
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
        state.turns.give_back(self.ticket, self.pool.created.elapsed());
        self.pool.serve(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const TOOL: Part = Part::Place(Work::Tool);
    const READ: Part = Part::Place(Work::Read);

    fn tenant(project: &str) -> Tenant {
        Tenant { project: project.to_owned(), app: "app".to_owned() }
    }

    #[test]
    fn parts_are_shares_of_the_container() {
        const MIB: u64 = 1 << 20;
        for (memory, (reads, read), (tools, tool), large) in [
            (256 * MIB, (1, 32 * MIB), (1, 128 * MIB), 128 * MIB),
            (1024 * MIB, (2, 32 * MIB), (2, 128 * MIB), 256 * MIB),
            (2048 * MIB, (4, 32 * MIB), (2, 256 * MIB), 512 * MIB),
            (4096 * MIB, (8, 32 * MIB), (2, 512 * MIB), 1024 * MIB),
            (65536 * MIB, (16, 32 * MIB), (32, 512 * MIB), 4096 * MIB),
        ] {
            let budget = MemoryBudget::of_container(memory);
            let part = |part| (budget.n_places(part), budget.bytes(part));
            assert_eq!((part(READ), part(TOOL)), ((reads, read), (tools, tool)), "{memory}");
            assert_eq!(part(Part::Large), (1, large), "{memory}");
            assert!(tools as u64 * tool + large <= (memory / 2).max(256 * MIB));
        }
    }

    #[test]
    fn no_more_than_the_budget_is_reserved_at_once() {
        let budget = MemoryBudget::of_container(2 << 30);
        let a = tenant("a");
        let (sender, served) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = budget.reserve(&a, TOOL);
            let second = budget.reserve(&a, TOOL);
            let large = budget.reserve(&a, Part::Large);
            scope.spawn(|| {
                let _third = budget.reserve(&a, TOOL);
                let _ = sender.send(());
            });
            while budget.tools.state.lock().turns.n_waiting() == 0 {
                std::thread::yield_now();
            }
            // Reading plain files does not wait for tools.
            drop(budget.reserve(&a, READ));
            assert!(served.try_recv().is_err(), "the third waits");
            drop(large);
            assert!(served.try_recv().is_err(), "a large rendering gives nothing to the others");
            drop(first);
            served.recv().unwrap();
            drop(second);
        });
        for pool in [&budget.reads, &budget.tools, &budget.large] {
            assert_eq!(pool.state.lock().turns.n_free(), pool.n_places);
        }
    }

    /// Ten renderings of one project wait when another one asks: it is served after the first of them. There is memory for
    /// one tool at a time.
    #[test]
    fn projects_take_turns() {
        let budget = MemoryBudget::of_container(256 << 20);
        let (sender, served) = mpsc::channel();
        std::thread::scope(|scope| {
            let held = budget.reserve(&tenant("many"), TOOL);
            for (index, project) in
                [("many", 10), ("few", 1)].iter().flat_map(|(p, n)| vec![*p; *n]).enumerate()
            {
                let (sender, budget) = (sender.clone(), &budget);
                scope.spawn(move || {
                    let _part = budget.reserve(&tenant(project), TOOL);
                    let _ = sender.send(project);
                });
                while budget.tools.state.lock().turns.n_waiting() <= index {
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
