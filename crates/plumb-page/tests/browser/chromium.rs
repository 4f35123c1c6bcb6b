//! Chromium over the protocol of its developer tools.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// Longest time for the browser to start, to answer, and for a fact to become true.
const PATIENCE: Duration = Duration::from_mins(1);

/// The program, if one is installed.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut places = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    places.find(|place| place.is_file())
}

/// A browser without a window. It ends with this value.
pub(crate) struct Chromium {
    _process: Child,
    _profile: tempfile::TempDir,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next: u64,
    problems: Vec<String>,
    requests: Vec<String>,
}

/// One tab.
pub(crate) struct Tab<'b> {
    browser: &'b mut Chromium,
    session: String,
}

impl Chromium {
    pub(crate) async fn start(program: &PathBuf) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut process = Command::new(program)
            .args([
                "--headless=new",
                "--disable-gpu",
                "--no-first-run",
                "--no-sandbox",
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
        let (socket, _) = tokio_tungstenite::connect_async(address).await.context("cannot reach Chromium")?;
        let (problems, requests) = (Vec::new(), Vec::new());
        Ok(Self { _process: process, _profile: profile, socket, next: 0, problems, requests })
    }

    pub(crate) async fn tab(&mut self) -> Result<Tab<'_>> {
        let target = self.call(None, "Target.createTarget", json!({"url": "about:blank"})).await?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call(None, "Target.attachToTarget", attach).await?;
        let session = attached["sessionId"].as_str().context("no session")?.to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            self.call(Some(&session), domain, json!({})).await?;
        }
        Ok(Tab { browser: self, session })
    }

    async fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<Value> {
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
                self.note(&message);
            }
            bail!("Chromium closed the connection")
        });
        let answer = answer.await.with_context(|| format!("{method} took too long"))??;
        if let Some(error) = answer.get("error") {
            bail!("{method}: {error}");
        }
        Ok(answer["result"].clone())
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.problems.push(params["exceptionDetails"].to_string()),
            // A stream that the test cuts is an error of the network, and no fault of the page.
            "Log.entryAdded"
                if params["entry"]["level"] == "error" && params["entry"]["source"] != "network" =>
            {
                self.problems.push(params["entry"]["text"].to_string());
            }
            "Network.requestWillBeSent" => {
                self.requests.extend(params["request"]["url"].as_str().map(str::to_owned));
            }
            _ => {}
        }
    }
}

impl Tab<'_> {
    async fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let session = self.session.clone();
        self.browser.call(Some(&session), method, params).await
    }

    pub(crate) async fn open(&mut self, url: &str) -> Result<()> {
        self.call("Page.navigate", json!({"url": url})).await.map(drop)
    }

    /// Width, height and theme of the screen.
    pub(crate) async fn shape(&mut self, width: u32, height: u32, theme: &str) -> Result<()> {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700});
        self.call("Emulation.setDeviceMetricsOverride", size).await?;
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.call("Emulation.setEmulatedMedia", media).await.map(drop)
    }

    /// The value of an expression. A promise is waited for.
    pub(crate) async fn eval(&mut self, expression: &str) -> Result<Value> {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", params).await?;
        if let Some(error) = answer.get("exceptionDetails") {
            bail!("{expression}: {error}");
        }
        Ok(answer["result"]["value"].clone())
    }

    pub(crate) async fn text(&mut self, selector: &str) -> Result<String> {
        let text = self.eval(&format!("document.querySelector({selector:?})?.textContent ?? ''")).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until an expression is true. The browser looks after each frame.
    pub(crate) async fn until(&mut self, condition: &str) -> Result<()> {
        let waiting = format!(
            "new Promise((done) => {{ const start = performance.now(); const look = () => {{ let holds = false; \
             try {{ holds = {condition}; }} catch {{ holds = false; }} \
             if (holds || performance.now() - start > 30000) done(holds === true); else setTimeout(look, 15); }}; look(); }})"
        );
        // A page that is being loaded ends the promise; the new page is asked again.
        for _ in 0..20 {
            match self.eval(&waiting).await {
                Ok(Value::Bool(true)) => return Ok(()),
                Ok(_) => break,
                Err(error) if format!("{error:#}").contains("context") => {}
                Err(error) => return Err(error),
            }
        }
        let shown = self.eval("document.body.innerText.slice(0, 600)").await?;
        bail!("{condition} did not become true; the page shows {shown}")
    }

    pub(crate) fn problems(&self) -> &[String] {
        &self.browser.problems
    }

    pub(crate) fn requests(&self) -> &[String] {
        &self.browser.requests
    }
}
