//! The real Sealed Secrets controller, and a server that leads to it as the API server's proxy does.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal};
use serde_json::json;
use tempfile::TempDir;

use crate::TestNamespace;
use crate::cluster::{Layout, SealedSecretsPrograms};
use crate::https::{Authority, HttpRequest, HttpResponse, HttpsServer};

/// The controller for one namespace. It ends with this value, and with this process.
pub struct SealedSecretsController {
    child: Child,
    folder: TempDir,
}

impl SealedSecretsController {
    /// The name of its Service.
    pub const SERVICE: &str = "sealed-secrets-controller";

    /// The programs of the release. Blocks while they are built.
    pub fn programs() -> Result<&'static SealedSecretsPrograms> {
        sealed_secrets_programs()
    }

    /// Starts the controller for a namespace, whose cluster has its kind.
    pub fn start(place: &TestNamespace) -> Result<Self> {
        let port =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?.local_addr()?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let child = Command::new(&sealed_secrets_programs()?.controller)
            .arg("--kubeconfig")
            .arg(place.kubeconfig())
            .args(["--namespace", place.name(), "--listen-addr", &address.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start the Sealed Secrets controller")?;
        let controller = Self { child, folder: TempDir::new().context("make a folder")? };
        std::fs::write(controller.kubeconfig(), lead_to(place.name(), address)?)
            .context("write a kubeconfig")?;
        Ok(controller)
    }

    /// A kubeconfig for the Service of the controller. The API server itself passes nothing on to a loopback address, and
    /// tests listen on no other.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig.json")
    }

    /// Makes the controller generate a new key. The old ones still open what they sealed.
    pub fn new_key(&self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, Signal::USR1).context("signal the Sealed Secrets controller")
    }

    /// Seals a Secret as users do without plumb.
    pub fn kubeseal(certificate: &Path, secret: &str, more: &[&str]) -> Result<String> {
        let mut child = Command::new(&sealed_secrets_programs()?.kubeseal)
            .arg("--cert")
            .arg(certificate)
            .args(["--format", "yaml"])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("start kubeseal")?;
        child.stdin.take().context("kubeseal reads stdin")?.write_all(secret.as_bytes())?;
        let output = child.wait_with_output().context("wait for kubeseal")?;
        anyhow::ensure!(output.status.success(), "kubeseal: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for SealedSecretsController {
    fn drop(&mut self) {
        // It holds nothing that an orderly end would save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Sealed Secrets controller and kubeseal, built on first use.
fn sealed_secrets_programs() -> Result<&'static SealedSecretsPrograms> {
    static PROGRAMS: OnceLock<Result<SealedSecretsPrograms, String>> = OnceLock::new();
    PROGRAMS
        .get_or_init(|| {
            let layout = Layout::from_environment().map_err(|error| format!("{error:#}"))?;
            SealedSecretsPrograms::ensure(&layout, &mut |line| {
                let _ = writeln!(std::io::stderr(), "{line}");
            })
            .map_err(|error| format!("{error:#}"))
        })
        .as_ref()
        .map_err(|error| anyhow::anyhow!("no Sealed Secrets for the tests: {error}"))
}

/// Starts a server that knows the Service of the controller and passes requests on as the API server's proxy does. Returns
/// the kubeconfig for it.
fn lead_to(namespace: &str, controller: SocketAddr) -> Result<String> {
    let name = SealedSecretsController::SERVICE;
    let service = format!("/api/v1/namespaces/{namespace}/services/{name}");
    let proxy = format!("/api/v1/namespaces/{namespace}/services/http:{name}:http/proxy");
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"name": "http", "port": 8080}]}});
    let authority = Authority::new("API server")?;
    let server = HttpsServer::start(&authority, None, move |request| {
        if let Some(path) = request.path.strip_prefix(&proxy) {
            return pass_on(controller, path, request)
                .unwrap_or_else(|_| HttpResponse::status("503 Service Unavailable"));
        }
        if request.path != service {
            return HttpResponse::status("404 Not Found");
        }
        let json = ("Content-Type".to_owned(), "application/json".to_owned());
        HttpResponse {
            status: "200 OK".to_owned(),
            headers: vec![json],
            body: object.to_string().into_bytes(),
        }
    })?;
    let ca = STANDARD.encode(authority.certificate());
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {"token": "of-a-test"}}],
        "clusters": [{"name": "it", "cluster": {
            "server": format!("https://{}", server.address()), "certificate-authority-data": ca}}],
    })
    .to_string())
}

/// One request to the controller, with its status and body.
fn pass_on(controller: SocketAddr, path: &str, request: &HttpRequest) -> Result<HttpResponse> {
    let mut stream = TcpStream::connect(controller)?;
    let head = format!(
        "{} {path} HTTP/1.0\r\nHost: controller\r\nContent-Length: {}\r\n\r\n",
        request.method,
        request.body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&request.body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("the end of its headers")?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let (_, status) = head.lines().next().and_then(|line| line.split_once(' ')).context("its status")?;
    let body = answer[end + 4..].to_vec();
    Ok(HttpResponse { status: status.to_owned(), headers: Vec::new(), body })
}
