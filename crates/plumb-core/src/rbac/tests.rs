//! Decisions over whole policies.

use serde_json::{Value, json};

use super::*;

const POLICY: &str = "
# teams
g, team-a, role:dev
p, role:dev, applications, sync, shop/*, allow
p, role:dev, applications, sync, shop/prod, deny
p, eve, applications, *, */*, deny
g, eve, role:admin
p, nogroup, applications, get, */*, allow
p, , applications, get, public/*, allow
";

fn rules(policy: &str, default_role: &str) -> AccessRules {
    let settings = AccessSettings {
        policy: policy.to_owned(),
        default_role: default_role.to_owned(),
        ..AccessSettings::default()
    };
    let mut rules = AccessRules::new(&settings).expect("a policy");
    rules.set_project(&ProjectRoles {
        project: "shop".to_owned(),
        roles: vec![ProjectRole {
            name: "ci".to_owned(),
            policies: vec![
                "p, proj:shop:ci, applications, sync, shop/*, allow".to_owned(),
                "g, mallory, role:admin".to_owned(),
                "p, mallory, applications, delete, shop/*, allow".to_owned(),
            ],
            groups: vec!["builders".to_owned()],
        }],
    });
    rules
}

fn caller(subject: &str, groups: &[&str]) -> Caller {
    let Value::Object(claims) = json!({"sub": subject, "groups": groups}) else { unreachable!("an object") };
    Caller::Claims(claims)
}

fn check(rules: &AccessRules, caller: &Caller, words: &str) -> bool {
    let words: Vec<&str> = words.split(' ').collect();
    rules.allows(caller, &Request { resource: words[0], action: words[1], object: words[2] })
}

#[test]
fn subjects_groups_and_roles_are_judged_one_by_one() {
    let rules = rules(POLICY, "");
    for (subject, groups, request, expected) in [
        ("admin", &[][..], "clusters delete https://a", true),
        ("admin", &[], "exec get shop/web", false),
        ("bob", &["team-a"], "applications sync shop/web", true),
        ("bob", &["team-a"], "applications sync shop/prod", false),
        ("bob", &["team-a", "admin"], "applications sync shop/prod", true),
        ("eve", &[], "applications sync shop/web", false),
        ("eve", &["team-a"], "applications sync shop/web", true),
        ("eve", &[], "clusters get x", true),
        // Lines on a group count only where a `g` line names it.
        ("bob", &["nogroup"], "applications get shop/web", false),
        ("nogroup", &[], "applications get shop/web", true),
        ("anyone", &[], "applications get public/a", true),
        ("bob", &["builders"], "applications sync shop/web", true),
        ("bob", &["builders"], "projects get shop", true),
        ("bob", &["builders"], "projects get other", false),
    ] {
        assert_eq!(
            check(&rules, &caller(subject, groups), request),
            expected,
            "{subject} {groups:?} {request}"
        );
    }
}

#[test]
fn a_token_of_a_project_ends_at_its_border() {
    let rules = rules(&format!("{POLICY}\np, proj:other:ci, applications, sync, */*, allow"), "");
    for (subject, request, expected) in [
        ("proj:shop:ci", "applications sync shop/web", true),
        ("proj:shop:ci", "applications delete shop/web", false),
        ("proj:other:ci", "applications sync shop/web", false),
        ("proj:shop:ci:x", "applications sync shop/web", false),
    ] {
        assert_eq!(check(&rules, &caller(subject, &[]), request), expected, "{subject} {request}");
    }
}

#[test]
fn lines_of_a_project_speak_for_its_roles_only() {
    let rules = rules("", "");
    assert!(!check(&rules, &caller("mallory", &[]), "applications delete shop/web"));
    assert!(!check(&rules, &caller("mallory", &[]), "applications get shop/web"));
}

#[test]
fn the_default_role_is_for_every_caller() {
    let rules = rules("p, eve, applications, get, */*, deny", "role:readonly");
    assert!(check(&rules, &Caller::Anonymous, "applications get a/b"));
    assert!(check(&rules, &caller("eve", &[]), "applications get a/b"));
    assert!(!check(&rules, &Caller::Anonymous, "applications sync a/b"));
}

#[test]
fn one_bad_line_is_named() {
    for (text, line, reason) in [
        ("p, a, b", 1, "6 fields"),
        ("\n\ng, a", 3, "3 fields"),
        ("x, a", 1, "begins with `x`"),
        ("p, \"a, b, c, d, allow", 1, "quote"),
    ] {
        let problem = Policy::parse(text, MatchMode::Glob).expect_err(text);
        assert_eq!(problem.line, line, "{text}");
        assert!(problem.reason.contains(reason), "{problem}");
    }
}

#[test]
fn a_chain_of_roles_has_an_end() {
    let chain = |links: usize| {
        let links: Vec<String> = (0..links).map(|n| format!("g, r{n}, r{}", n + 1)).collect();
        format!("{}\np, r{}, applications, get, */*, allow\ng, r3, r0", links.join("\n"), links.len())
    };
    for (links, expected) in [(1, true), (10, true), (11, false)] {
        let rules = rules(&chain(links), "");
        assert_eq!(check(&rules, &caller("r0", &[]), "applications get a/b"), expected, "{links}");
    }
}

