//! Reads the payload of each sender as a [`Push`].
//!
//! Only the fields that are needed are kept, and of lists only a bounded number of entries: the parser skips the rest
//! without storing it. A field of an unexpected type counts as absent.

use http::HeaderMap;
use plumb_crd::settings::WebhookSecrets;
use plumb_engine::{Push, short_name};
use serde::Deserialize;

use super::lenient::{Flag, List, Maybe, Number, Text, parse};
use super::requests::{self, Report};
use super::sender::{Proof, Sender};

/// A parsed body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A push, or a change of pull requests.
    Push(Push),
    /// An event that concerns neither.
    Other,
}

/// A push with this many commits or more is not known to be whole: GitHub listed at most 20 for years, without telling
/// how many there are. So more are never needed.
const MAX_COMMITS: usize = 20;
/// Most files of one list of a commit. GitHub lists up to 3,000.
const MAX_FILES: usize = 3000;
/// Most files of a push. A push that lists more may have changed any file.
const MAX_FILES_OF_PUSH: usize = 10_000;
/// Most branches and tags of a push.
const MAX_REFS: usize = 1000;
/// Most addresses of a repository.
const MAX_ADDRESSES: usize = 8;

/// The push that a payload reports, by the headers of its sender; `None` for another event or an unknown sender. The
/// sender is not verified.
pub fn read_payload(headers: &HeaderMap, body: &[u8]) -> Result<Option<Push>, String> {
    let Some(sender) = Sender::of(headers) else { return Ok(None) };
    match read(sender, &sender.event(headers), body)? {
        Event::Push(push) => Ok(Some(push)),
        Event::Other => Ok(None),
    }
}

/// True if the headers name a sender that plumb knows.
pub fn knows_sender(headers: &HeaderMap) -> bool {
    Sender::of(headers).is_some()
}

/// As [`read_payload`], but only if the sender knows its secret.
pub fn read_verified(
    headers: &HeaderMap,
    secrets: &WebhookSecrets,
    body: &[u8],
) -> Result<Option<Push>, String> {
    if let Some(sender) = Sender::of(headers) {
        match sender.check_head(headers, secrets)? {
            Proof::Signature(signature) if !signature.signs(body) => {
                return Err("the signature does not match the body".to_owned());
            }
            Proof::Signature(_) | Proof::Given | Proof::NotAsked => {}
        }
    }
    read_payload(headers, body)
}

/// Parses a body whose sender is verified.
pub(super) fn read(sender: Sender, event: &str, body: &[u8]) -> Result<Event, String> {
    match requests::read(sender, event, body)? {
        Report::NotAboutRequests => {}
        Report::Nothing => return Ok(Event::Other),
        Report::Changed(place) => {
            return Ok(Event::Push(Push { pull_requests: Some(place), ..Push::default() }));
        }
    }
    let is_push = match sender {
        Sender::GitHub | Sender::Gogs | Sender::Generic => event == "push",
        Sender::GitLab => matches!(event, "Push Hook" | "Tag Push Hook" | "System Hook"),
        Sender::BitbucketCloud => event == "repo:push",
        Sender::BitbucketServer => event == "repo:refs_changed",
        Sender::AzureDevOps => true,
    };
    if !is_push {
        return Ok(Event::Other);
    }
    let push = match sender {
        Sender::GitHub | Sender::Gogs => {
            let body: RefPush = parse(body)?;
            let RefRepository { html_url, clone_url, default_branch } = &body.repository.0;
            body.push([html_url, clone_url], default_branch)
        }
        Sender::GitLab => {
            let body: RefPush = parse(body)?;
            let kind = body.object_kind.get().or_else(|| body.event_name.get());
            if !matches!(kind, Some("push" | "tag_push")) {
                return Ok(Event::Other);
            }
            let GitLabProject { web_url, git_http_url, default_branch } = &body.project.0;
            body.push([web_url, git_http_url], default_branch)
        }
        Sender::BitbucketCloud => parse::<BitbucketCloudPush>(body)?.push(),
        Sender::BitbucketServer => parse::<BitbucketServerPush>(body)?.push(),
        Sender::AzureDevOps => parse::<AzurePush>(body)?.push(),
        Sender::Generic => parse::<GenericPush>(body)?.push(),
    };
    if push.repositories.is_empty() {
        return Err("the body names no repository".to_owned());
    }
    Ok(Event::Push(push))
}

