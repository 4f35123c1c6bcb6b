//! From a red column to green: what the doctor shows first, and what `plumb fix` changes in Git.

use anyhow::{Result, ensure};
use plumb_testkit::git::GitRepo;
use serde_json::json;

use crate::stage::Stage;

const WEB: &str = "\
# The web of the shop.
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  minReadySecond: 5 # misspelled
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: example.com/web
        resources:
          limits: {cpu: 1000m} # one
";

#[tokio::test]
async fn a_red_app_becomes_green_by_a_branch() -> Result<()> {
    let stage = Stage::set().await?;
    stage.repo.name_author()?;
    stage.repo.commit(&[("app/web.yaml", WEB)])?;
    let automated = json!({"automated": {}});
    let app = stage.application("shop", |app| app["spec"]["syncPolicy"] = automated).await?;
    stage.finding(&app, "Deployment", "web", "RejectedField").await?;

    let shown = stage.plumb(&["doctor"])?;
    ensure!(shown.contains("RejectedField Deployment: 1 finding in shop"), "{shown}");
    let codes = stage.plumb(&["doctor", "--exit-code"]);
    ensure!(codes.is_err(), "a difference counts");

    // plumb itself asks only for the misspelled field.
    let root = stage.repo.path().display().to_string();
    let said = stage.plumb(&["fix", "--repo", &root, "--branch", "for-plumb"])?;
    ensure!(said.contains("1 commit;"), "{said}");
    stage.repo.git(&["merge", "--quiet", "--ff-only", "for-plumb"])?;
    let fixed = WEB.replace("minReadySecond", "minReadySeconds");
    assert_eq!(std::fs::read_to_string(stage.repo.path().join("app/web.yaml"))?, fixed);
    stage.refresh(&app).await?;
    stage.until_sync(&app, "Synced").await?;
    // Another spelling of a quantity is no reason to look.
    stage.finding(&app, "Deployment", "web", "EquivalentValue").await?;
    let shown = stage.plumb(&["doctor", "--exit-code"])?;
    ensure!(!shown.contains("EquivalentValue"), "{shown}");

    // Argo CD would show it.
    let flags = ["fix", "--app", "shop", "--repo", &root, "--for", "argocd", "--class", "EquivalentValue"];
    stage.plumb(&[&flags[..], &["--yes"]].concat())?;
    let fixed = fixed.replace("{cpu: 1000m}", "{cpu: '1'}").replace("'1'", "\"1\"");
    assert_eq!(std::fs::read_to_string(stage.repo.path().join("app/web.yaml"))?, fixed);
    // The change is made, and the cluster does not have it yet.
    let again = stage.plumb_says(&[&flags[..], &["--patch"]].concat())?;
    ensure!(again.contains("no file changes") && !again.contains("left to you"), "{again}");
    // The working copy is not what the app follows any more: it is not guessed over.
    std::fs::write(stage.repo.path().join("app/web.yaml"), fixed.replace("\"1\"", "\"2\""))?;
    let refused = stage.plumb_says(&[&flags[..], &["--patch"]].concat())?;
    ensure!(
        refused.contains("another value at /spec/template/spec/containers of apps/Deployment"),
        "{refused}"
    );

    // Without a clone of the repository that has the manifest, the line is named and nothing is written.
    let control = GitRepo::new()?;
    let mut written = app.clone();
    written.as_object_mut().map(|app| app.remove("status"));
    control.commit(&[("apps/shop.json", serde_json::to_string_pretty(&written)?)])?;
    // Named with its URL: a clone without one would stand for every repository, also for that of the app.
    let control = format!("https://git.example.com/control.git={}", control.path().display());
    let flags = ["fix", "--app", "shop", "--repo", &control, "--for", "argocd", "--class", "EquivalentValue"];
    let refused = stage.plumb_says(&[&flags[..], &["--patch"]].concat())?;
    ensure!(
        refused.contains("no file changes")
            && refused.contains("/spec/template/spec/containers/0/resources/limits/cpu to \"1\"")
            && refused.contains("the file is not in one of the given working copies"),
        "{refused}"
    );
    Ok(())
}
