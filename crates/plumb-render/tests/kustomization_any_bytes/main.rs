//! Random kustomization files, made of parts that mean something to Kustomize.

mod check;

const KEYS: [&str; 16] = [
    "resources",
    "Bases",
    "components",
    "crds",
    "configurations",
    "generators",
    "transformers",
    "patches",
    "path",
    "replacements",
    "configMapGenerator",
    "files",
    "envs",
    "helmCharts",
    "repo",
    "openapi",
];
const VALUES: [&str; 14] = [
    "a.yaml",
    "../base",
    "../../x",
    "/etc/passwd",
    "https://example.com/x",
    "git@example.com:x",
    "plugin.yaml",
    "k=../../x",
    "foo@example.com/x",
    "\"kind: PatchTransformer\\npath: /etc/passwd\"",
    "null",
    "1",
    "{}",
    "[]",
];

#[test]
fn any_kustomization_file_has_one_answer() {
    // A generator that gives the same numbers on every run.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("small")
    };
    let mut n_accepted = 0;
    for _ in 0..3000 {
        let mut parts = Vec::new();
        for _ in 0..=next(3) {
            let (key, inner) = (KEYS[next(KEYS.len())], KEYS[next(KEYS.len())]);
            let (one, two) = (VALUES[next(VALUES.len())], VALUES[next(VALUES.len())]);
            parts.push(match next(4) {
                0 => format!("{key}: [{one}, {two}]\n"),
                1 => format!("{key}: [{{name: x, {inner}: {one}}}]\n"),
                2 => format!("{key}: [{{name: x, {inner}: [{one}, {two}]}}]\n"),
                _ => format!("{key}: {{{inner}: {one}}}\n"),
            });
        }
        n_accepted += usize::from(check::any_bytes(parts.concat().as_bytes()));
    }
    assert!((300..2700).contains(&n_accepted), "{n_accepted} of 3000 were accepted");
}
