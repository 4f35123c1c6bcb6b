//! Charts from OCI registries, pulled by Helm.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use plumb_core::source::{RepoPath, SourceFiles as _};

use super::archive_store::{ArchiveName, ArchiveStore};
use super::error::ChartError;
use super::fetch::{Chart, Charts};
use super::repository::ChartRepository;
use super::{advice, archive};
use crate::helm_env::helm_environment;
use crate::sandbox::{Sandbox, Scratch, ToolRun, flag};
use crate::tools::Tools;

impl Charts {
    /// Pulls a chart. The returned version is the one in its `Chart.yaml`.
    pub(super) async fn pull(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
    ) -> Result<Chart, ChartError> {
        let pull = Pull {
            archives: Arc::clone(&self.archives),
            tools: self.tools.clone(),
            sandbox: self.sandbox.clone(),
            repository: repository.clone(),
            name: name.to_owned(),
            version: version.to_owned(),
        };
        let interrupted = ChartError::Cache { name: name.to_owned(), reason: "interrupted".to_owned() };
        tokio::task::spawn_blocking(move || pull.run()).await.unwrap_or(Err(interrupted))
    }
}

/// One `helm pull`, on a thread that may block.
struct Pull {
    archives: Arc<ArchiveStore>,
    tools: Tools,
    sandbox: Sandbox,
    repository: ChartRepository,
    name: String,
    version: String,
}

impl Pull {
    fn run(self) -> Result<Chart, ChartError> {
        let archive = self.download()?;
        let files = archive::unpack(&archive, &self.archives.limits).map_err(|source| {
            ChartError::Archive { name: self.name.clone(), version: self.version.clone(), source }
        })?;
        let chart = files.read(&RepoPath::root().child("Chart.yaml")).unwrap_or_default();
        let version = chart_version(&chart).unwrap_or(self.version);
        self.archives.store(&ArchiveName::new(&self.repository, &self.name, &version), &archive);
        Ok(Chart { version, files: Arc::new(files) })
    }

    /// Runs Helm and reads the archive that it wrote.
    fn download(&self) -> Result<Vec<u8>, ChartError> {
        let cache = |error: std::io::Error| self.cache_error(&error);
        let scratch = Scratch::new(&self.archives.directory).map_err(cache)?;
        let target = scratch.repository();
        std::fs::create_dir(&target).map_err(cache)?;
        let run = ToolRun {
            program: &self.tools.helm,
            arguments: self.arguments(&scratch).map_err(cache)?,
            directory: &target,
            environment: self.environment(&scratch).map_err(cache)?,
            helper: None,
            scratch: scratch.path(),
            network: true,
            limits: &self.archives.limits,
        };
        self.sandbox.run(&run).map_err(|source| ChartError::Pull {
            repository: self.repository.shown(),
            advice: advice::of_pull(&self.repository, &source),
            name: self.name.clone(),
            version: self.version.clone(),
            source: Box::new(source),
        })?;
        let pulled = std::fs::read_dir(&target).map_err(cache)?.flatten().next();
        let path = pulled.map(|entry| entry.path()).unwrap_or_default();
        std::fs::read(path).map_err(cache)
    }

    fn cache_error(&self, error: &std::io::Error) -> ChartError {
        ChartError::Cache { name: self.name.clone(), reason: error.to_string() }
    }

    /// Arguments of Helm. Certificates are written to the scratch directory.
    fn arguments(&self, scratch: &Scratch) -> std::io::Result<Vec<OsString>> {
        let repository = &self.repository;
        // Credentials come from the Secret. Credentials in the address would appear in Helm's messages.
        let shown = repository.shown();
        let registry = shown.trim_start_matches("oci://").trim_end_matches('/');
        let mut arguments: Vec<OsString> = vec![
            "pull".into(),
            format!("oci://{registry}/{}", self.name).into(),
            flag("version", &self.version),
            flag("destination", scratch.repository()),
        ];
        if repository.plain_http {
            arguments.push("--plain-http".into());
        }
        if repository.insecure {
            arguments.push("--insecure-skip-tls-verify".into());
        }
        if let Some(ca) = &repository.ca {
            let path = scratch.path().join("ca.pem");
            std::fs::write(&path, ca)?;
            arguments.push(flag("ca-file", path));
        }
        if let Some(client) = &repository.client {
            for (name, file, text) in
                [("cert-file", "client.pem", &client.certificate), ("key-file", "client.key", &client.key)]
            {
                let path = scratch.path().join(file);
                private_file(&path, text)?;
                arguments.push(flag(name, path));
            }
        }
        Ok(arguments)
    }

    /// Variables of Helm. Credentials are written to the scratch directory.
    fn environment(&self, scratch: &Scratch) -> std::io::Result<Vec<(OsString, OsString)>> {
        let repository = &self.repository;
        let mut environment = helm_environment(scratch.path());
        environment.push(("HELM_REGISTRY_CONFIG".into(), login(repository, scratch.path())?));
        if let Some(proxy) = &repository.proxy {
            let names = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
            environment.extend(names.map(|name| (name.into(), proxy.into())));
            environment.push(("NO_PROXY".into(), repository.no_proxy.clone().unwrap_or_default().into()));
        }
        Ok(environment)
    }
}

/// Writes the credentials in Docker's format, which Helm reads.
fn login(repository: &ChartRepository, scratch: &Path) -> std::io::Result<OsString> {
    use base64::Engine as _;
    let path = scratch.join("registry.json");
    let address = repository.shown();
    let host = address.trim_start_matches("oci://").split('/').next().unwrap_or_default();
    let mut config = serde_json::json!({});
    if let (Some(username), Some(password)) = (&repository.username, &repository.password) {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
        config = serde_json::json!({"auths": {host: {"auth": pair}}});
    }
    private_file(&path, &config.to_string())?;
    Ok(path.into())
}

/// Creates a file that only this user can read.
fn private_file(path: &Path, content: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())
}

fn chart_version(chart: &[u8]) -> Option<String> {
    let documents =
        plumb_core::yaml::parse_documents_bytes(chart, &plumb_core::yaml::Limits::default()).ok()?;
    Some(documents.first()?.value.get("version")?.as_str()?.to_owned())
}
