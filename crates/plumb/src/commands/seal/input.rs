//! The Secrets to seal. Plain values are in memory only.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use plumb_core::secrets::{PlainSecret, Values, parse_env_file};
use plumb_core::yaml::{Limits, parse_documents_bytes};
use serde_json::Value;
use zeroize::Zeroizing;

use super::args::Args;
use crate::context::Context;
use crate::error::CommandError;

/// Largest input. The API server accepts a Secret of one megabyte.
const MAX_BYTES: u64 = 4 << 20;

/// Secrets whose values are overwritten when they are no longer needed.
pub(super) struct Secrets(pub(super) Vec<PlainSecret>);

impl Drop for Secrets {
    fn drop(&mut self) {
        for secret in &mut self.0 {
            secret.values.wipe(zeroize::Zeroize::zeroize);
        }
    }
}

/// What the command line names: values, or files with Secrets, or stdin.
pub(super) fn secrets(
    context: &Context,
    args: &Args,
    namespace: Option<&str>,
) -> Result<Secrets, CommandError> {
    let mut secrets = if args.has_values() {
        if !args.files.is_empty() {
            return Err(CommandError::usage("a file with a Secret and --from-… options exclude each other")
                .hint("--merge-into FILE adds values to a SealedSecret"));
        }
        let values = values(context, args)?;
        Secrets(vec![PlainSecret::of_values(args.name.as_deref().unwrap_or_default(), namespace, values)])
    } else {
        read_secrets(args)?
    };
    for secret in &mut secrets.0 {
        adjust(secret, args, namespace)?;
    }
    Ok(secrets)
}

/// Name, namespace, scope and type of the command line.
fn adjust(secret: &mut PlainSecret, args: &Args, namespace: Option<&str>) -> Result<(), CommandError> {
    let named =
        if secret.name.is_empty() { "the Secret".to_owned() } else { format!("Secret {}", secret.name) };
    if let Some(name) = &args.name {
        if !secret.name.is_empty() && secret.name != *name {
            return Err(CommandError::usage(format!("cannot seal {named}: --name is {name}")));
        }
        secret.name.clone_from(name);
    }
    match (namespace, &secret.namespace) {
        (Some(wanted), Some(own)) if wanted != own => {
            return Err(CommandError::usage(format!(
                "cannot seal {named}: it is in namespace {own}, and --namespace is {wanted}"
            ))
            .hint("a sealed value can only be opened in the namespace that it was sealed for"));
        }
        (Some(wanted), _) => secret.namespace = Some(wanted.to_owned()),
        (None, _) => {}
    }
    if let Some(scope) = args.scope {
        secret.scope = scope.scope();
    }
    if args.secret_type.is_some() {
        secret.secret_type.clone_from(&args.secret_type);
    }
    secret.check().map_err(|problem| CommandError::because(format!("seal {named}"), problem))
}

/// The values of --from-literal, --from-file and --from-env-file.
fn values(context: &Context, args: &Args) -> Result<Values, CommandError> {
    let mut values = Values::default();
    if !args.from_literal.is_empty() {
        context.out.note(
            "warning: values of --from-literal are visible in the list of processes and in the history of the shell; \
             prefer --from-file",
        );
    }
    let twice = |key: &str| CommandError::usage(format!("the key {key} is given twice"));
    for literal in &args.from_literal {
        // The message must not repeat the text: it may be the value.
        let (key, value) = literal
            .split_once('=')
            .ok_or_else(|| CommandError::usage("a --from-literal has no `=`; write KEY=VALUE"))?;
        if !values.set(&checked(key)?, value.as_bytes().to_vec()) {
            return Err(twice(key));
        }
    }
    for given in &args.from_file {
        let (key, file) = match given.split_once('=') {
            Some((key, file)) => (key.to_owned(), file),
            None => (file_name(given)?, given.as_str()),
        };
        if !values.set(&checked(&key)?, read(file)?.to_vec()) {
            return Err(twice(&key));
        }
    }
    for file in &args.from_env_file {
        let read = parse_env_file(&read(file)?)
            .map_err(|error| CommandError::because(format!("read {file}"), error))?;
        values.add(read).map_err(|key| twice(&key))?;
    }
    Ok(values)
}

fn checked(key: &str) -> Result<String, CommandError> {
    if Values::is_key(key) {
        return Ok(key.to_owned());
    }
    Err(CommandError::usage(format!("a Secret cannot have the key {key:?}"))
        .hint("keys have letters, digits, `-`, `_` and `.`"))
}

fn file_name(path: &str) -> Result<String, CommandError> {
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).filter(|_| path != "-");
    name.map(str::to_owned).ok_or_else(|| {
        CommandError::usage(format!("--from-file {path} has no file name for the key; write KEY={path}"))
    })
}

fn read_secrets(args: &Args) -> Result<Secrets, CommandError> {
    let stdin = ["-".to_owned()];
    let files = if args.files.is_empty() { &stdin[..] } else { &args.files };
    let mut secrets = Secrets(Vec::new());
    for file in files {
        let text = read(file)?;
        let shown = if file == "-" { "stdin" } else { file };
        let documents = parse_documents_bytes(&text, &Limits::default())
            .map_err(|error| CommandError::because(format!("read {shown}"), error))?;
        if documents.is_empty() {
            return Err(CommandError::new(format!("{shown} has no Secret")).hint(
                "`kubectl create secret generic NAME --from-file=KEY=FILE --dry-run=client -o yaml` prints one",
            ));
        }
        for document in documents {
            for object in objects(&document.value) {
                let secret = PlainSecret::read(object).map_err(|problem| {
                    CommandError::because(
                        format!("seal the object of {shown} at line {}", document.line),
                        problem,
                    )
                })?;
                secrets.0.push(secret);
            }
        }
    }
    if secrets.0.is_empty() {
        return Err(CommandError::new("the list has no Secret"));
    }
    Ok(secrets)
}

/// Does the text look like a Secret or another object, and not like a value?
pub(super) fn is_manifest(text: &[u8]) -> bool {
    let documents = parse_documents_bytes(text, &Limits::default()).unwrap_or_default();
    documents
        .iter()
        .any(|document| ["apiVersion", "kind"].iter().all(|field| document.value.get(*field).is_some()))
}

/// The objects of a document: several if it is a list, as `kubectl get secrets -o yaml` prints it.
fn objects(document: &Value) -> Vec<&Value> {
    let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default();
    match document.get("items").and_then(Value::as_array) {
        Some(items) if matches!(kind, "List" | "SecretList") => items.iter().collect(),
        _ => vec![document],
    }
}

/// The bytes of a file; `-` is stdin. They are overwritten after use.
pub(super) fn read(file: &str) -> Result<Zeroizing<Vec<u8>>, CommandError> {
    let shown = if file == "-" { "stdin" } else { file };
    let failed = |error: std::io::Error| CommandError::because(format!("read {shown}"), error);
    let mut bytes = Zeroizing::new(Vec::new());
    let limit = MAX_BYTES + 1;
    if file == "-" {
        if std::io::stdin().is_terminal() {
            // A user who forgot the input sees a command that does nothing.
            let _ = writeln!(std::io::stderr(), "reading from the terminal; end with Ctrl-D");
        }
        std::io::stdin().take(limit).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        std::fs::File::open(file).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CommandError::new(format!("cannot read {shown}: it has more than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}
