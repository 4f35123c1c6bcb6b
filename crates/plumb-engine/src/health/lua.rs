//! Health from the users' Lua scripts in `argocd-cm`. A script may run for a second, so scripts run on blocking
//! threads, and once for each version of an object unless they read the time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use plumb_core::health::Health;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_lua::{Asks, Error, Scripts};
use tracing::Span;

/// A script that exceeded its limits this often in one run is not called again in that run: it would take as long for
/// the next objects, and fail too.
const MAX_LIMIT_ERRORS: usize = 3;

/// Results of scripts, by object.
#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<HashMap<ObjectKey, Answer>>);

#[derive(Clone, Debug)]
struct Answer {
    uid: Option<String>,
    resource_version: Option<String>,
    /// Generation of the settings.
    generation: u64,
    health: Option<Health>,
}

impl Answer {
    fn is_valid_for(&self, object: &Manifest, generation: u64) -> bool {
        self.generation == generation
            && self.resource_version.is_some()
            && (self.uid.as_deref(), self.resource_version.as_deref())
                == (object.uid(), object.resource_version())
    }
}

/// The results for all objects that have a script. `None`: the script returned no status, and the built-in checks are
/// not used either.
pub(crate) async fn ask(
    scripts: &Arc<Scripts>,
    generation: u64,
    live: &BTreeMap<ObjectKey, Arc<Manifest>>,
    cache: &Answers,
) -> BTreeMap<ObjectKey, Option<Health>> {
    let mut answers = BTreeMap::new();
    if scripts.is_empty() {
        return answers;
    }
    let mut to_ask = Vec::new();
    {
        let cache = cache.0.lock();
        for (key, object) in live {
            let Some(asks) = scripts.health_asks(object) else { continue };
            match cache
                .get(key)
                .filter(|answer| asks == Asks::Object && answer.is_valid_for(object, generation))
            {
                Some(answer) => {
                    answers.insert(key.clone(), answer.health.clone());
                }
                None => to_ask.push((key.clone(), Arc::clone(object))),
            }
        }
    }
    if to_ask.is_empty() {
        return answers;
    }
    let scripts = Arc::clone(scripts);
    let keys: Vec<ObjectKey> = to_ask.iter().map(|(key, _)| key.clone()).collect();
    let span = Span::current();
    let judge = move || span.in_scope(|| run(&scripts, to_ask));
    let fresh = tokio::task::spawn_blocking(judge).await.unwrap_or_else(|_| {
        // The message of a panic can quote the object.
        let aborted = |key| (key, None, Some(Health::unknown("a defect of plumb aborted the Lua script")));
        keys.into_iter().map(aborted).collect()
    });
    let mut cache = cache.0.lock();
    cache.retain(|key, _| live.contains_key(key));
    for (key, object, health) in fresh {
        if let Some(object) = object {
            let answer = Answer {
                uid: object.uid().map(str::to_owned),
                resource_version: object.resource_version().map(str::to_owned),
                generation,
                health: health.clone(),
            };
            cache.insert(key.clone(), answer);
        }
        answers.insert(key, health);
    }
    answers
}

type FreshAnswer = (ObjectKey, Option<Arc<Manifest>>, Option<Health>);

fn run(scripts: &Scripts, objects: Vec<(ObjectKey, Arc<Manifest>)>) -> Vec<FreshAnswer> {
    let mut limits: HashMap<(String, String), usize> = HashMap::new();
    let mut answers = Vec::with_capacity(objects.len());
    for (key, object) in objects {
        let kind = (key.group.clone(), key.kind.clone());
        if limits.get(&kind).is_some_and(|count| *count >= MAX_LIMIT_ERRORS) {
            let health = Health::unknown("the Lua script exceeded its limits on other objects of this kind");
            answers.push((key, None, Some(health)));
            continue;
        }
        let health = match scripts.judge(&object) {
            None => continue,
            Some(Ok(health)) => health,
            Some(Err(error)) => {
                if matches!(error, Error::Limit { .. }) {
                    *limits.entry(kind).or_insert(0) += 1;
                }
                Some(Health::unknown(error.to_string()))
            }
        };
        answers.push((key, Some(object), health));
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_lua::Limits;
    use serde_json::json;

    fn scripts(health: &str) -> Arc<Scripts> {
        let data = BTreeMap::from([("resource.customizations.health.Thing".to_owned(), health.to_owned())]);
        let limits = Limits { instructions: 100_000, ..Limits::default() };
        let (scripts, problems) = Scripts::parse(&data, limits);
        assert_eq!(problems, Vec::new());
        Arc::new(scripts)
    }

    fn things(n: usize, version: &str) -> BTreeMap<ObjectKey, Arc<Manifest>> {
        let thing = |index: usize| {
            let object = Manifest::new(json!({
                "apiVersion": "v1", "kind": "Thing",
                "metadata": {"name": format!("t{index}"), "uid": "u", "resourceVersion": version},
            }))
            .expect("an object");
            (object.key().expect("a name"), Arc::new(object))
        };
        (0..n).map(thing).collect()
    }

    fn texts(answers: &BTreeMap<ObjectKey, Option<Health>>) -> Vec<String> {
        answers.values().map(|health| health.as_ref().map(ToString::to_string).unwrap_or_default()).collect()
    }

    #[tokio::test]
    async fn a_script_runs_once_for_each_version_of_an_object() {
        let cache = Answers::default();
        let first = scripts("return {status = 'Degraded', message = obj.metadata.resourceVersion}");
        let answers = ask(&first, 1, &things(1, "7"), &cache).await;
        assert_eq!(texts(&answers), ["Degraded: 7"]);
        // Within one generation of the settings, a script runs again only if the object changed.
        let second = scripts("return {status = 'Healthy'}");
        assert_eq!(texts(&ask(&second, 1, &things(1, "7"), &cache).await), ["Degraded: 7"]);
        assert_eq!(texts(&ask(&second, 2, &things(1, "7"), &cache).await), ["Healthy"]);
        assert_eq!(texts(&ask(&first, 2, &things(1, "8"), &cache).await), ["Degraded: 8"]);
    }

    #[tokio::test]
    async fn a_script_that_reads_the_time_runs_each_time() {
        let cache = Answers::default();
        let first = scripts("local os = require('os') return {status = 'Degraded', message = 'x'}");
        ask(&first, 1, &things(1, "7"), &cache).await;
        let second = scripts("local os = require('os') return {status = 'Healthy'}");
        assert_eq!(texts(&ask(&second, 1, &things(1, "7"), &cache).await), ["Healthy"]);
    }

    #[tokio::test]
    async fn an_endless_script_runs_only_a_few_times() {
        let answers = ask(&scripts("while true do end"), 1, &things(20, "1"), &Answers::default()).await;
        let answers = texts(&answers);
        assert_eq!(answers.len(), 20);
        assert!(
            answers.iter().all(|text| text.starts_with("Unknown: the Lua script exceeded its limit")),
            "{answers:?}"
        );
        let n_run = answers.iter().filter(|text| text.ends_with("instructions")).count();
        assert_eq!(n_run, MAX_LIMIT_ERRORS);
    }
}
