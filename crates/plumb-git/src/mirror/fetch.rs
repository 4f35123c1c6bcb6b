//! One round with the server: its refs, then, if they changed, its objects.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::disk::{self, State};
use super::{Fetched, Mirrors, Slot};
use crate::access::{Environment, hex};
use crate::advice::advice;
use crate::command::Git;
use crate::{CommandError, RepoAccess, RepoUrl, Transport};

/// Why a repository could not be brought up to date.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FetchError {
    /// A repository on this machine's disk that may not be read.
    #[error("repository {repository}: {reason}")]
    Local {
        /// Which one.
        repository: String,
        /// Why not.
        reason: &'static str,
    },
    /// The server could not be asked for its refs.
    #[error("ask {repository} for its refs; {advice}")]
    Refs {
        /// Which one.
        repository: String,
        /// What to do about it.
        advice: String,
        /// What git said.
        #[source]
        source: Box<CommandError>,
    },
    /// The objects could not be fetched.
    #[error("fetch {repository}")]
    Objects {
        /// Which one.
        repository: String,
        /// What git said.
        #[source]
        source: CommandError,
    },
    /// A repository that had branches has none: more likely the server's mistake than anyone's wish.
    #[error("{repository} has no branches and tags any more; the last good state is kept")]
    Empty {
        /// Which one.
        repository: String,
    },
    /// The ref or commit does not exist on the server.
    #[error("{repository} has no `{revision}`, or does not give it out")]
    Missing {
        /// Which one.
        repository: String,
        /// What was asked for.
        revision: String,
    },
    /// The cache directory is not usable.
    #[error("keep a mirror of {repository} in {directory}: {reason}; check its free space and owner")]
    Cache {
        /// Which one.
        repository: String,
        /// Where.
        directory: String,
        /// The system's reason.
        reason: String,
    },
}

impl FetchError {
    /// Short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Local { .. } => "local",
            Self::Refs { .. } => "refs",
            Self::Objects { .. } => "objects",
            Self::Missing { .. } => "missing",
            Self::Empty { .. } => "empty",
            Self::Cache { .. } => "cache",
        }
    }

    /// Can damaged objects of the mirror be the reason? Looking for damage takes long in a large repository, and
    /// nobody else can fetch it meanwhile.
    fn may_be_damage(&self) -> bool {
        let Self::Objects { source: CommandError::Failed { message, .. }, .. } = self else { return false };
        let message = message.to_ascii_lowercase();
        DAMAGE.iter().any(|word| message.contains(word))
    }

    /// May the same call succeed later without anyone changing a setting?
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Refs { .. } | Self::Objects { .. } | Self::Empty { .. } | Self::Cache { .. } => true,
            Self::Local { .. } | Self::Missing { .. } => false,
        }
    }
}

/// What git says about objects, packs and refs on disk that it cannot use, in lower case. Servers that are away, or
/// have no such ref, are told of in other words.
const DAMAGE: [&str; 17] = [
    "corrupt",
    "bad object",
    "bad ref",
    "missing ",
    "hash mismatch",
    "inflate",
    "loose object",
    "object file",
    "packfile",
    "pack has",
    ".pack",
    "index file",
    ".idx",
    "unable to read ",
    "unable to parse",
    "did not send all necessary objects",
    "not a git repository",
];

/// Where the commit of a `HEAD` is kept that is no branch.
const DETACHED: &str = "refs/plumb/HEAD";

/// What a server said about its refs.
struct Advertised {
    head: Option<String>,
    refs: BTreeMap<String, String>,
}

