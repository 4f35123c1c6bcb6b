//! Every sync option, at the app and at the object: what it changes in a plan, and that nothing else does.

use std::fmt::Write as _;

use super::fixture::Fixture;
use crate::plan::{Action, Plan};

/// One option in a world where it matters.
struct OptionCase {
    option: &'static str,
    at_app: bool,
    at_object: bool,
    /// `APP` and `OBJECT` are where the option goes.
    facts: &'static str,
    without: &'static str,
    with: &'static str,
}

const CASES: [OptionCase; 16] = [
    OptionCase {
        option: "Prune=false",
        at_app: true,
        at_object: true,
        facts: "sync prune APP\nlive ConfigMap old OBJECT",
        without: "prune ConfigMap prod/old (removed from Git)",
        with: "skip ConfigMap prod/old (removed from Git, ignored (no prune))",
    },
    OptionCase {
        option: "Prune=confirm",
        at_app: true,
        at_object: true,
        facts: "sync prune APP\nlive ConfigMap old OBJECT",
        without: "prune ConfigMap prod/old (removed from Git)",
        with: "prune ConfigMap prod/old (removed from Git, waits for confirmation: Prune=confirm)",
    },
    OptionCase {
        option: "PruneLast=true",
        at_app: true,
        at_object: true,
        facts: "sync prune APP\nlive ConfigMap old OBJECT\nboth ConfigMap kept wave=2",
        without: "Sync 0: prune",
        with: "Sync 3: prune",
    },
    OptionCase {
        option: "PrunePropagationPolicy=background",
        at_app: true,
        at_object: false,
        facts: "sync prune APP\nlive ConfigMap old OBJECT",
        without: "propagation Foreground",
        with: "propagation Background",
    },
    OptionCase {
        option: "PrunePropagationPolicy=orphan",
        at_app: true,
        at_object: false,
        facts: "sync prune APP\nlive ConfigMap old OBJECT",
        without: "propagation Foreground",
        with: "propagation Orphan",
    },
    OptionCase {
        option: "Validate=false",
        at_app: true,
        at_object: true,
        facts: "sync APP\ngit ConfigMap new OBJECT",
        without: "new: strict",
        with: "new: lenient",
    },
    OptionCase {
        option: "Validate=false",
        at_app: true,
        at_object: true,
        facts: "sync APP\ngit Job first hook=PreSync OBJECT",
        without: "first: strict",
        with: "first: lenient",
    },
    OptionCase {
        option: "SkipDryRunOnMissingResource=true",
        at_app: true,
        at_object: true,
        facts: "sync APP\ngit Widget w OBJECT\nunserved Widget",
        without: "refused: one or more synchronization tasks are not valid",
        with: "apply example.com/Widget prod/w (missing)",
    },
    OptionCase {
        option: "Replace=true",
        at_app: true,
        at_object: true,
        facts: "sync APP\ndrift ConfigMap conf OBJECT",
        without: "apply ConfigMap prod/conf",
        with: "replace ConfigMap prod/conf",
    },
    OptionCase {
        option: "Force=true",
        at_app: false,
        at_object: true,
        facts: "sync APP\ndrift ConfigMap conf OBJECT",
        without: ": apply ConfigMap prod/conf",
        with: "apply or recreate ConfigMap prod/conf",
    },
    OptionCase {
        option: "ClientSideApplyMigration=false",
        at_app: true,
        at_object: false,
        facts: "sync APP\ndrift ConfigMap conf OBJECT",
        without: "conf: strict, takes fields over",
        with: "conf: strict\n",
    },
    OptionCase {
        option: "ApplyOutOfSyncOnly=true",
        at_app: true,
        at_object: false,
        facts: "sync APP\nboth ConfigMap same OBJECT\ndrift ConfigMap other",
        without: "keep ConfigMap prod/same",
        with: "Sync 0: apply ConfigMap prod/other (out of sync) -> -\npropagation",
    },
    OptionCase {
        option: "CreateNamespace=true",
        at_app: true,
        at_object: false,
        facts: "sync APP\nnamespace prod missing\ngit ConfigMap conf OBJECT",
        without: "Sync 0: apply ConfigMap prod/conf (missing) -> -\npropagation",
        with: "PreSync 0: apply Namespace prod (namespace missing)",
    },
    OptionCase {
        option: "FailOnSharedResource=true",
        at_app: true,
        at_object: false,
        facts: "sync APP\ndrift ConfigMap theirs owner=other:shop OBJECT",
        without: "skip ConfigMap prod/theirs",
        with: "refused: Shared resource found",
    },
    OptionCase {
        option: "RespectIgnoreDifferences=true",
        at_app: true,
        at_object: false,
        facts: "sync APP\ndrift ConfigMap conf OBJECT",
        without: "ignored fields as in Git",
        with: "ignored fields as they live",
    },
    // Everything is applied server-side: there is nothing to ask for, and nothing to switch off.
    OptionCase {
        option: "ServerSideApply=true",
        at_app: true,
        at_object: true,
        facts: "sync APP\ndrift ConfigMap conf OBJECT",
        without: "apply ConfigMap prod/conf (out of sync)",
        with: "apply ConfigMap prod/conf (out of sync)",
    },
];

