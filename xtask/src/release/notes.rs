//! The notes of a release: its section of the changelog.

use anyhow::{Context, Result, ensure};

/// The text below `## VERSION`, or below `## Unreleased` before the version has a section.
pub(super) fn of_version(changelog: &str, version: &str) -> Result<String> {
    let section = section(changelog, version).or_else(|| section(changelog, "Unreleased"));
    let text = section.with_context(|| format!("CHANGELOG.md has no section {version}"))?;
    ensure!(!text.trim().is_empty(), "the section {version} of CHANGELOG.md is empty");
    Ok(format!("{}\n", text.trim()))
}

fn section(changelog: &str, title: &str) -> Option<String> {
    let is_title = |line: &&str| {
        let words = line.strip_prefix("## ").map(|line| line.trim_start_matches('[').trim_start_matches('v'));
        words.is_some_and(|words| words.starts_with(title))
    };
    let mut lines = changelog.lines().skip_while(|line| !is_title(line));
    lines.next()?;
    Some(lines.take_while(|line| !line.starts_with("## ")).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_of_a_version_ends_at_the_next_one() {
        let changelog =
            "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0\n\n### Added\n\n- it\n\n## 0.1.0\n\n- first\n";
        assert_eq!(of_version(changelog, "0.2.0").unwrap(), "### Added\n\n- it\n");
        assert_eq!(of_version(changelog, "0.3.0").unwrap(), "- new\n");
        assert!(of_version("# Changelog\n", "0.3.0").is_err());
        assert!(of_version("## 0.3.0\n\n## 0.2.0\n\n- x\n", "0.3.0").is_err());
    }
}
