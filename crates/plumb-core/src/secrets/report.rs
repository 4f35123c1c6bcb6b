//! What `plumb doctor --secrets` says: findings about Secrets, each with what to do. No values.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::commands::{seal_file, seal_live, seal_values};
use super::expiry::Expiry;
use super::external::{ExternalProblem, external_secret_for};
use super::plain_in_git::shown_keys;
use super::tokens::TokenHint;
use super::unknown::UnknownSecret;
use super::writers::HandEdit;
use crate::app::AppId;
use crate::object::ObjectKey;
use crate::text::one_line;

/// More pods of one Secret are counted.
const MOST_PODS: usize = 3;
/// Commands for more plain Secrets of one app are in the data only.
const MOST_PLAIN: usize = 5;

/// What is wrong with the Secrets of the apps of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretsReport {
    /// How many apps were looked at.
    pub n_apps: usize,
    /// Secrets that nothing in Git stands for.
    pub unknown: Vec<UnknownSecret>,
    /// Secrets that a controller makes and somebody edited.
    pub edited: Vec<EditedSecret>,
    /// What is wrong with objects that make Secrets.
    pub broken: Vec<ExternalProblem>,
    /// Certificates that end soon, or have ended.
    pub expiring: Vec<ExpiringCertificate>,
    /// Plain Secrets in Git.
    pub plain: Vec<PlainInGit>,
    /// Texts that look like credentials.
    pub tokens: Vec<(ObjectKey, TokenHint)>,
    /// What could not be read, and why.
    pub not_read: Vec<String>,
    /// Does the cluster have External Secrets?
    pub has_external_secrets: bool,
}

/// What an app has in plain text in Git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainInGit {
    /// Which app.
    pub app: AppId,
    /// What its condition says.
    pub message: String,
    /// The Secrets that its report names, each with whether the cluster has it.
    pub secrets: Vec<(ObjectKey, bool)>,
}

impl PlainInGit {
    /// What replaces each Secret.
    fn commands(&self) -> impl Iterator<Item = Vec<String>> {
        let of = |(key, is_live): &(ObjectKey, bool)| if *is_live { seal_live(key) } else { seal_file(key) };
        self.secrets.iter().map(of).filter(|commands| !commands.is_empty())
    }
}

/// A Secret that a controller makes and somebody edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedSecret {
    /// Which one.
    pub key: ObjectKey,
    /// What it is made from: kind and name.
    pub owner: (String, String),
    /// Who, when, which keys.
    pub edit: HandEdit,
}

impl EditedSecret {
    /// What a condition says.
    pub fn message(&self) -> String {
        let (kind, name) = &self.owner;
        let at = self.edit.writer.at.map(|at| format!(" at {at}")).unwrap_or_default();
        format!(
            "{} was edited by {}{at} ({}), and {kind} {name} makes it: change it there; deleting the Secret makes the \
             controller write it again",
            self.key,
            self.edit.writer,
            shown_keys(&self.edit.keys)
        )
    }
}

/// A certificate that ends soon, or has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiringCertificate {
    /// The Secret that has it.
    pub key: ObjectKey,
    /// Is it the one that new values are sealed with?
    pub is_sealing: bool,
    /// Its last moment.
    pub not_after: Timestamp,
    /// Has it ended?
    pub expiry: Expiry,
}

impl SecretsReport {
    /// Does a user have to act? What could not be read counts.
    pub fn is_bad(&self) -> bool {
        let is_over = |certificate: &ExpiringCertificate| certificate.expiry == Expiry::Over;
        !self.unknown.is_empty()
            || !self.edited.is_empty()
            || !self.broken.is_empty()
            || !self.not_read.is_empty()
            || self.expiring.iter().any(is_over)
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.unknown_text(&mut text);
        block(
            &mut text,
            "EDITED BY HAND, though a controller makes them from Git",
            &self.edited,
            edited_line,
        );
        block(&mut text, "CANNOT BE MADE as Git says", &self.broken, |problem| {
            format!("{}: {}", named(&problem.key), one_line(&problem.what))
        });
        block(&mut text, "CERTIFICATES that end", &self.expiring, expiring_line);
        block(
            &mut text,
            "IN PLAIN TEXT in Git (commit the SealedSecret in its place; the history keeps the values: change them)",
            &self.plain,
            plain_line,
        );
        self.tokens_text(&mut text);
        block(&mut text, "NOT LOOKED AT", &self.not_read, |what| one_line(what).into_owned());
        if text.is_empty() {
            let apps = if self.n_apps == 1 { "1 app".to_owned() } else { format!("{} apps", self.n_apps) };
            let _ = writeln!(text, "nothing to do about the Secrets of {apps}");
        }
        text.trim_end().to_owned()
    }

