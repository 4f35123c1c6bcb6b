//! Builds a program once per content of its sources, into the user's cache.

use std::{
    collections::VecDeque,
    fs::{self, File, TryLockError},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{ChildStderr, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};

use super::{Layout, programs::Recipe};

/// How often a wait says that it goes on.
const REPORT_EVERY: Duration = Duration::from_secs(3);
/// Builds a program for which `go build` is not enough: `build.sh PROGRAM`.
const SCRIPT: &str = "build.sh";
/// How much of Go's output an error shows.
const LINES_OF_ERROR: usize = 30;

/// Returns the path of the program, built if it is not there.
pub(super) fn ensure(
    layout: &Layout,
    go_version: &str,
    recipe: &Recipe,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf> {
    let directory = layout.programs().join(recipe.name).join(hash(recipe, go_version)?);
    let program = directory.join(recipe.name);
    if program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(&directory).with_context(|| format!("create {}", directory.display()))?;
    let _lock = lock(&directory.join("lock"), recipe.name, progress)?;
    // The process that held the lock before may have built it.
    if !program.exists() {
        let unfinished = directory.join("unfinished");
        go_build(recipe, &unfinished, progress)?;
        fs::rename(&unfinished, &program).with_context(|| format!("keep {}", program.display()))?;
    }
    Ok(program)
}

fn lock(path: &Path, name: &str, progress: &mut dyn FnMut(&str)) -> Result<File> {
    let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
    let start = Instant::now();
    let mut reported = start;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(100)),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("lock {}", path.display()));
            }
        }
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            progress(&format!("waiting for another build of {name}: {} s", start.elapsed().as_secs()));
        }
    }
}

fn go_build(recipe: &Recipe, output: &Path, progress: &mut dyn FnMut(&str)) -> Result<()> {
    progress(&format!("building {} (once; kept in the cache)", recipe.name));
    let start = Instant::now();
    let mut child = builder(recipe, output)
        .current_dir(&recipe.directory)
        // Whatever workspace file lies above this repository is not meant for it.
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("start `go build`")?;
    let lines = lines_of(child.stderr.take().context("go's output is not readable")?);

    let mut last = VecDeque::with_capacity(LINES_OF_ERROR);
    let (mut packages, mut modules) = (0_usize, 0_usize);
    let mut reported = start;
    loop {
        match lines.recv_timeout(REPORT_EVERY) {
            Ok(line) => {
                if line.starts_with("go: downloading ") {
                    modules += 1;
                } else {
                    packages += 1;
                }
                if last.len() == LINES_OF_ERROR {
                    last.pop_front();
                }
                last.push_back(line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            progress(&format!(
                "building {}: {} s{}",
                recipe.name,
                start.elapsed().as_secs(),
                counted(modules, packages)
            ));
        }
    }
    let status = child.wait().context("wait for `go build`")?;
    if !status.success() {
        bail!("`go build` of {} ended with {status}:\n{}", recipe.name, Vec::from(last).join("\n"));
    }
    progress(&format!("built {} in {} s", recipe.name, start.elapsed().as_secs()));
    Ok(())
}

/// The recipe's own script, or `go build`.
fn builder(recipe: &Recipe, output: &Path) -> Command {
    let script = recipe.directory.join(SCRIPT);
    if script.exists() {
        let mut command = Command::new(script);
        command.arg(output);
        return command;
    }
    let mut command = Command::new("go");
    command
        .args(["build", "-v", "-buildvcs=false", "-ldflags"])
        .arg(format!("-s -w {}", recipe.linker_flags))
        .arg("-o")
        .args([output, Path::new(recipe.package)]);
    command
}

fn counted(modules: usize, packages: usize) -> String {
    let fetched = if modules > 0 { format!(", {modules} modules fetched") } else { String::new() };
    let compiled = if packages > 0 { format!(", {packages} packages compiled") } else { String::new() };
    fetched + &compiled
}

fn lines_of(output: ChildStderr) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Names one content of the sources, with the compiler and flags that turn it into a program.
fn hash(recipe: &Recipe, go_version: &str) -> Result<String> {
    let mut files = vec![recipe.directory.join("go.mod"), recipe.directory.join("go.sum")];
    if recipe.own_code {
        collect_sources(&recipe.directory, &mut files)?;
    }
    files.extend(Some(recipe.directory.join(SCRIPT)).filter(|script| script.exists()));
    files.sort();
    files.dedup();
    let mut hash = Sha256::new();
    for part in [go_version, recipe.package, &recipe.linker_flags] {
        hash.update(part);
        hash.update([0]);
    }
    for path in files {
        let content = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let name = path.strip_prefix(&recipe.directory).unwrap_or(&path);
        hash.update(name.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(content.len().to_le_bytes());
        hash.update(content);
    }
    let digest = hash.finalize();
    let (name, _) = digest.split_first_chunk::<8>().context("a hash has 32 bytes")?;
    Ok(format!("{:016x}", u64::from_be_bytes(*name)))
}

/// All Go and YAML files of a module; other modules below it are not part of it.
fn collect_sources(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("read {}", directory.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.join("go.mod").exists() {
                collect_sources(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "go" || extension == "yaml") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
}
