//! The image at work: installed by the chart, run as its Deployment says, with apps of three kinds and a restart.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use plumb_testkit::cluster::{self, AttachedCluster, Layout};
use serde_json::{Value, json};

use super::builder::{Checked as _, Image, Mounted};
use super::container::{Container, Inside, Pod, processes};
use crate::cluster::ensure_programs;
use crate::kubectl::Kubectl;
use crate::say::say;

/// Where the container sees the repository.
const REPOSITORIES: &str = "/repositories";
/// Where pods find their service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// What the kernel must say about plumb.
const CONFINED: &str = "Uid: 65532, Gid: 65532, CapBnd: 0000000000000000, CapEff: 0000000000000000, NoNewPrivs: 1, Seccomp: 2, root: read-only";
const PATIENCE: Duration = Duration::from_secs(90);
/// The apps: the folder of the repository, and the object that each makes.
const APPS: [(&str, &str); 3] =
    [("directory", "plain"), ("helm", "chart-shop"), ("kustomize", "prefix-shop")];

/// Installs the chart, runs the image, syncs, restarts, syncs again.
pub(super) fn run(root: &Path, image: &Image) -> Result<()> {
    let stage = Stage::start(root, image)?;
    stage.install()?;
    let mut first = stage.container("first")?;
    stage.until(&mut first, "all apps are synced", || stage.has("one"))?;
    let inside = first.inside();
    stage.until(&mut first, "the list shows it", || stage.is_listed_as_synced(&inside))?;
    say("three lines of the README install plumb by chart and show the first app synced");
    let confined = first.confinement()?;
    ensure!(sorted(&confined) == sorted(CONFINED), "plumb runs as {confined}");
    let ready = stage.request("/readyz")?;
    ensure!(ready.contains("200 OK"), "/readyz: {ready}");
    say(&format!("under runc ({confined}): a directory, a Helm and a Kustomize app are synced"));

    // As a git that is killed leaves its helpers.
    inside.run(&["/bin/sh", "-c", "sleep 0.1 & exit 0"])?;
    let proc_folder = first.proc_folder()?;
    stage.until(&mut first, "processes without a parent are gone when they ended", || {
        let processes = processes(&proc_folder)?;
        Ok(!processes.is_empty() && processes.iter().all(|(state, name)| *state != 'Z' && name != "sleep"))
    })?;

    let before = stage.versions()?;
    let status = first.stop()?;
    ensure!(status.success(), "plumb ended with {status} when it was asked to stop");
    let mut second = stage.container("second")?;
    stage.until(&mut second, "plumb is ready again", || {
        Ok(stage.request("/readyz").is_ok_and(|answer| answer.contains("200 OK")) && stage.has("one")?)
    })?;
    stage.refresh()?;
    stage.until(&mut second, "the refresh was answered", || stage.is_refreshed())?;
    ensure!(stage.versions()? == before, "the restart wrote to objects that were as Git says");
    stage.commit("two")?;
    stage.refresh()?;
    stage.until(&mut second, "the second commit is synced", || stage.has("two"))?;
    ensure!(second.stop()?.success(), "plumb did not stop in order");
    say("after a restart: nothing was written that did not change, and the next commit is synced");
    Ok(())
}

/// How the README runs a command in the pod. Here the pod is a container of runc, which kubectl does not know.
const EXEC: &str = "kubectl -n argocd exec deploy/plumb -- ";

/// The three lines of the README, with the name of the image that was built here.
fn install_lines(readme: &str) -> Result<[String; 3]> {
    let joined = readme.replace("\\\n", " ").replace("registry.example.com/", "localhost/");
    let mut lines = joined.lines().filter_map(|line| line.strip_prefix("$ "));
    let mut next = |start: &str| {
        let line = lines.find(|line| line.starts_with(start));
        line.map(str::to_owned).with_context(|| format!("README.md has no line `{start} …` at its place"))
    };
    Ok([next("helm upgrade --install plumb charts/plumb")?, next("kubectl apply -n argocd")?, next(EXEC)?])
}

/// Words in an order of their own.
fn sorted(text: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = text.split(", ").collect();
    parts.sort_unstable();
    parts
}

