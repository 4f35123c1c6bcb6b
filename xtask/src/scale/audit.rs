//! plumb's requests, from the API server's audit log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// The API server's audit log.
pub(super) struct Audit(PathBuf);

/// One request of plumb.
pub(super) struct Event {
    verb: String,
    what: String,
    dry_run: bool,
}

impl Event {
    /// True for a write that is not a dry run.
    pub(super) fn is_write(&self) -> bool {
        !self.dry_run
            && matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

impl Audit {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_path_buf())
    }

    /// The end of the log as it is now.
    pub(super) fn position(&self) -> Result<u64> {
        Ok(std::fs::metadata(&self.0).with_context(|| format!("cannot read {}", self.0.display()))?.len())
    }

    /// plumb's requests that ended since, without watches, lease renewals and the samples by which plumb detects that etcd
    /// was restored.
    pub(super) fn since(&self, position: u64) -> Result<Vec<Event>> {
        let fail = || format!("cannot read {}", self.0.display());
        let mut file = File::open(&self.0).with_context(fail)?;
        file.seek(SeekFrom::Start(position)).with_context(fail)?;
        let mut events = Vec::new();
        for line in BufReader::new(file).lines() {
            let line = line.with_context(fail)?;
            // The first and the last line may be incomplete.
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let resource = text("/objectRef/resource");
            let is_plumb = text("/userAgent").starts_with("plumb/");
            let uri = text("/requestURI");
            let is_sample = text("/verb") == "list"
                && (uri.contains("fieldSelector=metadata.name") || uri.ends_with("limit=1"));
            if !is_plumb || text("/verb") == "watch" || resource == "leases" || is_sample {
                continue;
            }
            let what = if resource.is_empty() { uri } else { resource };
            events.push(Event {
                verb: text("/verb").to_owned(),
                what: what.split('?').next().unwrap_or_default().to_owned(),
                dry_run: uri.contains("dryRun=All"),
            });
        }
        Ok(events)
    }
}

/// `patch applications 12, get secrets 3`
pub(super) fn summary(events: &[Event]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for event in events {
        let dry = if event.dry_run { " (dry run)" } else { "" };
        *counts.entry(format!("{} {}{dry}", event.verb, event.what)).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(what, count)| format!("{what} {count}")).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}
