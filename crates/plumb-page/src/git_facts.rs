//! What Git has at one commit, as far as plans need it.

use std::collections::BTreeMap;

use plumb_core::object::{Manifest, ObjectKey};
use sha2::{Digest as _, Sha256};

/// The objects and hooks of an app at one commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GitFacts {
    /// The commit.
    pub revision: String,
    pub(crate) objects: BTreeMap<ObjectKey, GitObject>,
    pub(crate) hooks: Vec<GitHook>,
}

/// What plans need of one object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GitObject {
    pub(crate) wave: i64,
    /// It stays when its app goes.
    pub(crate) stays: bool,
    content: [u8; 8],
}

/// A hook.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GitHook {
    pub(crate) key: ObjectKey,
    /// Such as `PreSync`, or `PreSync,PostSync`.
    phases: String,
    pub(crate) wave: i64,
}

fn number(object: &Manifest, names: [&str; 2]) -> i64 {
    let text = names.into_iter().find_map(|name| object.annotation(name));
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// True if Git says that the object stays when its app is deleted.
fn stays(object: &Manifest) -> bool {
    let options = object.annotation("argocd.argoproj.io/sync-options").unwrap_or_default();
    let keeps = options.split(',').any(|option| option.trim() == "Delete=false");
    keeps || object.annotation("helm.sh/resource-policy") == Some("keep")
}

const WAVES: [&str; 2] = ["argocd.argoproj.io/sync-wave", "helm.sh/hook-weight"];

/// Helm's names of phases as Argo CD names them.
fn phase(name: &str) -> &str {
    match name.trim() {
        "crd-install" | "pre-install" | "pre-upgrade" => "PreSync",
        "post-install" | "post-upgrade" => "PostSync",
        "post-delete" => "PostDelete",
        other => other,
    }
}

impl GitHook {
    fn of(object: &Manifest) -> Option<Self> {
        let text = ["argocd.argoproj.io/hook", "helm.sh/hook"]
            .into_iter()
            .find_map(|name| object.annotation(name))?;
        let mut phases: Vec<&str> = text.split(',').map(phase).collect();
        phases.dedup();
        let name = object.name().or_else(|| object.generate_name()).unwrap_or_default();
        let namespace = object.namespace().map(str::to_owned);
        let key = ObjectKey::new(object.group(), object.kind(), namespace, name);
        Some(Self { key, phases: phases.join(","), wave: number(object, WAVES) })
    }

    pub(crate) fn runs_in(&self, phase: &str) -> bool {
        self.phases.split(',').any(|name| name == phase)
    }
}

impl GitFacts {
    /// The facts of rendered manifests.
    pub fn of<'m>(
        revision: &str,
        objects: impl Iterator<Item = (&'m ObjectKey, &'m Manifest)>,
        hooks: impl Iterator<Item = &'m Manifest>,
    ) -> Self {
        let object = |(key, object): (&ObjectKey, &Manifest)| {
            let digest = Sha256::digest(object.value().to_string().as_bytes());
            let mut content = [0; 8];
            content.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
            (key.clone(), GitObject { wave: number(object, WAVES), stays: stays(object), content })
        };
        let mut hooks: Vec<GitHook> = hooks.filter_map(GitHook::of).collect();
        hooks.sort_by(|a, b| (a.wave, &a.key).cmp(&(b.wave, &b.key)));
        Self { revision: revision.to_owned(), objects: objects.map(object).collect(), hooks }
    }

    /// The beginning of the commit.
    pub(crate) fn short(&self) -> &str {
        self.revision.get(..7).unwrap_or(&self.revision)
    }
}

/// What a sync starts from and goes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanSources {
    /// The commit that the app was compared with.
    pub base: Option<GitFacts>,
    /// The commit that is asked for, or that the app follows now.
    pub next: Option<GitFacts>,
    /// Why these are not known, for users.
    pub problem: Option<String>,
}

impl PlanSources {
    /// What the commit does to an object, if it is another one than the app was compared with.
    pub(crate) fn change(&self, key: &ObjectKey) -> Option<String> {
        let next = self.next.as_ref()?;
        let base = self.base.as_ref().filter(|base| base.revision != next.revision)?;
        let (before, after) = (base.objects.get(key), next.objects.get(key)?);
        match before {
            Some(before) if before.content == after.content => None,
            Some(_) => Some(format!("commit {} changes it", next.short())),
            None => Some(format!("commit {} adds it", next.short())),
        }
    }
}
