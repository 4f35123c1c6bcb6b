//! Runs git and gpg for the mirrors, with private files and settings that no repository can change.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use super::disk;
use super::mirrors::Mirrors;
use crate::access::{Environment, RepoAccess};
use crate::command::{CommandError, Git};
use crate::guard::{Guard, GuardError};
use crate::secret::Secret;
use crate::url::{RepoUrl, Transport};

impl Mirrors {
    /// gpg's status lines about the signature of a commit or tag. A missing or bad signature is not an error
    /// of the command.
    pub(crate) async fn verify_object(
        &self,
        repository: &Path,
        command: &'static str,
        object: &str,
        keyring: &Path,
    ) -> Result<String, CommandError> {
        let home = self.scratch()?;
        let mut environment = Environment::default();
        environment.set("GNUPGHOME", &keyring.display().to_string());
        self.isolate(&mut environment);
        let git = Git {
            program: &self.options.program,
            limits: &self.options.limits,
            timeout: self.options.limits.timeout,
            home: home.path().to_owned(),
            environment,
            protocols: "",
            secrets: Vec::new(),
        };
        let finished = git.finish(repository, &[command, "--raw", "--", object]).await?;
        // Without a signature, or with a bad one, git exits with 1.
        if !matches!(finished.code, Some(0 | 1)) {
            let message = String::from_utf8_lossy(&finished.errors).trim().replace('\n', "; ");
            return Err(CommandError::Failed { command: command.to_owned(), code: finished.code, message });
        }
        Ok(String::from_utf8_lossy(&finished.errors).into_owned())
    }

    /// Imports public keys into a `GNUPGHOME`.
    pub(crate) async fn import_keys(&self, home: &Path, keys: &Path) -> Result<(), CommandError> {
        let git = Git {
            program: Path::new("gpg"),
            limits: &self.options.limits,
            timeout: self.options.limits.timeout,
            home: home.to_owned(),
            environment: Environment::default(),
            protocols: "",
            secrets: Vec::new(),
        };
        let home = home.display().to_string();
        let keys_file = keys.display().to_string();
        let arguments =
            ["--batch", "--no-autostart", "--no-tty", "--homedir", &home, "--import", "--", &keys_file];
        git.run(keys.parent().unwrap_or(keys), &arguments).await.map(drop)
    }

    /// No repository has a say in how git runs: neither a mirror, nor one that contains the cache directory.
    fn isolate(&self, environment: &mut Environment) {
        environment.set("GIT_CEILING_DIRECTORIES", &self.root.display().to_string());
        for (key, value) in CONFIG {
            environment.config(key, value);
        }
    }

    /// A private directory for one command. The cache directory is made again if it was removed.
    fn scratch(&self) -> Result<tempfile::TempDir, CommandError> {
        self.stay_in_root().map_err(|error| self.unusable(&error))?;
        let made = tempfile::Builder::new().prefix(disk::SCRATCH).tempdir_in(&self.root);
        made.map_err(|error| self.unusable(&error))
    }

    fn unusable(&self, error: &std::io::Error) -> CommandError {
        CommandError::Cache { directory: self.root.display().to_string(), reason: error.to_string() }
    }

    /// Makes the cache directory again if it was removed or replaced, and marks it as in use.
    pub(super) fn stay_in_root(&self) -> std::io::Result<()> {
        let mut in_use = self.in_use.lock();
        let number = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let held = in_use.as_ref().and_then(|file| file.metadata().ok()).map(number);
        let present = std::fs::metadata(&self.root).ok().map(number);
        if present.is_some() && held == present {
            return Ok(());
        }
        disk::make_private(&self.root)?;
        *in_use = disk::enter(&self.root).ok();
        self.sizes.lock().clear();
        Ok(())
    }

    /// Runs git in a mirror without a server.
    pub(super) async fn git_offline<S: AsRef<std::ffi::OsStr>>(
        &self,
        repository: &Path,
        arguments: &[S],
    ) -> Result<Vec<u8>, CommandError> {
        let none = |reason: String| CommandError::Io { command: "setup".to_owned(), reason };
        let url = RepoUrl::parse("/").map_err(|error| none(error.to_string()))?;
        self.git(&url, &RepoAccess::default(), repository, arguments).await
    }

    pub(super) async fn git<S: AsRef<std::ffi::OsStr>>(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        directory: &Path,
        arguments: &[S],
    ) -> Result<Vec<u8>, CommandError> {
        self.git_within(self.options.limits.timeout, url, access, directory, arguments).await
    }

