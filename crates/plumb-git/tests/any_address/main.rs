//! Any text as the address of a repository: what the fuzz target checks, on random changes of addresses. Deterministic;
//! `PLUMB_FUZZ_CASES` and `PLUMB_FUZZ_SEED` make it longer and other.

#![expect(clippy::expect_used, reason = "what does not hold fails the test")]

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

const SEEDS: [&str; 14] = [
    "https://bob:p%40ss@Git.Example.com.:443/Org/Repo.git",
    "http://git.example.com/a//b/",
    "git@git.example.com:org/repo.git",
    "git@[::1]:org/repo.git",
    "ssh://git@[::ffff:7f00:1]:2222/~/repo",
    "git+ssh://host/x",
    "git://host/x",
    "file:///srv/git/x",
    "/srv/git/x",
    "host:path",
    "ext::sh -c id",
    "../../other/repo.git",
    "./sub",
    "-oProxyCommand=id:x",
];

#[expect(clippy::disallowed_methods, reason = "a longer run is asked for by the environment")]
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn any_address_is_refused_or_has_one_meaning() {
    let mut dice = Dice(number("PLUMB_FUZZ_SEED", 0x9E37_79B9_7F4A_7C15));
    let n_cases = number("PLUMB_FUZZ_CASES", 20_000);
    let mut n_read = 0;
    for case in 0..n_cases {
        let mut text: Vec<char> = SEEDS[dice.next(SEEDS.len())].chars().collect();
        let other: Vec<char> = SEEDS[dice.next(SEEDS.len())].chars().collect();
        for _ in 0..dice.next(4) {
            let at = dice.next(text.len() + 1);
            match dice.next(3) {
                0 => text.insert(at, other[dice.next(other.len())]),
                1 => drop(text.drain(at..(at + dice.next(4)).min(text.len()))),
                _ => drop(text.splice(at..at, other.iter().copied().skip(dice.next(other.len())).take(6))),
            }
        }
        let text: String = text.into_iter().collect();
        let read = std::panic::catch_unwind(|| check::any_text(&text));
        n_read += u64::from(read.unwrap_or_else(|_| panic!("case {case}: {text:?}")));
    }
    // Neither all nonsense nor all harmless: otherwise this shows nothing.
    assert!(n_read > n_cases / 20 && n_read < n_cases, "{n_read} of {n_cases} were read");
}
