//! Is an archive the chart that was asked for? A server may offer one chart under the name or version of another.

use plumb_core::source::{RepoPath, SourceFiles as _};
use plumb_core::version::Version;
use plumb_core::yaml;

use crate::memory_files::MemoryFiles;

/// Largest `Chart.yaml`, in bytes. `Limits::yaml` would be too much for a file that is read again and again.
const MAX_DEFINITION: usize = 1 << 20;

/// The version in `Chart.yaml`, if name and version are those that were asked for; an error says what it is instead.
pub(super) fn check(files: &MemoryFiles, name: &str, version: &str) -> Result<String, String> {
    let definition =
        files.read(&RepoPath::root().child("Chart.yaml")).map_err(|_| "it has no Chart.yaml".to_owned())?;
    let limits = yaml::Limits { max_bytes: MAX_DEFINITION, ..yaml::Limits::default() };
    let documents = yaml::parse_documents_bytes(&definition, &limits)
        .map_err(|error| format!("cannot read its Chart.yaml: {error}"))?;
    let text = |key: &str| {
        let value = documents.first().and_then(|document| document.value.get(key));
        value.and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let (found_name, found_version) = (text("name"), text("version"));
    // In a registry the chart may be below a path.
    let wanted_name = name.rsplit('/').next().unwrap_or(name);
    if found_name != wanted_name || !is_version(version, &found_version) {
        return Err(format!("its Chart.yaml says name {found_name:?} and version {found_version:?}"));
    }
    Ok(found_version)
}

/// Is the version of a chart the one that was asked for? A leading `v` makes no difference, build metadata does. A
/// version of one or two numbers is a tag that moves, so the other numbers are free.
fn is_version(asked: &str, found: &str) -> bool {
    let (Some(wanted), Some(version)) = (Version::parse(asked), Version::parse(found)) else {
        return asked == found;
    };
    let n_asked = n_numbers(asked);
    if n_asked < 3 {
        return wanted
            .numbers()
            .iter()
            .zip(version.numbers())
            .take(n_asked)
            .all(|(one, other)| *one == other);
    }
    let build = |text: &str| text.split_once('+').map(|(_, build)| build.to_owned());
    wanted.precedence(&version).is_eq() && build(asked) == build(found)
}

/// True if the version has all three numbers, so that it means one chart for ever.
pub(super) fn is_full_version(version: &str) -> bool {
    Version::parse(version).is_some() && n_numbers(version) == 3
}

fn n_numbers(version: &str) -> usize {
    version.split(['-', '+']).next().unwrap_or_default().split('.').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_the_name_and_version_that_were_asked_for() {
        for (name, version, definition, expected) in [
            ("web", "1.0.0", "name: web\nversion: 1.0.0\n", true),
            ("charts/web", "1.0.0", "name: web\nversion: 1.0.0\n", true),
            ("web", "v1.0.0", "name: web\nversion: 1.0.0\n", true),
            ("web", "1.0.0", "name: web\nversion: v1.0.0\n", true),
            ("web", "1.0.0+a", "name: web\nversion: 1.0.0+a\n", true),
            ("web", "1", "name: web\nversion: 1.4.2\n", true),
            ("web", "1.4", "name: web\nversion: 1.4.2\n", true),
            ("web", "1.4", "name: web\nversion: 1.5.2\n", false),
            ("web", "1.0.0+a", "name: web\nversion: 1.0.0+b\n", false),
            ("web", "1.0.0", "name: web\nversion: 1.0.0+b\n", false),
            ("web", "1.0.0-rc.1", "name: web\nversion: 1.0.0\n", false),
            ("web", "9.9.9-evil", "name: web\nversion: 1.0.0\n", false),
            ("web", "1.0.0", "name: api\nversion: 1.0.0\n", false),
            ("web", "1.0.0", "name: web\n", false),
            ("web", "1.0.0", "version: 1.0.0\n", false),
            ("web", "1.0.0", "{", false),
        ] {
            let files = MemoryFiles::new(vec![(RepoPath::root().child("Chart.yaml"), definition.into())]);
            assert_eq!(check(&files, name, version).is_ok(), expected, "{name} {version} {definition}");
        }
        assert!(check(&MemoryFiles::new(Vec::new()), "web", "1.0.0").is_err());
    }
}
