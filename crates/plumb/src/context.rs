//! The context of every command: the cluster, the namespace, the output; and the writes that commands share.

use std::sync::Arc;
use std::time::Duration;

use plumb_core::desired::Propagation;
use plumb_core::object::{GroupVersionKind, Manifest, ObjectKey};
use plumb_kube::{
    ApiError, Applied, ClusterClient, Connection, DeleteOptions, DeletePermit, Fence, Gate, Patch,
    PatchOptions, Selection, Target, WritePermit,
};

use crate::config::ConnectionArgs;
use crate::error::CommandError;
use crate::kinds;
use crate::output::Output;
use crate::remote::{Api, Door};

/// The field manager of writes from the command line, as argocd names it.
pub(crate) const FIELD_MANAGER: &str = "argocd";

/// The context of a command.
#[derive(Debug)]
pub(crate) struct Context {
    /// The options that all commands share.
    pub(crate) connection: ConnectionArgs,
    /// What `--namespace` means to the command.
    namespace_means: NamespaceMeans,
    namespace: String,
    /// The API server that the command goes through; `None` for the kubeconfig.
    door: Option<Arc<Door>>,
    /// Where the command prints.
    pub(crate) out: Output,
}

/// What `--namespace` means to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamespaceMeans {
    /// Where Applications, projects and settings are.
    ControlPlane,
    /// Where the objects of the command are.
    Objects,
}

/// The default namespace of Argo CD.
const CONTROL_PLANE: &str = "argocd";

impl Context {
    /// For a command line. `colour_allowed` is what `NO_COLOR` leaves.
    pub(crate) fn new(
        connection: ConnectionArgs,
        namespace_means: NamespaceMeans,
        colour_allowed: bool,
    ) -> Self {
        let chosen = match namespace_means {
            NamespaceMeans::ControlPlane => connection.namespace.clone(),
            NamespaceMeans::Objects => None,
        };
        let namespace =
            chosen.or_else(|| connection.control_namespace()).unwrap_or_else(|| CONTROL_PLANE.to_owned());
        Self { connection, namespace_means, namespace, door: None, out: Output::of_process(colour_allowed) }
    }

    /// The control-plane namespace: where Applications, projects and settings are.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The namespace of the objects of the command, if one was given.
    pub(crate) fn object_namespace(&self) -> Option<&str> {
        match self.namespace_means {
            NamespaceMeans::ControlPlane => None,
            NamespaceMeans::Objects => self.connection.namespace.as_deref(),
        }
    }

    /// The same command through the API of a server.
    #[must_use]
    pub(crate) fn through(mut self, api: Api) -> Self {
        self.door = Some(Door::new(api, self.namespace.clone()));
        self
    }

    /// The server that the command goes through, if it does.
    pub(crate) fn door(&self) -> Option<&Arc<Door>> {
        self.door.as_ref()
    }

    /// The API: that of the server, or the same calls with the kubeconfig and without a login.
    pub(crate) async fn api(&self) -> Result<Api, CommandError> {
        match &self.door {
            Some(door) => Ok(door.api().clone()),
            None => Ok(Api::with_cluster(self.client().await?, &self.namespace)),
        }
    }

    /// Address and credentials of the cluster.
    pub(crate) async fn connect(&self) -> Result<Connection, CommandError> {
        self.connection.connection().await
    }

    /// A client for the kinds in [`kinds`]. It needs no discovery: the first request is the command's own.
    pub(crate) async fn client(&self) -> Result<ClusterClient, CommandError> {
        if let Some(door) = &self.door {
            return Ok(door.client());
        }
        let connection = self.connect().await?;
        let client =
            connection.client().map_err(|error| CommandError::because("connect to the cluster", error))?;
        client.assume_kinds(&kinds::known());
        Ok(client)
    }

