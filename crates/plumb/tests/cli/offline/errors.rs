//! Errors that need no cluster: each has a clear message and a documented exit code.

use anyhow::Result;

use crate::shell::Shell;

#[test]
fn errors_have_a_message_and_a_code() -> Result<()> {
    let mut shell = Shell::new()?;
    shell.run("plumb app list", &[("KUBECONFIG", "/nowhere/config")], "")?;
    shell.plumb("plumb app list")?;
    shell.plumb("plumb cluster add a")?;
    let nonsense = shell.file("nonsense", "{")?.display().to_string();
    shell.run("plumb app list", &[("KUBECONFIG", &nonsense)], "")?;
    // A port that no process listens on.
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let dead = format!(
        "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
         clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{free}'}}}}], users: [{{name: a, user: {{}}}}]}}"
    );
    shell.transcript.call(&free.to_string(), "PORT");
    let dead = shell.file("dead", &dead)?.display().to_string();
    shell.run("plumb app list --context other", &[("KUBECONFIG", &dead)], "")?;
    shell.run("plumb app list", &[("KUBECONFIG", &dead)], "")?;
    for line in [
        "plumb app list --colour",
        "plumb app get",
        "plumb app list --server 127.0.0.1:1",
        "argocd relogin",
        "plumb app list --watch -o json",
        "plumb app sync",
        "plumb app wait",
        "plumb app sync web --local .",
        "plumb app sync web --preview-changes",
        "plumb app diff web --server-side-diff",
        "plumb app diff web --ignore-normalizer-jq-execution-timeout 1s",
        "plumb app set web",
        "plumb app unset web",
        "plumb app patch web --patch '{}'",
        "plumb repo list --refresh hard",
        "plumb cluster add a --shard 1",
        "plumb pause web --for 30 --reason x",
        "plumb pause web --for 30m --reason ' '",
        "plumb run --log-level =x",
    ] {
        shell.plumb(line)?;
    }
    shell.transcript.check("errors-offline")
}
