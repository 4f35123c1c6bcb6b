//! Any edit of any bytes: what the fuzz target checks, on random changes of texts that mean something. Deterministic;
//! `PLUMB_FUZZ_CASES` and `PLUMB_FUZZ_SEED` make it longer and other.

#![expect(clippy::expect_used, clippy::panic, reason = "what does not hold fails the test")]

mod check;

/// What changes are made of.
const PARTS: [&[u8]; 24] = [
    b"\n",
    b"  ",
    b": ",
    b"- ",
    b"? ",
    b"[",
    b"]",
    b"{",
    b"}",
    b", ",
    b"'",
    b"\"",
    b"|+\n",
    b">-\n",
    b" # x\n",
    b"&a ",
    b"*a",
    b"!!str ",
    b"<<: *a\n",
    b"---\n",
    b"...\n",
    b"\t",
    b"\r\n",
    b"\xef\xbb\xbf",
];

/// xorshift: the same numbers everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below.max(1) as u64).unwrap_or_default()
    }

    fn change(&mut self, text: &mut Vec<u8>) {
        let at = self.next(text.len() + 1);
        match self.next(4) {
            0 | 1 => {
                let part = PARTS[self.next(PARTS.len())];
                text.splice(at..at, part.iter().copied());
            }
            2 => {
                let end = (at + self.next(8)).min(text.len());
                text.drain(at..end);
            }
            _ => {
                let end = (at + self.next(32)).min(text.len());
                let copy = text[at..end].to_vec();
                let to = self.next(text.len() + 1);
                text.splice(to..to, copy);
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a longer run is asked for by the environment")]
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn any_edit_is_right_or_refused() {
    let n_cases = number("PLUMB_FUZZ_CASES", 10_000);
    let mut dice = Dice(number("PLUMB_FUZZ_SEED", 0x9E37_79B9_7F4A_7C15));
    let seeds: Vec<String> = include_str!("../../testdata/yaml/documents.jsonl")
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert!(seeds.len() > 100, "the texts to begin with are missing");
    let mut n_edited = 0;
    for case in 0..n_cases {
        let mut bytes: Vec<u8> = (0..3).map(|_| u8::try_from(dice.next(256)).unwrap_or_default()).collect();
        let mut text = seeds[dice.next(seeds.len())].clone().into_bytes();
        for _ in 0..dice.next(4) {
            dice.change(&mut text);
        }
        text.truncate(1024);
        bytes.extend(text);
        let edited = std::panic::catch_unwind(|| check::any_edit(&bytes));
        let edited = edited.unwrap_or_else(|_| {
            panic!("case {case}: {:?}\n{}", &bytes[..3], String::from_utf8_lossy(&bytes[3..]))
        });
        n_edited += u64::from(edited);
    }
    assert!(n_edited * 10 > n_cases, "only {n_edited} of {n_cases} were edited");
}
