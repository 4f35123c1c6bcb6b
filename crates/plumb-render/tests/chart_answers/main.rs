//! Any bytes as answers of Helm repositories and registries: what the fuzz target checks, on random changes of answers
//! that mean something. Deterministic; `PLUMB_FUZZ_CASES` makes it longer.

mod check;

const ANSWERS: [&str; 6] = [
    "apiVersion: v1\nentries:\n  api:\n  - version: 1.0.0\n    urls: [a]\n  web:\n  - version: 1.0.0\n    \
     description: |\n      x\n    urls:\n    - b\n    digest: d\n  - version: 2.0.0\n    urls: [c]\ngenerated: x\n",
    "{\"entries\":{\"web\":[{\"version\":\"1.0.0\",\"urls\":[\"a\"],\"digest\":\"d\"},{}]},\"x\":[1]}",
    "{\"layers\":[{\"mediaType\":\"application/vnd.cncf.helm.chart.content.v1.tar+gzip\",\"size\":1,\"digest\":\
     \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"}]}",
    "{\"name\":\"web\",\"tags\":[\"1.0.0\",\"latest\"]}",
    "{\"token\":\"abc\",\"access_token\":\"def\"}",
    "Bearer realm=\"https://auth.example.com/token\",service=\"s\",scope=\"repository:web:pull\"",
];

const PARTS: [&[u8]; 16] = [
    b"\n",
    b"  ",
    b"- ",
    b": ",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b"\"",
    b"\xff",
    b"\0",
    b"web:",
    b"entries:",
    b"null",
    b"1",
];

/// A small generator: the same cases in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % limit.max(1)
    }
}

#[test]
fn changed_answers_are_read_or_refused() {
    #[expect(clippy::disallowed_methods, reason = "a longer run is asked for by the environment")]
    let n_cases = std::env::var("PLUMB_FUZZ_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(600);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for answer in ANSWERS {
        check::any_bytes(answer.as_bytes());
    }
    for _ in 0..n_cases {
        let mut bytes = ANSWERS[random.below(ANSWERS.len())].as_bytes().to_vec();
        for _ in 0..=random.below(8) {
            let (start, part) = (random.below(bytes.len()), PARTS[random.below(PARTS.len())]);
            let end = (start + random.below(12)).min(bytes.len());
            match random.below(3) {
                0 => drop(bytes.splice(start..end, part.iter().copied())),
                1 => drop(bytes.splice(start..start, part.repeat(random.below(40)))),
                _ => bytes.truncate(start),
            }
        }
        check::any_bytes(&bytes);
    }
}
