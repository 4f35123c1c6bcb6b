//! The real Sealed Secrets controller, behind a Service of a namespace.

use std::net::{IpAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::TestNamespace;
use crate::cluster::SealedSecretsPrograms;
use crate::shared::sealed_secrets_programs;

/// The controller for one namespace. It ends with this value, and with this process.
pub struct SealedSecretsController {
    child: Child,
}

impl SealedSecretsController {
    /// The name of its Service.
    pub const SERVICE: &str = "sealed-secrets-controller";

    /// The programs of the release. Blocks while they are built.
    pub fn programs() -> Result<&'static SealedSecretsPrograms> {
        sealed_secrets_programs()
    }

    /// Starts the controller for a namespace, whose cluster has its kind, and a Service that leads to it.
    pub async fn start(place: &TestNamespace) -> Result<Self> {
        let address = own_address()?;
        let port = TcpListener::bind((address, 0)).context("find a free port")?.local_addr()?.port();
        let child = Command::new(&sealed_secrets_programs()?.controller)
            .arg("--kubeconfig")
            .arg(place.kubeconfig())
            .args(["--namespace", place.name(), "--listen-addr", &format!("{address}:{port}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start the Sealed Secrets controller")?;
        let controller = Self { child };
        lead_to(place, &address, port).await?;
        Ok(controller)
    }

    /// Makes the controller generate a new key. The old ones still open what they sealed.
    pub fn new_key(&self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, Signal::USR1).context("signal the Sealed Secrets controller")
    }

    /// Seals a Secret as users do without plumb.
    pub fn kubeseal(certificate: &Path, secret: &str, more: &[&str]) -> Result<String> {
        use std::io::Write as _;
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

/// An address of this machine that is not the loopback's: the API server takes none of those for an endpoint. No packet
/// is sent.
fn own_address() -> Result<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").context("open a socket")?;
    socket.connect("192.0.2.1:9").context(
        "this test needs a network address besides the loopback: the API server accepts no other for an endpoint",
    )?;
    Ok(socket.local_addr()?.ip())
}

/// The API server passes requests for a Service on to an endpoint that is a pod with that address.
async fn lead_to(place: &TestNamespace, address: &IpAddr, port: u16) -> Result<()> {
    let name = SealedSecretsController::SERVICE;
    // A gate keeps the scheduler away, so nobody gives the pod another address.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "schedulingGates": [{"name": "plumb.dev/runs-outside"}],
        "containers": [{"name": "controller", "image": "none.example.com/none"}]}});
    place.apply(&pod).await?;
    let ip = address.to_string();
    let status = json!({"podIP": ip, "podIPs": [{"ip": ip}]});
    place.patch_status_as("kubelet", &pod, &status).await?;
    let ports = json!([{"name": "http", "port": port}]);
    place
        .apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports}}))
        .await?;
    place
        .apply(&json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name}, "subsets": [{
            "addresses": [{"ip": ip, "targetRef": {"kind": "Pod", "name": name, "namespace": place.name()}}],
            "ports": ports}]}))
        .await?;
    Ok(())
}
