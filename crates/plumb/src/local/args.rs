//! The flags for work without a cluster.

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::Timestamp;
use plumb_core::dump::LiveDump;
use plumb_core::object::ObjectKey;
use plumb_crd::Application;

use super::app::Dumped;
use super::dump;
use super::settings::settings_of_dump;
use super::{LocalApp, LocalRenderer};
use crate::context::Context;
use crate::error::CommandError;

/// Work with files instead of a cluster.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Without a cluster")]
pub(crate) struct OfflineArgs {
    /// Live objects: the output of `kubectl get -o yaml` or `-o json`; `-` reads stdin.
    #[arg(long, value_name = "DUMP", requires = "desired")]
    live: Vec<PathBuf>,
    /// What Git asks for: a directory with manifests, an overlay or a chart. Each is one app.
    #[arg(long, value_name = "DIRECTORY", requires = "live")]
    desired: Vec<PathBuf>,
    /// `OpenAPI` document of the cluster, as `kubectl get --raw /openapi/v2` prints it. CRDs in the other files need none.
    #[arg(long, value_name = "FILE", requires = "live")]
    schemas: Vec<PathBuf>,
    /// Namespace of objects that name none [default: that of the Application, or where the dump has most of them].
    #[arg(long, value_name = "NAMESPACE", requires = "live")]
    dest_namespace: Option<String>,
}

/// What the files say.
pub(crate) struct Offline {
    /// The objects of the cluster.
    pub(crate) live: LiveDump,
    /// The Applications among them.
    pub(crate) applications: Vec<Application>,
    /// One per directory, judged.
    pub(crate) apps: Vec<LocalApp>,
}

impl OfflineArgs {
    /// True if a dump was given.
    pub(crate) fn is_given(&self) -> bool {
        !self.live.is_empty()
    }

    /// Reads the dumps, renders the directories and judges.
    pub(crate) fn judge(
        &self,
        context: &Context,
        renderer: &LocalRenderer,
        now: Timestamp,
    ) -> Result<Offline, CommandError> {
        let live = dump::live(&self.live)?;
        let is_application = |object: &&plumb_core::object::Manifest| {
            object.kind() == Application::KIND && object.group() == "argoproj.io"
        };
        let applications: Vec<Application> = live
            .values()
            .filter(is_application)
            .filter_map(|object| Application::from_json(object.value()).ok())
            .collect();
        let namespace = context.namespace();
        let instances: BTreeSet<String> =
            applications.iter().map(|application| application.id().instance_name(namespace)).collect();
        let settings = settings_of_dump(&live, namespace, &instances);
        let dumped = Dumped { live: &live, applications: &applications, settings: &settings };
        let mut apps = Vec::with_capacity(self.desired.len());
        for directory in &self.desired {
            apps.push(LocalApp::render(
                context,
                renderer,
                directory,
                dumped,
                self.dest_namespace.as_deref(),
            )?);
        }
        let others = applications.iter().filter(|other| !apps.iter().any(|app| app.id == other.id()));
        let others: Vec<(String, BTreeSet<ObjectKey>)> =
            others.map(|other| (other.id().instance_name(namespace), other.rendered_keys())).collect();
        let mut judged = Vec::with_capacity(apps.len());
        let mut without_schema = BTreeSet::new();
        for app in &apps {
            let schemas = dump::schemas(&self.schemas, &live, &app.desired)?;
            without_schema.extend(dump::without_schema(&schemas, &live, &app.desired));
            judged.push(app.judge((&apps, &others), dumped, &schemas, now));
        }
        dump::note_without_schema(context, without_schema);
        for (app, verdicts) in apps.iter_mut().zip(judged) {
            app.verdicts = verdicts;
        }
        Ok(Offline { live, applications, apps })
    }
}