/// The plan in words, with all that an option may change.
fn planned(case: &OptionCase, at_app: &str, at_object: &str) -> String {
    let word =
        |name: &str, text: &str| if text.is_empty() { String::new() } else { format!("{name}={text}") };
    let facts =
        case.facts.replace("APP", &word("option", at_app)).replace("OBJECT", &word("options", at_object));
    let fixture = Fixture::parse(&facts);
    let mut text = fixture.print();
    if let Ok(plan) = fixture.build() {
        text += &details(&plan);
    }
    text
}

fn details(plan: &Plan) -> String {
    let mut text = format!("propagation {:?}\n", plan.propagation);
    text += if plan.respect_ignore_differences {
        "ignored fields as they live\n"
    } else {
        "ignored fields as in Git\n"
    };
    for step in plan.steps() {
        let (is_strict, migrates) = match &step.action {
            Action::Apply { strict, migrate, .. } => (*strict, *migrate),
            Action::RunHook(hook) => (hook.strict, false),
            Action::CreateNamespace { .. } | Action::Unchanged | Action::Prune { .. } | Action::Skip(_) => {
                continue;
            }
        };
        let name = &step.id.key.name;
        let strict = if is_strict { "strict" } else { "lenient" };
        let takes_over = if migrates { ", takes fields over" } else { "" };
        writeln!(text, "{name}: {strict}{takes_over}").expect("a string takes all");
    }
    text
}

#[test]
fn every_option_does_what_it_says_where_it_may_stand_and_nothing_elsewhere() {
    for case in &CASES {
        let without = planned(case, "", "");
        assert!(without.contains(case.without), "without {}:\n{without}", case.option);
        for (is_heard, at_app, at_object) in
            [(case.at_app, case.option, ""), (case.at_object, "", case.option)]
        {
            let with = planned(case, at_app, at_object);
            let wanted = if is_heard { case.with } else { case.without };
            assert!(
                with.contains(wanted),
                "{} at app {at_app:?}, object {at_object:?}:\n{with}",
                case.option
            );
            let changes = is_heard && case.with != case.without;
            assert_eq!(with != without, changes, "{}:\n{with}", case.option);
        }
    }
}

#[test]
fn another_spelling_asks_for_nothing() {
    for case in &CASES {
        let (name, value) = case.option.split_once('=').expect("an option has a value");
        let capital = format!("{}{}", value[..1].to_uppercase(), &value[1..]);
        for spelling in [
            case.option.to_lowercase(),
            format!("{name}={capital}"),
            format!("{name}:{value}"),
            name.to_owned(),
        ] {
            let without = planned(case, "", "");
            assert_eq!(planned(case, &spelling, ""), without, "{spelling} at the app");
            assert_eq!(planned(case, "", &spelling), without, "{spelling} at the object");
        }
    }
}

#[test]
fn what_is_not_an_option_asks_for_nothing() {
    for case in &CASES {
        for text in
            ["Replace=false", "Force=false", "ServerSideApply=false", "Validate=true", "Nonsense=true"]
        {
            let without = planned(case, "", "");
            assert_eq!(planned(case, text, ""), without, "{text} at the app");
            assert_eq!(planned(case, "", text), without, "{text} at the object");
        }
    }
}

#[test]
fn an_annotation_of_the_live_object_deletes_nothing() {
    let print = |facts: &str| Fixture::parse(facts).print();
    let applied = print("drift ConfigMap conf");
    for options in ["Replace=true", "Force=true", "Replace=true,Force=true"] {
        assert_eq!(print(&format!("drift ConfigMap conf live-options={options}")), applied, "{options}");
        let kept = print(&format!("both PersistentVolumeClaim data live-options={options}"));
        assert!(!kept.contains("recreate") && !kept.contains("replace"), "{kept}");
    }
}

#[test]
fn an_option_of_the_live_object_counts_where_git_no_longer_tells() {
    let print = |facts: &str| Fixture::parse(facts).print();
    // What left Git has nothing but its live annotations.
    assert!(
        print("sync prune\nlive ConfigMap old options=PruneLast=true\nboth ConfigMap a")
            .contains("Sync 1: prune")
    );
    let strict = Fixture::parse("drift ConfigMap conf live-options=Validate=false").plan();
    assert!(details(&strict).contains("conf: strict"), "Git's word counts");
}