    fn unknown_text(&self, text: &mut String) {
        block(
            text,
            "SECRETS MISSING FROM GIT: used by apps, and not declared in Git in any form",
            &self.unknown,
            |secret| {
                let apps: Vec<String> = secret.apps.iter().map(ToString::to_string).collect();
                let mut line = format!("{} ({})\n    created", named(&secret.key), secret.keys.join(", "));
                if let Some(writer) = &secret.created_by {
                    let _ = write!(line, " by {writer}");
                }
                if let Some(at) = secret.created_at {
                    let _ = write!(line, " at {at}");
                }
                let _ = write!(line, "\n    used by {}{}", apps.join(", "), pods(&secret.pods));
                for command in seal_live(&secret.key) {
                    let _ = write!(line, "\n    $ {command}");
                }
                line
            },
        );
        if !self.unknown.is_empty() && self.has_external_secrets {
            text.push_str("  or as an ExternalSecret: `plumb doctor --secrets -o yaml` has each one ready to fill in\n\n");
        }
    }

    fn tokens_text(&self, text: &mut String) {
        let with_commands: Vec<_> = self.tokens.iter().zip(seal_values(&self.tokens)).collect();
        let title = "LOOKS LIKE A CREDENTIAL (never shown here; move it into a Secret: the commands read it from stdin)";
        block(text, title, &with_commands, |((key, hint), command)| {
            let command = command.as_ref().map(|command| format!("\n    $ {command}")).unwrap_or_default();
            format!("{}: {} looks like {}{command}", named(key), one_line(&hint.path), hint.looks_like)
        });
    }

    /// For programs.
    pub fn data(&self) -> Value {
        let unknown = self.unknown.iter().map(|secret| {
            json!({
                "namespace": secret.key.namespace, "name": secret.key.name, "keys": secret.keys,
                "type": secret.secret_type,
                "createdBy": secret.created_by.as_ref().map(ToString::to_string),
                "createdAt": secret.created_at.map(|at| at.to_string()),
                "apps": secret.apps.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "pods": secret.pods,
                "commands": seal_live(&secret.key),
                "externalSecret": external_secret_for(&secret.key, &secret.keys),
            })
        });
        let edited = self.edited.iter().map(|edited| {
            json!({
                "namespace": edited.key.namespace, "name": edited.key.name,
                "madeFrom": {"kind": edited.owner.0, "name": edited.owner.1}, "keys": edited.edit.keys,
                "by": edited.edit.writer.to_string(), "at": edited.edit.writer.at.map(|at| at.to_string()),
                "removed": edited.edit.is_removal,
            })
        });
        let broken = self.broken.iter().map(|problem| {
            json!({
                "kind": problem.key.kind, "namespace": problem.key.namespace, "name": problem.key.name,
                "message": problem.what,
            })
        });
        let expiring = self.expiring.iter().map(|one| {
            json!({
                "namespace": one.key.namespace, "name": one.key.name, "isSealing": one.is_sealing,
                "notAfter": one.not_after.to_string(), "isOver": one.expiry == Expiry::Over,
            })
        });
        let tokens = self.tokens.iter().zip(seal_values(&self.tokens)).map(|((key, hint), command)| {
            json!({
                "kind": key.kind, "namespace": key.namespace, "name": key.name, "path": hint.path,
                "looksLike": hint.looks_like, "commands": command.into_iter().collect::<Vec<_>>(),
            })
        });
        let plain = self.plain.iter().map(|plain| {
            json!({
                "app": plain.app.to_string(), "message": plain.message,
                "commands": plain.commands().flatten().collect::<Vec<_>>(),
            })
        });
        json!({
            "apps": self.n_apps,
            "unknown": unknown.collect::<Vec<_>>(),
            "edited": edited.collect::<Vec<_>>(),
            "broken": broken.collect::<Vec<_>>(),
            "expiring": expiring.collect::<Vec<_>>(),
            "plain": plain.collect::<Vec<_>>(),
            "tokens": tokens.collect::<Vec<_>>(),
            "notRead": self.not_read,
        })
    }
}

