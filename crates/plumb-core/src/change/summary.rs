//! The change in one sentence.

use std::collections::BTreeMap;

use super::{Outcome, RepositoryChange};

/// How many objects come, go and change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Created.
    pub n_added: usize,
    /// With changed fields.
    pub n_changed: usize,
    /// Deleted.
    pub n_deleted: usize,
    /// Of these, with data.
    pub n_with_data: usize,
    /// No longer in Git, and still in the cluster.
    pub n_left: usize,
    /// In another app now.
    pub n_moved: usize,
    /// Workloads whose pods are replaced, by kind.
    pub restarts: BTreeMap<String, usize>,
    /// Fields that the API server will refuse to change.
    pub n_refused: usize,
    /// Deleted and created again, because an option says so.
    pub n_recreated: usize,
}

impl Summary {
    /// Counts.
    pub fn of(change: &RepositoryChange) -> Self {
        let mut summary = Self::default();
        for object in &change.objects {
            match &object.outcome {
                Outcome::Added => summary.n_added += 1,
                Outcome::Deleted { data } => {
                    summary.n_deleted += 1;
                    summary.n_with_data += usize::from(data.is_some());
                }
                Outcome::Left { .. } => summary.n_left += 1,
                Outcome::Moved { .. } => summary.n_moved += 1,
                Outcome::Changed { restarts, refused, is_recreated, .. } => {
                    summary.n_changed += 1;
                    summary.n_refused += refused.len();
                    summary.n_recreated += usize::from(*is_recreated);
                    if *restarts {
                        *summary.restarts.entry(object.key.kind.clone()).or_default() += 1;
                    }
                }
            }
        }
        summary
    }

    /// One sentence. `subject` is what makes the change: "this merge".
    pub fn sentence(&self, subject: &str) -> String {
        let mut parts = Vec::new();
        if self.n_deleted > 0 {
            let data = match (self.n_with_data, self.n_deleted) {
                (0, _) => String::new(),
                (1, 1) => ", which holds data".to_owned(),
                (1, _) => ", 1 of them holds data".to_owned(),
                (n, _) => format!(", {n} of them hold data"),
            };
            parts.push(format!("deletes {}{data}", objects(self.n_deleted)));
        }
        if self.n_left > 0 {
            parts.push(format!("removes {} from Git, not from the cluster", objects(self.n_left)));
        }
        if self.n_added > 0 {
            parts.push(format!("adds {}", objects(self.n_added)));
        }
        if self.n_changed > 0 {
            parts.push(format!("changes {}", objects(self.n_changed)));
        }
        if self.n_moved > 0 {
            parts.push(format!("moves {} to another app", objects(self.n_moved)));
        }
        let verbs = if parts.is_empty() { "changes no object".to_owned() } else { parts.join(", ") };
        let mut sentence = format!("{subject} {verbs}");
        let restarts = self.restarts.iter().map(|(kind, n)| match n {
            1 => format!("1 {kind} restarts"),
            n => format!("{n} {kind}s restart"),
        });
        let refused = match self.n_refused {
            0 => None,
            1 => Some("1 immutable field will be refused".to_owned()),
            n => Some(format!("{n} immutable fields will be refused")),
        };
        let recreated = (self.n_recreated > 0).then(|| format!("{} recreated", are(self.n_recreated)));
        for part in restarts.chain(refused).chain(recreated) {
            sentence.push_str("; ");
            sentence.push_str(&part);
        }
        sentence
    }
}

fn objects(n: usize) -> String {
    if n == 1 { "1 object".to_owned() } else { format!("{n} objects") }
}

fn are(n: usize) -> String {
    if n == 1 { "1 object is".to_owned() } else { format!("{n} objects are") }
}
