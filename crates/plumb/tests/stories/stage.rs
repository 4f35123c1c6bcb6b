//! What every story stands on: a namespace, a repository, a running plumb.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_testkit::git::GitRepo;
use plumb_testkit::proxy::FaultProxy;
use plumb_testkit::{SharedCluster, TestNamespace, objects, programs, wait};
use rustix::process::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

/// One story's cluster corner, repository and plumb.
pub(crate) struct Stage {
    pub(crate) place: TestNamespace,
    pub(crate) repo: GitRepo,
    /// Passed to plumb, besides what every story needs.
    pub(crate) arguments: Vec<String>,
    /// Variables of plumb, besides those of every story.
    pub(crate) variables: Vec<(&'static str, &'static str)>,
    /// Does plumb bring its kinds along?
    pub(crate) installs: bool,
    /// Does plumb serve the API? It creates Secrets, which most stories would have to look past.
    pub(crate) serves: bool,
    cache: TempDir,
    plumb: Option<Child>,
    /// The way to the cluster that plumb takes, if not the straight one.
    detour: Option<PathBuf>,
}

impl Stage {
    /// A namespace, an empty repository, and plumb at work.
    pub(crate) async fn set() -> Result<Self> {
        let mut stage = Self::bare().await?;
        stage.begin().await?;
        Ok(stage)
    }

    /// A namespace and an empty repository.
    pub(crate) async fn bare() -> Result<Self> {
        let place = TestNamespace::new().await?;
        Self::bare_at(place, None)
    }

    /// The same in a cluster that the story chose.
    pub(crate) async fn bare_in(cluster: &'static SharedCluster) -> Result<Self> {
        Self::bare_at(TestNamespace::in_cluster(cluster).await?, None)
    }

