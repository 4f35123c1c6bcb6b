//! Keeps the memory of a process small: fewer arenas, and unused memory is returned to the system.
//!
//! The C library's allocator keeps freed memory in one arena per thread, and returns only memory at the end of an arena.
//! After a burst of work on many threads, a third of the memory of a process can be such free memory. The allocator
//! returns all of it only on request, which is a call into C.

/// Limits what the allocator keeps for itself. To be called before other threads start.
///
/// By default there are eight arenas for each core, and each keeps what its threads needed at their busiest moment. And
/// after the first large block is freed, blocks of that size come from arenas, too, and leave holes there. With a fixed
/// threshold each large block (a response, a document) is a mapping of its own, which is returned when it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn limit_arenas() {
    const MOST_ARENAS: usize = 4;
    const LARGE_BLOCK: libc::c_int = 256 * 1024;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let arenas = libc::c_int::try_from(cores.min(MOST_ARENAS)).unwrap_or(1);
    for (option, value) in [(libc::M_ARENA_MAX, arenas), (libc::M_MMAP_THRESHOLD, LARGE_BLOCK)] {
        // SAFETY: it takes two numbers, and sets an option of the allocator under the allocator's own lock. A value that the
        // allocator does not accept changes nothing.
        #[expect(unsafe_code, reason = "a call into C without a safe wrapper")]
        let _ = unsafe { libc::mallopt(option, value) };
    }
}

/// Limits what the allocator keeps for itself, where that can be done.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn limit_arenas() {}

/// Returns free memory to the system; `false` if there was none, or if the allocator cannot do it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back() -> bool {
    // SAFETY: it takes a number, changes only free memory, and takes the allocator's own locks.
    #[expect(unsafe_code, reason = "a call into C without a safe wrapper")]
    let released = unsafe { libc::malloc_trim(0) };
    released == 1
}

/// Returns free memory to the system; `false` if there was none, or if the allocator cannot do it.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() -> bool {
    false
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    fn resident_kib() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    #[test]
    fn free_memory_between_used_memory_is_returned() {
        const PIECES: usize = 20_000;
        // Too small for separate mappings; one in a hundred stays, so that no arena can shrink from its end.
        let mut pieces: Vec<Option<Vec<u8>>> = (0..PIECES).map(|_| Some(vec![1; 4096])).collect();
        for (at, piece) in pieces.iter_mut().enumerate() {
            if at % 100 != 99 {
                *piece = None;
            }
        }
        let before = resident_kib();
        assert!(give_back());
        let after = resident_kib();
        assert!(before > after + 50_000, "{before} KiB before, {after} KiB after");
        assert_eq!(pieces.iter().flatten().map(Vec::len).sum::<usize>(), PIECES / 100 * 4096);
    }
}
