//! Checks signatures with `git verify-commit` and the keys of the settings.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plumb_core::app::CommitId;
use sha2::{Digest as _, Sha256};

use crate::access::RepoAccess;
use crate::command::CommandError;
use crate::mirror::{AnnotatedTag, Mirror, Mirrors};
use crate::objects::note_damage;
use crate::refs::RevisionSpec;
use crate::retry::Retry;
use crate::secret::hex;
use crate::signature::{Signature, parse_status};

/// Keys to check signatures with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyring {
    /// A `GNUPGHOME`, private to this process.
    pub home: PathBuf,
}

/// What must be signed, and by which keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignaturePolicy {
    /// Ids or fingerprints of the keys that are trusted.
    pub keys: Vec<String>,
    /// Also check all ancestors of the commit, back to commits with a seal.
    pub whole_history: bool,
}

/// What is to be synced.
#[derive(Clone, Copy, Debug)]
pub struct SyncedRevision<'a> {
    /// The revision that was resolved.
    pub spec: &'a RevisionSpec,
    /// Its commit.
    pub commit: &'a CommitId,
    /// The revisions of the source and of the operation, if `spec` is the hash that one of them was resolved to.
    pub stands_for: &'a [RevisionSpec],
}

/// Why a commit is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// A signature is missing, bad, or by another key.
    #[error("{what} of {repository} {why}; the project requires a signature by one of its keys")]
    Untrusted {
        /// The commit or tag.
        what: String,
        /// Where.
        repository: String,
        /// What is wrong with it.
        why: String,
    },
    /// The history is too long to be checked.
    #[error(
        "the history of {repository} before {commit} has more than {MAX_HISTORY} commits to check; a signed \
         commit with the trailer `{SEAL}: <reason>` vouches for all before it"
    )]
    TooLong {
        /// Where.
        repository: String,
        /// The commit at which the check stopped.
        commit: String,
    },
    /// git or gpg failed.
    #[error("cannot check the signature of {what}")]
    Command {
        /// The commit or tag.
        what: String,
        /// Why not.
        #[source]
        source: CommandError,
    },
    /// gpg cannot import the keys.
    #[error("cannot build a keyring from argocd-gpg-keys-cm")]
    Keyring(#[source] CommandError),
}

impl SignatureError {
    /// Can the same call succeed later?
    pub fn retry(&self) -> Retry {
        match self {
            Self::Untrusted { .. } | Self::TooLong { .. } => Retry::Permanent,
            Self::Command { source, .. } | Self::Keyring(source) => source.retry(),
        }
    }

    /// Short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        "signature"
    }
}

/// Most commits that are checked for one revision.
const MAX_HISTORY: usize = 5_000;

/// The trailer of a commit that vouches for all its ancestors.
const SEAL: &str = "Argocd-gpg-seal";

impl Mirrors {
    /// A keyring with exactly these public keys (id to armoured text).
    pub async fn keyring(&self, keys: &BTreeMap<String, String>) -> Result<Keyring, SignatureError> {
        let mut hasher = Sha256::new();
        for (id, key) in keys {
            hasher.update(format!("{id}\0{key}\0"));
        }
        let name = hex(&hasher.finalize());
        // gpg creates sockets in it, whose paths must be short.
        let home = self.root().join(format!("gpg-{}", name.get(..16).unwrap_or(&name)));
        let _one_at_a_time = self.keyrings.lock().await;
        let io = |error: std::io::Error| {
            SignatureError::Keyring(CommandError::Io { command: "gpg".to_owned(), reason: error.to_string() })
        };
        if is_ready(&home) {
            return Ok(Keyring { home });
        }
        // A killed process may have left an incomplete one, and its files may be damaged.
        crate::mirror::remove(&home);
        crate::mirror::make_private(&home).map_err(io)?;
        std::fs::write(home.join(GPG_CONF.0), GPG_CONF.1).map_err(io)?;
        for (index, key) in keys.values().enumerate() {
            let file = home.join(format!("key-{index}.asc"));
            std::fs::File::create(&file).and_then(|mut file| file.write_all(key.as_bytes())).map_err(io)?;
            // A key that gpg cannot read is skipped; its signatures are then by an unknown key.
            if let Err(error) = self.import_keys(&home, &file).await
                && !matches!(error, CommandError::Failed { .. })
            {
                return Err(SignatureError::Keyring(error));
            }
        }
        std::fs::write(home.join(READY), digest_of(&home)).map_err(io)?;
        Ok(Keyring { home })
    }

