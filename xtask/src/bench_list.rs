//! `cargo xtask bench-list`: how long a person waits for `plumb app list`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use plumb_testkit::cluster::{self, Layout};
use serde_json::{Value, json};

use crate::cluster::ensure_programs;
use crate::plumb::given_or_built;

/// Builds plumb, fills a fresh cluster with Applications as they look after a few weeks (twenty objects, ten past
/// syncs each) and their reports, and measures the commands that people wait for, beside kubectl's.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many Applications.
    #[arg(long, default_value_t = 1000)]
    apps: usize,
    /// How often each command runs.
    #[arg(long, default_value_t = 15)]
    runs: usize,
    /// Another plumb than the one of this repository.
    #[arg(long)]
    plumb: Option<PathBuf>,
    /// A cluster that is filled already, in place of a fresh one.
    #[arg(long, value_name = "KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root().canonicalize().context("find the repository")?;
    let plumb = given_or_built(args.plumb.as_deref(), &root)?;
    let layout = Layout::from_environment()?;
    let programs = ensure_programs(&layout)?;
    let path = crate::programs::path_with(&programs);
    let command = |program: &Path, kubeconfig: &Path, line: &str| {
        let mut command = Command::new(program);
        command.args(line.split_whitespace()).env("KUBECONFIG", kubeconfig).env("PATH", &path);
        command
    };
    let kubectl = Path::new("kubectl");
    let fresh = match &args.kubeconfig {
        Some(_) => None,
        None => Some(cluster::attach(&layout, &programs)?),
    };
    let kubeconfig = match (&args.kubeconfig, &fresh) {
        (Some(kubeconfig), _) => kubeconfig.clone(),
        (None, Some(cluster)) => cluster.state().kubeconfig.clone(),
        (None, None) => anyhow::bail!("there is no cluster"),
    };
    if fresh.is_some() {
        let file = std::env::temp_dir().join(format!("plumb-bench-list-{}.json", std::process::id()));
        std::fs::write(&file, objects(args.apps).to_string())?;
        succeed(&mut command(&plumb, &kubeconfig, "install --apply"))?;
        say(&format!("making {} Applications", args.apps));
        let made = succeed(&mut command(kubectl, &kubeconfig, &format!("create -f {}", file.display())));
        let _ = std::fs::remove_file(&file);
        made?;
    }
    let mut table =
        format!("| command, {} Applications | median | worst of {} |\n|---|---|---|", args.apps, args.runs);
    for (program, name, line) in [
        (plumb.as_path(), "plumb", "--help"),
        (plumb.as_path(), "plumb", "app list"),
        (plumb.as_path(), "plumb", "app list -o name"),
        (plumb.as_path(), "plumb", "app list -o json"),
        (kubectl, "kubectl", "get applications -n argocd"),
        (kubectl, "kubectl", "get applications -n argocd -o json"),
    ] {
        // The first run fills caches of both sides.
        once(command(program, &kubeconfig, line))?;
        let mut times = (0..args.runs)
            .map(|_| once(command(program, &kubeconfig, line)))
            .collect::<Result<Vec<Duration>>>()?;
        times.sort_unstable();
        let (median, worst) = (times.get(times.len() / 2), times.last());
        let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1000.0);
        write!(table, "\n| `{name} {line}` | {:.0} ms | {:.0} ms |", ms(median), ms(worst))?;
    }
    say(&table);
    Ok(ExitCode::SUCCESS)
}

