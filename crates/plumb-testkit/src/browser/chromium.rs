//! The process, and the connection to it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::page_state::Noted;
use super::tab::Tab;

/// Longest time for the browser to start, and for one answer.
const PATIENCE: Duration = Duration::from_mins(2);
/// A heap snapshot and a screenshot are long messages.
const LARGEST_MESSAGE: usize = 512 << 20;

/// The program, if one is installed.
#[expect(clippy::disallowed_methods, reason = "a test looks for the browser of its machine")]
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let mut places = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    places.find(|place| place.is_file())
}

/// A browser without a window. It ends with this value.
#[derive(Debug)]
pub struct Chromium {
    _process: Child,
    _profile: tempfile::TempDir,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next: u64,
    pub(super) noted: Noted,
}

impl Chromium {
    /// Starts the program with an empty profile.
    pub async fn start(program: &Path) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut process = Command::new(program)
            .args([
                "--headless=new",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--no-sandbox",
                // It must not ask for updates, or anything else: tests count requests.
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-quic",
                // Pages that were left would count as memory of the page that is open.
                "--disable-features=BackForwardCache",
                "--hide-scrollbars",
                "--force-color-profile=srgb",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start Chromium")?;
        let mut lines = BufReader::new(process.stderr.take().context("no output")?).lines();
        let address = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = lines.next_line().await? {
                if let Some(address) = line.strip_prefix("DevTools listening on ") {
                    return Ok(address.trim().to_owned());
                }
            }
            bail!("Chromium ended before it listened")
        });
        let address = address.await.context("Chromium does not listen")??;
        // Its messages must be read, or it stops when the pipe is full.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let limits = WebSocketConfig::default()
            .max_message_size(Some(LARGEST_MESSAGE))
            .max_frame_size(Some(LARGEST_MESSAGE));
        let connected = tokio_tungstenite::connect_async_with_config(address, Some(limits), true).await;
        let (socket, _) = connected.context("cannot reach Chromium")?;
        Ok(Self { _process: process, _profile: profile, socket, next: 0, noted: Noted::default() })
    }

    /// A new tab. What it asks for, and what goes wrong in it, is noted.
    pub async fn tab(&mut self) -> Result<Tab<'_>> {
        let target = self.call(None, "Target.createTarget", json!({"url": "about:blank"})).await?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call(None, "Target.attachToTarget", attach).await?;
        let session = attached["sessionId"].as_str().context("no session")?.to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable", "DOM.enable"] {
            self.call(Some(&session), domain, json!({})).await?;
        }
        // Durations of the processor, not of the clock: other programs on the machine do not change them.
        self.call(Some(&session), "Performance.enable", json!({"timeDomain": "threadTicks"})).await?;
        Ok(Tab { browser: self, session })
    }

    pub(super) async fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).await?;
        let answer = tokio::time::timeout(PATIENCE, async {
            while let Some(message) = self.socket.next().await {
                let Message::Text(text) = message? else { continue };
                let message: Value = serde_json::from_str(&text)?;
                if message["id"] == json!(id) {
                    return Ok(message);
                }
                self.noted.note(&message);
            }
            bail!("Chromium closed the connection")
        });
        let answer = answer.await.with_context(|| format!("{method} took too long"))??;
        if let Some(error) = answer.get("error") {
            bail!("{method}: {error}");
        }
        Ok(answer["result"].clone())
    }
}