    /// Checks that what is synced is signed as the policy requires. Of an annotated tag the tag must be signed.
    pub async fn check_signatures(
        &self,
        mirror: &Mirror,
        access: &RepoAccess,
        synced: &SyncedRevision<'_>,
        policy: &SignaturePolicy,
        keyring: &Keyring,
    ) -> Result<(), SignatureError> {
        let commit = synced.commit;
        let tag = mirror.annotated_tag(synced.spec, commit);
        if let Some(tag) = &tag {
            self.check_tag(mirror, access, tag, policy, keyring).await?;
        }
        if policy.whole_history {
            return self.check_history(mirror, access, commit, policy, keyring).await;
        }
        if tag.is_some() {
            return Ok(());
        }
        let object = ("verify-commit", commit.as_str());
        let checked =
            self.check_one(mirror, access, object, format!("commit {commit}"), policy, keyring).await;
        let Err(error @ SignatureError::Untrusted { .. }) = checked else { return checked };
        // The hash stands for a revision of the source. If that is a tag of this very commit, the tag is what was signed.
        let mut tags = synced.stands_for.iter().filter_map(|spec| mirror.annotated_tag(spec, commit));
        match tags.next() {
            Some(tag) => self.check_tag(mirror, access, &tag, policy, keyring).await,
            None => Err(error),
        }
    }

    async fn check_tag(
        &self,
        mirror: &Mirror,
        access: &RepoAccess,
        tag: &AnnotatedTag,
        policy: &SignaturePolicy,
        keyring: &Keyring,
    ) -> Result<(), SignatureError> {
        let what = format!("tag {}", tag.name);
        check_tag_name(mirror, tag, &what)?;
        self.check_one(mirror, access, ("verify-tag", &tag.hash), what, policy, keyring).await
    }

    /// Checks a commit and its ancestors, back to commits with a seal.
    async fn check_history(
        &self,
        mirror: &Mirror,
        access: &RepoAccess,
        commit: &CommitId,
        policy: &SignaturePolicy,
        keyring: &Keyring,
    ) -> Result<(), SignatureError> {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![commit.to_string()];
        while let Some(commit) = waiting.pop() {
            if !seen.insert(commit.clone()) {
                continue;
            }
            let repository = || mirror.url().to_string();
            if seen.len() > MAX_HISTORY {
                return Err(SignatureError::TooLong { repository: repository(), commit });
            }
            let what = format!("commit {commit}");
            self.check_one(mirror, access, ("verify-commit", &commit), what, policy, keyring).await?;
            let (parents, message) = mirror.history(&commit).ok_or_else(|| SignatureError::Untrusted {
                what: format!("commit {commit}"),
                repository: repository(),
                why: "cannot be read".to_owned(),
            })?;
            if !is_seal(&message) {
                waiting.extend(parents);
            }
        }
        Ok(())
    }