impl Mirrors {
    /// Asks the server, fetches what is new, and makes it what is readable.
    pub(super) async fn refresh(
        &self,
        slot: &Slot,
        url: &RepoUrl,
        access: &RepoAccess,
        extra: Option<&str>,
    ) -> Result<Fetched, FetchError> {
        let cache = |error: std::io::Error| FetchError::Cache {
            repository: url.to_string(),
            directory: slot.directory.display().to_string(),
            reason: error.to_string(),
        };
        let _disk = slot.disk.lock().await;
        disk::make_private(&slot.directory).map_err(cache)?;
        let _other_processes = lock_file(&slot.directory).await.map_err(cache)?;
        let current = slot.current(&self.options);
        let mut state = current.as_ref().map_or_else(State::default, |current| current.state.clone());
        // A ref may move and is asked for every time; a commit is fetched once and kept.
        if let Some(extra) = extra.filter(|extra| extra.starts_with("refs/"))
            && !state.extra.iter().any(|known| known == extra)
        {
            state.extra.push(extra.to_owned());
        }
        let advertised = self.ls_remote(url, access, &slot.directory).await?;
        if advertised.refs.is_empty() && current.as_ref().is_some_and(|current| !current.refs.refs.is_empty())
        {
            return Err(FetchError::Empty { repository: url.to_string() });
        }
        let mut wanted = wanted_refs(&advertised, &state.extra);
        let digest = digest(&advertised, &wanted);
        wanted.extend(extra.filter(|extra| !extra.starts_with("refs/")).map(str::to_owned));
        if advertised.head.as_deref() == Some(DETACHED) {
            wanted.push("HEAD".to_owned());
        }
        let damaged = slot.damaged.swap(false, Ordering::Relaxed);
        let is_current =
            current.as_ref().is_some_and(|current| current.state.advertised == digest) && extra.is_none();
        if is_current && !damaged {
            let proven = current.as_ref().filter(|current| current.state.is_proven(access));
            if let Some(current) = proven {
                return Ok(Fetched { mirror: self.mirror(slot, url, current), changed: false });
            }
        }
        url.to_string().clone_into(&mut state.url);
        let before = state.repository.clone();
        let rebuild = damaged || current.is_none();
        if rebuild {
            state.repository = disk::next_name(current.as_ref().map(|current| &current.state));
        }
        if !is_current || rebuild {
            let repository = slot.directory.join(&state.repository);
            let fetched = self.fetch_objects(url, access, &repository, rebuild, &wanted).await;
            match fetched {
                Err(error) if !rebuild && error.may_be_damage() && self.is_broken(&repository).await => {
                    // The objects here are damaged: build the mirror anew, aside, and let it take over.
                    drop(error);
                    state.repository = disk::next_name(Some(&state));
                    let repository = slot.directory.join(&state.repository);
                    self.fetch_objects(url, access, &repository, true, &wanted).await?;
                }
                other => other?,
            }
        }
        if let Some(extra) = extra
            && extra.starts_with("refs/")
            && !wanted.iter().any(|name| name == extra)
        {
            return Err(FetchError::Missing { repository: url.to_string(), revision: extra.to_owned() });
        }
        state.advertised = digest;
        state.head = advertised.head;
        state.prove(access);
        let current = disk::open(&slot.directory, state).map_err(|error| FetchError::Cache {
            repository: url.to_string(),
            directory: slot.directory.display().to_string(),
            reason: error.to_string(),
        })?;
        disk::save(&slot.directory, &current.state).map_err(cache)?;
        disk::sweep(&slot.directory, &[&current.state.repository, &before]);
        let current = Arc::new(current);
        *slot.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&current));
        Ok(Fetched { mirror: self.mirror(slot, url, &current), changed: !is_current })
    }

    async fn ls_remote(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        directory: &Path,
    ) -> Result<Advertised, FetchError> {
        self.requests.ls_remote.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let output = self.git(url, access, directory, &["ls-remote", "--symref", "--", url.as_str()]).await;
        self.asked(url, "ls-remote", began, output.is_ok());
        let output = output.map_err(|source| FetchError::Refs {
            repository: url.to_string(),
            advice: advice(url, access, &source),
            source: Box::new(source),
        })?;
        Ok(parse_advertised(&String::from_utf8_lossy(&output)))
    }

    async fn fetch_objects(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        repository: &Path,
        fresh: bool,
        wanted: &[String],
    ) -> Result<(), FetchError> {
        let failed = |source| FetchError::Objects { repository: url.to_string(), source };
        if fresh {
            let _ = std::fs::remove_dir_all(repository);
            let parent = repository.parent().unwrap_or(repository).to_owned();
            let path = repository.as_os_str();
            let init: [&std::ffi::OsStr; 5] =
                ["init".as_ref(), "--bare".as_ref(), "--quiet".as_ref(), "--template=".as_ref(), path];
            self.git(url, access, &parent, &init).await.map_err(failed)?;
        }
        let mut arguments: Vec<String> = [
            "fetch",
            "--quiet",
            "--force",
            "--prune",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
            "--no-show-forced-updates",
            "--",
            url.as_str(),
            "+refs/heads/*:refs/heads/*",
            "+refs/tags/*:refs/tags/*",
        ]
        .into_iter()
        .map(str::to_owned)
        .collect();
        for extra in wanted {
            let to = if extra.starts_with("refs/") { extra.clone() } else { format!("refs/plumb/{extra}") };
            arguments.push(format!("+{extra}:{to}"));
        }
        self.requests.fetch.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let timeout = self.options.limits.fetch_timeout;
        let fetched = self.git_within(timeout, url, access, repository, &arguments).await;
        self.asked(url, "fetch", began, fetched.is_ok());
        fetched.map_err(failed)?;
        // Cheap unless there is something to do; never fatal.
        let _ = self.git(url, access, repository, &["gc", "--auto", "--quiet"]).await;
        Ok(())
    }

    /// Are objects missing or unreadable that the refs need?
    async fn is_broken(&self, repository: &Path) -> bool {
        let Ok(url) = RepoUrl::parse("/") else { return false };
        let arguments = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"];
        let checked = self.git(&url, &RepoAccess::default(), repository, &arguments).await;
        matches!(checked, Err(CommandError::Failed { .. }))
    }

    /// gpg's status lines about the signature of a commit or tag. One without any, or with a bad one, is no
    /// failure of the command.
    pub(crate) async fn verify_object(
        &self,
        repository: &Path,
        command: &'static str,
        object: &str,
        keyring: &Path,
    ) -> Result<String, CommandError> {
        let io = |error: std::io::Error| CommandError::Io {
            command: command.to_owned(),
            reason: error.to_string(),
        };
        let home = tempfile::Builder::new().prefix(disk::SCRATCH).tempdir_in(&self.root).map_err(io)?;
        let mut environment = Environment::default();
        environment.set("GNUPGHOME", &keyring.display().to_string());
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
        Ok(String::from_utf8_lossy(&finished.errors).into_owned())
    }

    /// Puts public keys into a directory that gpg can use.
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

    async fn git<S: AsRef<std::ffi::OsStr>>(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        directory: &Path,
        arguments: &[S],
    ) -> Result<Vec<u8>, CommandError> {
        self.git_within(self.options.limits.timeout, url, access, directory, arguments).await
    }

    async fn git_within<S: AsRef<std::ffi::OsStr>>(
        &self,
        timeout: Duration,
        url: &RepoUrl,
        access: &RepoAccess,
        directory: &Path,
        arguments: &[S],
    ) -> Result<Vec<u8>, CommandError> {
        let io = |error: std::io::Error| CommandError::Io {
            command: "setup".to_owned(),
            reason: error.to_string(),
        };
        let scratch = tempfile::Builder::new().prefix(disk::SCRATCH).tempdir_in(&self.root).map_err(io)?;
        let home = scratch.path().join("home");
        std::fs::create_dir(&home).map_err(io)?;
        let mut environment = access.environment(url, scratch.path()).map_err(io)?;
        for (key, value) in CONFIG {
            environment.config(key, value);
        }
        // A user without password is most likely a token.
        let is_token =
            url.transport() != Transport::Ssh && url.password().is_none() && access.password.is_none();
        let token = url.username().filter(|_| is_token);
        let secrets = access.secrets().chain(url.password().map(crate::Secret::expose)).chain(token);
        let secrets = secrets.filter(|text| !text.is_empty()).map(str::to_owned).collect();
        let git = Git {
            program: &self.options.program,
            limits: &self.options.limits,
            timeout,
            home,
            environment,
            protocols: match url.transport() {
                // A server may send its visitors from http to https, never anywhere else.
                Transport::Http | Transport::Https => "http:https",
                other => other.scheme(),
            },
            secrets,
        };
        git.run(directory, arguments).await
    }
}

