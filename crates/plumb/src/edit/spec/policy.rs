//! Flags for the destination and the sync policy of an app.

use serde_json::{Value, json};

use crate::edit::json_path::{field, list, map, remove_empty, set};
use crate::error::CommandError;

/// Destination and sync policy of an app.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Destination and policy")]
pub(crate) struct PolicyFlags {
    /// URL of the destination cluster.
    #[arg(long, value_name = "URL")]
    pub(in crate::edit) dest_server: Option<String>,
    /// Name of the destination cluster.
    #[arg(long, value_name = "NAME", conflicts_with = "dest_server")]
    pub(in crate::edit) dest_name: Option<String>,
    /// Namespace for objects without one.
    #[arg(long, value_name = "NAMESPACE")]
    pub(in crate::edit) dest_namespace: Option<String>,
    /// Project of the app.
    #[arg(long, add = crate::complete::projects())]
    pub(crate) project: Option<String>,
    /// `none`: users start every sync; `automated`: plumb does.
    #[arg(long, value_parser = ["none", "manual", "automated", "auto", "automatic"])]
    pub(crate) sync_policy: Option<String>,
    /// Let automated syncs delete objects that were removed from Git.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(in crate::edit) auto_prune: Option<bool>,
    /// Revert changes that are made in the cluster.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(in crate::edit) self_heal: Option<bool>,
    /// Let automated syncs delete all objects of the app.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(in crate::edit) allow_empty: Option<bool>,
    /// Add a sync option such as `CreateNamespace=true`, or remove it with `!` in front.
    #[arg(long, value_name = "[!]OPTION")]
    pub(in crate::edit) sync_option: Vec<String>,
    /// How often to retry a failed sync.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(in crate::edit) sync_retry_limit: Option<i64>,
    /// Delay before the first retry, such as `5s`.
    #[arg(long, value_name = "DURATION")]
    pub(in crate::edit) sync_retry_backoff_duration: Option<String>,
    /// Longest delay between retries.
    #[arg(long, value_name = "DURATION")]
    pub(in crate::edit) sync_retry_backoff_max_duration: Option<String>,
    /// Factor by which the delay grows with each retry.
    #[arg(long, value_name = "N")]
    pub(in crate::edit) sync_retry_backoff_factor: Option<i64>,
    /// Resolve the revision again for each retry.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(in crate::edit) sync_retry_refresh: Option<bool>,
    /// How many past syncs to keep in the history.
    #[arg(long, value_name = "N")]
    pub(in crate::edit) revision_history_limit: Option<i64>,
}

impl PolicyFlags {
    /// True if none of these flags was given.
    pub(crate) fn is_empty(&self) -> bool {
        let mut probe = json!({"syncPolicy": {"automated": {}}});
        self.apply(&mut probe).is_ok()
            && probe == json!({"syncPolicy": {"automated": {}}})
            && self.sync_policy.is_none()
            // `!option` does not change a spec without that option.
            && self.sync_option.is_empty()
    }

    /// Writes the flags into a spec.
    pub(crate) fn apply(&self, spec: &mut Value) -> Result<(), CommandError> {
        self.apply_destination(spec);
        set(spec, "project", self.project.as_ref());
        set(spec, "revisionHistoryLimit", self.revision_history_limit.as_ref());
        let had_policy = spec.get("syncPolicy").is_some();
        let policy = field(spec, "syncPolicy");
        self.apply_automation(policy)?;
        self.apply_options(policy);
        self.apply_retry(policy);
        if !had_policy || self.sync_policy.is_some() || !self.sync_option.is_empty() {
            remove_empty(spec, "syncPolicy");
        }
        Ok(())
    }

    fn apply_destination(&self, spec: &mut Value) {
        if self.dest_server.is_none() && self.dest_name.is_none() && self.dest_namespace.is_none() {
            return;
        }
        let destination = field(spec, "destination");
        set(destination, "namespace", self.dest_namespace.as_ref());
        // A destination has either a server or a name.
        if self.dest_server.is_some() {
            set(destination, "server", self.dest_server.as_ref());
            map(destination).remove("name");
        }
        if self.dest_name.is_some() {
            set(destination, "name", self.dest_name.as_ref());
            map(destination).remove("server");
        }
    }

    fn apply_automation(&self, policy: &mut Value) -> Result<(), CommandError> {
        match self.sync_policy.as_deref() {
            Some("none" | "manual") => {
                map(policy).remove("automated");
            }
            Some(_) => {
                let automated = map(field(policy, "automated"));
                automated.remove("enabled");
            }
            None => {}
        }
        let flags = [
            ("--auto-prune", "prune", self.auto_prune),
            ("--self-heal", "selfHeal", self.self_heal),
            ("--allow-empty", "allowEmpty", self.allow_empty),
        ];
        for (flag, name, given) in flags {
            let Some(given) = given else { continue };
            match policy.get_mut("automated") {
                Some(automated) if automated.is_object() => *field(automated, name) = given.into(),
                _ => {
                    return Err(CommandError::usage(format!(
                        "{flag} needs automated sync, which the app does not have"
                    ))
                    .hint("add --sync-policy automated"));
                }
            }
        }
        Ok(())
    }

