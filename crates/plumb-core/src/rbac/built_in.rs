//! The two roles that every policy begins with, as in Argo CD.

use crate::rbac::policy::Line;

const READ: [&str; 10] = [
    "applications",
    "applicationsets",
    "certificates",
    "clusters",
    "repositories",
    "write-repositories",
    "projects",
    "accounts",
    "gpgkeys",
    "logs",
];

const WRITE: [(&str, &[&str]); 10] = [
    (
        "applications",
        &["create", "update", "update/*", "delete", "delete/*", "sync", "rollback", "override", "action/*"],
    ),
    ("applicationsets", &["get", "create", "update", "delete"]),
    ("certificates", &["create", "update", "delete"]),
    ("clusters", &["create", "update", "delete"]),
    ("repositories", &["create", "update", "delete"]),
    ("write-repositories", &["create", "update", "delete"]),
    ("projects", &["create", "update", "delete"]),
    ("accounts", &["update"]),
    ("gpgkeys", &["create", "delete"]),
    ("exec", &["create"]),
];

/// Applications, their sets, logs and terminals are named with their project.
fn objects_of(resource: &str) -> &'static str {
    match resource {
        "applications" | "applicationsets" | "logs" | "exec" => "*/*",
        _ => "*",
    }
}

/// The lines of `role:readonly` and `role:admin`, and the membership of the account `admin`.
pub(super) fn lines() -> impl Iterator<Item = Line> {
    let permission = |role: &str, resource: &str, action: &str| Line::Permission {
        subject: role.to_owned(),
        resource: resource.to_owned(),
        action: action.to_owned(),
        object: objects_of(resource).to_owned(),
        effect: "allow".to_owned(),
    };
    let link = |member: &str, role: &str| Line::Link { member: member.to_owned(), role: role.to_owned() };
    let read = READ.into_iter().map(move |resource| permission("role:readonly", resource, "get"));
    let write = WRITE.into_iter().flat_map(move |(resource, actions)| {
        actions.iter().map(move |action| permission("role:admin", resource, action))
    });
    read.chain(write).chain([link("role:admin", "role:readonly"), link("admin", "role:admin")])
}
