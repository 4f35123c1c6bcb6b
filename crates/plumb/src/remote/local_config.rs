//! Argo CD's file with contexts, servers and tokens (`~/.config/argocd/config`). Fields that plumb does not know stay.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use plumb_core::yaml::{Limits, parse_documents};
use serde_json::{Value, json};

use crate::error::CommandError;

/// The file.
pub(crate) struct LocalConfig {
    path: PathBuf,
    value: Value,
}

/// How a server is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownServer {
    pub(crate) server: String,
    pub(crate) token: String,
    pub(crate) plaintext: bool,
    pub(crate) insecure: bool,
}

impl LocalConfig {
    /// Reads the file; one that does not exist is empty.
    pub(crate) fn read(path: &Path) -> Result<Self, CommandError> {
        let what = || format!("read {}", path.display());
        let value = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({}),
            Err(error) => return Err(CommandError::because(what(), error)),
            Ok(text) => {
                // The error of the parser could quote a token.
                let documents = parse_documents(&text, &Limits::default())
                    .map_err(|_| CommandError::new(format!("cannot {}: it is not YAML", what())))?;
                documents.into_iter().next().map(|document| document.value).unwrap_or_default()
            }
        };
        let value = if value.is_object() { value } else { json!({}) };
        Ok(Self { path: path.to_owned(), value })
    }

    /// Writes the file, which only its owner may read: it holds tokens.
    pub(crate) fn write(&self) -> Result<(), CommandError> {
        let failed =
            |error: std::io::Error| CommandError::because(format!("write {}", self.path.display()), error);
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        let next = self.path.with_extension("new");
        let _ = std::fs::remove_file(&next);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&next)
            .map_err(failed)?;
        file.write_all(plumb_crd::yaml::to_yaml(&self.value).as_bytes()).map_err(failed)?;
        std::fs::rename(&next, &self.path).map_err(failed)
    }

    fn list(&self, field: &str) -> impl Iterator<Item = &Value> {
        self.value[field].as_array().into_iter().flatten()
    }

    fn named(&self, list: &str, field: &str, name: &str) -> Option<&Value> {
        self.list(list).find(|item| item[field].as_str() == Some(name))
    }

    /// The name of the current context.
    pub(crate) fn current(&self) -> &str {
        self.value["current-context"].as_str().unwrap_or_default()
    }

    /// True if the current context names a server. `argocd login --core` notes one that is none.
    pub(super) fn is_logged_in(&self) -> bool {
        let context = self.named("contexts", "name", self.current());
        let server = context.and_then(|context| context["server"].as_str()).unwrap_or_default();
        let is_core = self.named("servers", "server", server).is_some_and(|known| known["core"] == true);
        !server.is_empty() && !is_core
    }

    /// Name and server of all contexts.
    pub(crate) fn contexts(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.list("contexts").map(|context| (text(&context["name"]), text(&context["server"]))).collect()
    }

    /// The server of a context.
    pub(crate) fn server(&self, context: &str) -> Option<KnownServer> {
        let context = self.named("contexts", "name", context)?;
        let server = context["server"].as_str()?;
        let known = self.named("servers", "server", server);
        let user = context["user"].as_str().and_then(|user| self.named("users", "name", user));
        let flag = |name: &str| known.is_some_and(|known| known[name] == true);
        let token = user.and_then(|user| user["auth-token"].as_str()).unwrap_or_default();
        Some(KnownServer {
            server: server.to_owned(),
            token: token.to_owned(),
            plaintext: flag("plain-text"),
            insecure: flag("insecure"),
        })
    }

    fn put(&mut self, list: &str, field: &str, item: Value) {
        if !self.value[list].is_array() {
            self.value[list] = json!([]);
        }
        let Some(items) = self.value[list].as_array_mut() else { return };
        match items.iter_mut().find(|known| known[field] == item[field]) {
            None => items.push(item),
            Some(known) => {
                for (name, value) in item.as_object().into_iter().flatten() {
                    known[name] = value.clone();
                }
            }
        }
    }

    /// Notes a login, and makes its context the current one.
    pub(crate) fn log_in(&mut self, context: &str, server: &KnownServer) {
        let name = &server.server;
        self.put(
            "servers",
            "server",
            json!({"server": name, "plain-text": server.plaintext, "insecure": server.insecure}),
        );
        self.put("users", "name", json!({"name": context, "auth-token": server.token}));
        self.put("contexts", "name", json!({"name": context, "server": name, "user": context}));
        self.value["current-context"] = json!(context);
    }

    /// Removes the token of a context. Returns false if there is no such context.
    pub(crate) fn log_out(&mut self, context: &str) -> bool {
        let Some(user) = self.named("contexts", "name", context).and_then(|context| context["user"].as_str())
        else {
            return false;
        };
        let user = user.to_owned();
        for known in self.value["users"].as_array_mut().into_iter().flatten() {
            if known["name"].as_str() == Some(&user)
                && let Some(fields) = known.as_object_mut()
            {
                fields.remove("auth-token");
                fields.remove("refresh-token");
            }
        }
        true
    }

    /// Makes a context the current one. Returns false if there is none of this name.
    pub(crate) fn switch(&mut self, context: &str) -> bool {
        let exists = self.named("contexts", "name", context).is_some();
        if exists {
            self.value["current-context"] = json!(context);
        }
        exists
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_kept_and_forgotten() {
        let place = std::env::temp_dir().join(format!("plumb-config-{}", std::process::id()));
        let path = place.join("config");
        let mut config = LocalConfig::read(&path).unwrap();
        assert!(config.contexts().is_empty());
        let server = KnownServer {
            server: "a:443".to_owned(),
            token: "t".to_owned(),
            plaintext: true,
            insecure: false,
        };
        config.value["prompts-enabled"] = json!(true);
        config.log_in("a:443", &server);
        config.write().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let mut config = LocalConfig::read(&path).unwrap();
        assert_eq!(config.server(config.current()), Some(server));
        assert_eq!(config.value["prompts-enabled"], true, "what plumb does not know stays");
        assert!(config.log_out("a:443") && !config.log_out("b"));
        assert_eq!(config.server("a:443").map(|server| server.token), Some(String::new()));
        assert!(config.switch("a:443") && !config.switch("b"));
        std::fs::remove_dir_all(place).unwrap();
    }
}
