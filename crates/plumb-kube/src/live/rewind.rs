//! Detects that the data of an API server went back in time: etcd was restored from an older backup.
//!
//! A watch keeps its position over every failure but 410. A restored API server accepts a position that it has not
//! reached, and reports nothing until it has passed it. The store would then show the past for good. A list is always
//! at least as new as everything that the server has told before, so a list that is older is the proof.

use plumb_core::object::GroupKind;

use super::record::Uid;

/// The resource versions that the server had told before it was asked. Zero: none, or versions that are not numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Of the list or the watch of the kind.
    pub(super) list: u64,
    /// Of the object that is read.
    pub(super) object: u64,
}

/// The resource versions of the server's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answered {
    /// Of the list.
    pub(super) list: u64,
    /// Of the object; `None` if it does not exist.
    pub(super) object: Option<u64>,
}

/// How the answer contradicts what the server had told before it was asked. `None` if it does not.
pub(super) fn contradiction(told: Told, answered: Answered) -> Option<String> {
    if answered.list != 0 && answered.list < told.list {
        return Some(format!(
            "it is at resource version {}, and had reported {} before",
            answered.list, told.list
        ));
    }
    // With etcd's `--bump-revision` the lists are newer than ever, and the objects older. An object that is missing may
    // have been deleted.
    match answered.object {
        Some(object) if object != 0 && object < told.object => {
            Some(format!("an object has resource version {object}, and had {} before", told.object))
        }
        Some(_) | None => None,
    }
}

/// The namespace that exists as long as its cluster.
pub(super) const OF_CLUSTER: &str = "kube-system";

/// Whether another cluster answers under the same address: the namespace that exists as long as its cluster is another one.
pub(super) fn other_cluster(told: &Uid, answered: Option<&Uid>) -> Option<String> {
    let is_other = answered.is_some_and(|answered| answered != told);
    is_other.then(|| format!("another cluster answers: its namespace {OF_CLUSTER} has another uid"))
}

/// True for the kinds of the API server itself and for those of the Kubernetes project, whose resource versions are those
/// of etcd. Aggregated API servers number as they like; only the store knows which of the other kinds are custom resources.
pub(super) fn is_numbered_by_etcd(kind: &GroupKind) -> bool {
    !kind.group.contains('.') || kind.group.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_older_answer_is_a_contradiction() {
        for (told, answered, expected) in [
            // (list, object) before, (list, object) now
            ((100, 90), (100, Some(90)), None),
            ((100, 90), (130, Some(120)), None),
            ((100, 90), (130, None), None),
            ((100, 90), (60, Some(50)), Some("60, and had reported 100")),
            ((100, 90), (60, None), Some("60, and had reported 100")),
            // The server has passed the last position, or numbers on from a higher one. The object has not.
            ((100, 90), (140, Some(50)), Some("50, and had 90")),
            // The object was written since the watch reported its last position.
            ((100, 120), (130, Some(120)), None),
            // Nothing was told before, or the versions are not numbers.
            ((0, 0), (60, Some(50)), None),
            ((100, 90), (0, Some(0)), None),
        ] {
            let (told, answered) =
                (Told { list: told.0, object: told.1 }, Answered { list: answered.0, object: answered.1 });
            let found = contradiction(told, answered);
            match expected {
                Some(part) => assert!(found.as_ref().is_some_and(|text| text.contains(part)), "{found:?}"),
                None => assert_eq!(found, None, "{told:?} {answered:?}"),
            }
        }
    }

    #[test]
    fn another_cluster_is_told_by_its_oldest_namespace() {
        let (one, two) = (Uid::new("1"), Uid::new("2"));
        assert_eq!((other_cluster(&one, Some(&one)), other_cluster(&one, None)), (None, None));
        assert!(other_cluster(&one, Some(&two)).is_some());
    }

    #[test]
    fn aggregated_servers_prove_nothing() {
        for (group, expected) in [
            ("", true),
            ("apps", true),
            ("rbac.authorization.k8s.io", true),
            ("packages.operators.coreos.com", false),
            ("projectcalico.org", false),
        ] {
            assert_eq!(is_numbered_by_etcd(&GroupKind::new(group, "Thing")), expected, "{group}");
        }
    }
}
