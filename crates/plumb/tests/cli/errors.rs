//! What goes wrong: each a clear message and a documented exit code.

use std::process::Stdio;

use anyhow::Result;
use plumb_testkit::objects;

use crate::bench::Bench;

#[tokio::test]
async fn trouble_has_a_message_and_a_code() -> Result<()> {
    let mut bench = Bench::new().await?;
    bench.run("plumb app list", &[("KUBECONFIG", "/nowhere/config")], "")?;
    bench.run("plumb app list", &[("KUBECONFIG", "")], "")?;
    bench.run("plumb cluster add a", &[("KUBECONFIG", "")], "")?;
    let nonsense = bench.file("nonsense", "{")?.display().to_string();
    bench.run("plumb app list", &[("KUBECONFIG", &nonsense)], "")?;
    bench.plumb("plumb app list --context nobody")?;
    // A port that nobody listens on.
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let dead = format!(
        "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
         clusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:{free}'}}}}], users: [{{name: a, user: {{}}}}]}}"
    );
    bench.transcript.call(&free.to_string(), "PORT");
    let dead = bench.file("dead", &dead)?.display().to_string();
    bench.run("plumb app list", &[("KUBECONFIG", &dead)], "")?;

    // Somebody who may do nothing.
    let kubeconfig = std::fs::read_to_string(bench.place.kubeconfig())?;
    let nobody = bench.file("nobody", &as_nobody(&kubeconfig))?.display().to_string();
    for line in [
        "plumb app list",
        "plumb app get web",
        "plumb app sync web",
        "plumb proj list",
        "plumb repo list",
        "plumb drift",
    ] {
        bench.run(line, &[("KUBECONFIG", &nobody)], "")?;
    }

    for line in [
        "plumb app get nobody",
        "plumb app sync nobody",
        "plumb app diff nobody",
        "plumb app set nobody --revision x",
        "plumb app delete nobody --yes",
        "plumb app logs nobody",
        "plumb app list --colour",
        "plumb app get",
        "plumb app list --server argocd.example.com",
        "argocd app list --grpc-web",
        "plumb app list --watch -o json",
        "plumb app sync",
        "plumb repo list --refresh hard",
    ] {
        bench.plumb(line)?;
    }
    bench.transcript.check("errors")
}

#[tokio::test]
async fn two_apps_of_one_name_are_told_apart() -> Result<()> {
    let mut bench = Bench::new().await?;
    let other = plumb_testkit::TestNamespace::new().await?;
    let third = plumb_testkit::TestNamespace::new().await?;
    bench.transcript.call(other.name(), "OTHER");
    bench.transcript.call(third.name(), "THIRD");
    let twin = format!("twin-{}", bench.place.name());
    bench.transcript.call(&twin, "TWIN");
    let application = objects::application(&twin, &bench.repo.url(), "app", "default");
    other.apply(&application).await?;
    bench.plumb(&format!("plumb app get {twin}"))?;
    third.apply(&application).await?;
    bench.plumb(&format!("plumb app get {twin}"))?;
    bench.plumb(&format!("plumb app get {}/{twin}", other.name()))?;
    bench.plumb(&format!("plumb app get {twin} -N {}", third.name()))?;
    bench.application(&twin, |_| {}).await?;
    bench.plumb(&format!("plumb app get {twin}"))?;
    bench.plumb(&format!("plumb app list -N {} -o name", other.name()))?;
    bench.transcript.check("two-of-one-name")
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_trouble() -> Result<()> {
    let bench = Bench::new().await?;
    for line in ["plumb --help", "plumb app list", "plumb app list -o json", "plumb install", "plumb man"] {
        let mut child = bench.command(line)?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        drop(child.stdout.take());
        let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await??;
        let stderr = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{line}");
    }
    // A disk that is full is trouble.
    let full = std::fs::File::options().write(true).open("/dev/full")?;
    let output =
        bench.command("plumb install")?.stdout(full).stderr(Stdio::piped()).spawn()?.wait_with_output()?;
    assert_eq!(output.status.code(), Some(20));
    assert!(String::from_utf8(output.stderr)?.starts_with("error: write the answer to stdout:"));
    Ok(())
}

/// The same kubeconfig for somebody who may do nothing.
fn as_nobody(kubeconfig: &str) -> String {
    kubeconfig.replacen("user:\n", "user:\n    as: nobody\n", 10)
}
