//! Charts from OCI registries, pulled by the real program.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use plumb_core::source::{RepoPath, SourceFiles as _};

use super::{ArchiveName, Chart, ChartError, ChartRepository, Charts, advice, archive};
use crate::helm;
use crate::sandbox::{Run, Scratch, flag};

impl Charts {
    /// The chart in the version that it turned out to be.
    pub(super) async fn pull(
        &self,
        repository: &ChartRepository,
        name: &str,
        version: &str,
    ) -> Result<Chart, ChartError> {
        let (archives, tools, sandbox) =
            (Arc::clone(&self.archives), self.tools.clone(), self.sandbox.clone());
        let (repository, name, version) = (repository.clone(), name.to_owned(), version.to_owned());
        let interrupted = ChartError::Cache { name: name.clone(), reason: "interrupted".to_owned() };
        let pulled = tokio::task::spawn_blocking(move || {
            let cache =
                |error: std::io::Error| ChartError::Cache { name: name.clone(), reason: error.to_string() };
            let scratch = Scratch::new(&archives.directory).map_err(cache)?;
            let target = scratch.repository();
            std::fs::create_dir(&target).map_err(cache)?;
            let mut environment = helm::environment(scratch.path());
            environment
                .push(("HELM_REGISTRY_CONFIG".into(), login(&repository, scratch.path()).map_err(cache)?));
            // Credentials come from the Secret; those in the address would end up in what Helm says.
            let place = repository.shown();
            let place = place.trim_start_matches("oci://").trim_end_matches('/');
            let address = format!("oci://{place}/{name}");
            let mut arguments: Vec<OsString> =
                vec!["pull".into(), address.into(), flag("version", &version), flag("destination", &target)];
            if repository.plain_http {
                arguments.push("--plain-http".into());
            }
            if repository.insecure {
                arguments.push("--insecure-skip-tls-verify".into());
            }
            if let Some(ca) = &repository.ca {
                let path = scratch.path().join("ca.pem");
                std::fs::write(&path, ca).map_err(cache)?;
                arguments.push(flag("ca-file", path));
            }
            if let Some(client) = &repository.client {
                for (name, file, text) in [
                    ("cert-file", "client.pem", &client.certificate),
                    ("key-file", "client.key", &client.key),
                ] {
                    let path = scratch.path().join(file);
                    private_file(&path, text).map_err(cache)?;
                    arguments.push(flag(name, path));
                }
            }
            if let Some(proxy) = &repository.proxy {
                let names = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
                environment.extend(names.map(|name| (name.into(), proxy.into())));
                environment.push(("NO_PROXY".into(), repository.no_proxy.clone().unwrap_or_default().into()));
            }
            let run = Run {
                program: &tools.helm,
                arguments,
                directory: &target,
                environment,
                helper: None,
                scratch: scratch.path(),
                network: true,
                limits: &archives.limits,
            };
            sandbox.run(&run).map_err(|source| ChartError::Pull {
                repository: repository.shown(),
                advice: advice::of_pull(&repository, &source),
                name: name.clone(),
                version: version.clone(),
                source: Box::new(source),
            })?;
            let pulled = std::fs::read_dir(&target).map_err(cache)?.flatten().next();
            let path = pulled.map(|entry| entry.path()).unwrap_or_default();
            let archive = std::fs::read(path).map_err(cache)?;
            let failed =
                |source| ChartError::Archive { name: name.clone(), version: version.clone(), source };
            let files = archive::unpack(&archive, &archives.limits).map_err(failed)?;
            let chart = files.read(&RepoPath::root().child("Chart.yaml")).unwrap_or_default();
            let version = chart_version(&chart).unwrap_or(version);
            archives.keep(&ArchiveName::new(&repository, &name, &version), &archive);
            Ok(Chart { version, files: Arc::new(files) })
        });
        pulled.await.unwrap_or(Err(interrupted))
    }
}

/// Docker's form of stored credentials, which Helm reads.
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

/// A file that nobody else can read.
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