/// GitHub, Gogs, Gitea and GitLab: one ref, and commits with their files.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RefPush {
    #[serde(rename = "ref")]
    reference: Text,
    before: Text,
    after: Text,
    forced: Flag,
    object_kind: Text,
    event_name: Text,
    total_commits_count: Number,
    total_commits: Number,
    repository: Maybe<RefRepository>,
    project: Maybe<GitLabProject>,
    commits: List<Maybe<Commit>, MAX_COMMITS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RefRepository {
    html_url: Text,
    clone_url: Text,
    default_branch: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GitLabProject {
    web_url: Text,
    git_http_url: Text,
    default_branch: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Commit {
    added: List<Text, MAX_FILES>,
    modified: List<Text, MAX_FILES>,
    removed: List<Text, MAX_FILES>,
}

impl Commit {
    fn lists(&self) -> [&List<Text, MAX_FILES>; 3] {
        [&self.added, &self.modified, &self.removed]
    }
}

impl RefPush {
    fn push(&self, addresses: [&Text; 2], default_branch: &Text) -> Push {
        let reference = self.reference.get().unwrap_or_default();
        let revision = short_name(reference);
        let is_tag = reference.starts_with("refs/tags/");
        Push {
            repositories: addresses.into_iter().filter_map(Text::to_owned_text).collect(),
            touches_default: !is_tag && default_branch.get() == Some(revision),
            revisions: if revision.is_empty() { Vec::new() } else { vec![revision.to_owned()] },
            changed_files: self.changed_files(),
            pull_requests: None,
        }
    }

    /// Empty if the list of commits does not show all changed files: each server truncates it at some number, and a push
    /// may create, delete or rewrite a branch.
    fn changed_files(&self) -> Vec<String> {
        let n_commits = self.commits.n_all();
        let announced = self.total_commits_count.0.or(self.total_commits.0);
        let is_new = [&self.before, &self.after]
            .into_iter()
            .any(|hash| hash.get().is_some_and(|hash| hash.chars().all(|digit| digit == '0')));
        let counted =
            announced.is_none_or(|announced| u64::try_from(n_commits).is_ok_and(|n| n == announced));
        let is_whole = counted && n_commits < MAX_COMMITS && !is_new && !self.forced.0;
        let lists = || self.commits.items().iter().flat_map(|commit| commit.0.lists());
        let n_files: usize = lists().map(List::n_all).sum();
        if !is_whole || n_files > MAX_FILES_OF_PUSH || lists().any(List::is_cut) {
            return Vec::new();
        }
        lists().flat_map(List::items).filter_map(Text::to_owned_text).collect()
    }
}

/// Bitbucket Cloud names neither the default branch nor files.
#[derive(Default, Deserialize)]
#[serde(default)]
struct BitbucketCloudPush {
    repository: Maybe<BitbucketRepository>,
    push: Maybe<BitbucketChanges>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BitbucketRepository {
    links: Maybe<BitbucketLinks>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BitbucketLinks {
    html: Maybe<Link>,
    clone: List<Maybe<Link>, MAX_ADDRESSES>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Link {
    href: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BitbucketChanges {
    changes: List<Maybe<BitbucketChange>, MAX_REFS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BitbucketChange {
    new: Maybe<Named>,
    old: Maybe<Named>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: Text,
}

impl BitbucketCloudPush {
    fn push(&self) -> Push {
        let changes = self.push.0.changes.items().iter();
        let names = changes.flat_map(|change| [&change.0.new.0.name, &change.0.old.0.name]);
        let mut revisions: Vec<String> = names.filter_map(Text::to_owned_text).collect();
        revisions.dedup();
        Push {
            repositories: self.repository.0.links.0.html.0.href.to_owned_text().into_iter().collect(),
            revisions,
            touches_default: true,
            ..Push::default()
        }
    }
}

/// Bitbucket Server names the addresses that can be cloned, by transport.
#[derive(Default, Deserialize)]
#[serde(default)]
struct BitbucketServerPush {
    repository: Maybe<BitbucketRepository>,
    changes: List<Maybe<ServerChange>, MAX_REFS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServerChange {
    #[serde(rename = "ref")]
    reference: Maybe<ServerRef>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServerRef {
    id: Text,
}

impl BitbucketServerPush {
    fn push(&self) -> Push {
        let clones = self.repository.0.links.0.clone.items().iter();
        let changes = self.changes.items().iter();
        Push {
            repositories: clones.filter_map(|link| link.0.href.to_owned_text()).collect(),
            revisions: changes
                .filter_map(|change| Some(short_name(change.0.reference.0.id.get()?).to_owned()))
                .collect(),
            touches_default: true,
            ..Push::default()
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AzurePush {
    resource: Maybe<AzureResource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AzureResource {
    ref_updates: List<Maybe<Named>, MAX_REFS>,
    repository: Maybe<AzureRepository>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AzureRepository {
    remote_url: Text,
    default_branch: Text,
}

impl AzurePush {
    fn push(&self) -> Push {
        let AzureResource { ref_updates, repository } = &self.resource.0;
        let names: Vec<&str> = ref_updates.items().iter().filter_map(|update| update.0.name.get()).collect();
        Push {
            repositories: repository.0.remote_url.to_owned_text().into_iter().collect(),
            touches_default: repository.0.default_branch.get().is_none_or(|default| names.contains(&default)),
            revisions: names.into_iter().map(|name| short_name(name).to_owned()).collect(),
            ..Push::default()
        }
    }
}

/// plumb's own: `{"repoURL": "…", "revision": "main", "changedFiles": ["…"]}`. Without a revision any may have
/// moved, and the default branch with it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GenericPush {
    #[serde(rename = "repoURL")]
    repo_url: Text,
    revision: Text,
    default_branch: Text,
    changed_files: List<Text, MAX_FILES_OF_PUSH>,
}

impl GenericPush {
    fn push(&self) -> Push {
        let revision = self.revision.get().map(short_name);
        let files = &self.changed_files;
        Push {
            repositories: self.repo_url.to_owned_text().into_iter().collect(),
            touches_default: self
                .default_branch
                .get()
                .is_none_or(|default| revision.is_none_or(|revision| revision == default)),
            revisions: revision.map(str::to_owned).into_iter().collect(),
            changed_files: if files.is_cut() {
                Vec::new()
            } else {
                files.items().iter().filter_map(Text::to_owned_text).collect()
            },
            pull_requests: None,
        }
    }
}
