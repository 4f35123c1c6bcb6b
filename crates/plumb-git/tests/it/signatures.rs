//! Signatures, with the real gpg.

use std::collections::BTreeMap;
use std::process::Command;

use plumb_git::{RevisionSpec, Signature, SignaturePolicy, SyncedRevision};

use crate::damage::{DAMAGES, files};
use crate::repository::{Repository, anonymous, run};

/// Keys of people who sign.
struct Signers {
    home: tempfile::TempDir,
}

impl Signers {
    /// `None` without gpg.
    fn new(people: &[&str]) -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(home.path(), mode).unwrap();
        let signers = Self { home };
        for person in people {
            let arguments = ["--passphrase", "", "--quick-gen-key", person, "ed25519", "sign", "never"];
            if !signers.gpg(&arguments).is_some_and(|(success, _)| success) {
                plumb_testkit::skipped("GPG", "gpg is not installed").unwrap();
                return None;
            }
        }
        Some(signers)
    }

    fn gpg(&self, arguments: &[&str]) -> Option<(bool, String)> {
        let output = Command::new("gpg")
            .env("GNUPGHOME", self.home.path())
            .args(["--batch", "--quiet"])
            .args(arguments)
            .output()
            .ok()?;
        Some((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// The fingerprint and the public key, as `argocd-gpg-keys-cm` holds it.
    fn key(&self, person: &str) -> (String, String) {
        let (_, listing) = self.gpg(&["--with-colons", "--list-keys", person]).unwrap();
        let line = listing.lines().find(|line| line.starts_with("fpr:")).unwrap();
        let fingerprint = line.split(':').nth(9).unwrap().to_owned();
        (fingerprint, self.gpg(&["--armor", "--export", person]).unwrap().1)
    }

    /// Commits what was written, signed; gives back the commit.
    fn commit(&self, repository: &Repository, person: &str, message: &str) -> String {
        repository.git(&["add", "--all"]);
        self.git(repository, &["commit", "-q", "--allow-empty", &format!("-S{person}"), "-m", message]);
        run(&repository.path(), &["rev-parse", "HEAD"])
    }

    fn git(&self, repository: &Repository, arguments: &[&str]) {
        let status = Command::new("git")
            .current_dir(repository.path())
            .env("GNUPGHOME", self.home.path())
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(arguments)
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Signers {
    fn drop(&mut self) {
        let _ = Command::new("gpgconf").env("GNUPGHOME", self.home.path()).args(["--kill", "all"]).status();
    }
}

#[tokio::test]
async fn signatures_are_checked_with_the_given_keys_only() {
    let Some(signers) = Signers::new(&["one@example.com", "other@example.com"]) else { return };
    let repository = Repository::new();
    repository.write("a", "1");
    let unsigned = repository.commit("unsigned");
    repository.write("a", "2");
    let signed = signers.commit(&repository, "one@example.com", "signed");
    let mirrors = repository.mirrors();
    let mirror = mirrors.fetch(&repository.url(), &anonymous()).await.unwrap().mirror;
    let (one, key) = signers.key("one@example.com");
    let keyring = mirrors.keyring(&BTreeMap::from([(one, key)])).await.unwrap();
    let unusable = mirrors.keyring(&BTreeMap::from([("X".to_owned(), "no key".to_owned())])).await.unwrap();
    let verify = async |commit: &str, keyring| {
        mirrors.verify(&mirror, &anonymous(), &commit.parse().unwrap(), keyring).await.unwrap()
    };
    assert!(matches!(verify(&signed, &keyring).await, Signature::Good { .. }));
    assert!(matches!(verify(&signed, &unusable).await, Signature::UnknownKey { .. }));
    assert_eq!(verify(&unsigned, &keyring).await, Signature::None);
}

#[tokio::test]
async fn policies_ask_for_the_head_the_tag_or_all_of_the_history() {
    let (one, other) = ("one@example.com", "other@example.com");
    let Some(signers) = Signers::new(&[one, other]) else { return };
    let repository = Repository::new();
    repository.write("a", "1");
    repository.commit("unsigned");
    signers.commit(&repository, one, "signed");
    repository.git(&["tag", "light"]);
    signers.git(&repository, &["tag", "-s", "-u", other, "-m", "by another", "v1.0.0"]);
    repository.git(&["checkout", "-q", "-b", "sealed"]);
    signers.commit(&repository, one, "Trust what is before\n\nArgocd-gpg-seal: reviewed");
    signers.commit(&repository, one, "after the seal");
    repository.git(&["checkout", "-q", "-b", "forged"]);
    repository.write("a", "2");
    repository.commit("Unsigned seal\n\nArgocd-gpg-seal: trust me");
    signers.commit(&repository, one, "on top of it");

    let mirrors = repository.mirrors();
    let (ones_id, ones_key) = signers.key(one);
    let (others_id, others_key) = signers.key(other);
    let keys = BTreeMap::from([(ones_id.clone(), ones_key), (others_id.clone(), others_key)]);
    let keyring = mirrors.keyring(&keys).await.unwrap();
    let check = async |revision: &str, keys: &[&String], whole_history: bool| {
        let (url, access, spec) = (repository.url(), anonymous(), RevisionSpec::new(revision));
        let (mirror, commit) = mirrors.resolve(&url, &access, &spec).await.unwrap();
        let policy = SignaturePolicy { keys: keys.iter().map(|id| (*id).clone()).collect(), whole_history };
        let synced = SyncedRevision { spec: &spec, commit: &commit, stands_for: &[] };
        let checked = mirrors.check_signatures(&mirror, &access, &synced, &policy, &keyring).await;
        checked.map_err(|error| error.to_string()).err().unwrap_or_default()
    };
    let main = run(&repository.path(), &["rev-parse", "light"]);
    assert_eq!(check(&main, &[&ones_id], false).await, "");
    assert!(check(&main, &[&others_id], false).await.contains("which the project does not name"));
    assert!(check(&main, &[], false).await.contains("which the project does not name"), "no keys, no trust");
    assert!(check(&main, &[&ones_id], true).await.contains("is not signed"), "its parent is not");
    // A lightweight tag is its commit; an annotated tag is an object of its own.
    assert_eq!(check("light", &[&ones_id], false).await, "");
    assert_eq!(check("v1.0.0", &[&others_id], false).await, "");
    assert!(check("v1.0.0", &[&ones_id], false).await.contains("tag v1.0.0"));
    assert_eq!(check("v1.*", &[&others_id], false).await, "");
    // An old signed tag does not become a new version under another name.
    repository.git(&["update-ref", "refs/tags/v1.0.1", "refs/tags/v1.0.0"]);
    mirrors.fetch(&repository.url(), &anonymous()).await.unwrap();
    for revision in ["v1.0.1", "refs/tags/v1.0.1", "v1.*"] {
        let said = check(revision, &[&others_id], false).await;
        assert!(
            said.contains("tag v1.0.1") && said.contains("under the name \"v1.0.0\""),
            "{revision}: {said}"
        );
    }
    assert_eq!(check("v1.0.0", &[&others_id], false).await, "");
    // A seal vouches for what is before it, if it is signed itself.
    assert_eq!(check("sealed", &[&ones_id], true).await, "");
    assert!(check("forged", &[&ones_id], true).await.contains("is not signed"));
}

/// The content of another commit in the place of a signed one.
#[tokio::test]
async fn a_replaced_commit_is_checked_as_it_is() {
    let Some(signers) = Signers::new(&["one@example.com"]) else { return };
    let repository = Repository::new();
    repository.write("a", "1");
    let unsigned = repository.commit("unsigned");
    let signed = signers.commit(&repository, "one@example.com", "signed");
    let mirrors = repository.mirrors();
    let mirror = mirrors.fetch(&repository.url(), &anonymous()).await.unwrap().mirror;
    run(&repository.mirrored(), &["update-ref", &format!("refs/replace/{unsigned}"), &signed]);
    let (one, key) = signers.key("one@example.com");
    let keyring = mirrors.keyring(&BTreeMap::from([(one, key)])).await.unwrap();
    let checked = mirrors.verify(&mirror, &anonymous(), &unsigned.parse().unwrap(), &keyring).await.unwrap();
    assert_eq!(checked, Signature::None);
}

/// A sync names the commit that a revision was resolved to. If the revision is a signed tag, the tag is what was signed.
#[tokio::test]
async fn a_commit_may_stand_for_a_signed_tag() {
    let (one, other) = ("one@example.com", "other@example.com");
    let Some(signers) = Signers::new(&[one, other]) else { return };
    let repository = Repository::new();
    repository.write("a", "1");
    let old = repository.commit("unsigned and old");
    signers.git(&repository, &["tag", "-s", "-u", one, "-m", "old", "v0.9.0"]);
    repository.write("a", "2");
    let tagged = repository.commit("unsigned");
    signers.git(&repository, &["tag", "-s", "-u", one, "-m", "one", "v1.0.0"]);
    signers.git(&repository, &["tag", "-s", "-u", other, "-m", "by another", "by-another"]);
    repository.git(&["tag", "--annotate", "-m", "unsigned", "unsigned"]);
    repository.git(&["tag", "light"]);
    repository.git(&["update-ref", "refs/tags/v1.1.0", "refs/tags/v1.0.0"]);
    let signed = signers.commit(&repository, one, "signed");
    repository.git(&["tag", "--annotate", "-m", "unsigned", "on-signed"]);

    let mirrors = repository.mirrors();
    let (ones_id, ones_key) = signers.key(one);
    let (others_id, others_key) = signers.key(other);
    let keys = BTreeMap::from([(ones_id.clone(), ones_key), (others_id, others_key)]);
    let keyring = mirrors.keyring(&keys).await.unwrap();
    let check = async |commit: &str, stands_for: &[&str], whole_history: bool| {
        let (url, access, spec) = (repository.url(), anonymous(), RevisionSpec::new(commit));
        let (mirror, commit) = mirrors.resolve(&url, &access, &spec).await.unwrap();
        let policy = SignaturePolicy { keys: vec![ones_id.clone()], whole_history };
        let stands_for: Vec<RevisionSpec> = stands_for.iter().map(|text| RevisionSpec::new(*text)).collect();
        let synced = SyncedRevision { spec: &spec, commit: &commit, stands_for: &stands_for };
        let checked = mirrors.check_signatures(&mirror, &access, &synced, &policy, &keyring).await;
        checked.map_err(|error| error.to_string()).err().unwrap_or_default()
    };
    for revision in ["v1.0.0", "refs/tags/v1.0.0", "1.0.x"] {
        assert_eq!(check(&tagged, &[revision], false).await, "", "{revision}");
    }
    assert_eq!(check(&tagged, &["main", "v1.0.0"], false).await, "");
    // A signed commit needs no tag.
    assert_eq!(check(&signed, &["on-signed"], false).await, "");
    for (commit, stands_for, expected) in [
        (&tagged, "main", "is not signed"),
        (&tagged, "", "is not signed"),
        (&tagged, "light", "is not signed"),
        (&tagged, "unsigned", "tag unsigned"),
        (&tagged, "by-another", "which the project does not name"),
        // The tag of another commit signs nothing here.
        (&tagged, "v0.9.0", "is not signed"),
        (&old, "v1.0.0", "is not signed"),
        // A signed tag under another name.
        (&tagged, "v1.1.0", "under the name \"v1.0.0\""),
        (&tagged, "v1.*", "under the name \"v1.0.0\""),
    ] {
        let said = check(commit, &[stands_for], false).await;
        assert!(said.contains(expected), "{stands_for}: {said}");
    }
    let said = check(&tagged, &["v1.0.0"], true).await;
    assert!(said.contains("is not signed"), "the whole history must be signed: {said}");
}

/// A keyring is a cache of the keys in the settings.
#[tokio::test]
async fn every_file_of_a_keyring_may_be_damaged() {
    let Some(signers) = Signers::new(&["one@example.com"]) else { return };
    let repository = Repository::new();
    repository.write("a", "1");
    let (id, key) = signers.key("one@example.com");
    let keys = BTreeMap::from([(id, key)]);
    let mirrors = repository.mirrors();
    let home = mirrors.keyring(&keys).await.unwrap().home;
    let n_files = files(&home).len();
    for (how, damage) in DAMAGES {
        for index in 0..n_files {
            let Some(file) = files(&home).into_iter().nth(index) else { break };
            let what = format!("{} {how}", file.display());
            damage(&file);
            // A signature that was checked is remembered, so each is a new one.
            let commit = signers.commit(&repository, "one@example.com", &what).parse().unwrap();
            let mirror = mirrors.fetch(&repository.url(), &anonymous()).await.unwrap().mirror;
            let keyring = mirrors.keyring(&keys).await.unwrap();
            let checked = mirrors.verify(&mirror, &anonymous(), &commit, &keyring).await;
            assert!(matches!(checked, Ok(Signature::Good { .. })), "{what}: {checked:?}");
        }
    }
    std::fs::remove_dir_all(repository.cache()).unwrap();
    let commit = signers.commit(&repository, "one@example.com", "after").parse().unwrap();
    let mirror = mirrors.fetch(&repository.url(), &anonymous()).await.unwrap().mirror;
    let keyring = mirrors.keyring(&keys).await.unwrap();
    let checked = mirrors.verify(&mirror, &anonymous(), &commit, &keyring).await;
    assert!(matches!(checked, Ok(Signature::Good { .. })), "{checked:?}");
}
