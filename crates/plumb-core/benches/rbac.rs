//! One decision on permissions, with a policy of a thousand lines.

use criterion::{Criterion, criterion_group, criterion_main};
use plumb_core::rbac::{AccessRules, AccessSettings, Caller, Request};
use serde_json::{Map, json};

/// A thousand lines: teams with a role each, and one role that has a fifth of all lines.
fn policy() -> String {
    let teams = (0..200).map(|team| {
        format!(
            "g, team-{team}, role:team-{team}\n\
             p, role:team-{team}, applications, sync, team-{team}/*, allow\n\
             p, role:team-{team}, applications, action/*, team-{team}/*/web, allow\n\
             p, role:all, applications, get, team-{team}/*, allow\n\
             p, role:team-{team}, logs, get, team-{team}/[a-f]*, allow\n"
        )
    });
    teams.collect()
}

fn decide(criterion: &mut Criterion) {
    let settings =
        AccessSettings { policy: format!("{}g, team-7, role:all\n", policy()), ..AccessSettings::default() };
    let Ok(rules) = AccessRules::new(&settings) else { return };
    let groups: Vec<String> = (0..20).map(|team| format!("team-{team}")).collect();
    let claims = Map::from_iter([("sub".to_owned(), json!("ann")), ("groups".to_owned(), json!(groups))]);
    let caller = Caller::Claims(claims);
    for (name, action, object) in [("allowed", "get", "team-199/web"), ("denied", "delete", "team-199/web")] {
        let request = Request { resource: "applications", action, object };
        criterion.bench_function(&format!("rbac of 1,000 lines, {name}"), |bencher| {
            bencher.iter(|| std::hint::black_box(rules.allows(&caller, &request)));
        });
    }
}

criterion_group!(benches, decide);
criterion_main!(benches);
