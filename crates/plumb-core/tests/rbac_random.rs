//! Random policies and requests: the compiled rules decide like the plain text of the semantics, line by line.

use plumb_core::rbac::{AccessRules, AccessSettings, Caller, ProjectRole, ProjectRoles, Request};
use serde_json::{Map, json};

/// How many policies, and how many requests to each.
const POLICIES: u64 = 1_000;
const REQUESTS: u64 = 20;
/// Longest chain of roles.
const LONGEST_CHAIN: usize = 10;

/// A small generator of numbers: the same cases each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit.max(1)
    }

    fn pick<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words.get(self.below(words.len())).copied().unwrap_or_default()
    }
}

const SUBJECTS: [&str; 7] = ["ann", "bob", "devs", "ops", "role:a", "role:b", "role:c"];
const RESOURCES: [&str; 4] = ["applications", "projects", "clusters", "logs"];
const RESOURCE_PATTERNS: [&str; 4] = ["applications", "projects", "*", "app*"];
const ACTIONS: [&str; 5] =
    ["get", "sync", "delete", "delete/apps/Deployment/x/y", "action/apps/Deployment/restart"];
const ACTION_PATTERNS: [&str; 5] = ["get", "sync", "*", "delete/*", "action/apps/*"];
const OBJECTS: [&str; 5] = ["team/web", "team/ns/web", "other/web", "team", "https://example.com"];
const OBJECT_PATTERNS: [&str; 6] = ["*", "team/*", "team/web", "other/*", "team", "https://*"];
const EFFECTS: [&str; 4] = ["allow", "allow", "deny", "maybe"];

/// A line: `p` with five words, or `g` with two.
#[derive(Clone)]
enum Line {
    Permit([&'static str; 5]),
    Member([&'static str; 2]),
}

impl Line {
    fn random(numbers: &mut Numbers) -> Self {
        if numbers.below(4) == 0 {
            return Self::Member([numbers.pick(&SUBJECTS), numbers.pick(&SUBJECTS)]);
        }
        Self::Permit([
            numbers.pick(&SUBJECTS),
            numbers.pick(&RESOURCE_PATTERNS),
            numbers.pick(&ACTION_PATTERNS),
            numbers.pick(&OBJECT_PATTERNS),
            numbers.pick(&EFFECTS),
        ])
    }

    fn text(&self) -> String {
        match self {
            Self::Permit(words) => format!("p, {}\n", words.join(", ")),
            Self::Member(words) => format!("g, {}\n", words.join(", ")),
        }
    }
}

/// Patterns here have one star at most, at the end.
fn matches(pattern: &str, text: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == text, |start| text.starts_with(start))
}

/// True if a chain of memberships leads from a subject to a role.
fn reaches(lines: &[Line], from: &str, to: &str) -> bool {
    let mut known = vec![from.to_owned()];
    for _ in 0..LONGEST_CHAIN {
        let more: Vec<String> = lines
            .iter()
            .filter_map(|line| match line {
                Line::Member([member, role]) if known.iter().any(|name| name == member) => {
                    Some((*role).to_owned())
                }
                _ => None,
            })
            .filter(|role| !known.contains(role))
            .collect();
        known.extend(more);
    }
    known.iter().any(|name| name == to)
}

/// What the lines say about one subject: a denial ends it, an allowance is remembered.
fn says(lines: &[Line], subject: &str, request: &Request<'_>) -> bool {
    let mut is_allowed = false;
    for line in lines {
        let Line::Permit([role, resource, action, object, effect]) = line else { continue };
        let concerns = reaches(lines, subject, role)
            && matches(resource, request.resource)
            && matches(action, request.action)
            && matches(object, request.object);
        match (concerns, *effect) {
            (true, "deny") => return false,
            (true, "allow") => is_allowed = true,
            _ => {}
        }
    }
    is_allowed
}

/// The decision for a caller with a name and groups, without projects.
fn expected(
    lines: &[Line],
    default_role: &str,
    subject: &str,
    groups: &[&str],
    request: &Request<'_>,
) -> bool {
    let is_member =
        |group: &str| lines.iter().any(|line| matches!(line, Line::Member([first, _]) if *first == group));
    (!default_role.is_empty() && says(lines, default_role, request))
        || says(lines, subject, request)
        || groups.iter().any(|group| is_member(group) && says(lines, group, request))
}

#[test]
fn random_policies_decide_as_they_are_written() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut n_allowed = 0;
    for policy in 0..POLICIES {
        let lines: Vec<Line> = (0..=numbers.below(12)).map(|_| Line::random(&mut numbers)).collect();
        let text: String = lines.iter().map(Line::text).collect();
        let default_role = numbers.pick(&["", "", "role:a", "role:c"]);
        let settings = AccessSettings {
            policy: text.clone(),
            default_role: default_role.to_owned(),
            ..AccessSettings::default()
        };
        let Ok(rules) = AccessRules::new(&settings) else {
            panic!("policy {policy} cannot be read:\n{text}")
        };
        for _ in 0..REQUESTS {
            let request = Request {
                resource: numbers.pick(&RESOURCES),
                action: numbers.pick(&ACTIONS),
                object: numbers.pick(&OBJECTS),
            };
            let subject = numbers.pick(&["ann", "bob"]);
            let groups = [numbers.pick(&["devs", "ops"])];
            let claims =
                Map::from_iter([("sub".to_owned(), json!(subject)), ("groups".to_owned(), json!(groups))]);
            let decided = rules.allows(&Caller::Claims(claims), &request);
            let expected = expected(&lines, default_role, subject, &groups, &request);
            assert_eq!(
                decided, expected,
                "policy {policy}: {subject} {groups:?} {default_role:?} {request:?}\n{text}"
            );
            n_allowed += usize::from(decided);
        }
    }
    let n = usize::try_from(POLICIES * REQUESTS).unwrap_or_default();
    assert!(n_allowed > n / 50 && n_allowed < n / 50 * 49, "{n_allowed} of {n}: the cases tell nothing");
}

#[test]
fn a_role_of_a_project_reaches_nothing_outside() {
    let mut numbers = Numbers(42);
    for _ in 0..POLICIES {
        let object = numbers.pick(&["team/*", "team/web", "*", "other/*"]);
        let subject = numbers.pick(&["proj:team:dev", "role:admin", "proj:other:dev"]);
        let mut rules = match AccessRules::new(&AccessSettings::default()) {
            Ok(rules) => rules,
            Err(problem) => panic!("{problem}"),
        };
        rules.set_project(&ProjectRoles {
            project: "team".to_owned(),
            roles: vec![ProjectRole {
                name: "dev".to_owned(),
                policies: vec![format!("p, {subject}, applications, *, {object}, allow")],
                groups: vec!["devs".to_owned()],
            }],
        });
        let claims =
            Map::from_iter([("sub".to_owned(), json!("ann")), ("groups".to_owned(), json!(["devs"]))]);
        let request = Request { resource: "applications", action: "get", object: "other/web" };
        assert!(!rules.allows(&Caller::Claims(claims), &request), "{subject} {object}");
    }
}
