//! One tab: what a user does, and what a test asks.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::chromium::Chromium;

/// How long a fact may take to become true.
const PATIENCE: Duration = Duration::from_mins(1);

/// One tab.
#[derive(Debug)]
pub struct Tab<'b> {
    pub(super) browser: &'b mut Chromium,
    pub(super) session: String,
}

impl Tab<'_> {
    /// Any command of the developer tools.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let session = self.session.clone();
        self.browser.call(Some(&session), method, params).await
    }

    /// Goes to an address.
    pub async fn open(&mut self, url: &str) -> Result<()> {
        self.call("Page.navigate", json!({"url": url})).await.map(drop)
    }

    /// Width, height and theme of the screen.
    pub async fn shape(&mut self, width: u32, height: u32, theme: &str) -> Result<()> {
        let is_phone = width < 700;
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        self.call("Emulation.setDeviceMetricsOverride", size).await?;
        self.call("Emulation.setTouchEmulationEnabled", json!({"enabled": is_phone})).await?;
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.call("Emulation.setEmulatedMedia", media).await.map(drop)
    }

    /// The value of an expression. A promise is waited for.
    pub async fn eval(&mut self, expression: &str) -> Result<Value> {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", params).await?;
        if let Some(error) = answer.get("exceptionDetails") {
            bail!("{expression}: {error}");
        }
        Ok(answer["result"]["value"].clone())
    }

    /// A number that an expression gives.
    pub async fn number(&mut self, expression: &str) -> Result<f64> {
        let value = self.eval(expression).await?;
        value.as_f64().with_context(|| format!("{expression} is {value}"))
    }

    /// The text of the first element.
    pub async fn text(&mut self, selector: &str) -> Result<String> {
        let text = self.eval(&format!("document.querySelector({selector:?})?.textContent ?? ''")).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until an expression is true. The page itself looks, every 15 ms.
    pub async fn until(&mut self, condition: &str) -> Result<()> {
        let patience = PATIENCE.as_millis();
        let waiting = format!(
            "new Promise((done) => {{ const start = performance.now(); const look = () => {{ let holds = false; \
             try {{ holds = {condition}; }} catch {{ holds = false; }} \
             if (holds || performance.now() - start > {patience}) done(holds === true); \
             else setTimeout(look, 15); }}; look(); }})"
        );
        // A page that is being loaded ends the promise; the new page is asked again.
        for _ in 0..20 {
            match self.eval(&waiting).await {
                Ok(Value::Bool(true)) => return Ok(()),
                Ok(_) => break,
                Err(error) if is_of_the_old_page(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let shown = self.eval("location.href + ' ' + document.body.innerText.slice(0, 1500)").await?;
        bail!("{condition} did not become true; the page shows {shown}")
    }

    /// Waits until the page shows this text.
    pub async fn until_shown(&mut self, text: &str) -> Result<()> {
        self.until(&format!("document.body.innerText.includes({text:?})")).await
    }

    /// Presses one key, such as `Enter`, `Tab` or `s`.
    pub async fn press(&mut self, key: &str) -> Result<()> {
        let (code, number) = match key {
            "Enter" => ("Enter".to_owned(), 13),
            "Tab" => ("Tab".to_owned(), 9),
            "Escape" => ("Escape".to_owned(), 27),
            " " => ("Space".to_owned(), 32),
            "ArrowDown" => (key.to_owned(), 40),
            "ArrowUp" => (key.to_owned(), 38),
            letter => (
                format!("Key{}", letter.to_uppercase()),
                letter.to_uppercase().bytes().next().map_or(0, u32::from),
            ),
        };
        let mut event = json!({"key": key, "code": code, "windowsVirtualKeyCode": number});
        let text = if key == "Enter" { "\r" } else { key };
        let types = key.chars().count() == 1 || key == "Enter";
        event["type"] = json!(if types { "keyDown" } else { "rawKeyDown" });
        if types {
            event["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", event.clone()).await?;
        event["type"] = json!("keyUp");
        event.as_object_mut().and_then(|event| event.remove("text"));
        self.call("Input.dispatchKeyEvent", event).await.map(drop)
    }

    /// Types a text into what has the focus.
    pub async fn write(&mut self, text: &str) -> Result<()> {
        self.call("Input.insertText", json!({"text": text})).await.map(drop)
    }

    /// Moves the focus with the Tab key alone until it is on a control with this name.
    pub async fn tab_to(&mut self, name: &str) -> Result<()> {
        let here = format!(
            "(() => {{ const e = document.activeElement; if (!e || e === document.body) return ''; \
             const label = e.getAttribute('aria-label') || e.closest('label')?.innerText || e.innerText || ''; \
             return label.trim().replace(/\\s+/g, ' ').startsWith({name:?}) ? 'found' : label.trim().slice(0, 30); }})()"
        );
        let mut passed = Vec::new();
        for _ in 0..250 {
            self.press("Tab").await?;
            let found = self.eval(&here).await?;
            if found == "found" {
                return Ok(());
            }
            passed.push(found.as_str().unwrap_or_default().to_owned());
        }
        passed.truncate(60);
        bail!("the Tab key does not reach {name:?}; it passed {passed:?}")
    }

    /// Presses a control with the keyboard alone.
    pub async fn use_control(&mut self, name: &str) -> Result<()> {
        self.tab_to(name).await?;
        self.press("Enter").await
    }

    /// Figures of the tab: `ScriptDuration` and the like in seconds of the processor, `JSHeapUsedSize` in bytes.
    pub async fn figure(&mut self, name: &str) -> Result<f64> {
        let metrics = self.call("Performance.getMetrics", json!({})).await?;
        let found = metrics["metrics"].as_array().into_iter().flatten().find(|metric| metric["name"] == name);
        found.and_then(|metric| metric["value"].as_f64()).with_context(|| format!("no figure {name}"))
    }

    /// Bytes that scripts hold after a collection.
    pub async fn heap_in_use(&mut self) -> Result<f64> {
        self.call("HeapProfiler.collectGarbage", json!({})).await?;
        self.figure("JSHeapUsedSize").await
    }

    /// Everything that the scripts of the page remember, as text.
    pub async fn heap_snapshot(&mut self) -> Result<String> {
        self.browser.noted.heap.clear();
        self.call("HeapProfiler.takeHeapSnapshot", json!({"reportProgress": false})).await?;
        let heap = std::mem::take(&mut self.browser.noted.heap);
        ensure!(!heap.is_empty(), "the heap snapshot is empty");
        Ok(heap)
    }

    /// Everything that servers sent since the start, as far as the browser still has it: answers and events.
    pub async fn received(&mut self) -> Result<String> {
        let mut all = self.browser.noted.events.join("\n");
        for id in self.browser.noted.answered.clone() {
            // The body of an address that was left may be gone.
            if let Ok(answer) = self.call("Network.getResponseBody", json!({"requestId": id})).await {
                let body = answer["body"].as_str().unwrap_or_default();
                let decoded = answer["base64Encoded"].as_bool() == Some(true);
                let bytes = if decoded { STANDARD.decode(body)? } else { body.as_bytes().to_vec() };
                all.push('\n');
                all.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        Ok(all)
    }

    /// Bytes on the wire for the addresses that contain this text.
    pub fn bytes_of(&self, part: &str) -> f64 {
        self.browser.noted.received.iter().filter(|(url, _)| url.contains(part)).map(|(_, bytes)| bytes).sum()
    }

    /// Writes what is seen to a file.
    pub async fn screenshot(&mut self, file: &Path) -> Result<()> {
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"})).await?;
        let bytes = STANDARD.decode(shot["data"].as_str().context("no picture")?)?;
        std::fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Errors of scripts and of the content policy.
    pub fn problems(&self) -> &[String] {
        &self.browser.noted.problems
    }

    /// Every address that was asked for.
    pub fn requests(&self) -> &[String] {
        &self.browser.noted.requests
    }
}

fn is_of_the_old_page(error: &anyhow::Error) -> bool {
    let text = format!("{error:#}");
    text.contains("context") || text.contains("navigated")
}
