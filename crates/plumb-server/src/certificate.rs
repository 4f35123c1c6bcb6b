//! The certificate of the server: that of `argocd-server-tls`, that of `argocd-secret`, or one that it signs itself
//! until the first start has stored one.

use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tracing::{info, warn};

use crate::replica::{ReplicaKeys, ReplicaResolver, replica_server_config};
use crate::self_signed::self_signed;
use crate::state::State;

/// Makes the TLS settings, again whenever the certificate changes.
pub(crate) struct Certificates {
    state: State,
    current: Mutex<Option<Current>>,
    /// The settings for replicas alone, and the key from which they follow.
    of_replicas: Mutex<Option<(Vec<u8>, Arc<ServerConfig>)>>,
}

struct Current {
    /// Certificate and key as written; `None` for the one that is signed here.
    written: Option<(String, String)>,
    /// The key from which the certificate between replicas follows.
    signing_key: Option<Vec<u8>>,
    config: Arc<ServerConfig>,
}

impl Certificates {
    pub(crate) fn new(state: State) -> Self {
        Self { state, current: Mutex::default(), of_replicas: Mutex::default() }
    }

    /// The settings for connections of other replicas, where clients connect without TLS.
    pub(crate) fn replica_config(&self) -> Option<Arc<ServerConfig>> {
        let signing_key = self.state.signing_key()?;
        let mut known = self.of_replicas.lock();
        if let Some((key, config)) = known.as_ref()
            && *key == signing_key
        {
            return Some(Arc::clone(config));
        }
        let config = Arc::new(replica_server_config(&ReplicaKeys::derive(&signing_key)?)?);
        *known = Some((signing_key, Arc::clone(&config)));
        Some(config)
    }

    /// The settings for the next connection. A certificate that cannot be read leaves the last one in use.
    pub(crate) fn config(&self) -> Option<Arc<ServerConfig>> {
        let written = self.state.certificate();
        let signing_key = self.state.signing_key();
        let mut current = self.current.lock();
        let is_same = |known: &&Current| known.written == written && known.signing_key == signing_key;
        if let Some(known) = current.as_ref().filter(is_same) {
            return Some(Arc::clone(&known.config));
        }
        let keys = signing_key.as_deref().and_then(ReplicaKeys::derive);
        let made = match &written {
            Some((certificate, key)) => from_pem(certificate, key, keys.as_ref()),
            None => own_config(self.state.namespace(), keys.as_ref()),
        };
        match made {
            Ok(config) => {
                info!(from_secret = written.is_some(), "certificate loaded");
                let config = Arc::new(config);
                *current = Some(Current { written, signing_key, config: Arc::clone(&config) });
                Some(config)
            }
            Err(reason) => {
                warn!(reason, "cannot use the certificate of the server; the last one stays in use");
                if current.is_none()
                    && let Ok(config) = own_config(self.state.namespace(), keys.as_ref())
                {
                    *current = Some(Current { written, signing_key, config: Arc::new(config) });
                }
                current.as_ref().map(|known| Arc::clone(&known.config))
            }
        }
    }
}

fn from_pem(certificate: &str, key: &str, keys: Option<&ReplicaKeys>) -> Result<ServerConfig, String> {
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
    let chain = chain.map_err(|error| format!("the certificate is not PEM: {error}"))?;
    // The error of the parser could quote the key.
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| "the key is not PEM".to_owned())?;
    server_config(chain, key, keys)
}

fn own_config(namespace: &str, keys: Option<&ReplicaKeys>) -> Result<ServerConfig, String> {
    let made = self_signed(namespace)?;
    from_pem(&made.certificate, &made.key, keys)
}

fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    keys: Option<&ReplicaKeys>,
) -> Result<ServerConfig, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let main = CertifiedKey::from_der(chain, key, &provider).map_err(|error| error.to_string())?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(ReplicaResolver::new(main, keys)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