    fn apply_options(&self, policy: &mut Value) {
        for option in &self.sync_option {
            let options = list(field(policy, "syncOptions"));
            if let Some(removed) = option.strip_prefix('!') {
                options.retain(|known| known != removed);
            } else {
                // `Validate=false` replaces `Validate=true`.
                let name = option.split('=').next().unwrap_or(option);
                let is_same =
                    |known: &Value| known.as_str().is_some_and(|known| known.split('=').next() == Some(name));
                options.retain(|known| !is_same(known));
                options.push(option.clone().into());
            }
            remove_empty(policy, "syncOptions");
        }
    }

    fn apply_retry(&self, policy: &mut Value) {
        if self.sync_retry_limit == Some(0) {
            map(policy).remove("retry");
            return;
        }
        let backoff = [
            ("duration", self.sync_retry_backoff_duration.clone().map(Value::from)),
            ("maxDuration", self.sync_retry_backoff_max_duration.clone().map(Value::from)),
            ("factor", self.sync_retry_backoff_factor.map(Value::from)),
        ];
        if self.sync_retry_limit.is_none()
            && self.sync_retry_refresh.is_none()
            && backoff.iter().all(|(_, given)| given.is_none())
        {
            return;
        }
        let retry = field(policy, "retry");
        set(retry, "limit", self.sync_retry_limit.as_ref());
        set(retry, "refresh", self.sync_retry_refresh.as_ref());
        for (name, given) in backoff {
            set(field(retry, "backoff"), name, given.as_ref());
        }
        remove_empty(retry, "backoff");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(flags: &PolicyFlags, mut spec: Value) -> Value {
        flags.apply(&mut spec).unwrap();
        spec
    }

    #[test]
    fn the_policy_is_switched_off_and_on() {
        let none = PolicyFlags { sync_policy: Some("none".into()), ..PolicyFlags::default() };
        let on = json!({"syncPolicy": {"automated": {"prune": true}, "syncOptions": ["Validate=false"]}});
        assert_eq!(applied(&none, on), json!({"syncPolicy": {"syncOptions": ["Validate=false"]}}));
        assert_eq!(applied(&none, json!({"syncPolicy": {"automated": {}}})), json!({}));
        let auto = PolicyFlags { sync_policy: Some("automated".into()), ..PolicyFlags::default() };
        assert_eq!(applied(&auto, json!({})), json!({"syncPolicy": {"automated": {}}}));
        let off = json!({"syncPolicy": {"automated": {"enabled": false, "selfHeal": true}}});
        assert_eq!(applied(&auto, off), json!({"syncPolicy": {"automated": {"selfHeal": true}}}));
    }

    #[test]
    fn pruning_needs_automation() {
        let flags = PolicyFlags { auto_prune: Some(true), ..PolicyFlags::default() };
        assert!(flags.apply(&mut json!({})).is_err());
        let spec = applied(&flags, json!({"syncPolicy": {"automated": {}}}));
        assert_eq!(spec, json!({"syncPolicy": {"automated": {"prune": true}}}));
    }

    #[test]
    fn options_replace_their_namesakes_and_go() {
        let flags = |option: &str| PolicyFlags { sync_option: vec![option.into()], ..PolicyFlags::default() };
        let spec = json!({"syncPolicy": {"syncOptions": ["Validate=true", "Replace=true"]}});
        let changed = applied(&flags("Validate=false"), spec);
        assert_eq!(changed, json!({"syncPolicy": {"syncOptions": ["Replace=true", "Validate=false"]}}));
        let less = applied(&flags("!Replace=true"), changed);
        assert_eq!(less, json!({"syncPolicy": {"syncOptions": ["Validate=false"]}}));
        assert_eq!(applied(&flags("!Validate=false"), less), json!({}));
    }

    #[test]
    fn a_cluster_has_one_name() {
        let flags = PolicyFlags { dest_name: Some("eu".into()), ..PolicyFlags::default() };
        let spec = applied(&flags, json!({"destination": {"server": "https://x", "namespace": "a"}}));
        assert_eq!(spec, json!({"destination": {"name": "eu", "namespace": "a"}}));
    }

    #[test]
    fn nothing_given_changes_nothing() {
        assert!(PolicyFlags::default().is_empty());
        let gone = PolicyFlags { sync_option: vec!["!Replace=true".to_owned()], ..PolicyFlags::default() };
        assert!(!gone.is_empty());
        for spec in [json!({}), json!({"syncPolicy": {"retry": {"limit": 2}}})] {
            assert_eq!(applied(&PolicyFlags::default(), spec.clone()), spec);
        }
        let flags = PolicyFlags { sync_retry_backoff_factor: Some(3), ..PolicyFlags::default() };
        assert!(!flags.is_empty());
        assert_eq!(applied(&flags, json!({})), json!({"syncPolicy": {"retry": {"backoff": {"factor": 3}}}}));
    }
}