fn block<T>(text: &mut String, title: &str, items: &[T], line: impl Fn(&T) -> String) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(text, "{title}");
    for item in items {
        let _ = writeln!(text, "  {}", line(item));
    }
    text.push('\n');
}

fn edited_line(edited: &EditedSecret) -> String {
    let EditedSecret { key, owner: (kind, name), edit } = edited;
    let at = edit.writer.at.map(|at| format!(" at {at}")).unwrap_or_default();
    let verb = if edit.is_removal { "removed " } else { "" };
    format!(
        "{} ({}) {verb}by {}{at}\n    made from {kind} {name}: change it there; deleting the Secret makes the controller write it again",
        named(key),
        edit.keys.join(", "),
        edit.writer,
    )
}

fn plain_line(plain: &PlainInGit) -> String {
    let mut line = format!("{}: {}", plain.app, one_line(&plain.message));
    for command in plain.commands().take(MOST_PLAIN).flatten() {
        let _ = write!(line, "\n    $ {command}");
    }
    let more = plain.commands().count().saturating_sub(MOST_PLAIN);
    if more > 0 {
        let _ = write!(line, "\n    and {more} more: `plumb doctor --secrets -o yaml` has their commands");
    }
    line
}

fn expiring_line(one: &ExpiringCertificate) -> String {
    let verb = if one.expiry == Expiry::Over { "ended at" } else { "ends at" };
    let what = if one.is_sealing { "the newest sealing certificate" } else { "a TLS certificate" };
    format!("{}: {what} {verb} {}", named(&one.key), one.not_after)
}

fn named(key: &ObjectKey) -> String {
    format!("{} {}/{}", key.kind, key.namespace_or_empty(), key.name)
}

