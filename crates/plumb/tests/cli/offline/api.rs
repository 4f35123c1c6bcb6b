//! An API server that answers each path with one object, for commands that only read.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use anyhow::Result;
use serde_json::{Value, json};

use crate::shell::Shell;

/// Starts a server that answers these paths, and everything else with 404. Commands of the shell use it from now on.
/// The thread ends with the test's process.
pub(super) fn serve(shell: &mut Shell, answers: &[(&str, Value)]) -> Result<()> {
    let answers: BTreeMap<String, Value> =
        answers.iter().map(|(path, answer)| ((*path).to_owned(), answer.clone())).collect();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(&stream, &answers);
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

fn answer(mut stream: &TcpStream, answers: &BTreeMap<String, Value>) -> Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines.by_ref() {
        if line?.is_empty() {
            break;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
        "message": format!("{path} is not in the script")});
    let (code, body) = answers.get(path).map_or(("404 Not Found", &missing), |body| ("200 OK", body));
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {code}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}
