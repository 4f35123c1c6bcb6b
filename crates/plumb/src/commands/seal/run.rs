//! What `plumb seal` does.

use jiff::Timestamp;
use plumb_core::secrets::{PlainSecret, Values, sealed_secret};
use serde_json::Value;

use super::args::{Args, SealFormat};
use super::controller::{Controller, sealing_key};
use super::encrypt::{check_identity, encrypted};
use super::input::{self, Secrets};
use super::merge::Target;
use super::{files, re_encrypt, validate};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.fetch_cert {
        let controller = Controller::find(context, &args.controller).await?;
        context.out.print_data(&String::from_utf8_lossy(&controller.certificate().await?));
        return Ok(ExitCode::Success);
    }
    if args.validate {
        return validate::run(context, args).await;
    }
    if let Some(path) = &args.re_encrypt {
        return re_encrypt::run(context, args, path).await;
    }
    if args.raw {
        return raw(context, args).await;
    }
    if let Some(file) = &args.merge_into {
        let target = Target::read(file, args.name.as_deref())?;
        return merge_into(context, args, &target).await;
    }
    let secrets = input::secrets(context, args, context.object_namespace())?;
    for secret in &secrets.0 {
        check_named(secret)?;
        check_identity(secret)?;
    }
    let key = sealing_key(context, &args.controller, Timestamp::now()).await?;
    let mut sealed = Vec::new();
    for secret in &secrets.0 {
        sealed.push(sealed_secret(secret, &encrypted(&key, secret)?));
    }
    if args.dry_run {
        secrets.0.iter().for_each(|secret| context.out.print(&described(secret)));
        return Ok(ExitCode::Success);
    }
    print(context, &sealed, args.output.unwrap_or_default())?;
    Ok(ExitCode::Success)
}

/// An object needs a name, whatever its scope.
fn check_named(secret: &PlainSecret) -> Result<(), CommandError> {
    if secret.name.is_empty() {
        return Err(CommandError::usage("cannot seal a Secret without a name").hint("pass --name"));
    }
    Ok(())
}

async fn merge_into(context: &Context, args: &Args, target: &Target<'_>) -> Result<ExitCode, CommandError> {
    let mut secrets = input::secrets(context, args, context.object_namespace())?;
    let [secret] = secrets.0.as_mut_slice() else {
        return Err(CommandError::usage(
            "--merge-into takes the values of one Secret, and several are given",
        ));
    };
    target.adopt(secret, args)?;
    check_identity(secret)?;
    let key = sealing_key(context, &args.controller, Timestamp::now()).await?;
    let change = target.change(&key, secret, args.overwrite)?;
    files::replace(context, &[change], args.dry_run)?;
    let verb = if args.dry_run { "would seal" } else { "sealed" };
    context.out.note(&format!("{verb} {} into {}", secret.values.keys(), target.shown()));
    Ok(ExitCode::Success)
}

/// One value, and nothing but its encrypted text. Without an option for the value it is stdin, as it is.
async fn raw(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let namespace = context.object_namespace();
    let secrets = if args.has_values() {
        input::secrets(context, args, namespace)?
    } else {
        let file = match args.files.as_slice() {
            [] => "-",
            [file] => file,
            _ => return Err(CommandError::usage("--raw takes one value, and several files are given")),
        };
        let mut values = Values::default();
        let text = input::read(file)?;
        if input::is_manifest(&text) {
            context.out.note(
                "warning: this looks like a manifest, and --raw encrypts all of it as one value; without --raw its values \
                 are sealed one by one",
            );
        }
        values.set("value", text.to_vec());
        let mut secret = PlainSecret::of_values(args.name.as_deref().unwrap_or_default(), namespace, values);
        secret.scope = args.scope.map(super::args::ScopeArg::scope).unwrap_or_default();
        Secrets(vec![secret])
    };
    let [secret] = secrets.0.as_slice() else { return Err(CommandError::usage("--raw takes one value")) };
    if secret.values.len() != 1 {
        return Err(CommandError::usage(format!(
            "--raw takes one value, and {} are given",
            secret.values.len()
        )));
    }
    check_identity(secret)?;
    let key = sealing_key(context, &args.controller, Timestamp::now()).await?;
    let sealed = encrypted(&key, secret)?;
    if args.dry_run {
        context.out.print(&described(secret));
        return Ok(ExitCode::Success);
    }
    for text in sealed.values() {
        context.out.print(text);
    }
    Ok(ExitCode::Success)
}

/// What would be sealed: names and sizes, no values.
fn described(secret: &PlainSecret) -> String {
    let place = secret.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let values: Vec<String> =
        secret.values.iter().map(|(key, value)| format!("{key} ({} bytes)", value.len())).collect();
    format!("would seal Secret {place}{}, {}: {}", secret.name, secret.scope.name(), values.join(", "))
}

fn print(context: &Context, sealed: &[Value], format: SealFormat) -> Result<(), CommandError> {
    match format {
        SealFormat::Yaml => {
            let text = match sealed {
                [one] => plumb_crd::yaml::to_yaml(one),
                several => plumb_crd::yaml::to_yaml_documents(several),
            };
            context.out.print_data(&text);
        }
        SealFormat::Json => {
            for one in sealed {
                context.out.object(crate::output::Format::Json, one)?;
            }
        }
    }
    Ok(())
}
