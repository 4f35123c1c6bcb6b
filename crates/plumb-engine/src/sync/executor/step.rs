//! Executes the commands of a sync: one function per verb, each safe to repeat.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use parking_lot::Mutex;
use plumb_core::app::AppId;
use plumb_core::desired::{Complete, DesiredSet, Propagation};
use plumb_core::drift::ApplyAdvice;
use plumb_core::ignore::IgnoreRules;
use plumb_core::normalize::{keep_ignored, keep_live, leave_out, manifest_to_apply, unknown_fields};
use plumb_core::object::{FieldPath, Manifest, ObjectKey, images};
use plumb_core::plan::{HOOK_FINALIZER, HowToApply, NoProof, Owner, TombstoneLimits, TombstoneReason};
use plumb_core::schema::SchemaSet;
use plumb_core::sync::{Command, Success, Verb};
use plumb_kube::{
    ApiError, Applied, DeleteOptions, DeletePermit, DeletionGround, Impersonation, Ownership, Patch,
    PatchOptions, ProjectAnswer, Refusal, Target, TombstoneKept, WriteError, WriteFacts, WritePermit,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tracing::debug;

use crate::cluster::destination::Cluster;
use crate::compare::costly_rules::apart;
use crate::operation::state::WrittenVersions;
use crate::state::tombstone_ledger::TombstoneLedger;
use crate::sync::tombstones;
use crate::sync::transient_errors::{self, Passing};

/// How long a deletion waits for the first list of new kinds, for example of a CRD that the same sync applied.
const LISTED_WITHIN: Duration = Duration::from_secs(5);

/// Executes the commands of one app.
pub(crate) struct Executor<'a> {
    pub(crate) app: &'a AppId,
    pub(crate) project: &'a str,
    pub(crate) control_plane_namespace: &'a str,
    /// The tombstones that exist, and how many there may be.
    pub(crate) tombstones: (&'a TombstoneLedger, TombstoneLimits),
    pub(crate) home: &'a Cluster,
    pub(crate) cluster: &'a Cluster,
    /// The objects in Git; `None` while the app is being deleted and Git could not be read.
    pub(crate) desired: Option<&'a Complete<DesiredSet>>,
    pub(crate) schemas: &'a SchemaSet,
    pub(crate) rules: &'a IgnoreRules,
    /// `RespectIgnoreDifferences=true`: ignored fields keep their live value.
    pub(crate) respect_ignore: bool,
    /// `ServerSideApply=true` of the operation.
    pub(crate) asks_server_side: bool,
    pub(crate) allow_empty: bool,
    pub(crate) revision: Option<&'a str>,
    pub(crate) impersonation: Option<Impersonation>,
    /// Looks up the context of one object at the time of the command.
    pub(crate) step_context: &'a (dyn Fn(&ObjectKey) -> StepContext + Sync),
    /// The version of each written object that the API server returned.
    pub(crate) written: &'a WrittenVersions,
    /// The writes under way, and since when.
    pub(crate) under_way: &'a WritesUnderWay,
}

/// The writes under way, and since when.
pub(crate) type WritesUnderWay = Mutex<BTreeMap<ObjectKey, Instant>>;

/// Most writes of one app at the same time. All apps together have far fewer slots.
const WRITES_AT_ONCE: usize = 64;

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    /// The gate or the API server refused the write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Git sets fields that the API server does not know, and the object is validated.
    #[error("strict decoding error: {}", unknown_list(.0))]
    UnknownFields(Vec<FieldPath>),
    /// Nothing can be created in a namespace that is being deleted.
    #[error("namespace {namespace} is being deleted{}", .why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default())]
    NamespaceTerminating {
        /// Name of the namespace.
        namespace: String,
        /// Since when it is being deleted, and what blocks the deletion, if known.
        why: Option<String>,
        /// The API server's refusal.
        #[source]
        source: WriteError,
    },
}

impl StepError {
    /// The API server's refusal, if there was one.
    pub(crate) fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Write(error) | Self::NamespaceTerminating { source: error, .. } => error.api(),
            Self::UnknownFields(_) => None,
        }
    }
}

fn unknown_list(fields: &[FieldPath]) -> String {
    let named: Vec<String> = fields.iter().map(|field| format!("unknown field \"{field}\"")).collect();
    named.join(", ")
}