    pub(super) async fn git_within<S: AsRef<std::ffi::OsStr>>(
        &self,
        timeout: Duration,
        url: &RepoUrl,
        access: &RepoAccess,
        directory: &Path,
        arguments: &[S],
    ) -> Result<Vec<u8>, CommandError> {
        let io = |error: std::io::Error| self.unusable(&error);
        let scratch = self.scratch()?;
        let home = scratch.path().join("home");
        std::fs::create_dir(&home).map_err(io)?;
        let mut environment = access.environment(url, scratch.path()).map_err(io)?;
        self.isolate(&mut environment);
        let command = arguments.first().map(AsRef::as_ref);
        let is_remote = command.is_some_and(|command| command == "ls-remote" || command == "fetch");
        let guard = if is_remote {
            Guard::new(url, access, &mut environment).await.map_err(|error| match error {
                GuardError::Refused(refused) => CommandError::Refused(refused),
                GuardError::Io(error) => CommandError::Failed {
                    command: command.unwrap_or_default().to_string_lossy().into_owned(),
                    code: None,
                    message: format!("cannot connect to {}: {error}", url.host()),
                },
            })?
        } else {
            Guard::default()
        };
        // A user without a password is most likely a token.
        let is_token =
            url.transport() != Transport::Ssh && url.password().is_none() && access.password.is_none();
        let token = url.username().filter(|_| is_token);
        let secrets = access.secrets().chain(url.password().map(Secret::expose)).chain(token);
        let secrets = secrets.filter(|text| !text.is_empty()).map(str::to_owned).collect();
        let git = Git {
            program: &self.options.program,
            limits: &self.options.limits,
            timeout,
            home,
            environment,
            protocols: match url.transport() {
                // A server may redirect from http to https, but to no other protocol and not back.
                Transport::Http => "http:https",
                other => other.scheme(),
            },
            secrets,
        };
        let outcome = git.run(directory, arguments).await;
        outcome.map_err(|error| guard.explain(error))
    }
}

/// Settings for every run, which no repository can change.
const CONFIG: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.askPass", "true"),
    ("core.useReplaceRefs", "false"),
    ("gc.autoDetach", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("transfer.bundleURI", "false"),
    ("uploadpack.packObjectsHook", ""),
    // Only the keys of the settings prove a signature, and these are OpenPGP keys.
    ("gpg.program", "gpg"),
    ("gpg.ssh.program", "/bin/false"),
    ("gpg.x509.program", "/bin/false"),
    // A server that sends less than this counts as dead.
    ("http.lowSpeedLimit", "1000"),
    ("http.lowSpeedTime", "30"),
    ("protocol.version", "2"),
    // The log of a branch shows which commits were on it before a force push.
    ("core.logAllRefUpdates", "true"),
    ("gc.reflogExpire", "90.days"),
    ("gc.reflogExpireUnreachable", "90.days"),
    // Memory. A file above the threshold is not unpacked as a whole, unless it is stored as a difference.
    ("core.bigFileThreshold", "32m"),
    ("core.packedGitWindowSize", "32m"),
    ("core.packedGitLimit", "256m"),
    ("core.deltaBaseCacheLimit", "64m"),
    ("pack.windowMemory", "64m"),
    ("pack.deltaCacheSize", "32m"),
    ("pack.threads", "2"),
    // A tree or commit that can be read in two ways is refused. What follows is odd but harmless: other programs wrote
    // it into many old repositories, or plumb refuses it where it reads it.
    ("fetch.fsckObjects", "true"),
    ("fetch.fsck.badDate", "ignore"),
    ("fetch.fsck.badDateOverflow", "ignore"),
    ("fetch.fsck.badEmail", "ignore"),
    ("fetch.fsck.badFilemode", "ignore"),
    ("fetch.fsck.badName", "ignore"),
    ("fetch.fsck.badTagName", "ignore"),
    ("fetch.fsck.badTimezone", "ignore"),
    ("fetch.fsck.emptyName", "ignore"),
    ("fetch.fsck.fullPathname", "ignore"),
    ("fetch.fsck.gitattributesBlob", "ignore"),
    ("fetch.fsck.gitattributesLarge", "ignore"),
    ("fetch.fsck.gitattributesLineLength", "ignore"),
    ("fetch.fsck.gitattributesMissing", "ignore"),
    ("fetch.fsck.gitmodulesBlob", "ignore"),
    ("fetch.fsck.gitmodulesLarge", "ignore"),
    ("fetch.fsck.gitmodulesMissing", "ignore"),
    ("fetch.fsck.gitmodulesName", "ignore"),
    ("fetch.fsck.gitmodulesParse", "ignore"),
    ("fetch.fsck.gitmodulesPath", "ignore"),
    ("fetch.fsck.gitmodulesSymlink", "ignore"),
    ("fetch.fsck.gitmodulesUpdate", "ignore"),
    ("fetch.fsck.gitmodulesUrl", "ignore"),
    ("fetch.fsck.hasDot", "ignore"),
    ("fetch.fsck.hasDotdot", "ignore"),
    ("fetch.fsck.hasDotgit", "ignore"),
    ("fetch.fsck.missingEmail", "ignore"),
    ("fetch.fsck.missingNameBeforeEmail", "ignore"),
    ("fetch.fsck.missingSpaceBeforeDate", "ignore"),
    ("fetch.fsck.missingSpaceBeforeEmail", "ignore"),
    ("fetch.fsck.missingTaggerEntry", "ignore"),
    ("fetch.fsck.nullSha1", "ignore"),
    ("fetch.fsck.nulInCommit", "ignore"),
    ("fetch.fsck.zeroPaddedDate", "ignore"),
    ("fetch.fsck.zeroPaddedFilemode", "ignore"),
];
