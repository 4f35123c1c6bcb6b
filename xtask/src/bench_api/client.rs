//! Requests to plumb's API.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// A user of the API.
pub(super) struct Client {
    pub(super) address: SocketAddr,
    token: String,
}

/// Longest request.
const WITHIN: Duration = Duration::from_secs(30);

impl Client {
    /// Logs in.
    pub(super) fn login(address: SocketAddr, user: &str, password: &str) -> Result<Self> {
        let mut client = Self { address, token: String::new() };
        let answer =
            client.call("POST", "/api/v1/session", &json!({"username": user, "password": password}))?;
        answer["token"].as_str().context("there is no token in the answer")?.clone_into(&mut client.token);
        Ok(client)
    }

    /// The head of a request.
    pub(super) fn head(&self, method: &str, path: &str, accept: &str, length: usize) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: plumb\r\naccept: {accept}\r\ncontent-type: application/json\r\n\
             authorization: Bearer {}\r\ncontent-length: {length}\r\n",
            self.token
        )
    }

    /// One request on a connection of its own. Returns the body.
    pub(super) fn bytes(&self, method: &str, path: &str, body: &Value) -> Result<Vec<u8>> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = self.head(method, path, "application/json", body.len());
        let mut stream = TcpStream::connect(self.address).context("cannot connect to plumb")?;
        stream.set_read_timeout(Some(WITHIN))?;
        stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end =
            answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").context("no end of the headers")?;
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        ensure!(head.starts_with("HTTP/1.1 200"), "{method} {path}: {head}");
        Ok(answer.split_off(end + 4))
    }

    /// One request. Returns the JSON of the answer.
    pub(super) fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let bytes = self.bytes(method, path, body)?;
        serde_json::from_slice(&bytes).with_context(|| format!("cannot read the answer to {path}"))
    }
}
