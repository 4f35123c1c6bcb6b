//! What a value of YAML takes in memory is not more than the reader says. Alone in its file, so that the memory of the
//! process is that of this test.

use plumb_core::yaml::{Limits, parse_documents};

/// A figure about this process in bytes, if the system says so.
#[expect(clippy::disallowed_methods, reason = "the kernel keeps this figure in a file")]
fn figure(name: &str) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}

#[test]
fn the_estimate_is_not_too_low() {
    let entry = "name: a, value: some text, ports: [1, 2],";
    for (name, part, n_parts) in [
        ("numbers", "1,".to_owned(), 400_000),
        ("texts", format!("{},", "x".repeat(40)), 200_000),
        ("lists", "[],".to_owned(), 300_000),
        ("maps", "{a},".to_owned(), 60_000),
        ("maps as in manifests", format!("{{{entry}}},"), 30_000),
    ] {
        let text = format!("[{}]", part.repeat(n_parts));
        let limits = Limits { max_memory: usize::MAX, ..Limits::default() };
        let before = figure("VmRSS:");
        let documents = parse_documents(&text, &limits).expect("valid");
        let (Some(before), Some(after)) = (before, figure("VmRSS:")) else {
            println!("memory is not measured on this system");
            return;
        };
        let taken = after.saturating_sub(before);
        println!("{name}: {taken} bytes taken, {} estimated, {} of text", documents[0].memory, text.len());
        drop(documents);
        // The figure has the noise of an allocator.
        let less = Limits { max_memory: taken / 4 * 3, ..Limits::default() };
        assert!(parse_documents(&text, &less).is_err(), "{name}: {taken} bytes taken");
    }
    let peak = figure("VmHWM:").unwrap_or_default();
    assert!(peak < 400 << 20, "the tree and its value took {peak} bytes");
}