    fn bare_at(place: TestNamespace, detour: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            place,
            repo: GitRepo::new()?,
            arguments: Vec::new(),
            variables: Vec::new(),
            installs: true,
            serves: false,
            cache: TempDir::new()?,
            plumb: None,
            detour,
        })
    }

    /// A stage with a plumb that reaches the cluster through the proxy.
    pub(crate) async fn set_behind_proxy() -> Result<(Self, FaultProxy)> {
        let (mut stage, proxy) = Self::bare_behind_proxy().await?;
        stage.begin().await?;
        Ok((stage, proxy))
    }

    /// A namespace and an empty repository, and the proxy through which plumb will reach the cluster.
    pub(crate) async fn bare_behind_proxy() -> Result<(Self, FaultProxy)> {
        let place = TestNamespace::new().await?;
        let proxy = FaultProxy::start(place.kubeconfig()).await?;
        let stage = Self::bare_at(place, Some(proxy.kubeconfig()))?;
        Ok((stage, proxy))
    }

    /// Starts plumb and waits until it has installed its kinds.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        self.start_plumb()?;
        let stage = self;
        // The kinds are served a moment after their definitions were applied, which no watch tells.
        let project = objects::app_project("default");
        let report =
            json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "none"}});
        let installed = async || {
            matches!((stage.place.get(&project).await, stage.place.get(&report).await), (Ok(Some(_)), Ok(_)))
        };
        wait::until_seen(Duration::from_mins(1), "plumb has installed its kinds", installed, |done| *done)
            .await?;
        Ok(())
    }

    /// Starts plumb. It ends with this process, however this process ends: its standard input closes.
    pub(crate) fn start_plumb(&mut self) -> Result<()> {
        let kubeconfig = self.detour.as_deref().unwrap_or(self.place.kubeconfig());
        self.plumb = Some(self.spawn(kubeconfig, self.cache.path())?);
        Ok(())
    }

    /// Starts one more plumb beside it, as another user.
    pub(crate) async fn start_another(&self, name: &str) -> Result<Another> {
        let cache = TempDir::new()?;
        let (user, kubeconfig) = self.user(name, cache.path()).await?;
        let child = self.spawn(&kubeconfig, cache.path())?;
        Ok(Another { child, cache, user })
    }

    fn spawn(&self, kubeconfig: &Path, cache: &Path) -> Result<Child> {
        let tools = programs()?;
        Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["run", "--until-stdin-closes", "--namespace", self.place.name()])
            .args(self.installs.then_some("--install"))
            .args((!self.serves).then_some("--server=off"))
            // Many run at the same time.
            .args(["--metrics-address=127.0.0.1:0", "--web-address=127.0.0.1:0"])
            .args(&self.arguments)
            .envs(self.variables.iter().copied())
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--cache-dir")
            .arg(cache)
            .env("PATH", path_with(tools.path_additions().iter().map(AsRef::as_ref)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(std::fs::File::options().create(true).append(true).open(cache.join("plumb.log"))?)
            .spawn()
            .context("start plumb")
    }

    /// From its next start on, plumb is a user of its own, which the audit log tells from everybody else.
    pub(crate) async fn give_plumb_a_name(&mut self) -> Result<String> {
        let (user, kubeconfig) = self.user("plumb", self.cache.path()).await?;
        self.detour = Some(kubeconfig);
        Ok(user)
    }

    /// From its next start on, plumb is the service account `plumb` with the permissions that were bound to it.
    pub(crate) async fn give_plumb_only_its_roles(&mut self) -> Result<()> {
        let (_, kubeconfig) = self.account("plumb", self.cache.path()).await?;
        self.detour = Some(kubeconfig);
        Ok(())
    }

    /// A user who may do everything: its name as the audit log has it, and its kubeconfig.
    async fn user(&self, name: &str, folder: &Path) -> Result<(String, PathBuf)> {
        let namespace = self.place.name().to_owned();
        self.place
            .apply(&json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("{name}-{namespace}")},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            }))
            .await?;
        self.account(name, folder).await
    }

    /// A service account without permissions of its own: its name as the audit log has it, and its kubeconfig.
    async fn account(&self, name: &str, folder: &Path) -> Result<(String, PathBuf)> {
        let namespace = self.place.name().to_owned();
        self.place.apply(&objects::service_account(name)).await?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {"name": format!("{name}-token"),
                         "annotations": {"kubernetes.io/service-account.name": name}},
        });
        self.place.apply(&secret).await?;
        let filled =
            self.place.wait(&secret, "has a token", |secret| secret["data"]["token"].is_string()).await?;
        let token = filled["data"]["token"].as_str().context("no token")?;
        let token = String::from_utf8(STANDARD.decode(token)?)?;
        let admin = std::fs::read_to_string(self.place.kubeconfig())?;
        let field = |name: &str| {
            let line = admin.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
            line.with_context(|| format!("the kubeconfig has no {name}"))
        };
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "plumb",
            "clusters": [{"name": "plumb", "cluster": {
                "server": field("server")?, "certificate-authority-data": field("certificate-authority-data")?}}],
            "contexts": [{"name": "plumb", "context": {"cluster": "plumb", "user": "plumb"}}],
            "users": [{"name": "plumb", "user": {"token": token}}],
        });
        let kubeconfig = folder.join("plumb.kubeconfig");
        std::fs::write(&kubeconfig, config.to_string())?;
        Ok((format!("system:serviceaccount:{namespace}:{name}"), kubeconfig))
    }

    /// A user who may read everything and change nothing: its name as the audit log has it, and its kubeconfig.
    pub(crate) async fn reader(&self, name: &str, folder: &Path) -> Result<(String, PathBuf)> {
        let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
            {"nonResourceURLs": ["*"], "verbs": ["get"]}]);
        self.user_with(name, folder, &all).await
    }

    /// A user with these rights: its name as the audit log has it, and its kubeconfig.
    pub(crate) async fn user_with(
        &self,
        name: &str,
        folder: &Path,
        rules: &Value,
    ) -> Result<(String, PathBuf)> {
        let namespace = self.place.name().to_owned();
        let role = format!("{name}-{namespace}");
        self.place
            .apply(&json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": role},
                "rules": rules,
            }))
            .await?;
        self.place
            .apply(&json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": role},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            }))
            .await?;
        self.account(name, folder).await
    }

    /// Runs a command with another kubeconfig, and returns what it answered. Fails unless the command succeeds.
    pub(crate) fn plumb_with(&self, kubeconfig: &Path, words: &[&str]) -> Result<String> {
        let tools = programs()?;
        let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(words)
            .args(["--namespace", self.place.name(), "--kubeconfig"])
            .arg(kubeconfig)
            .env("PATH", path_with(tools.path_additions().iter().map(AsRef::as_ref)))
            .stdin(Stdio::null())
            .output()
            .context("run plumb")?;
        let (answer, talk) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        anyhow::ensure!(output.status.success(), "plumb {}: {answer}{talk}", words.join(" "));
        Ok(answer.into_owned())
    }

    /// Takes the lease of a plumb that is known to be dead, so that the next one need not wait for its end.
    pub(crate) async fn break_lease(&self) -> Result<()> {
        let lease =
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "plumb"}});
        self.place.delete(&lease).await
    }

    /// Makes it look as if plumb, which does not run, had ended so long ago.
    pub(crate) async fn age_lease(&self, by: jiff::SignedDuration) -> Result<()> {
        let lease =
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "plumb"}});
        let then = format!("{:.6}", jiff::Timestamp::now().saturating_sub(by)?);
        self.place.patch_as("a-story", &lease, &json!({"spec": {"renewTime": then}})).await?;
        Ok(())
    }

    /// Runs a command as a person would, and returns what it answered. Fails unless the command succeeds.
    pub(crate) fn plumb(&self, words: &[&str]) -> Result<String> {
        let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(words)
            .args(["--namespace", self.place.name(), "--kubeconfig"])
            .arg(self.place.kubeconfig())
            .stdin(Stdio::null())
            .output()
            .context("run plumb")?;
        let (answer, talk) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        anyhow::ensure!(output.status.success(), "plumb {}: {answer}{talk}", words.join(" "));
        Ok(answer.into_owned())
    }

    /// Everything that a command says, on both of its outputs, however it ends.
    pub(crate) fn plumb_says(&self, words: &[&str]) -> Result<String> {
        let tools = programs()?;
        let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(words)
            .args(["--namespace", self.place.name(), "--kubeconfig"])
            .arg(self.place.kubeconfig())
            .env("PATH", path_with(tools.path_additions().iter().map(AsRef::as_ref)))
            .stdin(Stdio::null())
            .output()
            .context("run plumb")?;
        let (answer, talk) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Ok(format!("{answer}{talk}"))
    }

    /// `kill -9`: plumb gets no chance to say goodbye.
    pub(crate) fn kill_plumb(&mut self) -> Result<()> {
        if let Some(mut child) = self.plumb.take() {
            child.kill().context("kill plumb")?;
            child.wait().context("wait for plumb")?;
        }
        Ok(())
    }

    /// Asks plumb to stop, and waits until it has.
    pub(crate) fn stop_plumb(&mut self) -> Result<ExitStatus> {
        let mut child = self.plumb.take().context("plumb does not run")?;
        let pid = Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).context("ask plumb to stop")?;
        child.wait().context("wait for plumb")
    }

    /// Waits until plumb ends by itself.
    pub(crate) fn wait_for_plumb(&mut self) -> Result<ExitStatus> {
        let mut child = self.plumb.take().context("plumb does not run")?;
        // Waiting closes the child's standard input, which would ask it to stop: it is held open here.
        let _open = child.stdin.take();
        child.wait().context("wait for plumb")
    }

    /// Everything that plumb has said so far.
    pub(crate) fn log(&self) -> Result<String> {
        std::fs::read_to_string(self.cache.path().join("plumb.log")).context("read plumb's log")
    }

    /// Where plumb keeps what it fetched and rendered, and its log.
    pub(crate) fn cache(&self) -> &Path {
        self.cache.path()
    }

    /// Where plumb listens, as its log says it.
    pub(crate) async fn address(&self, side: &str) -> Result<SocketAddr> {
        address(self.cache.path(), side).await
    }

    /// The process that plumb is.
    pub(crate) fn pid(&self) -> Result<Pid> {
        Ok(Pid::from_child(self.plumb.as_ref().context("plumb does not run")?))
    }

    /// An Application of the repository's folder `app`, changed as the story wants it.
    pub(crate) async fn application(&self, name: &str, change: impl FnOnce(&mut Value)) -> Result<Value> {
        let mut application = objects::application(name, &self.repo.url(), "app", self.place.name());
        application["metadata"]["namespace"] = json!(self.place.name());
        change(&mut application);
        self.place.apply(&application).await?;
        Ok(application)
    }

    /// The Application of this name, to wait for.
    pub(crate) fn application_named(&self, name: &str) -> Value {
        objects::application(name, &self.repo.url(), "app", self.place.name())
    }

    /// A setting, as one of Argo CD's `ConfigMaps` holds it.
    pub(crate) async fn setting(&self, config_map: &str, key: &str, value: &str) -> Result<()> {
        let object = objects::config_map(config_map, &[(key, value)]);
        self.place.apply(&objects::labelled(object, "app.kubernetes.io/part-of", "argocd")).await?;
        Ok(())
    }

    /// Waits until the Application's sync status is this, and returns the Application.
    pub(crate) async fn until_sync(&self, application: &Value, status: &str) -> Result<Value> {
        let what = format!("is {status}");
        self.place.wait(application, &what, |live| live["status"]["sync"]["status"] == status).await
    }

    /// Waits until the app's report has a finding of this class on this object, and returns the finding.
    pub(crate) async fn finding(
        &self,
        application: &Value,
        kind: &str,
        name: &str,
        class: &str,
    ) -> Result<Value> {
        let report = json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": application["metadata"]["name"]}});
        let is_it =
            |finding: &Value| finding["kind"] == kind && finding["name"] == name && finding["class"] == class;
        let find = |report: &Value| {
            report["findings"].as_array().into_iter().flatten().find(|finding| is_it(finding)).cloned()
        };
        let what = format!("has a finding {class} on {kind} {name}");
        let report = self.place.wait(&report, &what, |report| find(report).is_some()).await?;
        find(&report).context("the finding is gone again")
    }

    /// Asks for a comparison with the newest commit.
    pub(crate) async fn refresh(&self, application: &Value) -> Result<()> {
        self.refresh_as("normal", application).await
    }

    /// Asks for a comparison that takes nothing for granted.
    pub(crate) async fn refresh_hard(&self, application: &Value) -> Result<()> {
        self.refresh_as("hard", application).await
    }

    async fn refresh_as(&self, kind: &str, application: &Value) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": kind}}});
        self.place.patch_as("a-person", application, &patch).await?;
        let done = |live: &Value| live["metadata"]["annotations"]["argocd.argoproj.io/refresh"].is_null();
        self.place.wait(application, "the refresh was answered", done).await?;
        Ok(())
    }
}