/// Runs a command and says how long it took.
fn once(mut command: Command) -> Result<Duration> {
    let started = Instant::now();
    succeed(&mut command)?;
    Ok(started.elapsed())
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?
        .wait_with_output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Applications with their status, and reports on most of them.
fn objects(n: usize) -> Value {
    let items: Vec<Value> =
        (0..n).map(application).chain((0..n).filter(|n| n % 3 != 2).map(report)).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

const KINDS: [(&str, &str, &str); 10] = [
    ("apps", "v1", "Deployment"),
    ("", "v1", "Service"),
    ("", "v1", "ConfigMap"),
    ("", "v1", "ServiceAccount"),
    ("rbac.authorization.k8s.io", "v1", "Role"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("external-secrets.io", "v1", "ExternalSecret"),
];

fn name(n: usize) -> String {
    format!("team-{:02}-service-{n:04}", n % 40)
}

fn is_red(n: usize) -> bool {
    n.is_multiple_of(10)
}

fn application(n: usize) -> Value {
    let (name, team) = (name(n), format!("team-{:02}", n % 40));
    let commit = |n: usize| format!("{n:040x}");
    let source = json!({
        "repoURL": "https://git.example.com/platform/deployments.git",
        "path": format!("teams/{team}/{name}/overlays/production"), "targetRevision": "main",
        "helm": {"valueFiles": ["values.yaml", "values-production.yaml"],
            "parameters": [{"name": "image.tag", "value": "v1.2.3"}]},
    });
    let destination = json!({"server": "https://kubernetes.default.svc", "namespace": team});
    let object = |index: usize, kind: &(&str, &str, &str)| json!({"group": kind.0, "version": kind.1, "kind": kind.2, "namespace": team, "name": format!("{name}-{index}")});
    let all = || KINDS.iter().cycle().take(20).enumerate();
    let resources: Vec<Value> = all()
        .map(|(index, kind)| {
            let mut one = object(index, kind);
            one["status"] = json!(if is_red(n) && index == 0 { "OutOfSync" } else { "Synced" });
            one["health"] = json!({"status": "Healthy"});
            one
        })
        .collect();
    let results: Vec<Value> = all()
        .map(|(index, kind)| {
            let mut one = object(index, kind);
            one["status"] = json!("Synced");
            one["message"] = json!(format!("{}/{name}-{index} serverside-applied", kind.2.to_lowercase()));
            one["hookPhase"] = json!("Running");
            one["syncPhase"] = json!("Sync");
            one
        })
        .collect();
    let history: Vec<Value> = (0..10)
        .map(|id| {
            json!({"id": id, "revision": commit(n * 10 + id), "deployedAt": "2026-11-01T10:00:00Z",
                "deployStartedAt": "2026-11-01T09:59:58Z", "source": source, "initiatedBy": {"automated": true}})
        })
        .collect();
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "labels": {"team": team}},
        "spec": {
            "project": "default", "source": source, "destination": destination,
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]},
        },
        "status": {
            "controllerNamespace": "argocd", "reconciledAt": "2026-11-16T01:00:00Z", "sourceType": "Helm",
            "sync": {"status": if is_red(n) { "OutOfSync" } else { "Synced" }, "revision": commit(n),
                "comparedTo": {"source": source, "destination": destination}},
            "health": {"status": "Healthy", "lastTransitionTime": "2026-11-10T10:00:00Z"},
            "resources": resources, "history": history,
            "operationState": {
                "phase": "Succeeded", "message": "successfully synced (all tasks run)",
                "startedAt": "2026-11-10T10:00:00Z", "finishedAt": "2026-11-10T10:00:05Z",
                "operation": {"sync": {"revision": commit(n), "prune": true}, "initiatedBy": {"automated": true}},
                "syncResult": {"revision": commit(n), "source": source, "resources": results},
            },
        },
    })
}

fn report(n: usize) -> Value {
    let counted = usize::from(is_red(n));
    let finding = |index: usize| {
        json!({
            "group": "apps", "kind": "Deployment", "namespace": format!("team-{:02}", n % 40),
            "name": format!("{}-{index}", name(n)), "class": if index < counted { "LiveEdit" } else { "ServerDefault" },
            "counts": index < counted, "fields": ["/spec/replicas"], "actor": "kubectl-scale",
            "since": "2026-11-15T10:00:00Z",
            "evidence": ["`kubectl-scale (scale)` wrote /spec/replicas: Git says 3, the cluster has 10"],
            "fix": {"kind": "sync", "text": "sync to put Git's value back, or change Git"},
        })
    };
    let mut summary = json!({"counted": counted, "explained": 3 - counted, "worst": "ServerDefault"});
    if is_red(n) {
        summary["worst"] = json!("LiveEdit");
        summary["since"] = json!("2026-11-15T10:00:00Z");
    }
    json!({
        "apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport",
        "metadata": {"name": name(n), "namespace": "argocd"},
        "observedAt": "2026-11-15T10:00:00Z", "summary": summary, "findings": (0..3).map(finding).collect::<Vec<_>>(),
    })
}

#[expect(clippy::print_stdout, reason = "the table is what the task is for")]
fn say(text: &str) {
    println!("{text}");
}
