//! Commits and charts that Applications come from, and manifests of files that a client sends.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_api::{Code, Status};
use plumb_core::object::Manifest;
use plumb_core::secrets::as_stored;
use plumb_core::text::without_logins;
use plumb_crd::Application;
use serde_json::{Value, json};

use super::mask::masks_for;
use crate::call::{Answer, Call};
use crate::random::hex;

/// The Application as it was with the history entry that the request names, and the place of the source in it.
fn asked(call: &Call) -> Result<(Application, usize), Status> {
    let mut app = call.app()?.typed()?;
    let source = usize::try_from(call.number("sourceIndex").unwrap_or_default());
    let source = source.map_err(|_| Status::invalid("the index of the source is negative"))?;
    if let Some(id) = call.number("versionId") {
        let entry = app.status.history.iter().find(|entry| entry.id == id).cloned();
        let entry =
            entry.ok_or_else(|| Status::invalid(format!("the application has no history entry {id}")))?;
        if entry.sources.is_empty() {
            app.spec.source = entry.source;
            app.spec.sources.clear();
        } else {
            app.spec.sources = entry.sources;
        }
    }
    Ok((app, source))
}

fn unreadable(why: &str) -> Status {
    // A message may quote an address with a login.
    Status::new(Code::FailedPrecondition, without_logins(why).into_owned())
}

/// Author, time, tags and message of a commit.
pub(super) async fn metadata(call: Arc<Call>) -> Result<Answer, Status> {
    let (app, source) = asked(&call)?;
    let revision = call.text("revision").to_owned();
    let details =
        call.leader()?.commit_details(app, source, revision).await.map_err(|why| unreadable(&why))?;
    let date = jiff::Timestamp::from_second(details.seconds).map(|date| date.to_string()).unwrap_or_default();
    Ok(Answer::One(json!({
        "author": details.author, "date": date, "tags": details.tags, "message": details.message.trim_end(),
    })))
}

/// Description, home and maintainers of a chart.
pub(super) async fn chart(call: Arc<Call>) -> Result<Answer, Status> {
    let (app, source) = asked(&call)?;
    let version = call.text("revision").to_owned();
    let facts = call.leader()?.chart_facts(app, source, version).await.map_err(|why| unreadable(&why))?;
    // The page of Argo CD makes a link of it.
    let is_link = ["http://", "https://"].into_iter().any(|scheme| facts.home.starts_with(scheme));
    Ok(Answer::One(json!({
        "description": facts.description, "home": if is_link { facts.home } else { String::new() },
        "maintainers": facts.maintainers,
    })))
}

/// What a chart of a registry says, in the form of a container image's labels.
pub(super) async fn oci(call: Arc<Call>) -> Result<Answer, Status> {
    let (app, source) = asked(&call)?;
    let version = call.text("revision").to_owned();
    let facts =
        call.leader()?.chart_facts(app, source, version.clone()).await.map_err(|why| unreadable(&why))?;
    Ok(Answer::One(json!({
        "version": version, "description": facts.description, "authors": facts.maintainers.join(", "),
    })))
}

/// The archive of the request, which arrived in parts.
fn archive(call: &Call) -> Result<Vec<u8>, Status> {
    let mut archive = Vec::new();
    for chunk in call.request.get("chunks").and_then(Value::as_array).into_iter().flatten() {
        let bytes = chunk.as_str().and_then(|text| STANDARD.decode(text).ok());
        archive.extend(bytes.ok_or_else(|| Status::invalid("a part of the files cannot be read"))?);
    }
    let sum = hex(digest(&SHA256, &archive).as_ref());
    if archive.is_empty() || !call.text("checksum").eq_ignore_ascii_case(&sum) {
        return Err(Status::invalid("the files do not have the checksum that was sent; send them again"));
    }
    Ok(archive)
}

/// The manifests of an Application, rendered from files that the client sends.
pub(super) async fn manifests_with_files(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?.typed()?;
    let archive = archive(&call)?;
    let rendered = call.leader()?.render_files(app.clone(), archive).await;
    let rendered = rendered.map_err(|why| unreadable(&format!("cannot generate manifests: {why}")))?;
    let read = |text: &String| Manifest::new(serde_json::from_str(text).ok()?).ok();
    let objects: Vec<Option<Manifest>> = rendered.iter().map(read).collect();
    let kinds = objects.iter().flatten().map(Manifest::gvk).collect();
    let masks = masks_for(&call, &app, kinds, &objects.iter().flatten().collect::<Vec<_>>()).await?;
    let texts = objects.into_iter().map(|object| match object {
        Some(object) => masks.hide(as_stored(object.into_value())).to_string(),
        None => "{}".to_owned(),
    });
    Ok(Answer::One(json!({"manifests": texts.collect::<Vec<_>>()})))
}
