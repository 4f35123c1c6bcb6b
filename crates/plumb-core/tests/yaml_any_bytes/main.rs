//! Any bytes as YAML: what the fuzz target checks, on random changes of texts that mean something. Deterministic;
//! `PLUMB_FUZZ_CASES` and `PLUMB_FUZZ_SEED` make it longer and other.

mod check;

/// What changes are made of: signs that the grammar knows, and bytes that it does not.
const PARTS: [&[u8]; 32] = [
    b"\n",
    b" ",
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
    b"|",
    b">-",
    b"#",
    b"&a ",
    b"*a",
    b"!!str ",
    b"!!binary ",
    b"<<: ",
    b"---\n",
    b"...\n",
    b"%YAML 1.1\n",
    b"\t",
    b"\r\n",
    b"0o17",
    b"1_0",
    b"\xff",
    b"\0",
    b"\xef\xbb\xbf",
    b"\\u0000",
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
        match self.next(5) {
            0 | 1 => {
                let part = PARTS[self.next(PARTS.len())];
                text.splice(at..at, part.iter().copied());
            }
            2 => {
                let end = (at + self.next(8)).min(text.len());
                text.drain(at..end);
            }
            3 if at < text.len() => text[at] = u8::try_from(self.next(256)).unwrap_or_default(),
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
fn any_bytes_are_read_or_refused() {
    let n_cases = number("PLUMB_FUZZ_CASES", 20_000);
    let seed = number("PLUMB_FUZZ_SEED", 0x9E37_79B9_7F4A_7C15);
    let seeds: Vec<String> = include_str!("../../testdata/yaml/documents.jsonl")
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert!(seeds.len() > 100, "the texts to begin with are missing");
    let mut dice = Dice(seed);
    let mut n_read = 0;
    for case in 0..n_cases {
        let mut text = seeds[dice.next(seeds.len())].clone().into_bytes();
        for _ in 0..=dice.next(6) {
            dice.change(&mut text);
        }
        text.truncate(1024);
        let read = std::panic::catch_unwind(|| check::any_bytes(&text));
        let read = read
            .unwrap_or_else(|_| panic!("case {case}, seed {seed}: {:?}", text.escape_ascii().to_string()));
        n_read += u64::from(read);
    }
    // Neither all nonsense nor all harmless: otherwise this shows nothing.
    assert!(n_read > n_cases / 20 && n_read < n_cases, "{n_read} of {n_cases} were read");
}
