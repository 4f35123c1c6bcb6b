//! Are the programs new enough?

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plumb_core::tool_version::ToolVersion;

use crate::tools::Tools;

/// Older versions lack options that plumb uses, or have known holes.
const GIT: ToolVersion = ToolVersion(2, 30, 0);
const HELM: ToolVersion = ToolVersion(3, 8, 0);
const KUSTOMIZE: ToolVersion = ToolVersion(4, 5, 0);

const TIMEOUT: Duration = Duration::from_secs(20);

/// A sentence for each program that is older than plumb needs, and for git if it cannot be run. Helm and Kustomize may be
/// absent: only apps that need them fail.
pub async fn outdated_tools(tools: &Tools) -> Vec<String> {
    let git = version_of(Path::new("git"), &["--version"]).await;
    let helm = version_of(&tools.helm, &["version", "--short"]).await;
    let kustomize = version_of(&tools.kustomize, &["version"]).await;
    let mut found = Vec::new();
    if git.is_none() {
        found.push("cannot run git: apps with Git sources fail; install git".to_owned());
    }
    for (name, version, floor) in
        [("git", git, GIT), ("helm", helm, HELM), ("kustomize", kustomize, KUSTOMIZE)]
    {
        found.extend(version.and_then(|version| problem(name, version, floor)));
    }
    found
}

fn problem(name: &str, version: ToolVersion, floor: ToolVersion) -> Option<String> {
    (version < floor).then(|| {
        format!(
            "{name} {version} is older than {floor}, which plumb needs: install a newer version of {name}"
        )
    })
}

async fn version_of(program: &Path, arguments: &[&str]) -> Option<ToolVersion> {
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(TIMEOUT, command.output()).await.ok()?.ok()?;
    ToolVersion::find(&String::from_utf8_lossy(&output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_program_is_named_with_the_version_that_is_needed() {
        assert_eq!(problem("git", ToolVersion(2, 30, 0), GIT), None);
        let told = problem("git", ToolVersion(2, 20, 1), GIT).unwrap();
        assert_eq!(
            told,
            "git 2.20.1 is older than 2.30.0, which plumb needs: install a newer version of git"
        );
    }
}
