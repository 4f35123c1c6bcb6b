//! An API server that answers each path with one object, for commands that only read.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use anyhow::Result;
use serde_json::{Value, json};

use crate::shell::Shell;

/// The lease of an engine of plumb that runs, and its path.
pub(super) fn engine() -> (&'static str, Value) {
    let spec = json!({"holderIdentity": "a", "renewTime": "2999-01-01T00:00:00.000000Z"});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "plumb"},
        "spec": spec});
    ("/apis/coordination.k8s.io/v1/namespaces/argocd/leases/plumb", lease)
}

/// Starts a server that answers these paths, and everything else with 404. Commands of the shell use it from now on.
/// The thread ends with the test's process.
pub(super) fn serve(shell: &mut Shell, answers: &[(&str, Value)]) -> Result<()> {
    let answers: BTreeMap<String, Value> =
        answers.iter().map(|(path, answer)| ((*path).to_owned(), answer.clone())).collect();
    serve_with(shell, move |_, path, _| answers.get(path).cloned())
}

/// The same with a server that remembers: `answer` gets the method, the path without its query, and the body, and
/// returns the answer; `None` is 404.
pub(super) fn serve_with(
    shell: &mut Shell,
    mut answer: impl FnMut(&str, &str, &Value) -> Option<Value> + Send + 'static,
) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = reply(&stream, &mut answer);
        }
    });
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
         clusters: [{{name: a, cluster: {{server: 'http://{address}'}}}}], users: [{{name: a, user: {{}}}}]}}"
    );
    let kubeconfig = shell.file("kubeconfig", &kubeconfig)?;
    shell.set("KUBECONFIG", kubeconfig);
    Ok(())
}

fn reply(mut stream: &TcpStream, answer: &mut impl FnMut(&str, &str, &Value) -> Option<Value>) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut n_bytes = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(length) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            n_bytes = length.trim().parse()?;
        }
    }
    let mut body = vec![0; n_bytes];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
        "message": format!("{path} is not in the script")});
    let (code, body) = match answer(method, path, &body) {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", missing),
    };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {code}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}
