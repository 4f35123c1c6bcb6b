//! What must be installed: Go to build the cluster, Git for the repositories of the tests.

use std::{io, path::Path, process::Command};

use anyhow::{Context, Result, bail};

const GO: (u32, u32) = (1, 26);
const GIT: (u32, u32) = (2, 30);

/// Checks both programs and returns Go's full version.
///
/// Go is asked inside the sources' directory: it may fetch the toolchain that go.mod wants.
pub(super) fn check(sources: &Path) -> Result<String> {
    let git = run("git", &["--version"], sources)?;
    let version = git.split_whitespace().nth(2).unwrap_or_default();
    require("Git", version, GIT)?;

    let go = match run("go", &["env", "GOVERSION"], sources) {
        Ok(version) => version,
        // An old Go that may not fetch a newer one fails in there; outside it says what it is.
        Err(error) => run("go", &["env", "GOVERSION"], Path::new("/")).map_err(|_| error)?,
    };
    let go = go.trim();
    require("Go", go.trim_start_matches("go"), GO)?;
    Ok(go.to_owned())
}

fn run(program: &str, args: &[&str], directory: &Path) -> Result<String> {
    let output = match Command::new(program).args(args).current_dir(directory).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("`{program}` is not on the PATH: the test cluster needs Rust, Go, Git and a C compiler")
        }
        Err(error) => return Err(error).with_context(|| format!("run `{program}`")),
    };
    if !output.status.success() {
        bail!("`{program} {}`: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn require(program: &str, version: &str, (major, minor): (u32, u32)) -> Result<()> {
    let Some(found) = major_minor(version) else {
        bail!("cannot read the version of {program} from `{version}`");
    };
    if found < (major, minor) {
        bail!("{program} is {version}, but {major}.{minor} or newer is needed");
    }
    Ok(())
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|part| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).map_or(part, |end| &part[..end]);
        digits.parse::<u32>().ok()
    });
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_the_wild_are_read() {
        for (text, expected) in [
            ("1.26.8", Some((1, 26))),
            ("1.27rc1", Some((1, 27))),
            ("2.39.5", Some((2, 39))),
            ("2.50.1.windows.1", Some((2, 50))),
            ("2.39.3 (Apple Git-146)", Some((2, 39))),
            ("", None),
            ("devel", None),
            ("1", None),
        ] {
            assert_eq!(major_minor(text), expected, "{text}");
        }
    }

    #[test]
    fn a_version_that_is_too_old_is_named() {
        let error = require("Go", "1.24.2", GO).unwrap_err();
        assert_eq!(error.to_string(), "Go is 1.24.2, but 1.26 or newer is needed");
        require("Go", "1.26", GO).unwrap();
        require("Git", "3.0.0", GIT).unwrap();
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run("no-such-program-of-plumb", &[], Path::new("/")).unwrap_err();
        assert!(error.to_string().starts_with("`no-such-program-of-plumb` is not on the PATH"), "{error}");
    }
}
