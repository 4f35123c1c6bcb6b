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
