//! The part of an operation that `app sync` and `app rollback` both write.

use plumb_crd::Application;
use serde_json::{Value, json};

/// Sets the sync options of an operation to those of the spec: the sync itself does not read the spec.
pub(crate) fn set_options(sync: &mut Value, application: &Application, chosen: &[&str]) {
    let policy = application.spec.sync_policy.as_ref();
    // As in argocd, options on the command line replace all options of the spec.
    if !chosen.is_empty() {
        sync["syncOptions"] = json!(chosen);
    } else if let Some(options) = policy.map(|policy| &policy.sync_options).filter(|list| !list.is_empty()) {
        sync["syncOptions"] = json!(options);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: &Value, chosen: &[&str], wanted: &Value) {
        let application = Application::from_json(&json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd"},
            "spec": {"project": "default", "source": {"repoURL": "r"}, "destination": {}, "syncPolicy": policy},
        }))
        .unwrap();
        let mut sync = json!({});
        set_options(&mut sync, &application, chosen);
        assert_eq!(sync, *wanted);
    }

    #[test]
    fn a_sync_asks_for_the_options_of_the_spec_unless_some_are_given() {
        let policy = json!({"syncOptions": ["Prune=false", "CreateNamespace=true"]});
        check(&policy, &[], &json!({"syncOptions": ["Prune=false", "CreateNamespace=true"]}));
        check(&policy, &["Replace=true"], &json!({"syncOptions": ["Replace=true"]}));
        check(&json!({"retry": {"limit": 2}}), &[], &json!({}));
        check(&json!({}), &["Replace=true"], &json!({"syncOptions": ["Replace=true"]}));
    }
}
