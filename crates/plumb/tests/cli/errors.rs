//! Errors of the API server: each has a clear message and a documented exit code.

use std::process::Stdio;

use anyhow::Result;
use plumb_testkit::objects;

use crate::bench::Bench;

#[tokio::test]
async fn errors_of_the_server_have_a_message_and_a_code() -> Result<()> {
    let mut bench = Bench::new().await?;
    // A user without permissions.
    let kubeconfig = std::fs::read_to_string(bench.place.kubeconfig())?;
    let nobody = bench.shell.file("nobody", &as_nobody(&kubeconfig))?.display().to_string();
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
    ] {
        bench.plumb(line)?;
    }
    bench.shell.transcript.check("errors")
}

#[tokio::test]
async fn apps_of_one_name_are_selected_by_namespace() -> Result<()> {
    let mut bench = Bench::new().await?;
    let other = plumb_testkit::TestNamespace::new().await?;
    let third = plumb_testkit::TestNamespace::new().await?;
    bench.shell.transcript.call(other.name(), "OTHER");
    bench.shell.transcript.call(third.name(), "THIRD");
    let twin = format!("twin-{}", bench.place.name());
    bench.shell.transcript.call(&twin, "TWIN");
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
    bench.shell.transcript.check("two-of-one-name")
}

#[tokio::test]
async fn a_closed_pipe_is_not_an_error() -> Result<()> {
    let bench = Bench::new().await?;
    for line in [
        "plumb --help",
        "plumb app list",
        "plumb app list -o json",
        "plumb install --image a.example/plumb:1",
        "plumb man",
    ] {
        let mut child = bench.command(line)?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        drop(child.stdout.take());
        let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await??;
        let stderr = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{line}");
    }
    // A full disk is an error.
    let full = std::fs::File::options().write(true).open("/dev/full")?;
    let output = bench
        .command("plumb install --image a.example/plumb:1")?
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()?
        .wait_with_output()?;
    assert_eq!(output.status.code(), Some(20));
    assert!(String::from_utf8(output.stderr)?.starts_with("error: cannot write to stdout:"));
    Ok(())
}

/// The same kubeconfig for a user without permissions.
fn as_nobody(kubeconfig: &str) -> String {
    kubeconfig.replacen("user:\n", "user:\n    as: nobody\n", 10)
}
