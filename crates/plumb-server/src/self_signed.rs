//! A certificate for a server without one of its own.

/// Certificate and key in PEM for the server of a control plane. It has no `Debug`, because it holds a key.
pub(crate) struct SelfSigned {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Makes another certificate, for the names under which the Service is reached.
pub(crate) fn self_signed(namespace: &str) -> Result<SelfSigned, String> {
    let names = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "argocd-server".to_owned(),
        format!("argocd-server.{namespace}"),
        format!("argocd-server.{namespace}.svc"),
        format!("argocd-server.{namespace}.svc.cluster.local"),
    ];
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
    Ok(SelfSigned { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
}