/// One object at the time of a command.
pub(crate) struct StepContext {
    /// The object in the cluster.
    pub(crate) live: Option<Arc<Manifest>>,
    /// The app that owns the live object.
    pub(crate) owner: Owner,
    /// How to write it, according to the comparison.
    pub(crate) advice: ApplyAdvice,
    /// Why the project does not permit it, if so.
    pub(crate) denied: Option<String>,
    /// Why a user paused the app, if so.
    pub(crate) paused: Option<String>,
    /// Why a user paused this object, if so.
    pub(crate) held: Option<String>,
    /// The other app that asks for this object now, if so. Then it is not deleted.
    pub(crate) claimed_by: Option<String>,
}

impl Executor<'_> {
    /// Executes the commands concurrently; the results are in the order of the commands.
    pub(crate) async fn carry_out(&self, commands: &[Command]) -> Vec<Result<Success, StepError>> {
        let turns = Semaphore::new(WRITES_AT_ONCE);
        join_all(commands.iter().map(|command| self.execute_in_turn(command, &turns))).await
    }

    async fn execute_in_turn(&self, command: &Command, turns: &Semaphore) -> Result<Success, StepError> {
        let key = &command.id.key;
        // The semaphore is never closed, so there is a permit in the end.
        let _turn = turns.acquire().await.ok();
        self.under_way.lock().insert(key.clone(), Instant::now());
        let result = self.execute(command).await;
        self.under_way.lock().remove(key);
        result
    }

    async fn execute(&self, command: &Command) -> Result<Success, StepError> {
        let key = &command.id.key;
        Ok(match &command.verb {
            Verb::Apply { how, strict, migrate, dry_run } => {
                let Some(object) = self.desired.and_then(|desired| desired.get().objects.get(key)) else {
                    // Not expected: the plan was made from the same set.
                    return Ok(Success { message: format!("{key} is no longer in Git"), images: Vec::new() });
                };
                if *strict {
                    self.check_unknown_fields(&object.manifest)?;
                }
                let context = (self.step_context)(key);
                let is_costly = self.respect_ignore && self.rules.are_costly_for(key);
                let manifest = apart(is_costly, || self.prepared(key, &object.manifest, &context)).await;
                let mode = WriteMode { how: *how, strict: *strict, dry_run: *dry_run };
                // These replace the whole object, so fields that were removed from Git disappear without a migration. A
                // migration would also drop a record of ownership that only an apply restores.
                let replaces_object = matches!(how, HowToApply::Replace | HowToApply::Recreate);
                if *migrate && !*dry_run && !replaces_object {
                    self.migrate(key, &context).await?;
                }
                self.write_with_retries(key, &manifest, mode, &context).await?
            }
            Verb::ApplyManifest { manifest, how, strict, dry_run } => {
                if *strict {
                    self.check_unknown_fields(&manifest.0)?;
                }
                let context = (self.step_context)(key);
                let mode = WriteMode { how: *how, strict: *strict, dry_run: *dry_run };
                let manifest = manifest_to_apply(&manifest.0, self.schemas);
                self.write_with_retries(key, &manifest, mode, &context).await?
            }
            Verb::Prune { uid, propagation } => self.prune(key, uid.as_deref(), *propagation).await?,
            Verb::DeleteHook { uid, propagation } => {
                self.delete_hook(key, uid.as_deref(), *propagation).await?
            }
            Verb::ReleaseHook => self.release_hook(key).await?,
        })
    }

    /// The API server drops some unknown fields silently, for example those of custom resources.
    fn check_unknown_fields(&self, manifest: &Manifest) -> Result<(), StepError> {
        let unknown = unknown_fields(manifest, self.schemas);
        if unknown.is_empty() { Ok(()) } else { Err(StepError::UnknownFields(unknown)) }
    }

    /// The manifest to send: fields that belong to another writer keep their live value.
    fn prepared(&self, key: &ObjectKey, manifest: &Manifest, context: &StepContext) -> Manifest {
        let manifest = manifest_to_apply(manifest, self.schemas);
        match &context.live {
            Some(live) => {
                let manifest = leave_out(&manifest, &context.advice.leave_out);
                let kept = keep_live(&manifest, live, &context.advice.keep_live, self.schemas);
                if !self.respect_ignore {
                    return kept;
                }
                let ignored = self.rules.of(key, Some(&manifest), Some(live));
                keep_ignored(&kept, live, &ignored, self.schemas)
            }
            None => manifest,
        }
    }

    /// Moves the ownership of fields from the managers of older apply methods to plumb. Without this, fields that are
    /// removed from Git would stay in the cluster.
    async fn migrate(&self, key: &ObjectKey, context: &StepContext) -> Result<(), WriteError> {
        let (Some(live), Some(rewritten)) = (&context.live, &context.advice.managed_fields) else {
            return Ok(());
        };
        let Some(target) = Target::of(live) else { return Ok(()) };
        let permit = self.permit(key, context)?;
        let mut live = Arc::clone(live);
        let mut managed_fields = rewritten.clone();
        let mut pauses = transient_errors::pauses();
        loop {
            let mut operations =
                vec![json!({"op": "replace", "path": "/metadata/managedFields", "value": managed_fields})];
            if let Some(version) = live.resource_version() {
                operations
                    .push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}));
            }
            let patch = Patch::Json(Value::Array(operations));
            match self.cluster.gate.patch(&permit, &target, &patch, &PatchOptions::default()).await {
                Ok(_) => return Ok(()),
                Err(error) if error.api().is_some_and(ApiError::is_conflict) => {
                    // Another writer changed the object. If it changed only a subresource, such as the status, the
                    // rewrite is still valid. One that writes the status all the time must not keep plumb here.
                    let Some(pause) = pauses.next() else { return Err(error) };
                    tokio::time::sleep(pause).await;
                    let fresh =
                        self.cluster.client.get_at(&target.gvk, target.namespace.as_deref(), &target.name);
                    let Some(fresh) = fresh.await? else { return Ok(()) };
                    let Some(rebased) = rebase_managed_fields(&live, &fresh, &managed_fields) else {
                        return Err(error);
                    };
                    managed_fields = rebased;
                    live = Arc::new(fresh);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes, and retries after a transient error.
    async fn write_with_retries(
        &self,
        key: &ObjectKey,
        manifest: &Manifest,
        mode: WriteMode,
        context: &StepContext,
    ) -> Result<Success, StepError> {
        let mut pauses = transient_errors::pauses();
        loop {
            let error = match self.write(key, manifest, mode, context).await {
                Ok(success) => return Ok(success),
                Err(error) => error,
            };
            let Some(passing) = transient_errors::passing(&error, || self.has_crd_of(key)) else {
                return Err(error.into());
            };
            match passing {
                Passing::NamespaceTerminating => {
                    let namespace = key.namespace.clone().unwrap_or_default();
                    let why = transient_errors::why_terminating(&self.cluster.store, &namespace).await;
                    return Err(StepError::NamespaceTerminating { namespace, why, source: error });
                }
                Passing::NewKind | Passing::ServerTrouble => {}
            }
            let Some(pause) = pauses.next() else { return Err(error.into()) };
            debug!(object = %key, %error, ?passing, "retrying after a transient error");
            tokio::time::sleep(pause).await;
            if passing == Passing::NewKind {
                // If discovery fails, the next attempt reports why.
                let _ = self.cluster.client.discover().await;
            }
        }
    }

    /// True if the CRD of this object's kind is part of the same app.
    fn has_crd_of(&self, key: &ObjectKey) -> bool {
        let objects = self.desired.into_iter().flat_map(|desired| desired.get().objects.values());
        objects.into_iter().any(|object| {
            let text = |pointer: &str| object.manifest.value().pointer(pointer).and_then(Value::as_str);
            object.key.kind == "CustomResourceDefinition"
                && text("/spec/group") == Some(&key.group)
                && text("/spec/names/kind") == Some(&key.kind)
        })
    }

    /// Records the written version and returns the result message.
    pub(super) fn done(&self, key: &ObjectKey, applied: &Applied, what: &str) -> Success {
        if let Some(version) = applied.manifest.resource_version() {
            let mut written = self.written.lock();
            written.insert(key.clone(), version.to_owned());
        }
        success(applied, what)
    }

    async fn prune(
        &self,
        key: &ObjectKey,
        uid: Option<&str>,
        propagation: Propagation,
    ) -> Result<Success, WriteError> {
        let pruned = || Success { message: "pruned".to_owned(), images: Vec::new() };
        let context = (self.step_context)(key);
        let Some(live) = context.live.clone().filter(|live| uid.is_none() || live.uid() == uid) else {
            return Ok(pruned());
        };
        Self::check_claim(key, &context)?;
        let no_proof = |why| Refusal::NoProof { key: key.clone(), why };
        let desired = self.desired.ok_or_else(|| {
            no_proof(NoProof::DesiredIncomplete { why: "what Git asks is not known".to_owned() })
        })?;
        let store = &self.cluster.store;
        let proof = store.prove_deletions(desired, LISTED_WITHIN).await.map_err(no_proof)?;
        let ground = DeletionGround::Prune { proof: &proof, allow_empty: self.allow_empty };
        let mut facts = self.facts(key, &context);
        facts.paused = facts.paused.or_else(|| context.held.clone());
        let permit = DeletePermit::judge(facts, &live, ground)?;
        self.delete(permit, &live, TombstoneReason::Pruned, propagation).await?;
        Ok(pruned())
    }

    /// Refuses a deletion if another app asks for the object by now. The plan may be older than that claim.
    fn check_claim(key: &ObjectKey, context: &StepContext) -> Result<(), Refusal> {
        match &context.claimed_by {
            Some(app) => Err(Refusal::Claimed { key: key.clone(), app: app.clone() }),
            None => Ok(()),
        }
    }

    /// Deletes an object because its app is being deleted.
    pub(crate) async fn delete_with_app(
        &self,
        key: &ObjectKey,
        uid: Option<&str>,
        propagation: Propagation,
    ) -> Result<(), WriteError> {
        let context = (self.step_context)(key);
        let Some(live) = context.live.clone().filter(|live| uid.is_none() || live.uid() == uid) else {
            return Ok(());
        };
        Self::check_claim(key, &context)?;
        let no_proof = |why| Refusal::NoProof { key: key.clone(), why };
        let listed = self.cluster.store.all_listed_within(LISTED_WITHIN).await.map_err(no_proof)?;
        let ground = DeletionGround::AppDeleted { listed: &listed };
        let permit = DeletePermit::judge(self.facts(key, &context), &live, ground)?;
        self.delete(permit, &live, TombstoneReason::AppDeleted, propagation).await
    }

    async fn delete_hook(
        &self,
        key: &ObjectKey,
        uid: Option<&str>,
        propagation: Propagation,
    ) -> Result<Success, WriteError> {
        let context = (self.step_context)(key);
        let Some(live) = context.live.clone().filter(|live| uid.is_none() || live.uid() == uid) else {
            return Ok(Success::default());
        };
        let permit = DeletePermit::judge(self.facts(key, &context), &live, DeletionGround::FinishedHook)?;
        // The tombstone first: without the finalizer the object may go at any moment.
        let permit = self.with_tombstone(permit, &live, TombstoneReason::Recreated).await?;
        self.release_hook(key).await?;
        self.send_delete(permit, &live, propagation).await?;
        Ok(Success::default())
    }

    /// Removes the hook finalizer; other finalizers stay.
    async fn release_hook(&self, key: &ObjectKey) -> Result<Success, WriteError> {
        const TRIES: usize = 5;
        let context = (self.step_context)(key);
        let mut current = context.live.clone();
        let mut last = Ok(Success::default());
        for _ in 0..TRIES {
            let Some((live, patch)) =
                current.as_ref().and_then(|live| Some((live, without_finalizer(live)?)))
            else {
                return Ok(Success::default());
            };
            let Some(target) = Target::of(live) else { return Ok(Success::default()) };
            let permit = self.permit(key, &context)?;
            match self.cluster.gate.patch(&permit, &target, &patch, &PatchOptions::default()).await {
                Ok(_) => return Ok(Success::default()),
                Err(error) if error.api().is_some_and(ApiError::is_not_found) => {
                    return Ok(Success::default());
                }
                // Another writer changed the hook, usually its controller, which writes its status.
                Err(error) if error.api().is_some_and(ApiError::is_conflict) => {
                    let fresh =
                        self.cluster.client.get_at(&target.gvk, target.namespace.as_deref(), &target.name);
                    let fresh = fresh.await?.filter(|fresh| fresh.uid() == live.uid());
                    current = fresh.map(Arc::new);
                    last = Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        last
    }

    /// Deletes an object. If the permit requires a tombstone, it is written first.
    pub(super) async fn delete(
        &self,
        permit: DeletePermit,
        live: &Arc<Manifest>,
        reason: TombstoneReason,
        propagation: Propagation,
    ) -> Result<(), WriteError> {
        let permit = self.with_tombstone(permit, live, reason).await?;
        self.send_delete(permit, live, propagation).await
    }

    /// Writes the tombstone that the permit requires.
    async fn with_tombstone(
        &self,
        permit: DeletePermit,
        live: &Arc<Manifest>,
        reason: TombstoneReason,
    ) -> Result<DeletePermit, WriteError> {
        if !permit.needs_tombstone() {
            return Ok(permit);
        }
        match self.keep_tombstone(permit.key(), live, reason).await {
            Ok(tombstone) => Ok(permit.with_tombstone(&tombstone)),
            Err(WriteError::Refused(Refusal::TooLargeForCopy { .. })) if tombstones::is_copy_waived(live) => {
                Ok(permit.without_copy())
            }
            Err(error) => Err(error),
        }
    }

    async fn send_delete(
        &self,
        permit: DeletePermit,
        live: &Manifest,
        propagation: Propagation,
    ) -> Result<(), WriteError> {
        let Some(target) = Target::of(live) else { return Ok(()) };
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        self.cluster.gate.delete(&permit, &target, &options).await?;
        Ok(())
    }

    pub(super) async fn keep_tombstone(
        &self,
        key: &ObjectKey,
        live: &Arc<Manifest>,
        reason: TombstoneReason,
    ) -> Result<TombstoneKept, WriteError> {
        let tombstone = plumb_core::plan::Tombstone {
            app: self.app.clone(),
            server: self.cluster.server.to_string(),
            key: key.clone(),
            live: Arc::clone(live),
            deleted_at: jiff::Timestamp::now(),
            reason,
            revision: self.revision.map(str::to_owned),
        };
        let (ledger, limits) = &self.tombstones;
        let (gate, namespace) = (&self.home.gate, self.control_plane_namespace);
        tombstones::write(gate, namespace, self.project, &tombstone, (ledger, limits)).await
    }

    pub(super) fn permit(&self, key: &ObjectKey, context: &StepContext) -> Result<WritePermit, WriteError> {
        Ok(WritePermit::judge(self.facts(key, context))?)
    }

    pub(super) fn facts(&self, key: &ObjectKey, context: &StepContext) -> WriteFacts {
        let ownership = match (&context.live, &context.owner) {
            (None, _) => Ownership::Absent,
            (Some(_), Owner::ThisApp) => Ownership::Ours,
            (Some(_), Owner::NoApp | Owner::Other { renders: false, .. }) => Ownership::Adopted,
            (Some(_), Owner::Other { app, renders: true }) => Ownership::Foreign { owner: app.clone() },
        };
        WriteFacts {
            app: self.app.clone(),
            key: key.clone(),
            paused: context.paused.clone(),
            project: context
                .denied
                .clone()
                .map_or(ProjectAnswer::Allows, |why| ProjectAnswer::Denies { why }),
            ownership,
            impersonation: self.impersonation.clone(),
        }
    }
}

/// A patch that removes the hook finalizer from exactly this version of an object; `None` if it has none.
fn without_finalizer(live: &Manifest) -> Option<Patch> {
    let finalizers = live.value().pointer("/metadata/finalizers")?.as_array()?;
    let kept: Vec<&Value> = finalizers.iter().filter(|entry| *entry != HOOK_FINALIZER).collect();
    (kept.len() < finalizers.len()).then(|| {
        Patch::Merge(json!({"metadata": {"finalizers": kept, "resourceVersion": live.resource_version()}}))
    })
}

#[derive(Clone, Copy)]
pub(super) struct WriteMode {
    pub(super) how: HowToApply,
    pub(super) strict: bool,
    pub(super) dry_run: bool,
}

/// `deployment.apps/web created`, as kubectl prints it, and the images of its pods.
pub(super) fn success(applied: &Applied, what: &str) -> Success {
    named(&applied.manifest, what)
}

pub(super) fn named(manifest: &Manifest, what: &str) -> Success {
    let kind = manifest.kind().to_lowercase();
    let group = if manifest.group().is_empty() { String::new() } else { format!(".{}", manifest.group()) };
    let message = format!("{kind}{group}/{} {what}", manifest.name().unwrap_or_default());
    Success { message, images: images(manifest) }
}

/// The rewritten ownership on top of a newer version of the object, if only subresources were written since.
fn rebase_managed_fields(before: &Manifest, now: &Manifest, rewritten: &Value) -> Option<Value> {
    let is_main = |entry: &&Value| entry.get("subresource").and_then(Value::as_str).is_none_or(str::is_empty);
    let entries = |manifest: &Manifest| -> Vec<Value> {
        let list = manifest.value().pointer("/metadata/managedFields").and_then(Value::as_array);
        list.into_iter().flatten().cloned().collect()
    };
    let main = |list: &[Value]| -> Vec<Value> { list.iter().filter(is_main).cloned().collect() };
    let fresh = entries(now);
    if main(&entries(before)) != main(&fresh) {
        return None;
    }
    let kept = fresh.iter().filter(|entry| !is_main(entry)).cloned();
    Some(main(rewritten.as_array()?).into_iter().chain(kept).collect())
}
