//! An object in Git and in the cluster, with a finding; and what is proposed, in words.

use serde_json::Value;

use crate::desired::Origin;
use crate::drift::{DriftClass, Finding, Fix, FixKind};
use crate::fix::*;
use crate::object::{FieldPath, Manifest};
use crate::yaml::{Limits, parse_documents};

/// Git's file, the live object, and the origin of the document.
pub(super) struct Scene {
    pub(super) file: &'static str,
    pub(super) desired: Manifest,
    pub(super) live: Manifest,
    pub(super) origin: Origin,
}

pub(super) fn scene(file: &'static str, live: Value) -> Scene {
    let document = parse_documents(file, &Limits::default()).expect("readable").remove(0);
    Scene {
        file,
        desired: Manifest::new(document.value).expect("an object"),
        live: Manifest::new(live).expect("an object"),
        origin: Origin { source: 0, file: "app/x.yaml".to_owned(), line: document.line, verbatim: true },
    }
}

/// A finding of this class; `patch` as JSON patch operations.
pub(super) fn finding(
    scene: &Scene,
    class: DriftClass,
    counts: bool,
    fields: &[&str],
    patch: &[Value],
) -> Finding {
    let kind = match class {
        DriftClass::PhantomDefault | DriftClass::RejectedField | DriftClass::ControllerOwned => {
            FixKind::EditGit
        }
        _ => FixKind::None,
    };
    let lines: Vec<String> = patch.iter().map(|operation| format!("- {operation}\n")).collect();
    let patch = (!patch.is_empty()).then(|| format!("# JSON patch of the document\n{}", lines.concat()));
    Finding {
        key: scene.live.key().expect("named"),
        class,
        rule: "a-rule".into(),
        fields: fields.iter().map(|field| FieldPath::from_pointer(field)).collect(),
        counts,
        actor: Some("the writer".to_owned()),
        since: None,
        evidence: Vec::new(),
        fix: Fix { kind, text: "what the finding says".to_owned(), patch },
    }
}

pub(super) fn subject<'facts>(scene: &'facts Scene, finding: &'facts Finding) -> Subject<'facts> {
    Subject {
        finding,
        desired: Some(&scene.desired),
        origin: Some(&scene.origin),
        live: Some(&scene.live),
        is_red_in_argo_cd: Some(true),
        keeps_live: false,
        keeper: None,
        kept: None,
        is_asked_for: false,
        is_alone: false,
        last_sync: LastSync::Unknown,
    }
}

/// The proposals, and the file after them.
pub(super) fn shown(scene: &Scene, proposals: &[Proposal]) -> String {
    proposals.iter().map(|proposal| shown_action(scene, &proposal.action)).collect::<Vec<String>>().concat()
}

pub(super) fn shown_action(scene: &Scene, action: &Action) -> String {
    match action {
        Action::Edit(change) => {
            let edit = edit_file(scene.file.as_bytes(), std::slice::from_ref(change));
            assert_eq!(edit.refused, []);
            format!("edit, because {}\n{}", change.why, String::from_utf8(edit.text).expect("UTF-8"))
        }
        Action::Ignore(entry) => format!("ignore {}, because {}\n", entry.value(), entry.why),
        Action::Compare(comparison) => {
            format!(
                "compare by dry runs, because {}\nelse instruct: {}\n",
                comparison.why, comparison.instruction
            )
        }
        Action::Instruct(what) => format!("instruct: {what}\n"),
        Action::Nothing(why) => format!("nothing: {why}\n"),
        Action::Through(change, otherwise) => {
            let operations: Vec<String> = change.operations.iter().map(ToString::to_string).collect();
            let otherwise = shown_action(scene, otherwise);
            format!("where the tool reads it: {}\nelse {otherwise}", operations.join("; "))
        }
        Action::Drop(change) => format!("drop, because {}\n", change.why),
    }
}