/// Settings for every run, which no repository can change.
const CONFIG: [(&str, &str); 10] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.askPass", "true"),
    ("gc.autoDetach", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("transfer.bundleURI", "false"),
    ("uploadpack.packObjectsHook", ""),
    // A server that trickles bytes is as good as dead.
    ("http.lowSpeedLimit", "1000"),
    ("http.lowSpeedTime", "30"),
    ("protocol.version", "2"),
];

/// Another plumb may use the same cache (the CLI beside the engine).
async fn lock_file(directory: &Path) -> std::io::Result<std::fs::File> {
    let path = directory.join("lock");
    let locked = tokio::task::spawn_blocking(move || {
        let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    });
    locked.await.map_err(std::io::Error::other)?
}

/// Lines `ref: <target>\t<name>` and `<hash>\t<name>`.
fn parse_advertised(text: &str) -> Advertised {
    let mut advertised = Advertised { head: None, refs: BTreeMap::new() };
    for line in text.lines() {
        let Some((left, name)) = line.split_once('\t') else { continue };
        match left.strip_prefix("ref: ") {
            Some(target) if name == "HEAD" => advertised.head = Some(target.to_owned()),
            Some(_) => {}
            None => {
                advertised.refs.insert(name.to_owned(), left.to_owned());
            }
        }
    }
    // A detached `HEAD`, or a server too old to say: any branch that stands at the same commit will do, else the
    // commit alone.
    if advertised.head.is_none() {
        advertised.head = advertised.refs.get("HEAD").map(|commit| {
            let mut branches = advertised.refs.iter().filter(|(name, _)| name.starts_with("refs/heads/"));
            let branch = branches.find(|(_, hash)| *hash == commit);
            branch.map_or_else(|| DETACHED.to_owned(), |(name, _)| name.clone())
        });
    }
    advertised
}

/// The extra refs that exist, and the extra commits.
fn wanted_refs(advertised: &Advertised, extra: &[String]) -> Vec<String> {
    extra
        .iter()
        .filter(|name| !name.starts_with("refs/") || advertised.refs.contains_key(*name))
        .filter(|name| !name.starts_with("refs/heads/") && !name.starts_with("refs/tags/"))
        .cloned()
        .collect()
}

/// Changes when anything that is mirrored changes.
fn digest(advertised: &Advertised, wanted: &[String]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(advertised.head.as_deref().unwrap_or_default());
    for (name, hash) in &advertised.refs {
        let counts = name == "HEAD"
            || name.starts_with("refs/heads/")
            || name.starts_with("refs/tags/")
            || wanted.contains(name);
        if counts {
            hasher.update(format!("\n{hash} {name}"));
        }
    }
    hex(&hasher.finalize())
}