/// One more plumb of the same namespace.
pub(crate) struct Another {
    child: Child,
    cache: TempDir,
    /// Its user, as the audit log has it.
    pub(crate) user: String,
}

impl Another {
    /// Everything that it has said so far.
    pub(crate) fn log(&self) -> Result<String> {
        std::fs::read_to_string(self.cache.path().join("plumb.log")).context("read plumb's log")
    }

    /// Where it listens, as its log says it.
    pub(crate) async fn address(&self, side: &str) -> Result<SocketAddr> {
        address(self.cache.path(), side).await
    }
}

#[expect(clippy::print_stdout, reason = "only what is printed by the macro belongs to the test")]
impl Drop for Another {
    fn drop(&mut self) {
        println!("the other plumb's log:\n{}", self.log().unwrap_or_default());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn address(cache: &Path, side: &str) -> Result<SocketAddr> {
    let find = || -> Option<SocketAddr> {
        let log = std::fs::read_to_string(cache.join("plumb.log")).ok()?;
        let line = log.lines().find(|line| line.contains("listening") && line.contains(side))?;
        line.split("address=").nth(1)?.trim_matches('"').trim().trim_matches('"').parse().ok()
    };
    let what = format!("plumb listens for {side}");
    let found = wait::until_seen(Duration::from_secs(30), &what, async || find(), Option::is_some).await?;
    found.context("it does not listen")
}

#[expect(clippy::print_stdout, reason = "only what is printed by the macro belongs to the test")]
impl Drop for Stage {
    fn drop(&mut self) {
        // The test harness shows it if the test fails, by a panic or by an error.
        if let Ok(log) = std::fs::read_to_string(self.cache.path().join("plumb.log")) {
            println!("plumb's log:\n{log}");
        }
        let _ = self.kill_plumb();
    }
}

fn path_with<'a>(folders: impl Iterator<Item = &'a Path>) -> std::ffi::OsString {
    #[expect(clippy::disallowed_methods, reason = "PATH is passed on to the program under test")]
    let before = std::env::var_os("PATH").unwrap_or_default();
    let all: Vec<_> = folders.map(Path::to_path_buf).chain(std::env::split_paths(&before)).collect();
    std::env::join_paths(all).unwrap_or(before)
}