/// The cluster, the repository, and the image's files.
struct Stage {
    kubectl: Kubectl,
    /// Install, create an app, list apps.
    lines: [String; 3],
    /// The PATH of a user.
    path: String,
    port: u16,
    metrics: SocketAddr,
    folder: PathBuf,
    config: Value,
    mounted: Mounted,
    /// Dropping it stops the cluster.
    _cluster: AttachedCluster,
}

impl Stage {
    fn start(root: &Path, image: &Image) -> Result<Self> {
        let layout = Layout::from_environment()?;
        let programs = ensure_programs(&layout)?;
        let cluster = cluster::attach(&layout, &programs)?;
        let kubectl = Kubectl::new(&programs, &cluster.state().kubeconfig);
        let folder = root.join("target/image/run");
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        for name in ["account", "desk", "bin", "home"] {
            fs::create_dir_all(folder.join(name))?;
        }
        symlink(root.join("charts"), folder.join("desk/charts")).context("cannot link the charts")?;
        for (name, program) in [("helm", &programs.helm), ("kubectl", &programs.kubectl)] {
            let program = program.canonicalize().with_context(|| format!("cannot find {name}"))?;
            symlink(program, folder.join("bin").join(name)).with_context(|| format!("cannot link {name}"))?;
        }
        let readme = fs::read_to_string(root.join("README.md")).context("cannot read README.md")?;
        let stage = Self {
            kubectl,
            lines: install_lines(&readme)?,
            path: format!("{}:/usr/bin:/bin", folder.join("bin").display()),
            port: cluster.state().port,
            metrics: TcpListener::bind("127.0.0.1:0")?.local_addr()?,
            folder,
            config: image.storage.config()?,
            mounted: image.storage.mount()?,
            _cluster: cluster,
        };
        stage.commit("one")?;
        Ok(stage)
    }

    /// The lines of the README that install plumb and create an app, with the image that was just built.
    fn install(&self) -> Result<()> {
        let [install, create, _] = &self.lines;
        let first = application(APPS[0].0).to_string();
        let file = create.rsplit(' ').next().context("the README's line names no file")?;
        let file = self.folder.join("desk").join(file);
        fs::create_dir_all(file.parent().context("a folder")?)?;
        fs::write(file, first).context("cannot write the Application")?;
        let repositories = "--set 'extraEnv[0].name=PLUMB_LOCAL_REPOSITORIES'";
        self.shell(&format!(
            "{install} {repositories} --set 'extraEnv[0].value={REPOSITORIES}' --wait --timeout 90s"
        ))?;
        self.shell(create)?;
        // As the kubelet would write them.
        let token = self.kubectl.run(&["-n", "argocd", "create", "token", "plumb", "--duration=24h"])?;
        let authority = self.kubectl.run(&[
            "config",
            "view",
            "--raw",
            "-o",
            "jsonpath={.clusters[0].cluster.certificate-authority-data}",
        ])?;
        let authority = base64::engine::general_purpose::STANDARD.decode(authority.trim())?;
        let account = self.folder.join("account");
        fs::write(account.join("token"), token.trim())?;
        fs::write(account.join("ca.crt"), authority)?;
        fs::write(account.join("namespace"), "argocd")?;
        for (path, _) in &APPS[1..] {
            self.kubectl.apply_text(&application(path).to_string())?;
        }
        Ok(())
    }

    /// Does the README's last line show the app as synced?
    fn is_listed_as_synced(&self, inside: &Inside) -> Result<bool> {
        let [.., list] = &self.lines;
        let words: Vec<&str> = list.strip_prefix(EXEC).unwrap_or(list).split_whitespace().collect();
        let listed = inside.run(&words)?;
        Ok(listed
            .lines()
            .any(|line| line.starts_with(&format!("argocd/{}", APPS[0].0)) && line.contains(" Synced ")))
    }

    /// Runs a line as a user types it, where the chart, helm and kubectl are at hand.
    fn shell(&self, line: &str) -> Result<String> {
        Command::new("sh")
            .args(["-ec", line])
            .current_dir(self.folder.join("desk"))
            .env("PATH", &self.path)
            .env("HOME", self.folder.join("home"))
            .env("KUBECONFIG", self.kubectl.kubeconfig())
            .stdin(Stdio::null())
            .checked()
            .with_context(|| line.to_owned())
    }

