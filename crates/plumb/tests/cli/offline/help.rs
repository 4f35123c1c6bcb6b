//! The help of every command.

use anyhow::Result;

use crate::shell::Shell;

#[test]
fn every_command_has_help_with_an_example() -> Result<()> {
    let mut shell = Shell::new()?;
    for line in commands() {
        let said = shell.run(&format!("{line} --help"), &[], "")?;
        assert_eq!(said.code, 0, "{line}");
        let is_group = said.stdout.contains("\nCommands:");
        assert!(is_group || said.stdout.contains("`plumb "), "{line} has no example:\n{}", said.stdout);
    }
    shell.transcript.check("help")
}

/// Every command there is, groups included.
fn commands() -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec!["plumb".to_owned()];
    while let Some(line) = open.pop() {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let Ok(output) = std::process::Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(&words)
            .arg("--help")
            .env_clear()
            .output()
        else {
            continue;
        };
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some((_, rest)) = help.split_once("\nCommands:\n") {
            let inner = rest.lines().take_while(|line| line.starts_with("  "));
            let names = inner.filter_map(|line| {
                let name = line.strip_prefix("  ")?;
                (!name.starts_with(' ')).then(|| name.split_whitespace().next()).flatten()
            });
            open.extend(names.filter(|name| *name != "help").map(|name| format!("{line} {name}")));
        }
        found.push(line);
    }
    found.sort();
    found
}

/// Commands that print no facts: they change something, or print text for another program.
const NO_FACTS: &[&str] = &[
    "plumb account can-i",
    "plumb account delete-token",
    "plumb account generate-token",
    "plumb account update-password",
    "plumb admin initial-password",
    "plumb app actions run",
    "plumb app add-source",
    "plumb app confirm-deletion",
    "plumb app create",
    "plumb app delete",
    "plumb app delete-resource",
    "plumb app edit",
    "plumb app logs",
    "plumb app manifests",
    "plumb app patch-resource",
    "plumb app remove-source",
    "plumb app set",
    "plumb app terminate-op",
    "plumb app unset",
    "plumb appset confirm-deletion",
    "plumb appset delete",
    "plumb cert add-ssh",
    "plumb cert add-tls",
    "plumb cert rm",
    "plumb cluster add",
    "plumb cluster rm",
    "plumb cluster rotate-auth",
    "plumb cluster set",
    "plumb completion",
    "plumb fix",
    "plumb gpg add",
    "plumb gpg rm",
    "plumb install",
    "plumb login",
    "plumb logout",
    "plumb man",
    "plumb mcp",
    "plumb pause",
    "plumb render",
    "plumb repo add",
    "plumb repo rm",
    "plumb repocreds add",
    "plumb repocreds rm",
    "plumb resume",
    "plumb run",
    "plumb schema",
    "plumb undo restore",
];

/// Verbs of `plumb proj` that only change a project.
const CHANGES_A_PROJECT: &[&str] =
    &["add", "allow", "create", "delete", "deny", "disable", "edit", "enable", "remove", "update"];

#[test]
fn every_command_that_prints_facts_has_documented_data() -> Result<()> {
    let page = include_str!("../../../../../docs/editors-and-assistants.md");
    let shell = Shell::new()?;
    let mut missing = Vec::new();
    for line in commands() {
        let help = shell.quietly(&format!("{line} --help"), &[], "")?.stdout;
        let verb = line.rsplit(' ').next().unwrap_or_default();
        let changes_a_project =
            line.starts_with("plumb proj ") && CHANGES_A_PROJECT.iter().any(|start| verb.starts_with(start));
        if help.contains("\nCommands:") || NO_FACTS.contains(&line.as_str()) || changes_a_project {
            continue;
        }
        let output = help.split_once("--output <").map_or("", |(_, rest)| rest);
        let output = output.split("\n      --").next().unwrap_or_default();
        if !(output.contains("json") && output.contains("yaml")) {
            missing.push(format!("{line} has no -o json|yaml"));
        }
        if !page.contains(&format!("`{line}`")) {
            missing.push(format!("{line} is not on the page"));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    Ok(())
}
