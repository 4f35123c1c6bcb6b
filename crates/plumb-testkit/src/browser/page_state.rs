//! What a browser says of a page by itself: its errors, its requests, what servers sent.

use serde_json::Value;

/// What was noted since the start.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) problems: Vec<String>,
    pub(super) requests: Vec<String>,
    /// Requests whose body can be read.
    pub(super) answered: Vec<String>,
    /// What event streams sent.
    pub(super) events: Vec<String>,
    /// The parts of a heap snapshot.
    pub(super) heap: String,
    /// Bytes on the wire, by request.
    pub(super) received: Vec<(String, f64)>,
    addresses: Vec<(String, String)>,
}

impl Noted {
    pub(super) fn note(&mut self, event: &Value) {
        let params = &event["params"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.problems.push(params["exceptionDetails"].to_string()),
            // A stream that the test cuts is an error of the network, and no fault of the page.
            "Log.entryAdded"
                if params["entry"]["level"] == "error" && params["entry"]["source"] != "network" =>
            {
                self.problems.push(params["entry"]["text"].to_string());
            }
            "Network.requestWillBeSent" => {
                self.requests.extend(text(&params["request"]["url"]));
                if let (Some(id), Some(url)) = (text(&params["requestId"]), text(&params["request"]["url"])) {
                    self.addresses.push((id, url));
                }
            }
            "Network.loadingFinished" => {
                let Some(id) = text(&params["requestId"]) else { return };
                let url = self.addresses.iter().rev().find(|(known, _)| *known == id);
                let url = url.map(|(_, url)| url.clone()).unwrap_or_default();
                self.received.push((url, params["encodedDataLength"].as_f64().unwrap_or_default()));
                self.answered.push(id);
            }
            "Network.eventSourceMessageReceived" => self.events.extend(text(&params["data"])),
            "HeapProfiler.addHeapSnapshotChunk" => {
                self.heap.push_str(params["chunk"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }
}