fn pods(pods: &[String]) -> String {
    if pods.is_empty() {
        return "; no pod uses it now".to_owned();
    }
    let named = pods.iter().take(MOST_PODS).cloned().collect::<Vec<_>>().join(", ");
    let more = pods.len().saturating_sub(MOST_PODS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("; pods {named}{more}")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::external::ExternalProblemKind;
    use super::super::writers::Writer;
    use super::*;
    use crate::object::FieldPath;

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".to_owned(), name: name.to_owned() }
    }

    fn report() -> SecretsReport {
        let key = |kind: &str, name: &str| ObjectKey::new("", kind, Some("shop".to_owned()), name);
        let at = |text: &str| text.parse::<Timestamp>().ok();
        let writer =
            |manager: &str, time: &str| Writer { manager: manager.to_owned(), user: None, at: at(time) };
        SecretsReport {
            n_apps: 2,
            unknown: vec![UnknownSecret {
                key: key("Secret", "by-hand"),
                keys: vec!["password".to_owned(), "user".to_owned()],
                secret_type: Some("Opaque".to_owned()),
                created_by: Some(writer("kubectl-create", "2026-01-02T03:04:05Z")),
                created_at: at("2026-01-02T03:04:05Z"),
                apps: [app("shop")].into(),
                pods: (0..5).map(|n| format!("web-{n}")).collect(),
            }],
            edited: vec![EditedSecret {
                key: key("Secret", "db"),
                owner: ("SealedSecret".to_owned(), "db".to_owned()),
                edit: HandEdit {
                    writer: writer("kubectl-edit", "2026-02-03T04:05:06Z"),
                    keys: vec!["password".to_owned()],
                    is_removal: false,
                },
            }],
            broken: vec![ExternalProblem {
                key: ObjectKey::new("external-secrets.io", "ExternalSecret", Some("shop".to_owned()), "mail"),
                field: FieldPath::root(),
                what: "SecretStore valt does not exist".to_owned(),
                kind: ExternalProblemKind::Malformed,
            }],
            expiring: vec![
                ExpiringCertificate {
                    key: key("Secret", "tls"),
                    is_sealing: false,
                    not_after: at("2026-05-01T00:00:00Z").unwrap(),
                    expiry: Expiry::Over,
                },
                ExpiringCertificate {
                    key: key("Secret", "sealed-secrets-key1"),
                    is_sealing: true,
                    not_after: at("2026-06-01T00:00:00Z").unwrap(),
                    expiry: Expiry::Soon,
                },
            ],
            plain: vec![PlainInGit {
                app: app("cart"),
                message: "2 Secrets are in plain text".to_owned(),
                secrets: vec![(key("Secret", "live"), true), (key("Secret", "refused"), false)],
            }],
            tokens: vec![(
                key("ConfigMap", "settings"),
                TokenHint { path: "data.config.yaml".to_owned(), looks_like: "a GitHub token" },
            )],
            not_read: vec!["Secrets of namespace cart: forbidden".to_owned()],
            has_external_secrets: true,
        }
    }

    #[test]
    fn every_finding_says_what_to_do() {
        expect![[r"
            SECRETS MISSING FROM GIT: used by apps, and not declared in Git in any form
              Secret shop/by-hand (password, user)
                created by kubectl-create at 2026-01-02T03:04:05Z
                used by argocd/shop; pods web-0, web-1, web-2 and 2 more
                $ kubectl -n shop get secret by-hand -o yaml | plumb seal -n shop > by-hand.sealed.yaml
                $ kubectl -n shop annotate secret by-hand sealedsecrets.bitnami.com/managed=true

              or as an ExternalSecret: `plumb doctor --secrets -o yaml` has each one ready to fill in

            EDITED BY HAND, though a controller makes them from Git
              Secret shop/db (password) by kubectl-edit at 2026-02-03T04:05:06Z
                made from SealedSecret db: change it there; deleting the Secret makes the controller write it again

            CANNOT BE MADE as Git says
              ExternalSecret shop/mail: SecretStore valt does not exist

            CERTIFICATES that end
              Secret shop/tls: a TLS certificate ended at 2026-05-01T00:00:00Z
              Secret shop/sealed-secrets-key1: the newest sealing certificate ends at 2026-06-01T00:00:00Z

            IN PLAIN TEXT in Git (commit the SealedSecret in its place; the history keeps the values: change them)
              argocd/cart: 2 Secrets are in plain text
                $ kubectl -n shop get secret live -o yaml | plumb seal -n shop > live.sealed.yaml
                $ kubectl -n shop annotate secret live sealedsecrets.bitnami.com/managed=true
                $ plumb seal -n shop FILE > refused.sealed.yaml

            LOOKS LIKE A CREDENTIAL (never shown here; move it into a Secret: the commands read it from stdin)
              ConfigMap shop/settings: data.config.yaml looks like a GitHub token
                $ plumb seal -n shop --name settings --from-file config.yaml=- > settings.sealed.yaml

            NOT LOOKED AT
              Secrets of namespace cart: forbidden"]].assert_eq(&report().text());
        assert!(report().is_bad());
        expect!["Secret shop/db was edited by kubectl-edit at 2026-02-03T04:05:06Z (password), and SealedSecret db makes it: change it there; deleting the Secret makes the controller write it again"]
            .assert_eq(&report().edited[0].message());
        let nothing = SecretsReport { n_apps: 2, ..SecretsReport::default() };
        assert_eq!(nothing.text(), "nothing to do about the Secrets of 2 apps");
        assert!(!nothing.is_bad());
    }

    #[test]
    fn programs_get_the_same() {
        let data = report().data();
        assert_eq!(data.pointer("/unknown/0/externalSecret/kind"), Some(&json!("ExternalSecret")));
        assert_eq!(data.pointer("/edited/0/by"), Some(&json!("kubectl-edit")));
        assert_eq!(data.pointer("/broken/0/name"), Some(&json!("mail")));
        assert_eq!(data.pointer("/expiring/1/isSealing"), Some(&json!(true)));
        assert_eq!(data.pointer("/tokens/0/looksLike"), Some(&json!("a GitHub token")));
        let file = json!("plumb seal -n shop FILE > refused.sealed.yaml");
        assert_eq!(data.pointer("/plain/0/commands/2"), Some(&file));
    }
}
