//! TLS between replicas: a certificate whose key all of them know, under a name of its own.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};

use super::keys::ReplicaKeys;

/// The name that replicas ask for.
pub(super) const NAME: &str = "replica.plumb.internal";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Gives clients the certificate of the server, and replicas theirs.
pub(crate) struct ReplicaResolver {
    main: Arc<CertifiedKey>,
    replica: RwLock<Option<Arc<CertifiedKey>>>,
}

impl std::fmt::Debug for ReplicaResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReplicaResolver")
    }
}

impl ReplicaResolver {
    pub(crate) fn new(main: CertifiedKey, keys: Option<&ReplicaKeys>) -> Self {
        let replica = keys.and_then(certified).map(Arc::new);
        Self { main: Arc::new(main), replica: RwLock::new(replica) }
    }
}

impl ResolvesServerCert for ReplicaResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if hello.server_name() == Some(NAME)
            && let Some(replica) = &*self.replica.read()
        {
            return Some(Arc::clone(replica));
        }
        Some(Arc::clone(&self.main))
    }
}

/// Gives replicas their certificate, and nobody else one.
struct OnlyReplicas(Arc<CertifiedKey>);

impl std::fmt::Debug for OnlyReplicas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnlyReplicas")
    }
}

impl ResolvesServerCert for OnlyReplicas {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        (hello.server_name() == Some(NAME)).then(|| Arc::clone(&self.0))
    }
}

/// How a replica answers others where clients connect without TLS.
pub(crate) fn server_config(keys: &ReplicaKeys) -> Option<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .ok()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(OnlyReplicas(Arc::new(certified(keys)?))));
    config.alpn_protocols = vec![b"h2".to_vec()];
    Some(config)
}

/// The certificate of replicas. Each signs its own: only the key counts.
fn certified(keys: &ReplicaKeys) -> Option<CertifiedKey> {
    let document = keys.pair()?.to_pkcs8().ok()?;
    let der = document.as_ref().to_vec();
    let pair = rcgen::KeyPair::try_from(der.as_slice()).ok()?;
    let made = rcgen::CertificateParams::new(vec![NAME.to_owned()]).ok()?.self_signed(&pair).ok()?;
    let key = PrivateKeyDer::Pkcs8(der.into());
    let signing = provider().key_provider.load_private_key(key).ok()?;
    Some(CertifiedKey::new(vec![made.der().clone()], signing))
}

/// Accepts only the certificate with the key of the replicas.
#[derive(Debug)]
struct SameKey {
    public_key: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for SameKey {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let refused =
            || rustls::Error::General("the other side is no replica of this installation".to_owned());
        let (_, certificate) = x509_parser::parse_x509_certificate(end_entity).map_err(|_| refused())?;
        let key = &certificate.public_key().subject_public_key.data;
        if key.as_ref() == self.public_key.as_slice() {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(refused())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// How a replica connects to another.
pub(super) fn client_config(keys: &ReplicaKeys) -> Option<ClientConfig> {
    let provider = provider();
    let verifier = SameKey { public_key: keys.public_key()?, provider: Arc::clone(&provider) };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Some(config)
}
