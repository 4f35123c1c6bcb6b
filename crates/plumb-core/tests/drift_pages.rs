//! The pages in `docs/drift`: one per class, and what each one says that plumb prints is what it prints.
//!
//! A page has blocks of code whose info string says what they are: `yaml git`, `yaml cluster`, `yaml crd`, `yaml render`
//! (the same files rendered again), `yaml dry-run` (what the API server would store), `yaml known` (what plumb knows
//! besides) and `text plumb`. `UPDATE=1 cargo test -p plumb-core --test drift_pages` writes the last one.

#![expect(clippy::expect_used, clippy::panic, reason = "a page that cannot be read fails the test")]
#![expect(clippy::disallowed_methods, reason = "the pages are files, and `UPDATE` writes them")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plumb_core::app::CompareOptions;
use plumb_core::desired::{DesiredObject, ObjectOptions};
use plumb_core::drift::{
    Answers, ApiFailure, Autoscaler, Claim, DriftClass, DryRun, Evidence, Extraneous, Facts, FailureCause,
    Finding, FinishedRun, HealRecord, LiveOwner, Mutator, Outcome, Previous, SecondRender, judge,
};
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{FieldPath, Manifest};
use plumb_core::schema::SchemaSet;
use plumb_core::yaml::{Limits, parse_documents};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/drift")
}

/// The content of the first block with this info string.
fn block<'page>(page: &'page str, info: &str) -> Option<&'page str> {
    let (_, after) = page.split_once(&format!("```{info}\n"))?;
    Some(after.split_once("```").map_or(after, |(content, _)| content))
}

fn object(page: &str, info: &str) -> Option<Manifest> {
    let documents = parse_documents(block(page, info)?, &Limits::default()).expect("YAML");
    documents.into_iter().next().map(|document| Manifest::new(document.value).expect("an object"))
}

/// What plumb knows besides the two objects.
struct Known(Value);

