//! `plumb seal --validate`: can the controller open them?

use std::path::{Path, PathBuf};

use plumb_core::secrets::Merged;

use super::args::Args;
use super::controller::{Controller, Verified};
use super::{files, input, re_encrypt};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let texts = texts(args)?;
    let controller = Controller::find(context, &args.controller).await?;
    let (mut n_asked, mut n_closed, mut n_passed_over) = (0, 0, 0);
    for (file, text) in texts {
        let (Ok(mut all), Ok(listed)) = (Merged::all(&text), Merged::in_lists(&text)) else {
            n_passed_over += usize::from(files::note_passed_over(context, &file, &text, files::NO_YAML));
            continue;
        };
        all.extend(listed.into_iter().map(|sealed| (0, sealed)));
        for (document, sealed) in all {
            let shown = file.display();
            let into = Merged::of(document, &sealed)
                .map_err(|problem| CommandError::because(format!("validate {shown}"), problem))?;
            let asked = re_encrypt::with_namespace(sealed, context.object_namespace(), &into, &file)?;
            n_asked += 1;
            if controller.verify(&asked).await? == Verified::No {
                n_closed += 1;
                let place = into.namespace.as_deref().or(context.object_namespace()).unwrap_or_default();
                context.out.print(&format!("{shown}: the controller cannot open {place}/{}", into.name));
            }
        }
    }
    if n_asked == 0 && n_passed_over == 0 {
        return Err(CommandError::new("there is no SealedSecret to validate"));
    }
    if n_closed > 0 {
        context.out.note("hint: it was sealed for another cluster, name, namespace or scope, or its key was deleted; seal the Secret again");
        return Ok(ExitCode::No);
    }
    if n_passed_over > 0 {
        return Ok(ExitCode::No);
    }
    context.out.note(&format!("the controller can open {}", files::counted(n_asked, "SealedSecret")));
    Ok(ExitCode::Success)
}

/// The files that are named, the YAML files of named folders, or stdin. A file that cannot be read as YAML is an error
/// if it is named.
fn texts(args: &Args) -> Result<Vec<(PathBuf, Vec<u8>)>, CommandError> {
    let stdin = ["-".to_owned()];
    let named = if args.files.is_empty() { &stdin[..] } else { &args.files };
    let mut texts = Vec::new();
    for name in named {
        if name == "-" || Path::new(name).is_file() {
            let text = input::read(name)?.to_vec();
            Merged::all(&text).map_err(|error| CommandError::because(format!("read {name}"), error))?;
            texts.push((PathBuf::from(if name == "-" { "stdin" } else { name }), text));
            continue;
        }
        for file in files::find(Path::new(name))? {
            let text = std::fs::read(&file)
                .map_err(|error| CommandError::because(format!("read {}", file.display()), error))?;
            texts.push((file, text));
        }
    }
    Ok(texts)
}