    fn container(&self, name: &str) -> Result<Container> {
        let deployment = self.kubectl.get_json(&["-n", "argocd", "deployment", "plumb"])?;
        let pod = Pod {
            files: &self.mounted.files,
            image: &self.config,
            spec: &deployment["spec"]["template"]["spec"],
            environment: &[
                ("KUBERNETES_SERVICE_HOST", "127.0.0.1".to_owned()),
                ("KUBERNETES_SERVICE_PORT", self.port.to_string()),
                // The network is that of this machine.
                ("PLUMB_METRICS_ADDRESS", self.metrics.to_string()),
                ("PLUMB_WEB_ADDRESS", "127.0.0.1:0".to_owned()),
            ],
            folders: &[
                (self.folder.join("account"), ACCOUNT),
                (self.folder.join("repositories"), REPOSITORIES),
            ],
        };
        Container::start(&self.folder, name, &pod)
    }

    /// Writes the repository with this word in every object, and commits it.
    fn commit(&self, word: &str) -> Result<()> {
        let repository = self.folder.join("repositories/shop");
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"word": word}});
        let chart = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Chart.Name }}-shop'}\ndata: {word: '{{ .Values.word }}'}\n";
        for (name, text) in [
            ("directory/map.yaml", map("plain").to_string()),
            ("helm/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n".to_owned()),
            ("helm/values.yaml", format!("word: {word}\n")),
            ("helm/templates/map.yaml", chart.to_owned()),
            ("kustomize/kustomization.yaml", "namePrefix: prefix-\nresources: [map.yaml]\n".to_owned()),
            ("kustomize/map.yaml", map("shop").to_string()),
        ] {
            let path = repository.join(name);
            fs::create_dir_all(path.parent().context("a folder")?)?;
            fs::write(path, text)?;
        }
        let git = |words: &[&str]| {
            Command::new("git")
                .args(["-c", "user.name=demo", "-c", "user.email=demo@example.com", "-c", "safe.directory=*"])
                .args(words)
                .current_dir(&repository)
                .stdin(Stdio::null())
                .checked()
        };
        git(&["init", "--quiet", "--initial-branch=main"])?;
        git(&["add", "--all"])?;
        git(&["commit", "--quiet", "--message", word])?;
        // Git refuses the repository of another user.
        Command::new("chown").args(["-R", "65532:65532"]).arg(&repository).checked().map(drop)
    }

    /// Are all apps Synced and Healthy, and do their objects have this word?
    fn has(&self, word: &str) -> Result<bool> {
        for (app, object) in APPS {
            let app = self.kubectl.get_json(&["-n", "argocd", "applications.argoproj.io", app])?;
            let status = &app["status"];
            if status["sync"]["status"] != "Synced" || status["health"]["status"] != "Healthy" {
                return Ok(false);
            }
            let map = self.kubectl.get_json(&["-n", "shop", "configmap", object])?;
            if map["data"]["word"] != word {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn versions(&self) -> Result<Vec<Value>> {
        let version = |(_, name): &(&str, &str)| {
            let map = self.kubectl.get_json(&["-n", "shop", "configmap", name])?;
            Ok(map["metadata"]["resourceVersion"].clone())
        };
        APPS.iter().map(version).collect()
    }

    fn refresh(&self) -> Result<()> {
        let words = ["-n", "argocd", "annotate", "--overwrite", "applications.argoproj.io", "--all"];
        self.kubectl.run(&[&words[..], &["argocd.argoproj.io/refresh=hard"]].concat()).map(drop)
    }

    fn is_refreshed(&self) -> Result<bool> {
        let apps = self.kubectl.get_json(&["-n", "argocd", "applications.argoproj.io"])?;
        let is_done = |app: &Value| app["metadata"]["annotations"]["argocd.argoproj.io/refresh"].is_null();
        Ok(apps["items"].as_array().is_some_and(|items| items.iter().all(is_done)))
    }

    fn request(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(self.metrics)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: plumb\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn until(&self, container: &mut Container, what: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        // An object that is not there yet is an error of kubectl.
        while !holds().unwrap_or(false) {
            container.ensure_running()?;
            if Instant::now() > end {
                let apps =
                    self.kubectl.run(&["-n", "argocd", "get", "applications.argoproj.io", "-o", "yaml"]);
                bail!(
                    "timed out waiting until {what}\n{}\n{}",
                    container.log_text(),
                    apps.unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}

fn application(path: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": path, "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {"repoURL": format!("file://{REPOSITORIES}/shop"), "path": path, "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]},
        },
    })
}