    /// A client with the discovered kinds of the cluster, for commands on any object.
    pub(crate) async fn client_of_all_kinds(&self) -> Result<ClusterClient, CommandError> {
        if let Some(door) = &self.door {
            return Ok(door.client());
        }
        let connection = self.connect().await?;
        let server = connection.server();
        let client =
            connection.client().map_err(|error| CommandError::because("connect to the cluster", error))?;
        client
            .discover()
            .await
            .map_err(|error| CommandError::api(format!("discover the kinds of {server}"), error))?;
        Ok(client)
    }

    /// Everything of a kind in a namespace.
    pub(crate) async fn list(
        &self,
        client: &ClusterClient,
        gvk: &GroupVersionKind,
        selection: &Selection,
    ) -> Result<Vec<Manifest>, CommandError> {
        client.list(gvk, selection).await.map_err(|error| list_failed(gvk, error))
    }
}

/// The error for objects that cannot be listed.
pub(crate) fn list_failed(gvk: &GroupVersionKind, error: ApiError) -> CommandError {
    let is_missing = error.is_not_found();
    let hint = if *gvk == kinds::drift_report() {
        "no plumb was installed in this cluster: `plumb doctor` judges the apps on this machine"
    } else {
        "the cluster does not serve this kind: `plumb install --apply` installs its CRD"
    };
    CommandError::api(format!("list {}", kinds::plural(&gvk.kind)), error).hint_if(is_missing, hint)
}

/// The gate for writes from the command line. No lease is needed; every write names its object.
pub(crate) fn gate(client: &ClusterClient) -> Gate {
    Gate::new(client.clone(), Fence::of_command(), None)
}

/// The key of a target: its identity without the API version.
pub(crate) fn key_of(target: &Target) -> ObjectKey {
    ObjectKey::new(
        target.gvk.group.clone(),
        target.gvk.kind.clone(),
        target.namespace.clone(),
        target.name.clone(),
    )
}

/// Creates one object.
pub(crate) async fn create(client: &ClusterClient, object: &Manifest) -> Result<Applied, CommandError> {
    let what = || format!("create {}", described(object));
    let key = object.key().ok_or_else(|| CommandError::new(format!("cannot {}: it has no name", what())))?;
    gate(client)
        .create(&WritePermit::requested_by_user(key), object, FIELD_MANAGER)
        .await
        .map_err(|error| CommandError::write(what(), error))
}

/// Patches one object.
pub(crate) async fn change(
    client: &ClusterClient,
    target: &Target,
    patch: &Patch,
) -> Result<Manifest, CommandError> {
    let key = key_of(target);
    let options = PatchOptions { field_manager: Some(FIELD_MANAGER.to_owned()), subresource: None };
    gate(client)
        .patch(&WritePermit::requested_by_user(key.clone()), target, patch, &options)
        .await
        .map(|applied| applied.manifest)
        .map_err(|error| CommandError::write(format!("change {key}"), error))
}

/// Deletes the object with this uid.
pub(crate) async fn delete(
    client: &ClusterClient,
    object: &Manifest,
    options: &DeleteOptions,
) -> Result<(), CommandError> {
    let what = || format!("delete {}", described(object));
    let (Some(key), Some(target)) = (object.key(), Target::of(object)) else {
        return Err(CommandError::new(format!("cannot {}: it has no name", what())));
    };
    let permit = DeletePermit::requested_by_user(key, object.uid().unwrap_or_default());
    gate(client)
        .delete(&permit, &target, options)
        .await
        .map(drop)
        .map_err(|error| CommandError::write(what(), error))
}

/// Options for objects without children. With foreground propagation they would exist until the garbage collector has
/// looked for children; with background propagation they are gone when the command returns.
pub(crate) fn without_children() -> DeleteOptions {
    DeleteOptions { propagation: Propagation::Background, ..DeleteOptions::default() }
}

/// A timeout in seconds; 0 is none.
pub(crate) fn limit(seconds: u64) -> Duration {
    if seconds == 0 { Duration::MAX } else { Duration::from_secs(seconds) }
}

fn described(object: &Manifest) -> String {
    object.key().map_or_else(|| object.kind().to_owned(), |key| key.to_string())
}
