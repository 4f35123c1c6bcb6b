//! One health for a whole app.

use std::fmt::Write as _;

use super::{Health, HealthStatus};
use crate::object::ObjectKey;

/// How many objects the app's message names.
const N_CULPRITS: usize = 3;

/// One of an app's objects, as far as the app's health is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Member<'app> {
    /// Which object.
    pub key: &'app ObjectKey,
    /// How it counts for the app.
    pub role: Role,
    /// Is it in the cluster?
    pub is_live: bool,
    /// Its health, if it has any.
    pub health: Option<&'app Health>,
}

/// How an object counts for the health of its app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It counts.
    Counts,
    /// A hook or a `Skip` target: as if it were not there.
    Exempt,
    /// It is there, but cannot make the app worse: the app itself, managed by itself, or live with
    /// `argocd.argoproj.io/ignore-healthcheck: "true"`.
    Bystander,
}

/// The worst health among an app's objects, as Argo CD ranks them.
///
/// A missing object does not make the app `Missing` (that it is `OutOfSync` says so already) unless nothing of
/// the app is live; a child `Application` that is `Missing` or `Unknown` does not count either. The message
/// names the worst objects, which Argo CD leaves out.
pub fn aggregate<'app>(members: impl IntoIterator<Item = Member<'app>>) -> Health {
    let mut worst = HealthStatus::Healthy;
    let mut culprits: Vec<(&ObjectKey, &Health)> = Vec::new();
    let (mut n_members, mut n_live) = (0_usize, 0_usize);
    for member in members {
        match member.role {
            Role::Exempt => continue,
            Role::Counts | Role::Bystander => n_members += 1,
        }
        if !member.is_live {
            continue;
        }
        n_live += 1;
        let (Role::Counts, Some(health)) = (member.role, member.health) else { continue };
        let is_child_app = member.key.group == "argoproj.io" && member.key.kind == "Application";
        if is_child_app && matches!(health.status, HealthStatus::Missing | HealthStatus::Unknown) {
            continue;
        }
        if health.status > worst {
            worst = health.status;
            culprits.clear();
        }
        if health.status == worst && worst != HealthStatus::Healthy {
            culprits.push((member.key, health));
        }
    }
    if n_members > 0 && n_live == 0 {
        let noun = if n_members == 1 { "object is" } else { "objects are" };
        return Health::new(
            HealthStatus::Missing,
            format!("none of the app's {n_members} {noun} in the cluster"),
        );
    }
    Health::new(worst, name_culprits(&culprits))
}

fn name_culprits(culprits: &[(&ObjectKey, &Health)]) -> String {
    let mut message = culprits
        .iter()
        .take(N_CULPRITS)
        .map(|(key, health)| match health.message.as_str() {
            "" => key.to_string(),
            words => format!("{key}: {words}"),
        })
        .collect::<Vec<_>>()
        .join("; ");
    if culprits.len() > N_CULPRITS {
        let _ = write!(message, "; and {} more", culprits.len() - N_CULPRITS);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// One member a line: kind, what it is to the app, its health (`-`: none, `absent`: not in the cluster).
    fn check(members: &str, expected: &Expect) {
        let parsed: Vec<(ObjectKey, Role, bool, Option<Health>)> = members
            .lines()
            .map(|line| {
                let mut words = line.splitn(4, ' ');
                let mut word = || words.next().unwrap_or_default();
                let (kind, role, health, message) = (word(), word(), word(), word());
                let group = if kind == "Application" { "argoproj.io" } else { "" };
                let key = ObjectKey::new(group, kind, Some("shop".to_owned()), "web");
                let role = match role {
                    "counts" => Role::Counts,
                    "exempt" => Role::Exempt,
                    "bystander" => Role::Bystander,
                    other => panic!("no role: {other}"),
                };
                let judged = HealthStatus::from_word(health).map(|status| Health::new(status, message));
                (key, role, health != "absent", judged)
            })
            .collect();
        let members = parsed.iter().map(|(key, role, is_live, health)| Member {
            key,
            role: *role,
            is_live: *is_live,
            health: health.as_ref(),
        });
        expected.assert_eq(&aggregate(members).to_string());
    }

    #[test]
    fn the_worst_object_decides() {
        check("", &expect!["Healthy"]);
        check("Pod counts Healthy\nService counts -", &expect!["Healthy"]);
        check(
            "Pod counts Progressing slow\nJob counts Degraded broken\nPod counts Suspended",
            &expect!["Degraded: Job shop/web: broken"],
        );
        check("Pod counts Degraded\nPod counts Unknown what?", &expect!["Unknown: Pod shop/web: what?"]);
    }

    #[test]
    fn absence_counts_only_where_nothing_is_live() {
        check("Pod counts absent\nService counts -", &expect!["Healthy"]);
        check("Pod counts absent", &expect!["Missing: none of the app's 1 object is in the cluster"]);
        check(
            "Pod counts absent\nJob exempt Degraded x",
            &expect!["Missing: none of the app's 1 object is in the cluster"],
        );
        check("Pod exempt absent", &expect!["Healthy"]);
        check("Pod counts absent\nJob bystander Degraded x", &expect!["Healthy"]);
    }

    #[test]
    fn hooks_the_app_itself_and_lost_child_apps_do_not_count() {
        check("Job exempt Degraded x\nApplication bystander Degraded x", &expect!["Healthy"]);
        check("Application counts Unknown x\nApplication counts Missing x", &expect!["Healthy"]);
        check(
            "Application counts Degraded child",
            &expect!["Degraded: argoproj.io/Application shop/web: child"],
        );
    }

    #[test]
    fn three_culprits_are_named() {
        check(
            "Pod counts Degraded a\nPod counts Degraded b\nPod counts Degraded\nPod counts Degraded d",
            &expect!["Degraded: Pod shop/web: a; Pod shop/web: b; Pod shop/web; and 1 more"],
        );
    }
}
