//! Orphans as text and as data.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Choice, Hold, Orphan, User, deletable};
use crate::health::in_words;
use crate::object::ObjectKey;

/// So many users of one orphan are named.
const MOST_USERS: usize = 5;

/// One paragraph per orphan, in the order in which they can go.
pub fn text(orphans: &[Orphan], now: Timestamp) -> String {
    let mut text = String::new();
    let free = deletable(orphans, &Choice::default());
    for (number, orphan) in orphans.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}. {}", number + 1, orphan.key);
        let _ = writeln!(text, "   {}", orphan.cause.words());
        let _ = writeln!(text, "   {}", usage(orphan, now));
        for user in orphan.users.iter().take(MOST_USERS) {
            let _ = writeln!(text, "     {}", user_line(user));
        }
        if orphan.users.len() > MOST_USERS {
            let _ = writeln!(text, "     and {} more", orphan.users.len() - MOST_USERS);
        }
        if let Some(why) = why_not(orphan, &free) {
            let _ = writeln!(text, "   not deleted: {why}");
        }
    }
    let n_free = free.len();
    let several = |n: usize| if n == 1 { "1 orphan".to_owned() } else { format!("{n} orphans") };
    if !orphans.is_empty() {
        text.push('\n');
    }
    let _ = write!(text, "{}, {n_free} can be deleted", several(orphans.len()));
    text
}

fn why_not(orphan: &Orphan, free: &BTreeSet<ObjectKey>) -> Option<String> {
    match &orphan.hold {
        Some(hold) => Some(hold_words(hold)),
        None if free.contains(&orphan.key) => None,
        None => Some("an orphan that is not deleted uses it".to_owned()),
    }
}

fn usage(orphan: &Orphan, now: Timestamp) -> String {
    let sign = &orphan.last_sign;
    let sign = match sign.at {
        Some(at) => format!("; last sign: {} {} ago", sign.what, in_words(now.duration_since(at))),
        None => String::new(),
    };
    let n_staying = orphan.staying_users().count();
    let used = match (orphan.users.len(), n_staying) {
        (0, _) => "nothing refers to it".to_owned(),
        (_, 0) => "only other orphans refer to it".to_owned(),
        (_, 1) => "1 object that stays refers to it".to_owned(),
        (_, n) => format!("{n} objects that stay refer to it"),
    };
    format!("{used}{sign}")
}

fn user_line(user: &User) -> String {
    let app = user.app.as_ref().map(|app| format!(", app {app}")).unwrap_or_default();
    let orphan = if user.orphan.is_some() { ", an orphan" } else { "" };
    let optional = if user.is_optional { ", optional" } else { "" };
    format!("{} {}{app}{orphan}{optional}", user.key, user.field)
}

fn hold_words(hold: &Hold) -> String {
    match hold {
        Hold::Used => "it is still used".to_owned(),
        Hold::Data(data) => format!("{data} would be lost; --with-data deletes it"),
        Hold::Never(why) => (*why).to_owned(),
        Hold::Unproven(data) => {
            let data = data.map(|data| format!("; {data} would be lost, --with-data permits that"));
            format!(
                "only its mark names the owner, which has never written it; delete it by its name if it is yours{}",
                data.unwrap_or_default()
            )
        }
        Hold::Kept => "its options keep it (Prune=false, Delete=false or helm.sh/resource-policy)".to_owned(),
    }
}

/// Everything, with stable names.
pub fn data(orphans: &[Orphan]) -> Value {
    let free = deletable(orphans, &Choice::default());
    let orphan = |orphan: &Orphan| {
        let users: Vec<Value> = orphan
            .users
            .iter()
            .map(|user| {
                json!({"group": user.key.group, "kind": user.key.kind, "namespace": user.key.namespace_or_empty(),
                    "name": user.key.name, "field": user.field.to_string(), "app": user.app,
                    "orphan": user.orphan.is_some(), "optional": user.is_optional})
            })
            .collect();
        json!({
            "group": orphan.key.group, "kind": orphan.key.kind,
            "namespace": orphan.key.namespace_or_empty(), "name": orphan.key.name,
            "cause": orphan.cause.words(),
            "users": users,
            "lastSign": orphan.last_sign.at.map(|at| json!({"at": at.to_string(), "what": orphan.last_sign.what})),
            "deletable": free.contains(&orphan.key),
            "whyNot": why_not(orphan, &free),
        })
    };
    json!({"orphans": orphans.iter().map(orphan).collect::<Vec<_>>()})
}
