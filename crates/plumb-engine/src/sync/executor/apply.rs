//! The ways to write one object: apply, create, replace, recreate.

use std::sync::Arc;
use std::time::Duration;

use plumb_core::desired::{ObjectOptions, Propagation};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::plan::{HowToApply, TombstoneReason};
use plumb_core::sync::{Success, applied_word};
use plumb_core::tracking::FIELD_MANAGER;
use plumb_kube::{
    ApiError, Applied, ApplyOptions, ClusterClient, DeletePermit, DeletionGround, FieldValidation, Reason,
    WriteError, WritePermit,
};
use serde_json::Value;

use super::step::{Executor, StepContext, WriteMode, named, success};

impl Executor<'_> {
    /// Writes one object in the given mode.
    pub(super) async fn write(
        &self,
        key: &ObjectKey,
        manifest: &Manifest,
        mode: WriteMode,
        context: &StepContext,
    ) -> Result<Success, WriteError> {
        let permit = self.permit(key, context)?;
        let options = ApplyOptions {
            field_manager: FIELD_MANAGER.to_owned(),
            force: true,
            field_validation: if mode.strict { FieldValidation::Strict } else { FieldValidation::Warn },
            subresource: None,
        };
        if mode.dry_run {
            return Ok(self.dry_run(manifest, mode.how, &options, context).await?);
        }
        let gate = &self.cluster.gate;
        match mode.how {
            HowToApply::ServerSide => {
                let applied = gate.apply(&permit, manifest, &options).await?;
                Ok(self.done(key, &applied, self.word(manifest, &applied, context)))
            }
            HowToApply::ServerSideOrRecreate => match gate.apply(&permit, manifest, &options).await {
                Ok(applied) => Ok(self.done(key, &applied, self.word(manifest, &applied, context))),
                Err(error) if error.api().is_some_and(is_immutable) => {
                    self.recreate(key, manifest, &permit, context).await
                }
                Err(error) => Err(error),
            },
            HowToApply::Create => match gate.create(&permit, manifest, FIELD_MANAGER).await {
                Ok(applied) => Ok(self.done(key, &applied, "created")),
                // This operation created it before plumb was restarted.
                Err(error) if already_exists(&error) => {
                    Ok(self.done(key, &gate.apply(&permit, manifest, &options).await?, "configured"))
                }
                Err(error) => Err(error),
            },
            HowToApply::Replace => self.replace(key, manifest, &permit, context).await,
            HowToApply::Recreate => self.recreate(key, manifest, &permit, context).await,
        }
    }

    fn client(&self) -> ClusterClient {
        match &self.impersonation {
            Some(impersonation) => self.cluster.client.impersonating(impersonation.clone()),
            None => self.cluster.client.clone(),
        }
    }

    /// Sends the write as a dry run.
    async fn dry_run(
        &self,
        manifest: &Manifest,
        how: HowToApply,
        options: &ApplyOptions,
        context: &StepContext,
    ) -> Result<Success, ApiError> {
        let client = self.client();
        let live = context.live.as_deref();
        let result = match (how, live) {
            (HowToApply::Replace, Some(live)) => {
                let whole = with_server_fields(manifest, Some(live));
                client.dry_run_replace(&whole, FIELD_MANAGER).await
            }
            (HowToApply::Recreate, Some(live)) => {
                self.can_be_created(manifest).await?;
                return Ok(named(live, "replaced (dry run)"));
            }
            (HowToApply::ServerSideOrRecreate, Some(live)) => {
                match client.dry_run_apply(manifest, options).await {
                    Err(error) if is_immutable(&error) => {
                        self.can_be_created(manifest).await?;
                        return Ok(named(live, "replaced (dry run)"));
                    }
                    result => result,
                }
            }
            (
                HowToApply::ServerSide
                | HowToApply::Create
                | HowToApply::ServerSideOrRecreate
                | HowToApply::Replace
                | HowToApply::Recreate,
                _,
            ) => client.dry_run_apply(manifest, options).await,
        };
        let applied = result?;
        Ok(success(&applied, &format!("{} (dry run)", self.word(manifest, &applied, context))))
    }

    /// What an apply did to the object. The answer to a dry run has the resource version of the live object.
    fn word(&self, manifest: &Manifest, applied: &Applied, context: &StepContext) -> &'static str {
        let live = context.live.as_deref().and_then(Manifest::resource_version);
        let is_changed = live != applied.manifest.resource_version();
        let own = ObjectOptions::parse(manifest).server_side_apply;
        applied_word(own.unwrap_or(self.asks_server_side), applied.created, is_changed)
    }

    /// Checks that the API server would accept this object if it did not exist yet.
    async fn can_be_created(&self, manifest: &Manifest) -> Result<(), ApiError> {
        match self.client().dry_run_create(manifest, FIELD_MANAGER).await {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.reason(), Some(Reason::AlreadyExists)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the whole live object, as `kubectl replace` does.
    async fn replace(
        &self,
        key: &ObjectKey,
        manifest: &Manifest,
        permit: &WritePermit,
        context: &StepContext,
    ) -> Result<Success, WriteError> {
        const TRIES: usize = 5;
        let gate = &self.cluster.gate;
        let mut live = context.live.clone();
        for _ in 0..TRIES {
            let Some(replaced) = live else {
                let applied = gate.create(permit, manifest, FIELD_MANAGER).await?;
                return Ok(self.done(key, &applied, "created"));
            };
            let whole = with_server_fields(manifest, Some(&replaced));
            match gate.replace(permit, &whole, FIELD_MANAGER).await {
                Ok(applied) => return Ok(self.done(key, &applied, "replaced")),
                // Another writer changed the object: replace the newer version too.
                Err(error)
                    if error.api().is_some_and(|error| error.is_conflict() || error.is_not_found()) =>
                {
                    let target = (manifest.gvk(), key.namespace.as_deref());
                    live = self.client().get_at(&target.0, target.1, &key.name).await?.map(Arc::new);
                }
                Err(error) => return Err(error),
            }
        }
        let whole = with_server_fields(manifest, live.as_deref());
        Ok(self.done(key, &gate.replace(permit, &whole, FIELD_MANAGER).await?, "replaced"))
    }

    async fn recreate(
        &self,
        key: &ObjectKey,
        manifest: &Manifest,
        permit: &WritePermit,
        context: &StepContext,
    ) -> Result<Success, WriteError> {
        if let Some(live) = &context.live {
            // Do not delete an object that could not be created again.
            self.can_be_created(manifest).await?;
            let permit = DeletePermit::judge(self.facts(key, context), live, DeletionGround::Recreate)?;
            self.delete(permit, live, TombstoneReason::Recreated, Propagation::Background).await?;
        }
        // The API server may need a moment to remove the object. The watch reports when it is gone.
        self.wait_until_gone(key).await;
        let applied = self.cluster.gate.create(permit, manifest, FIELD_MANAGER).await?;
        Ok(self.done(key, &applied, "replaced"))
    }

    /// Waits until the store no longer has the object, at most 30 seconds. After that, the request to create it reports
    /// what is in the way.
    async fn wait_until_gone(&self, key: &ObjectKey) {
        let store = &self.cluster.store;
        let mut changes = store.subscribe();
        let gone = async {
            while store.contains(key) {
                if changes.recv().await.is_none() {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(30), gone).await;
    }
}

/// True if the API server refused to change an immutable field.
fn is_immutable(error: &ApiError) -> bool {
    matches!(error.reason(), Some(Reason::Invalid | Reason::Conflict))
}

fn already_exists(error: &WriteError) -> bool {
    error.api().is_some_and(|error| matches!(error.reason(), Some(Reason::AlreadyExists)))
}

/// A replacement has to contain the fields that only the API server sets: they are copied from the live object.
fn with_server_fields(manifest: &Manifest, live: Option<&Manifest>) -> Manifest {
    let Some(live) = live else { return manifest.clone() };
    let resource_version = live.resource_version().map(str::to_owned);
    let cluster_ip =
        ["clusterIP", "clusterIPs"].map(|field| live.value().pointer(&format!("/spec/{field}")).cloned());
    let replaced = manifest.clone().edit_metadata(|metadata| {
        if let Some(resource_version) = resource_version {
            metadata.insert("resourceVersion".to_owned(), Value::String(resource_version));
        }
    });
    if manifest.kind() != "Service" || !manifest.group().is_empty() {
        return replaced;
    }
    // The API server refuses to replace a Service without its cluster IP.
    let mut value = replaced.clone().into_value();
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        for (field, address) in ["clusterIP", "clusterIPs"].into_iter().zip(cluster_ip) {
            if let Some(address) = address {
                spec.entry(field).or_insert(address);
            }
        }
    }
    Manifest::new(value).unwrap_or(replaced)
}
