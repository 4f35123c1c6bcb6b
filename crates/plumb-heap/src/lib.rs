//! Gives memory that nobody uses any more back to the system.
//!
//! The C library's allocator keeps what was freed, in one pool for each thread that ever needed one, and gives back
//! only what lies at the end of a pool. After a burst of work on many threads a third of a process is such memory. It
//! knows how to give all of it back, but does so only when it is asked, and asking is a call into C.

/// Gives back what is free; `false` if there was nothing, or if the allocator cannot.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back() -> bool {
    // SAFETY: it takes a number, touches only what is free, and holds the allocator's own locks while it does.
    #[expect(unsafe_code, reason = "a call into C that nothing wraps")]
    let released = unsafe { libc::malloc_trim(0) };
    released == 1
}

/// Gives back what is free; `false` if there was nothing, or if the allocator cannot.
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
    fn what_was_freed_between_what_is_kept_goes_back() {
        const PIECES: usize = 20_000;
        // Too small for mappings of their own; one in a hundred is kept, so that no pool can shrink from its end.
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
