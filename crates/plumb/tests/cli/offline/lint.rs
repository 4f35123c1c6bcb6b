//! `plumb lint` and `plumb diff` read a checkout, and nothing else.

use anyhow::{Context, Result, ensure};
use plumb_testkit::git::GitRepo;

use crate::shell::Shell;

/// A repository with two apps, and a shell.
fn stage() -> Result<(Shell, GitRepo, String)> {
    let mut shell = Shell::new()?;
    let repo = GitRepo::new()?;
    let application = |name: &str, path: &str, policy: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  \
             project: default\n  source: {{repoURL: https://example.com/fork.git, path: {path}, targetRevision: main}}\n  \
             destination: {{server: https://kubernetes.default.svc, namespace: shop}}\n  syncPolicy: {{automated: {policy}}}\n"
        )
    };
    repo.commit(&[
        ("apps/shop.yaml", application("shop", "deploy/shop", "{prune: true}")),
        ("apps/tools.yaml", application("tools", "deploy/tools", "{prune: false}")),
        ("apps/far.yaml", application("far", "not/here", "{}")),
        ("deploy/shop/all.yaml", SHOP.to_owned()),
        ("deploy/tools/all.yaml", TOOLS.to_owned()),
    ])?;
    repo.git(&["branch", "base"])?;
    let checkout = repo.path().canonicalize()?.display().to_string();
    shell.transcript.call(&checkout, "CHECKOUT");
    Ok((shell, repo, checkout))
}

/// The clusters of a repository often have an app of the same name each.
#[test]
fn of_two_applications_of_a_name_the_one_in_the_named_directory_is_checked() -> Result<()> {
    let shell = Shell::new()?;
    let repo = GitRepo::new()?;
    let application = |cluster: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: shop, namespace: argocd}}\nspec:\n  \
             project: default\n  source: {{repoURL: https://example.com/shop.git, path: deploy/{cluster}}}\n  \
             destination: {{server: https://kubernetes.default.svc, namespace: shop}}\n"
        )
    };
    let secret = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{password: hunter2}}\n"
        )
    };
    repo.commit(&[
        ("clusters/dev/shop.yaml", application("dev")),
        ("clusters/prod/shop.yaml", application("prod")),
        ("deploy/dev/all.yaml", secret("of-dev")),
        ("deploy/prod/all.yaml", secret("of-prod")),
    ])?;
    for (cluster, other) in [("dev", "prod"), ("prod", "dev")] {
        let line = format!("plumb lint {}/clusters/{cluster}", repo.path().display());
        let said = shell.quietly(&line, &[], "")?;
        ensure!(said.stdout.contains(&format!("of-{cluster}")), "{}{}", said.stdout, said.stderr);
        ensure!(!said.stdout.contains(&format!("of-{other}")), "{}", said.stdout);
        let note = format!(
            "shop in clusters/{other}/shop.yaml is not checked: another Application of this name is in clusters/{cluster}/"
        );
        ensure!(said.stderr.contains(&note), "{}", said.stderr);
    }
    Ok(())
}

const SHOP: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.io}
spec:
  group: example.io
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {
      colour: {type: string}, parts: {type: array, items: {type: object, properties: {
        name: {type: string}, size: {type: integer, default: 1}}}}}}}}}
---
apiVersion: example.io/v1
kind: Thing
metadata:
  name: a
spec:
  # A comment, so that the line is not that of the document.
  color: red
  parts:
  - name: x
---
apiVersion: v1
kind: Secret
metadata:
  name: db
stringData:
  password: hunter2
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: web:1
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
spec:
  resources: {requests: {storage: 1Gi}}
";

const TOOLS: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: db
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: left
";

#[test]
fn lint_needs_no_cluster() -> Result<()> {
    let (mut shell, _repo, checkout) = stage()?;
    for line in [
        format!("plumb lint {checkout}"),
        format!("plumb lint {checkout}/deploy/tools --exit-code"),
        format!("plumb lint {checkout} --rule PlainSecret --exit-code -o github"),
        format!("plumb lint {checkout} --rule SchemaDefault --exit-code=warning -o json"),
        format!("plumb lint {checkout} --rule RejectedField --exit-code=error -o sarif"),
        format!("plumb lint {checkout} --rule RejectedField -o junit"),
        format!("plumb lint {checkout} --rule RejectedField -o markdown"),
        format!("plumb lint {checkout} --rule NoSuchRule"),
        format!("plumb lint {checkout} --base no-such-branch"),
        format!("plumb lint {checkout} no-such-app"),
    ] {
        let said = shell.plumb(&line)?;
        ensure!(
            !said.stdout.contains("hunter2") && !said.stderr.contains("hunter2"),
            "{line} prints a secret"
        );
    }
    shell.transcript.check("lint")
}