    async fn check_one(
        &self,
        mirror: &Mirror,
        access: &RepoAccess,
        (command, object): (&'static str, &str),
        what: String,
        policy: &SignaturePolicy,
        keyring: &Keyring,
    ) -> Result<(), SignatureError> {
        let untrusted = |why: String| SignatureError::Untrusted {
            what: what.clone(),
            repository: mirror.url().to_string(),
            why,
        };
        let signature = self
            .signature(mirror, access, (command, object), keyring)
            .await
            .map_err(|source| SignatureError::Command { what: what.clone(), source })?;
        match signature {
            Signature::Good { key, fingerprint, primary } => {
                let trusted = policy.keys.iter().any(|id| is_key(id, &[&key, &fingerprint, &primary]));
                let why = || format!("is signed by key {key}, which the project does not name");
                if trusted { Ok(()) } else { Err(untrusted(why())) }
            }
            Signature::UnknownKey { key } => {
                Err(untrusted(format!("is signed by key {key}, which is not in argocd-gpg-keys-cm")))
            }
            Signature::Bad { reason } => Err(untrusted(format!("has an invalid signature: {reason}"))),
            Signature::None => Err(untrusted("is not signed".to_owned())),
        }
    }

    async fn signature(
        &self,
        mirror: &Mirror,
        access: &RepoAccess,
        (command, object): (&'static str, &str),
        keyring: &Keyring,
    ) -> Result<Signature, CommandError> {
        // An object of this hash never changes.
        let key = (keyring.home.clone(), object.to_owned());
        if let Some(known) = self.checked.lock().get(&key) {
            return Ok(known.clone());
        }
        let missing = || CommandError::Io { command: command.to_owned(), reason: "no mirror".to_owned() };
        let directory = self.repository_path(mirror.url(), access).ok_or_else(missing)?;
        let output = self.verify_object(&directory, command, object, &keyring.home).await;
        let output = output.inspect_err(|error| {
            if matches!(error, CommandError::Failed { .. } | CommandError::Cache { .. }) {
                note_damage(mirror.damaged());
            }
        })?;
        let signature = parse_status(&output);
        // A key may be imported later: only good signatures are cached.
        if matches!(signature, Signature::Good { .. }) {
            self.checked.lock().insert(key, signature.clone());
        }
        Ok(signature)
    }

    /// Checks the signature of a commit that was fetched.
    pub async fn verify(
        &self,
        mirror: &Mirror,
        access: &RepoAccess,
        commit: &CommitId,
        keyring: &Keyring,
    ) -> Result<Signature, CommandError> {
        self.signature(mirror, access, ("verify-commit", commit.as_str()), keyring).await
    }
}

/// Which keys plumb trusts is decided by plumb, so gpg needs no database of trust, which could be damaged.
const GPG_CONF: (&str, &str) = ("gpg.conf", "trust-model always\nno-auto-check-trustdb\n");

/// The file of a keyring that says that it is complete: the digest of its keys.
const READY: &str = "ready";

/// True if the keyring is complete and its files are those that were written.
fn is_ready(home: &Path) -> bool {
    let written = std::fs::read_to_string(home.join(READY));
    written.is_ok_and(|written| written == digest_of(home))
        && std::fs::read_to_string(home.join(GPG_CONF.0)).is_ok_and(|text| text == GPG_CONF.1)
}

/// A hash of the keys that gpg has imported.
fn digest_of(home: &Path) -> String {
    let mut hasher = Sha256::new();
    for name in ["pubring.kbx", "pubring.gpg"] {
        // Which of them exists depends on the version of gpg.
        hasher.update(std::fs::read(home.join(name)).unwrap_or_default());
        hasher.update([0]);
    }
    hex(&hasher.finalize())
}

/// A signature covers the name in the tag object. Under another name, an old signed version would pass as a new one.
fn check_tag_name(mirror: &Mirror, tag: &AnnotatedTag, what: &str) -> Result<(), SignatureError> {
    if tag.own_name == tag.name {
        return Ok(());
    }
    Err(SignatureError::Untrusted {
        what: what.to_owned(),
        repository: mirror.url().to_string(),
        why: format!("was made under the name {:?}, which is what its signature covers", tag.own_name),
    })
}

/// True if an id or a fingerprint names one of these keys. Short ids can be forged, so it needs at least 16
/// digits.
fn is_key(id: &str, keys: &[&str]) -> bool {
    let id = id.trim().trim_start_matches("0x").to_ascii_uppercase();
    id.len() >= 16 && keys.iter().any(|key| key.ends_with(&id))
}

/// True if the last paragraph of the message has the trailer.
fn is_seal(message: &str) -> bool {
    let last = message.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let mut lines = last.lines().filter_map(|line| line.split_once(':'));
    message.trim_end().contains("\n\n")
        && lines.any(|(key, value)| key.eq_ignore_ascii_case(SEAL) && !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_by_long_ids() {
        let fingerprint = "FFFF00000123456789ABCDEF";
        assert!(is_key("0x0123456789abcdef", &[fingerprint]));
        assert!(is_key(fingerprint, &[fingerprint]));
        assert!(!is_key("89ABCDEF", &[fingerprint]), "short ids collide");
        assert!(!is_key("", &[fingerprint]));
    }

    #[test]
    fn seals_are_trailers() {
        assert!(is_seal("Trust us\n\nLong text.\n\nArgocd-gpg-seal: reviewed\nSigned-off-by: x\n"));
        assert!(is_seal("Trust us\n\nargocd-gpg-seal: reviewed"));
        assert!(!is_seal("Argocd-gpg-seal: in the subject"));
        assert!(!is_seal("Trust us\n\nArgocd-gpg-seal: early\n\nMore text."));
        assert!(!is_seal("Trust us\n\nArgocd-gpg-seal:\n"));
    }
}
