use std::env;

use super::*;

/// A directory of this process, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("plumb-build-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn recipe(scratch: &Scratch, own_code: bool) -> Recipe {
    let linker_flags = "-X a.b=c".to_owned();
    Recipe { name: "p", directory: scratch.0.clone(), package: ".", linker_flags, own_code }
}

#[test]
fn the_hash_follows_what_the_program_is_made_of_and_nothing_else() {
    let scratch = Scratch::new("hash");
    scratch.write("go.mod", "module p");
    scratch.write("go.sum", "");
    scratch.write("main.go", "package main");
    scratch.write("stages/pod.yaml", "kind: Stage");
    let own = || hash(&recipe(&scratch, true), "go1.26.0").unwrap();
    let modules_only = || hash(&recipe(&scratch, false), "go1.26.0").unwrap();
    let (first, first_modules) = (own(), modules_only());
    assert_eq!(own(), first, "the same sources have the same name");

    scratch.write("README.md", "words");
    scratch.write("programs/other/go.mod", "module other");
    scratch.write("programs/other/other.go", "package other");
    assert_eq!(own(), first, "words and other modules are not part of it");

    scratch.write("stages/pod.yaml", "kind: Stage # changed");
    assert_ne!(own(), first, "an embedded file is part of it");
    assert_eq!(modules_only(), first_modules, "a program without our code does not change with it");

    scratch.write("go.sum", "x");
    assert_ne!(modules_only(), first_modules, "a pinned module is part of it");
    assert_ne!(hash(&recipe(&scratch, true), "go1.27.0").unwrap(), own(), "so is the compiler");
}

#[test]
fn a_build_that_fails_shows_what_go_said_and_leaves_no_program() {
    let scratch = Scratch::new("fails");
    scratch.write("go.mod", "module p\n\ngo 1.26\n");
    scratch.write("main.go", "package main\n\nfunc main() { missing() }\n");
    let output = scratch.0.join("out");
    let mut said = Vec::new();
    let error =
        go_build(&recipe(&scratch, true), &output, &mut |line| said.push(line.to_owned())).unwrap_err();
    assert!(error.to_string().contains("undefined: missing"), "{error}");
    assert!(!output.exists());
    assert_eq!(said, ["building p (once; kept in the cache)"]);
}

#[test]
fn callers_at_the_same_time_build_once() {
    let sources = Scratch::new("once");
    sources.write("go.mod", "module p\n\ngo 1.26\n");
    sources.write("go.sum", "");
    sources.write("main.go", "package main\n\nfunc main() {}\n");
    let cache = Scratch::new("once-cache");
    let layout = Layout::in_directory(&cache.0);
    let build = || {
        let mut builds = 0;
        let mut progress = |line: &str| builds += usize::from(line.starts_with("built p "));
        let path = ensure(&layout, "go1.26.0", &recipe(&sources, true), &mut progress).unwrap();
        (path, builds)
    };
    let results = thread::scope(|scope| {
        let callers: Vec<_> = (0..3).map(|_| scope.spawn(build)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(results.iter().map(|(_, builds)| builds).sum::<usize>(), 1);
    let (program, _) = &results[0];
    assert!(results.iter().all(|(path, _)| path == program));
    assert!(Command::new(program).status().unwrap().success());
    assert_eq!(build(), (program.clone(), 0), "and not again later");
}
