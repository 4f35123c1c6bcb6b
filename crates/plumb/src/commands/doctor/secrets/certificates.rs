//! Certificates in Secrets that end soon.

use std::collections::BTreeSet;

use jiff::Timestamp;
use plumb_core::object::Manifest;
use plumb_core::secrets::{ExpiringCertificate, Expiry, SecretsReport};
use plumb_kube::{ClusterClient, Selection};
use plumb_seal::Certificate;
use serde_json::Value;

use crate::context::{Context, list_failed};
use crate::error::CommandError;
use crate::kinds;
use crate::secrets::base64;

const SEALING_KEY: &str = "sealedsecrets.bitnami.com/sealed-secrets-key";

/// The certificate of a TLS Secret, if it ends soon. Sealing keys are TLS Secrets, too, and are looked at together.
pub(super) fn expiring_tls(secret: &Manifest, now: Timestamp) -> Option<ExpiringCertificate> {
    let is_tls = secret.value().get("type").and_then(Value::as_str) == Some("kubernetes.io/tls");
    (is_tls && secret.label(SEALING_KEY).is_none()).then(|| expiring(secret, false, now))?
}

/// The newest key of each controller. Older ones only open what they sealed, which they do after their end, too.
pub(super) async fn sealing_certificates(
    context: &Context,
    client: &ClusterClient,
    report: &mut SecretsReport,
    now: Timestamp,
) -> Result<(), CommandError> {
    let selection = Selection { labels: Some(format!("{SEALING_KEY}=active")), ..Selection::default() };
    let keys = match client.list(&kinds::secret(), &selection).await {
        // Few may read Secrets of all namespaces.
        Err(error) if error.is_forbidden() => {
            context.out.note(&format!(
                "note: sealing certificates of {} are not looked at: Secrets of all namespaces cannot be listed there",
                client.server()
            ));
            return Ok(());
        }
        keys => keys.map_err(|error| list_failed(&kinds::secret(), error))?,
    };
    let namespaces: BTreeSet<Option<&str>> = keys.iter().map(Manifest::namespace).collect();
    for namespace in namespaces {
        let here = keys.iter().filter(|key| key.namespace() == namespace);
        let newest = here.max_by_key(|key| certificate(key).map(|certificate| certificate.not_before()));
        report.expiring.extend(newest.and_then(|newest| expiring(newest, true, now)));
    }
    Ok(())
}

fn certificate(secret: &Manifest) -> Option<Certificate> {
    let text = secret.value().pointer("/data/tls.crt").and_then(Value::as_str)?;
    Certificate::from_pem(base64::decode(text)?.as_bytes()).ok()
}

fn expiring(secret: &Manifest, is_sealing: bool, now: Timestamp) -> Option<ExpiringCertificate> {
    let not_after = certificate(secret)?.not_after();
    let expiry = Expiry::of(not_after, now);
    (expiry != Expiry::Later).then(|| secret.key())?.map(|key| ExpiringCertificate {
        key,
        is_sealing,
        not_after,
        expiry,
    })
}