/// The decision for one subject, written as the policy language describes it: line by line, in order.
fn described(policy: &str, subject: &str, request: &Request<'_>) -> bool {
    let lines: Vec<Vec<String>> =
        policy.lines().map(|line| line.split(", ").map(str::to_owned).collect()).collect();
    let leads_to = |role: &str| {
        let mut reached = vec![subject.to_owned()];
        for _ in 0..10 {
            let next: Vec<String> = lines
                .iter()
                .filter(|line| line[0] == "g" && reached.contains(&line[1]))
                .map(|line| line[2].clone())
                .collect();
            reached.extend(next);
        }
        reached.iter().any(|name| name == role)
    };
    let fits = |pattern: &str, word: &str| match pattern.split_once('*') {
        None => pattern == word,
        Some((start, end)) => word.starts_with(start) && word.ends_with(end),
    };
    let mut allowed = false;
    for line in lines.iter().filter(|line| line[0] == "p") {
        let applies = leads_to(&line[1])
            && fits(&line[2], request.resource)
            && fits(&line[3], request.action)
            && fits(&line[4], request.object);
        match line[5].as_str() {
            "deny" if applies => return false,
            "allow" if applies => allowed = true,
            _ => {}
        }
    }
    allowed
}

fn word(words: &'static [&'static str]) -> impl proptest::strategy::Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

fn line() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    const NAMES: &[&str] = &["ann", "bob", "role:a", "role:b", "role:c"];
    let permission = (
        word(NAMES),
        word(&["applications", "logs", "*", "app*"]),
        word(&["get", "sync", "*", "delete/*"]),
        word(&["a/x", "a/*", "*", "*/x", "b/*/x"]),
        word(&["allow", "allow", "deny", "maybe"]),
    );
    prop_oneof![
        permission.prop_map(|(name, resource, action, object, effect)| format!(
            "p, {name}, {resource}, {action}, {object}, {effect}"
        )),
        (word(NAMES), word(NAMES)).prop_map(|(member, role)| format!("g, {member}, {role}")),
    ]
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(1000))]

    #[test]
    fn the_index_decides_as_the_lines_in_order(
        lines in proptest::collection::vec(line(), 0..12),
        subject in word(&["ann", "bob", "eve"]),
        resource in word(&["applications", "logs", "clusters"]),
        action in word(&["get", "sync", "delete//Pod/ns/n"]),
        object in word(&["a/x", "a/y", "b/x", "b/n/x"]),
    ) {
        let policy = lines.join("\n");
        let request = Request { resource, action, object };
        let ours = rules(&policy, "").allows(&caller(subject, &[]), &request);
        proptest::prop_assert_eq!(ours, described(&policy, subject, &request), "{}", policy);
    }
}

#[test]
fn groups_are_the_claims_that_the_settings_name() {
    let scopes = vec!["roles".to_owned(), "email".to_owned()];
    let settings = AccessSettings { scopes, ..AccessSettings::default() };
    let rules = AccessRules::new(&settings).expect("a policy");
    let Value::Object(claims) = json!({"groups": ["a"], "roles": ["b", 1], "email": "c@d"}) else { return };
    assert_eq!(rules.groups(&Caller::Claims(claims)), ["b", "c@d"]);
    assert_eq!(rules.groups(&Caller::Anonymous), Vec::<String>::new());
}

/// The shortest of several batches of decisions: what else runs on the machine makes others longer.
#[expect(clippy::disallowed_methods, reason = "a test that measures needs a clock")]
fn shortest(rules: &AccessRules, caller: &Caller) -> std::time::Duration {
    let batch = || {
        let begun = std::time::Instant::now();
        for _ in 0..BATCH {
            assert!(check(rules, caller, "applications sync shop/web"));
        }
        begun.elapsed()
    };
    (0..20).map(|_| batch()).min().unwrap_or_default()
}

const BATCH: u32 = 200;

#[test]
fn lines_about_others_cost_a_decision_nothing() {
    let with_lines = |n: usize| {
        let others = (0..n)
            .map(|n| format!("p, role:r{n}, applications, sync, shop/*, allow\ng, team-{n}, role:r{n}\n"));
        rules(&format!("{POLICY}{}", others.collect::<String>()), "")
    };
    let bob = caller("bob", &["team-a"]);
    let (few, many) = (shortest(&with_lines(5), &bob), shortest(&with_lines(500), &bob));
    // Lines that are read one by one would make it about fifty times as long.
    assert!(many < few * 8, "{many:?} with a thousand lines, {few:?} with few");
}

/// The figure is that of an optimised build; others take many times as long.
#[test]
fn a_decision_over_a_thousand_lines_takes_microseconds() {
    let most = std::time::Duration::from_micros(if cfg!(debug_assertions) { 1_000 } else { 20 });
    let own = (0..1_000).map(|n| format!("p, role:dev, applications, sync, team-{n}/*, allow\n"));
    let of_others = (0..1_000).map(|n| format!("p, role:r{n}, applications, sync, */*, allow\n"));
    let mixed = (0..1_000).map(|n| {
        let resource = ["applications", "logs", "clusters", "repositories", "projects"][n % 5];
        format!("p, role:dev, {resource}, get, team-{n}/*, allow\n")
    });
    for lines in [own.collect::<String>(), of_others.collect(), mixed.collect()] {
        let rules = rules(&format!("{POLICY}g, bob, role:dev\n{lines}"), "role:dev-less");
        // The role is judged once, however many ways lead to it.
        let each = shortest(&rules, &caller("bob", &["team-a", "builders"])) / BATCH;
        assert!(each < most, "{each:?} for lines such as {:?}", lines.lines().next());
    }
}
