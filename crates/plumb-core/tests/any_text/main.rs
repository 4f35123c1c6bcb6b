//! Any text where a user may write one: what the fuzz target `texts` checks, on random changes of texts that mean something.
//! Deterministic; `PLUMB_FUZZ_CASES` and `PLUMB_FUZZ_SEED` make it longer and other.

mod check;

/// A generator of numbers that is the same everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or_default() % end.max(1)
    }
}

const SEEDS: [&str; 24] = [
    "https://bob:token@Git.Example.com.:443/Org/Repo.git",
    "git@[::ffff:127.0.0.1]:org/repo.git",
    "ssh://git@host:22/~/x",
    "http://127.0.0.1:8080/%2e%2e/x",
    "oci://registry.example.com/charts/web",
    "file:///srv/git",
    "ext::sh -c x",
    "!https://git.example.com/**",
    "/^team-[a-z]+$/",
    "{a,b}*[!c-d]?",
    "PruneLast=true,Prune=confirm,Replace=true",
    "PreSync,PostSync",
    "app:apps/Deployment:ns/name",
    "{\"until\": \"2026-01-01T00:00:00Z\", \"reason\": \"x\"}",
    "2026-01-01T00:00:02Z \"system:x\" kubectl",
    "{\"request\": {\"uid\": \"u\", \"userInfo\": {\"username\": \"x\"}}}",
    "*/5 0-23/2 1,15 JAN-MAR SUN",
    ">=1.2.3-0 <2 || ~3.4 || ^5.x - 6",
    "1h30m0.5s",
    "-0.125e3Ki",
    "/spec/a~1b/0/~0",
    "spec.containers[name=\"c\"].env[0]",
    "../../etc/passwd",
    "Bearer abc password=hunter2 \u{202e}evil\u{1b}[2K",
];

#[expect(clippy::disallowed_methods, reason = "a longer run is asked for by the environment")]
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn any_text_is_read_or_refused() {
    let mut dice = Dice(number("PLUMB_FUZZ_SEED", 0x9E37_79B9_7F4A_7C15));
    for case in 0..number("PLUMB_FUZZ_CASES", 5_000) {
        let mut text: Vec<char> = SEEDS[dice.next(SEEDS.len())].chars().collect();
        let other: Vec<char> = SEEDS[dice.next(SEEDS.len())].chars().collect();
        for _ in 0..dice.next(5) {
            let at = dice.next(text.len() + 1);
            match dice.next(3) {
                0 => text.insert(at, other[dice.next(other.len())]),
                1 => drop(text.drain(at..(at + dice.next(6)).min(text.len()))),
                _ => drop(text.splice(at..at, other.iter().copied().skip(dice.next(other.len())).take(6))),
            }
        }
        let text: String = text.into_iter().collect();
        let result = std::panic::catch_unwind(|| check::any_text(&text));
        assert!(result.is_ok(), "case {case}: {text:?}");
    }
}
