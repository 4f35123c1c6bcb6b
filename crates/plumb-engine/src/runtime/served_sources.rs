//! What the server asks a leading engine about sources: commits, charts, repositories, sets, sync windows.

use std::future::Future;
use std::sync::Arc;

use plumb_core::project::WindowSubject;
use plumb_core::source::{RepoPath, SourceFiles as _};
use plumb_crd::settings::Repository;
use plumb_crd::{Application, ApplicationSet};
use plumb_git::CommitDetails;
use plumb_render::{Limits, unpack_upload};
use serde_json::Value;

use super::served::{Leader, prepared};
use crate::engine::Engine;

/// What a chart says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartFacts {
    /// What it is.
    pub description: String,
    /// Its home page.
    pub home: String,
    /// Who keeps it.
    pub maintainers: Vec<String>,
}

/// The branches and tags of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    /// Names of branches.
    pub branches: Vec<String>,
    /// Names of tags.
    pub tags: Vec<String>,
}

/// A sync window that concerns an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppWindow {
    /// Its place in the list of the project.
    pub index: usize,
    /// True if it is open now.
    pub is_open: bool,
}

impl Leader {
    /// Runs work on the engine's runtime, to which its connections belong.
    async fn on_engine<T, F>(&self, work: impl FnOnce(Arc<Engine>) -> F) -> Result<T, String>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        let work = self.runtime.spawn(work(Arc::clone(&self.engine)));
        work.await.unwrap_or_else(|_| Err("the request was aborted".to_owned()))
    }

    /// What the commit of a revision says, for one of the sources of an app.
    pub async fn commit_details(
        &self,
        application: Application,
        source: usize,
        revision: String,
    ) -> Result<CommitDetails, String> {
        self.on_engine(|engine| async move {
            let (app, context) = prepared(&engine, &application)?;
            let source = app.sources.get(source).ok_or("the application has no such source")?;
            let details = engine.sources.commit_details(&context, source, &revision).await;
            details.map_err(|error| error.message())
        })
        .await
    }

    /// What a version of a chart says, for one of the sources of an app.
    pub async fn chart_facts(
        &self,
        application: Application,
        source: usize,
        version: String,
    ) -> Result<ChartFacts, String> {
        self.on_engine(|engine| async move {
            let (app, context) = prepared(&engine, &application)?;
            let source = app.sources.get(source).ok_or("the application has no such source")?;
            let files = engine.sources.chart_files(&context, source, &version).await;
            let files = files.map_err(|error| error.message())?.ok_or("the source is not a chart")?;
            let path = RepoPath::parse("Chart.yaml").map_err(|error| error.to_string())?;
            let text = files.read(&path).map_err(|error| error.to_string())?;
            read_chart(&String::from_utf8_lossy(&text))
        })
        .await
    }

    /// The branches and tags of a repository, with the credentials that a project has for it.
    pub async fn repository_refs(&self, repo_url: String, project: String) -> Result<Refs, String> {
        self.on_engine(|engine| async move {
            let settings = engine.config.settings();
            let known = engine.config.project(&project).ok();
            let mirror = engine.sources.mirror_of(&settings, known.as_ref(), &repo_url).await;
            let mirror = mirror.map_err(|error| error.message())?;
            let below = |prefix: &str| -> Vec<String> {
                mirror.refs().keys().filter_map(|name| Some(name.strip_prefix(prefix)?.to_owned())).collect()
            };
            Ok(Refs { branches: below("refs/heads/"), tags: below("refs/tags/") })
        })
        .await
    }

    /// Fails if a repository, which need not be registered yet, cannot be reached.
    pub async fn check_repository(&self, repository: Repository) -> Result<(), String> {
        self.on_engine(|engine| async move {
            let settings = engine.config.settings();
            let checked = engine.sources.check_repository(&settings, repository).await;
            checked.map_err(|error| error.message())
        })
        .await
    }

    /// Renders an app from an archive (`.tar.gz`) of files in place of its only source. Returns the objects as JSON.
    pub async fn render_files(
        &self,
        application: Application,
        archive: Vec<u8>,
    ) -> Result<Vec<String>, String> {
        self.on_engine(|engine| async move {
            let (app, context) = prepared(&engine, &application)?;
            let unpacked = tokio::task::spawn_blocking(move || unpack_upload(&archive, &Limits::default()));
            let unpacked = unpacked.await.map_err(|_| "unpacking was aborted".to_owned())?;
            let files = unpacked.map_err(|error| error.to_string())?;
            let rendered = engine.sources.render_files(&application, &app, &context, Arc::new(files)).await;
            rendered.map_err(|error| error.message())
        })
        .await
    }

    /// What a set would generate now. Nothing is written.
    pub async fn generate(&self, set: ApplicationSet) -> Result<Vec<Value>, String> {
        self.on_engine(|engine| async move {
            let asked = crate::appsets::generate_set(&engine, &Arc::new(set), None).await;
            asked.generated.map(|generated| generated.applications).map_err(|error| {
                let mut message = error.message;
                engine.shown_text().clean(&mut message);
                message
            })
        })
        .await
    }

    /// True if sets of this namespace run.
    pub fn permits_set_namespace(&self, namespace: &str) -> bool {
        crate::appsets::permits(&self.engine, namespace)
    }

    /// True if sets may be in other namespaces than that of the control plane.
    pub fn has_sets_anywhere(&self) -> bool {
        !self.engine.config.settings().app_sets.namespaces.is_empty()
    }

    /// The sync windows of its project that concern an app.
    pub fn windows(&self, application: &Application) -> Vec<AppWindow> {
        let Ok((app, context)) = prepared(&self.engine, application) else { return Vec::new() };
        let target = context.cluster.target();
        let subject = WindowSubject {
            app: &app.id.name,
            namespace: app.destination.namespace.as_deref().unwrap_or_default(),
            server: target.server,
            cluster: target.name,
        };
        let now = jiff::Timestamp::now();
        let windows = context.project.windows().iter().enumerate();
        let concerning = windows.filter(|(_, window)| window.concerns(&subject));
        concerning
            .map(|(index, window)| AppWindow { index, is_open: window.is_open(now).unwrap_or(false) })
            .collect()
    }
}

/// Reads what users want to know from a `Chart.yaml`.
fn read_chart(text: &str) -> Result<ChartFacts, String> {
    let documents = plumb_core::yaml::parse_documents(text, &plumb_core::yaml::Limits::default())
        .map_err(|error| format!("cannot read Chart.yaml: {error}"))?;
    let chart = documents.into_iter().next().map(|document| document.value).unwrap_or_default();
    let field = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let maintainers = chart["maintainers"].as_array().into_iter().flatten().map(|maintainer| {
        match field(maintainer, "email") {
            email if email.is_empty() => field(maintainer, "name"),
            email => format!("{} <{email}>", field(maintainer, "name")),
        }
    });
    Ok(ChartFacts {
        description: field(&chart, "description"),
        home: field(&chart, "home"),
        maintainers: maintainers.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_tells_who_keeps_it() {
        let chart = "name: web\ndescription: A web server\nhome: https://example.com\nmaintainers:\n- name: Ann\n  \
                     email: ann@example.com\n- name: Bob\n";
        let facts = read_chart(chart).unwrap();
        assert_eq!(facts.description, "A web server");
        assert_eq!(facts.maintainers, ["Ann <ann@example.com>", "Bob"]);
    }
}
