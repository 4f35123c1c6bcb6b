//! What must hold for any text where a user may write one: addresses, patterns, annotations, versions, times. Shared with
//! the fuzz target `texts`.

use std::net::IpAddr;

use plumb_core::app::{CompareOptions, Pause, PausedObjects};
use plumb_core::compare::Quantity;
use plumb_core::desired::{HookPhase, ObjectOptions};
use plumb_core::duration::parse_go_duration;
use plumb_core::glob::Glob;
use plumb_core::object::{FieldPath, Manifest};
use plumb_core::project::{CronSchedule, normalize_repo_url, shown_repo_url};
use plumb_core::source::{AddressPolicy, RepoAddress, RepoPath};
use plumb_core::text::{is_hidden, one_line, redact_text, visible_lines, without_logins};
use plumb_core::tracking::{TrackingSettings, tracked_by};
use plumb_core::version::{Constraint, Version};
use plumb_core::witness;
use serde_json::json;

/// No reader panics, and each keeps its promise.
pub(crate) fn any_text(text: &str) {
    address(text);
    patterns(text);
    annotations(text);
    paths(text);
    let _ = (parse_go_duration(text), Quantity::parse(text), Version::parse(text));
    if let (Some(constraint), Some(version)) = (Constraint::parse(text), Version::parse("1.2.3-rc.1")) {
        let _ = constraint.matches(&version);
    }
    if let Ok(schedule) = CronSchedule::parse(text) {
        let now = jiff::civil::date(2026, 2, 28).at(23, 59, 59, 0);
        assert!(schedule.next_after(now).is_none_or(|next| next > now), "{text:?}");
        assert!(schedule.last_before(now).is_none_or(|last| last <= now), "{text:?}");
    }
    assert!(!one_line(text).chars().any(|char| is_hidden(char) || char == '\n'), "{text:?}");
    assert!(
        !visible_lines(text).chars().any(|char| is_hidden(char) && !matches!(char, '\n' | '\t')),
        "{text:?}"
    );
    let _ = (redact_text(text), without_logins(text));
    let _ = witness::answer(text.as_bytes(), jiff::Timestamp::UNIX_EPOCH, |_, _| false);
}

/// An address that is accepted means the same host to every client, and no client of a cluster is sent to the cluster's
/// own machines.
fn address(text: &str) {
    let _ = (normalize_repo_url(text), shown_repo_url(text));
    let Ok(address) = RepoAddress::parse(text) else { return };
    let host = address.host().to_owned();
    assert!(host.is_ascii() && !host.contains(['@', '/', '\\', '?', '#', '%', ' ']), "{text:?}: {host:?}");
    assert!(!host.starts_with('-'), "{text:?}: a program would read {host:?} as an option");
    if let Ok(normal) = RepoAddress::parse(&address.normal()) {
        assert_eq!(normal.host(), host, "{text:?} and {:?}", address.normal());
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let Ok(ip) = bare.parse::<IpAddr>() else { return };
    let meant = match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(ip, IpAddr::V4),
    };
    let is_forbidden = match meant {
        IpAddr::V4(four) => four.is_loopback() || four.is_link_local() || four.is_unspecified(),
        IpAddr::V6(six) => six.is_loopback() || six.is_unspecified(),
    };
    let is_permitted = AddressPolicy::cluster([]).permits_host(&host, address.port()).is_ok();
    assert!(!(is_forbidden && is_permitted), "{text:?} leads to {ip}");
}

/// A pattern without special characters matches itself; matching ends soon for every pattern.
fn patterns(text: &str) {
    let candidates =
        [text, "https://git.example.com/a/b.git", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ""];
    for glob in [Glob::plain(text), Glob::url(text), Glob::path(text), Glob::regex_or_plain(text)]
        .into_iter()
        .flatten()
    {
        for candidate in candidates {
            let _ = glob.matches(candidate);
        }
    }
    let is_literal = text.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '.'));
    if is_literal && !text.is_empty() {
        assert!(Glob::plain(text).is_ok_and(|glob| glob.matches(text)), "{text:?}");
    }
}

fn annotations(text: &str) {
    let annotations = json!({
        "argocd.argoproj.io/sync-options": text,
        "argocd.argoproj.io/compare-options": text,
        "argocd.argoproj.io/hook": text,
        "argocd.argoproj.io/hook-delete-policy": text,
        "argocd.argoproj.io/sync-wave": text,
        "argocd.argoproj.io/tracking-id": text,
        "helm.sh/hook": text,
        "helm.sh/hook-weight": text,
        "helm.sh/resource-policy": text,
        "plumb.dev/last-writer": text,
        "kubectl.kubernetes.io/last-applied-configuration": text,
    });
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "x", "namespace": "n", "annotations": annotations, "labels": {"app.kubernetes.io/instance": text}}});
    let Ok(object) = Manifest::new(object) else { return };
    let options = ObjectOptions::parse(&object);
    assert_eq!(options.delete_policies.is_empty(), !options.is_hook, "{text:?}");
    let _ = (HookPhase::of(&object), witness::Note::on(&object), CompareOptions::parse(text));
    let _ = tracked_by(&object, "app", &TrackingSettings::default());
    let now = jiff::Timestamp::UNIX_EPOCH;
    assert!(!Pause::parse(text).written_at(None).holds_at(now) || text.contains("until"), "{text:?}");
    let _ = PausedObjects::parse(text).to_text();
}

/// A pointer is printed as it is read, and a path of a repository never leads out of it.
fn paths(text: &str) {
    let path = FieldPath::from_pointer(text);
    assert_eq!(FieldPath::from_pointer(&path.to_string()), path, "{text:?}");
    let _ = FieldPath::from_server(text).with_positions(&json!({"a": [{"name": "b"}]}));
    if let Ok(path) = RepoPath::parse(text) {
        assert!(
            path.components().all(|step| !matches!(step, "" | "." | "..") && !step.contains('/')),
            "{text:?}"
        );
    }
}
