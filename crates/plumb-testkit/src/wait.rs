//! Waiting on facts: list, then watch, until a check holds or the time is up. What was last
//! seen is part of the error.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use anyhow::{Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    Api,
    api::{DynamicObject, ListParams, TypeMeta, WatchEvent, WatchParams},
};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

/// How long a fact may take to come true, unless a test says otherwise. Generous, for busy
/// machines: a fact that holds ends the wait at once.
pub const LIMIT: Duration = Duration::from_mins(1);

/// How much of the last seen state an error shows.
const SHOWN: usize = 8_000;

/// Objects by name.
pub type Seen = BTreeMap<String, Value>;

/// Which objects of an API to look at.
#[derive(Clone, Debug)]
pub enum Selection {
    /// The one of that name.
    Name(String),
    /// Those with these labels; all if empty.
    Labels(String),
}

/// Waits until the check holds for the selected objects and returns them as they then are.
pub async fn until(
    api: &Api<DynamicObject>,
    selection: &Selection,
    limit: Duration,
    what: &str,
    check: impl Fn(&Seen) -> bool,
) -> Result<Seen> {
    let start = Instant::now();
    let mut view = View::default();
    let outcome = timeout_at(start + limit, async {
        loop {
            // A watch may end at any time, and a list may fail: both start over.
            if let Err(error) = view.follow(api, selection, &check).await {
                view.trouble = Some(error.to_string());
                sleep(Duration::from_millis(50)).await;
            } else if check(&view.seen) {
                return;
            }
        }
    });
    if outcome.await.is_ok() {
        return Ok(view.seen);
    }
    bail!(
        "waited {:.0} s for {} {selection:?}: {what}\n{}",
        start.elapsed().as_secs_f32(),
        api.resource_url(),
        view.describe()
    )
}

#[derive(Default)]
struct View {
    seen: Seen,
    trouble: Option<String>,
}

impl View {
    /// Lists and watches; returns when the check holds or the watch ends.
    async fn follow(
        &mut self,
        api: &Api<DynamicObject>,
        selection: &Selection,
        check: &impl Fn(&Seen) -> bool,
    ) -> Result<(), kube::Error> {
        let (mut list_params, mut watch_params) = (ListParams::default(), WatchParams::default());
        match selection {
            Selection::Name(name) => {
                let field = format!("metadata.name={name}");
                list_params = list_params.fields(&field);
                watch_params = watch_params.fields(&field);
            }
            Selection::Labels(labels) => {
                list_params = list_params.labels(labels);
                watch_params = watch_params.labels(labels);
            }
        }
        let list = api.list(&list_params).await?;
        let version = list.metadata.resource_version.unwrap_or_default();
        // The items of a list leave out what the list says once.
        let item = TypeMeta {
            kind: list.types.kind.trim_end_matches("List").to_owned(),
            api_version: list.types.api_version,
        };
        let typed = |object: DynamicObject| named(DynamicObject { types: Some(item.clone()), ..object });
        self.seen = list.items.into_iter().map(typed).collect();
        if check(&self.seen) {
            return Ok(());
        }
        let mut events = api.watch(&watch_params, &version).await?.boxed();
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    let (name, object) = named(object);
                    self.seen.insert(name, object);
                }
                WatchEvent::Deleted(object) => {
                    self.seen.remove(&named(object).0);
                }
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            }
            if check(&self.seen) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let mut text = String::from("last seen:");
        if self.seen.is_empty() {
            text += " nothing";
        }
        for (name, object) in &self.seen {
            let mut object = object.clone();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            let _ = write!(text, "\n{name}: {object:#}");
        }
        if let Some(trouble) = &self.trouble {
            let _ = write!(text, "\nlast error: {trouble}");
        }
        if let Some((end, _)) = text.char_indices().nth(SHOWN) {
            text.truncate(end);
            text += "\n…";
        }
        text
    }
}

fn named(object: DynamicObject) -> (String, Value) {
    let name = object.metadata.name.clone().unwrap_or_default();
    // A JSON object that came from JSON always goes back.
    (name, serde_json::to_value(object).unwrap_or_default())
}

/// Waits until a check outside the cluster holds: a file, a process, a counter. There is no
/// watch for such things, so this one looks again and again; `look` says what it sees.
pub async fn until_seen<T: std::fmt::Debug>(
    limit: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> T,
    check: impl Fn(&T) -> bool,
) -> Result<T> {
    let start = Instant::now();
    loop {
        let seen = look().await;
        if check(&seen) {
            return Ok(seen);
        }
        if start.elapsed() > limit {
            bail!("waited {:.0} s: {what}\nlast seen: {seen:#?}", start.elapsed().as_secs_f32());
        }
        sleep(Duration::from_millis(10)).await;
    }
}