#[test]
fn a_merge_is_shown_before_it_happens() -> Result<()> {
    let (mut shell, repo, checkout) = stage()?;
    let shop = SHOP.replace("web:1", "web:2").replace("app: web", "app: site").replace("hunter2", "hunter3");
    let shop =
        shop.split("---\napiVersion: v1\nkind: PersistentVolumeClaim").next().unwrap_or_default().to_owned();
    let tools = TOOLS.split("---").next().unwrap_or_default().to_owned();
    repo.commit(&[("deploy/shop/all.yaml", shop), ("deploy/tools/all.yaml", tools)])?;
    for line in [
        format!("plumb diff {checkout} --from base --exit-code"),
        format!("plumb diff {checkout} --from base --to HEAD -o markdown"),
        format!("plumb diff {checkout} --from base --to base --exit-code"),
        format!("plumb lint {checkout} --base base --rule DeletesData --rule ImmutableField --exit-code"),
    ] {
        let said = shell.plumb(&line)?;
        ensure!(!said.stdout.contains("hunter"), "{line} prints a secret");
    }
    shell.transcript.check("diff")
}

/// A folder without Applications is one app, and a link that leads out of the repository is not followed.
#[test]
fn a_folder_is_an_app_and_stays_in_its_repository() -> Result<()> {
    let shell = Shell::new()?;
    let repo = GitRepo::new()?;
    repo.commit(&[("web/a.yaml", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}\n")])?;
    let checkout = repo.path().display().to_string();
    let said = shell.quietly(&format!("plumb lint {checkout}/web --exit-code=hint"), &[], "")?;
    ensure!(
        said.code == 1 && said.stdout.contains("web/a.yaml:1: hint: UnprotectedClaim"),
        "{}",
        said.stdout
    );
    ensure!(
        !said.stdout.contains("InvalidManifest"),
        "no namespace is known, and none is missing: {}",
        said.stdout
    );
    std::os::unix::fs::symlink("/etc/hostname", repo.path().join("web/b.yaml"))?;
    let said = shell.quietly(&format!("plumb lint {checkout}/web --exit-code"), &[], "")?;
    ensure!(
        said.stdout.contains("NotRendered") && said.stdout.contains("outside the repository"),
        "{}",
        said.stdout
    );
    ensure!(said.code == 1, "it is an error");
    Ok(())
}

/// A set that generates an app for each folder of `tenants`, and one per cluster.
const SETS: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: tenants, namespace: argocd}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
  - git: {repoURL: https://example.com/fork.git, revision: HEAD, directories: [{path: tenants/*}]}
  template:
    metadata: {name: '{{.path.basename}}'}
    spec:
      project: default
      source: {repoURL: https://example.com/fork.git, path: '{{.path.path}}', targetRevision: HEAD}
      destination: {server: https://kubernetes.default.svc, namespace: '{{.path.basename}}'}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: everywhere, namespace: argocd}
spec:
  generators:
  - clusters: {selector: {matchLabels: {env: prod}}}
  template:
    metadata: {name: 'probe-{{name}}'}
    spec:
      project: default
      source: {repoURL: https://example.com/fork.git, path: probe, targetRevision: HEAD}
      destination: {name: '{{name}}', namespace: probe}
";

#[test]
fn what_sets_generate_is_checked_like_applications() -> Result<()> {
    let shell = Shell::new()?;
    let repo = GitRepo::new()?;
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: db}, stringData: {password: hunter2}}\n";
    let claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}\n";
    repo.commit(&[
        ("sets.yaml", SETS),
        ("tenants/blue/a.yaml", claim),
        ("tenants/red/a.yaml", secret),
        ("probe/a.yaml", secret),
    ])?;
    let checkout = repo.path().display().to_string();
    let lint = |more: &str| shell.quietly(&format!("plumb lint {checkout} --exit-code {more}"), &[], "");
    let said = lint("")?;
    ensure!(said.code == 1 && said.stdout.contains("tenants/red/a.yaml"), "{}{}", said.stdout, said.stderr);
    ensure!(
        said.stderr.contains("no clusters are known but in-cluster, for the generators of everywhere"),
        "{}",
        said.stderr
    );
    ensure!(!said.stdout.contains("probe/a.yaml"), "there is no such cluster: {}", said.stdout);
    let clusters =
        shell.file("clusters.yaml", "[{name: one, server: https://one.test, labels: {env: prod}}]")?;
    let said = lint(&format!("--clusters {}", clusters.display()))?;
    ensure!(said.stdout.contains("probe/a.yaml"), "{}{}", said.stdout, said.stderr);
    ensure!(!said.stderr.contains("no clusters are known"), "{}", said.stderr);

    // A folder that is removed is an app that is removed.
    repo.git(&["branch", "base"])?;
    repo.remove(&["tenants/blue/a.yaml"])?;
    let said = shell.quietly(&format!("plumb diff {checkout} --from base"), &[], "")?;
    ensure!(said.stdout.contains("blue"), "{}{}", said.stdout, said.stderr);

    // Templates that fail are findings, and so are names that two sets generate.
    repo.commit(&[("sets.yaml", SETS.replace(".path.path", ".path.wrong"))])?;
    let said = lint("--rule NotRendered")?;
    ensure!(said.code == 1 && said.stdout.contains("map has no entry for key \"wrong\""), "{}", said.stdout);
    let twice = SETS.replace("probe-{{name}}", "red");
    let twice = twice.replace(
        "clusters: {selector: {matchLabels: {env: prod}}}",
        "list: {elements: [{name: in-cluster}]}",
    );
    repo.commit(&[("sets.yaml", twice)])?;
    let said = lint("--rule NotRendered")?;
    ensure!(said.code == 1 && said.stdout.contains("generates the Application red, too"), "{}", said.stdout);
    let plugin =
        SETS.replace("clusters: {selector: {matchLabels: {env: prod}}}", "plugin: {configMapRef: {name: x}}");
    repo.commit(&[("sets.yaml", plugin)])?;
    let said = lint("--rule NotRendered")?;
    ensure!(
        said.code == 0 && said.stderr.contains("ApplicationSet everywhere is not checked"),
        "{}",
        said.stderr
    );
    Ok(())
}

/// The commands in the files for CI systems are commands of plumb.
#[test]
fn the_hook_and_the_templates_run() -> Result<()> {
    let (shell, _repo, checkout) = stage()?;
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let hooks = std::fs::read_to_string(root.join(".pre-commit-hooks.yaml"))?;
    let entry = hooks.lines().find_map(|line| line.trim().strip_prefix("entry: ")).context("an entry")?;
    let said = shell.quietly(&format!("{entry} {checkout}"), &[], "")?;
    ensure!(said.code == 1 && said.stdout.contains("PlainSecret"), "{}{}", said.stdout, said.stderr);
    for file in ["contrib/github-action/action.yml", "contrib/gitlab/plumb.gitlab-ci.yml"] {
        let text = std::fs::read_to_string(root.join(file))?;
        plumb_core::yaml::parse_documents(&text, &plumb_core::yaml::Limits::default())
            .with_context(|| file.to_owned())?;
        let commands: Vec<&str> =
            text.lines().filter(|line| line.contains("plumb lint ") && line.contains(" -- ")).collect();
        ensure!(!commands.is_empty(), "{file} runs plumb");
        for command in commands {
            let options = command.split("plumb lint").nth(1).and_then(|rest| rest.split(" -- ").next());
            let options = options.unwrap_or_default().replace("\"${options[@]}\"", "--base=base");
            let options = options.replace("\"origin/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME\"", "base");
            let options = options
                .replace("$LINT_SEVERITY", "hint")
                .replace("$PLUMB_LINT_SEVERITY", "hint")
                .replace('"', "");
            let said = shell.quietly(&format!("plumb lint {} -- {checkout}", options.trim()), &[], "")?;
            ensure!(matches!(said.code, 0 | 1), "{command}: {}", said.stderr);
        }
    }
    Ok(())
}
