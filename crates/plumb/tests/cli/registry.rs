//! Projects, clusters, repositories.

use anyhow::Result;

use crate::bench::Bench;

#[tokio::test]
async fn projects_are_made_and_changed() -> Result<()> {
    let mut bench = Bench::new().await?;
    for line in [
        "plumb proj list",
        "plumb proj create payments --dest https://kubernetes.default.svc,payments --src https://example.com/a.git --description Money",
        "plumb proj create payments",
        "plumb proj get payments",
        "plumb proj add-source payments https://example.com/b.git",
        "plumb proj add-source payments https://example.com/b.git",
        "plumb proj remove-source payments https://example.com/a.git",
        "plumb proj remove-source payments https://example.com/a.git",
        "plumb proj add-destination payments eu web --name",
        "plumb proj remove-destination payments https://kubernetes.default.svc payments",
        "plumb proj add-source-namespace payments team-a",
        "plumb proj remove-source-namespace payments team-a",
        "plumb proj add-signature-key payments 4AEE18F83AFDEB23",
        "plumb proj remove-signature-key payments 4AEE18F83AFDEB23",
        "plumb proj add-orphaned-ignore payments '' ConfigMap --name cache-*",
        "plumb proj remove-orphaned-ignore payments '' ConfigMap --name cache-*",
        "plumb proj add-destination-service-account payments https://kubernetes.default.svc web deployer --service-account-namespace ops",
        "plumb proj remove-destination-service-account payments https://kubernetes.default.svc web deployer --service-account-namespace ops",
        "plumb proj allow-cluster-resource payments '' Namespace",
        "plumb proj deny-cluster-resource payments '' Namespace",
        "plumb proj deny-namespace-resource payments '' Secret",
        "plumb proj allow-namespace-resource payments '' Secret",
        "plumb proj windows add payments --kind deny --schedule '0 22 * * *' --duration 8h --applications * --time-zone Europe/Berlin",
        "plumb proj windows add payments --kind deny --schedule 'at night' --duration 8h --applications *",
        "plumb proj windows add payments --kind deny --schedule '0 22 * * *' --duration 8h",
        "plumb proj windows update payments 0 --duration 1h --schedule '0 0 30 2 *'",
        "plumb proj windows enable-manual-sync payments 0",
        "plumb proj windows list payments",
        "plumb proj windows disable-manual-sync payments 0",
        "plumb proj windows delete payments 1",
        "plumb proj windows delete payments 0",
        "plumb proj get payments -o yaml",
        "plumb proj list -o name",
        "plumb proj list",
        "plumb proj get nobody",
        "plumb proj delete default",
    ] {
        bench.plumb(line)?;
    }
    let editor =
        bench.shell.file("editor", "#!/bin/sh\nsed -i 's/description: Money/description: Gold/' \"$1\"\n")?;
    let editor = format!("sh {}", editor.display());
    bench.run("plumb proj edit payments", &[("EDITOR", &editor)], "")?;
    bench.run("plumb proj edit payments", &[("EDITOR", &editor)], "")?;
    bench.run("plumb proj edit nobody", &[("EDITOR", &editor)], "")?;
    bench.application("app", |app| app["spec"]["project"] = "payments".into()).await?;
    bench.plumb("plumb proj delete payments")?;
    bench.plumb("plumb app delete app --yes --cascade=false")?;
    bench.plumb("plumb proj delete payments")?;
    bench.shell.transcript.check("proj")
}

#[tokio::test]
async fn repositories_are_registered_and_show_no_secret() -> Result<()> {
    let mut bench = Bench::new().await?;
    bench.plumb("plumb repo list")?;
    bench.run(
        "plumb repo add https://example.com/a.git --username ci --password-stdin --project payments --name money",
        &[],
        "canary-password\n",
    )?;
    bench.plumb("plumb repo add https://example.com/a.git --project payments")?;
    bench.run("plumb repo add https://example.com/a.git --username ci --password-stdin", &[], "")?;
    let key = bench.shell.file("key", "canary-key\n")?;
    bench.plumb(&format!("plumb repo add git@example.com:b.git --ssh-private-key-path {}", key.display()))?;
    bench.plumb("plumb repo add https://example.com/charts --type helm --name charts")?;
    bench.plumb("plumb repo add https://example.com/c.git --github-app-id 1")?;
    bench.plumb("plumb repo list")?;
    bench.plumb("plumb repo list -o json")?;
    bench.plumb("plumb repo list -o url")?;
    bench.plumb("plumb repo get https://example.com/a.git -o yaml")?;
    bench.plumb("plumb repo get https://example.com/none.git")?;
    bench.plumb("plumb repo add https://example.com/a.git --project payments --upsert")?;
    bench.plumb("plumb repo get https://example.com/a")?;
    bench
        .plumb("plumb repo rm https://example.com/a.git git@example.com:b.git https://example.com/charts")?;
    bench.plumb("plumb repo list")?;
    no_canary(&bench)?;
    bench.shell.transcript.check("repo")
}

#[tokio::test]
async fn clusters_are_registered_and_show_no_secret() -> Result<()> {
    let mut bench = Bench::new().await?;
    let kubeconfig = std::fs::read_to_string(bench.place.kubeconfig())?;
    let find = |key: &str| {
        let line = kubeconfig
            .lines()
            .map(|line| line.trim().trim_start_matches("- "))
            .find(|line| line.starts_with(key));
        line.and_then(|line| line.split_once(": "))
            .map(|(_, text)| text.trim_matches('"').to_owned())
            .unwrap_or_default()
    };
    bench.shell.transcript.call(&find("server:"), "SERVER");
    let name = find("current-context:");
    bench.shell.transcript.call(&name, "CONTEXT");
    let namespace = bench.place.name().to_owned();
    bench.plumb("plumb cluster add nowhere --yes")?;
    bench.run(&format!("plumb cluster add {name} --name mine --system-namespace {namespace}"), &[], "n\n")?;
    bench.plumb(&format!(
        "plumb cluster add {name} --name mine --system-namespace {namespace} --namespace {namespace} --control-namespace {namespace} --label tier=test --yes"
    ))?;
    bench.plumb(&format!("plumb cluster add {name} --shard 1"))?;
    let listed = bench.quietly("plumb cluster list", &[], "")?;
    let rows: Vec<&str> = listed.stdout.lines().collect();
    assert!(
        rows.len() == 3 && rows.iter().skip(1).all(|row| row.contains("Successful")),
        "{}",
        listed.stdout
    );
    bench.plumb("plumb cluster list -o name")?;
    bench.plumb("plumb cluster list -o yaml")?;
    bench.plumb("plumb cluster get mine")?;
    bench.plumb("plumb cluster get in-cluster -o json")?;
    bench.plumb("plumb cluster get nobody")?;
    bench.plumb("plumb cluster rm in-cluster --yes")?;
    bench.run("plumb cluster rm mine", &[], "no\n")?;
    bench.plumb("plumb cluster rm mine --yes")?;
    bench.plumb("plumb cluster list -o server")?;
    bench.shell.transcript.check("cluster")
}

/// No output has a value of a secret.
fn no_canary(bench: &Bench) -> Result<()> {
    let said = format!("{:?}", bench.shell.transcript);
    // The value and its base64.
    for canary in ["canary", "Y2FuYXJ5"] {
        anyhow::ensure!(!said.contains(canary), "{canary} is shown");
    }
    Ok(())
}