impl Known {
    fn of(page: &str) -> Self {
        let documents = parse_documents(block(page, "yaml known").unwrap_or("{}"), &Limits::default());
        Self(documents.expect("YAML").into_iter().next().map(|document| document.value).unwrap_or_default())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    fn owner(&self) -> LiveOwner {
        match self.text("trackedBy") {
            Some("nobody") => LiveOwner::Nobody,
            Some(app) => LiveOwner::App(app.to_owned()),
            None => LiveOwner::ThisApp,
        }
    }

    fn heals(&self) -> Vec<HealRecord> {
        let field = self.text("healed").map(FieldPath::from_pointer);
        let times = (0..5).map(|minute| format!("2026-04-16T22:5{minute}:00Z").parse().expect("a time"));
        field
            .map(|field| HealRecord { field, healed_at: times.collect(), stopped: true })
            .into_iter()
            .collect()
    }

    fn refusal(&self) -> Option<ApiFailure> {
        let field = self.text("refusedField").unwrap_or_default().to_owned();
        let message = self.text("refused")?.to_owned();
        let cause = FailureCause { reason: "FieldValueInvalid".to_owned(), message: message.clone(), field };
        Some(ApiFailure { code: 422, reason: "Invalid".to_owned(), message, causes: vec![cause] })
    }
}

fn findings(page: &str) -> Vec<Finding> {
    let (desired, live) = (object(page, "yaml git"), object(page, "yaml cluster"));
    let key = desired.as_ref().or(live.as_ref()).and_then(Manifest::key).expect("an object with a name");
    let desired = desired.map(|manifest| DesiredObject {
        key: key.clone(),
        options: ObjectOptions::parse(&manifest),
        manifest,
        origin: None,
    });
    let schemas = SchemaSet::default().with_crds(object(page, "yaml crd").iter());
    let known = Known::of(page);
    let (second, dry_run, refusal) =
        (object(page, "yaml render"), object(page, "yaml dry-run"), known.refusal());
    let names = |name: &str| known.text(name).map(str::to_owned);
    let autoscalers: Vec<Autoscaler> = names("autoscaler")
        .map(|name| Autoscaler { kind: "HorizontalPodAutoscaler".to_owned(), name, scales_to_zero: false })
        .into_iter()
        .collect();
    let mutators: Vec<Mutator> = names("policy")
        .map(|name| Mutator { kind: "MutatingAdmissionPolicy".to_owned(), name })
        .into_iter()
        .collect();
    let other = names("alsoIn");
    let claims: Vec<Claim<'_>> = other.iter().map(|app| Claim { app, manifest: None }).collect();
    let before = object(page, "yaml before");
    let heals = known.heals();
    let finished = known.0.get("finished").map(|_| FinishedRun {
        at: "2026-04-16T22:00:00Z".parse().ok(),
        succeeded: true,
        same_desired: true,
    });
    let evidence = Evidence {
        key: &key,
        desired: desired.as_ref(),
        live: live.as_ref(),
        schemas: &schemas,
        rules: &IgnoreRules::default(),
        options: CompareOptions::default(),
        facts: Facts {
            app: "shop",
            owner: known.owner(),
            previous: before.as_ref().map_or(Previous::Same, |before| Previous::Changed(Some(before))),
            extraneous: Extraneous { was_in_git: true, ..Extraneous::default() },
            claims: &claims,
            autoscalers: &autoscalers,
            mutators: &mutators,
            heals: &heals,
            finished,
            render_may_vary: second.is_some(),
            ..Facts::default()
        },
        answers: Answers {
            dry_run: Some(match (&dry_run, &refusal) {
                (Some(object), _) => DryRun::Object(object),
                (None, Some(refusal)) => DryRun::Refused(refusal),
                (None, None) => DryRun::Unavailable,
            }),
            second_render: Some(SecondRender::Object(second.as_ref())),
            live_at: Some(None),
        },
        now: "2026-04-16T23:00:00Z".parse().expect("a time"),
    };
    match judge(&evidence) {
        Outcome::Settled(verdict) => verdict.findings.to_vec(),
        Outcome::Ask(questions) => panic!("{questions:?}"),
    }
}

/// As `plumb drift APP` shows it.
fn described(finding: &Finding) -> String {
    let namespace =
        finding.key.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let mut text = format!("{} {} {namespace}{}", finding.class, finding.key.kind, finding.key.name);
    if !finding.fields.is_empty() {
        let fields: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
        text = format!("{text}: {}", fields.join(", "));
    }
    let actor = finding.actor.as_ref().map(|actor| format!("by {actor}"));
    let origin: Vec<String> =
        actor.into_iter().chain(finding.since.map(|since| format!("since {since}"))).collect();
    if !origin.is_empty() {
        text = format!("{text} ({})", origin.join(", "));
    }
    for line in &finding.evidence {
        text = format!("{text}\n    {line}");
    }
    let counts = if finding.counts { "it counts: OutOfSync" } else { "it does not count: Synced" };
    format!("{text}\n    rule: {}\n    {counts}\n    → {}\n", finding.rule, finding.fix.text)
}

#[test]
fn each_class_has_a_page_that_shows_what_plumb_prints() {
    let mut wrong = Vec::new();
    for class in DriftClass::ALL {
        let path = folder().join(format!("{}.md", class.name()));
        let page =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let found = findings(&page);
        assert!(found.iter().any(|finding| finding.class == class), "{class}: {found:#?}");
        let printed: String = found.iter().map(described).collect();
        let shown = block(&page, "text plumb").expect("what plumb prints");
        if shown == printed {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            let written = page.replacen(
                &format!("```text plumb\n{shown}```"),
                &format!("```text plumb\n{printed}```"),
                1,
            );
            std::fs::write(&path, written).expect("write the page");
        } else {
            wrong.push(format!("{class}: the page shows\n{shown}\nplumb prints\n{printed}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_is_of_a_class_and_in_the_index() {
    let index = std::fs::read_to_string(folder().join("README.md")).expect("the index");
    let classes: BTreeSet<String> =
        DriftClass::ALL.iter().map(|class| format!("{}.md", class.name())).collect();
    for entry in std::fs::read_dir(folder()).expect("the folder") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        assert!(name == "README.md" || classes.contains(&name), "{name} is the page of no class");
    }
    for name in &classes {
        assert!(index.contains(&format!("({name})")), "the index lacks {name}");
    }
}
