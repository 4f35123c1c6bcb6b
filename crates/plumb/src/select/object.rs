//! Selecting objects of an app: `--kind`, `--group`, `--namespace`, `--resource-name`.

use plumb_core::object::{GroupVersionKind, Manifest};
use plumb_crd::Application;
use plumb_kube::ClusterClient;

use crate::context::Context;
use crate::error::CommandError;
use crate::view::rows::{ObjectRow, object_rows};
use crate::view::tree::Tree;

/// Selects objects of an app.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ObjectChoice {
    /// Kind, such as Deployment.
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// API group, such as apps [default: all groups].
    #[arg(long)]
    pub(crate) group: Option<String>,
    /// Name of the object.
    #[arg(long, visible_alias = "name", value_name = "NAME")]
    pub(super) resource_name: Option<String>,
}

impl ObjectChoice {
    pub(crate) fn matches(
        &self,
        namespace: Option<&str>,
        group: &str,
        kind: &str,
        place: &str,
        name: &str,
    ) -> bool {
        self.kind.as_ref().is_none_or(|wanted| wanted == kind)
            && self.group.as_ref().is_none_or(|wanted| wanted == group)
            && self.resource_name.as_ref().is_none_or(|wanted| wanted == name)
            && namespace.is_none_or(|wanted| wanted == place)
    }

    /// The live objects that match: those of the app, or else those that they own.
    pub(crate) async fn find(
        &self,
        context: &Context,
        client: &ClusterClient,
        application: &Application,
    ) -> Result<Vec<Manifest>, CommandError> {
        let namespace = context.object_namespace();
        let own: Vec<ObjectRow> = object_rows(application)
            .into_iter()
            .filter(|state| self.matches(namespace, &state.group, &state.kind, &state.namespace, &state.name))
            .collect();
        let mut found = Vec::new();
        for state in &own {
            found.extend(read(client, state).await?);
        }
        if !found.is_empty() {
            return Ok(found);
        }
        // No object of the app matches. Look at owned objects, such as pods.
        let tree = Tree::read(client, application).await;
        for root in object_rows(application) {
            let Some(object) = tree.find(&root) else { continue };
            for below in tree.below(object).into_iter().skip(1) {
                let (group, kind) = (below.group(), below.kind());
                let (place, name) = (below.namespace().unwrap_or_default(), below.name().unwrap_or_default());
                if self.matches(namespace, group, kind, place, name) {
                    let whole = client.get_at(&below.gvk(), below.namespace(), name).await;
                    found.extend(
                        whole.map_err(|error| CommandError::api(format!("read {kind} {name}"), error))?,
                    );
                }
            }
        }
        if found.is_empty() {
            return Err(CommandError::new(format!("{} has no matching object", application.metadata.name))
                .hint(format!("`plumb app resources {}` lists its objects", application.metadata.name)));
        }
        Ok(found)
    }

    /// The one object that matches.
    pub(crate) async fn find_one(
        &self,
        context: &Context,
        client: &ClusterClient,
        application: &Application,
    ) -> Result<Manifest, CommandError> {
        let mut found = self.find(context, client, application).await?;
        match (found.pop(), found.len()) {
            (Some(one), 0) => Ok(one),
            (_, more) => Err(CommandError::usage(format!("{} objects match; narrow it down", more + 1))
                .hint("use --kind, --group, --namespace and --resource-name")),
        }
    }
}

/// The live object of a row.
pub(crate) async fn read(
    client: &ClusterClient,
    state: &ObjectRow,
) -> Result<Option<Manifest>, CommandError> {
    let gvk = GroupVersionKind {
        group: state.group.clone(),
        version: state.version.clone(),
        kind: state.kind.clone(),
    };
    let namespace = Some(state.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    client
        .get_at(&gvk, namespace, &state.name)
        .await
        .map_err(|error| CommandError::api(format!("read {} {}", state.kind, state.name), error))
}
