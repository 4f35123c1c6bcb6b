//! One page per command, from its help.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The help of every command, by its words: `plumb`, `plumb app`, `plumb app sync`.
pub(super) fn commands(plumb: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut open = vec!["plumb".to_owned()];
    while let Some(line) = open.pop() {
        let output = Command::new(plumb)
            .args(line.split(' ').skip(1))
            .arg("--help")
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", plumb.display()))?;
        ensure!(output.status.success(), "{line} --help ended with {}", output.status);
        let help = String::from_utf8(output.stdout).context("the help is not UTF-8")?;
        open.extend(inner(&help).map(|name| format!("{line} {name}")));
        found.insert(line, help);
    }
    Ok(found)
}

/// The commands that a help lists.
fn inner(help: &str) -> impl Iterator<Item = &str> {
    let list = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let names = list.lines().take_while(|line| line.starts_with("  "));
    // Lines with a deeper indentation continue a description.
    let names = names.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help")
}

/// Writes a page per command, and returns the lines for the table of contents.
pub(super) fn write(commands: &BTreeMap<String, String>, folder: &Path) -> Result<String> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut contents = "\n# Commands\n\n".to_owned();
    for (line, help) in commands {
        let name = format!("{}.md", line.replace(' ', "-"));
        fs::write(folder.join(&name), page(line, help)).with_context(|| format!("cannot write {name}"))?;
        // `plumb app sync` is listed below `plumb app`.
        let depth = line.split(' ').count().saturating_sub(2);
        let _ = writeln!(contents, "{}- [{line}](docs/commands/{name})", "  ".repeat(depth));
    }
    Ok(contents)
}

/// The description as text, the rest as it is on a terminal.
fn page(line: &str, help: &str) -> String {
    let (description, usage) = help.split_once("\nUsage:").unwrap_or((help, ""));
    format!("# {line}\n\n{}\n\n```text\nUsage:{}\n```\n", description.trim(), usage.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Show apps.\n\nUsage: plumb app <COMMAND>\n\nCommands:\n  list  List them,\n        one per line\n  get   Get\n  help  x\n\nOptions:\n  -h\n";

    #[test]
    fn inner_commands_are_named_once() {
        assert_eq!(inner(HELP).collect::<Vec<_>>(), ["list", "get"]);
        assert_eq!(inner("Usage: x\n").count(), 0);
    }

    #[test]
    fn a_page_has_the_description_as_text() {
        let page = page("plumb app", HELP);
        assert!(
            page.starts_with("# plumb app\n\nShow apps.\n\n```text\nUsage: plumb app <COMMAND>\n"),
            "{page}"
        );
        assert!(page.ends_with("  -h\n```\n"), "{page}");
    }
}
