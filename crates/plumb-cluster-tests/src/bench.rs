//! Judges one object with the function that the engine uses, and answers its questions with the server.

use std::fmt;

use anyhow::{Context, Result};
use plumb_core::app::CompareOptions;
use plumb_core::desired::{DesiredObject, ObjectOptions};
use plumb_core::drift::{
    Answers, ApiFailure, DryRun, Evidence, Facts, FailureCause, Outcome, Previous, Question, Verdict, judge,
};
use plumb_core::ignore::IgnoreRules;
use plumb_core::normalize::manifest_to_apply;
use plumb_core::object::Manifest;
use plumb_core::schema::SchemaSet;
use serde_json::Value;

use crate::kind::Kind;
use crate::server::{Effect, Server};

/// What is known about the last apply.
#[derive(Clone, Copy, PartialEq)]
pub enum Memory<'a> {
    /// The same manifest.
    Same,
    /// An unknown other manifest.
    Changed,
    /// This manifest.
    Before(&'a Manifest),
    /// Nothing, as after a start of plumb.
    Unknown,
}

impl fmt::Debug for Memory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Same => "Same",
            Self::Changed => "Changed",
            Self::Before(_) => "Before",
            Self::Unknown => "Unknown",
        })
    }
}

/// Judges objects of one cluster.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The server that answers questions.
    pub server: &'a Server,
    /// Its schemas.
    pub schemas: &'a SchemaSet,
    /// The options of the comparison.
    pub options: CompareOptions,
}

/// The result.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// True if the server was asked.
    pub asked: bool,
}

/// An object as it is in Git.
pub fn desired(object: &Value) -> Result<DesiredObject> {
    let manifest = Manifest::new(object.clone()).context("an object")?;
    let key = manifest.key().context("an object with a name")?;
    Ok(DesiredObject { key, manifest, options: ObjectOptions::default(), origin: None })
}

impl Bench<'_> {
    /// Judges without a request; `None` if the judge has a question.
    pub fn at_once(
        &self,
        desired: &DesiredObject,
        live: &Value,
        memory: Memory<'_>,
        answer: Option<DryRun<'_>>,
    ) -> Result<Option<Verdict>> {
        let live = Manifest::new(live.clone()).context("a live object")?;
        let rules = IgnoreRules::default();
        let outcome = judge(&Evidence {
            key: &desired.key,
            desired: Some(desired),
            live: Some(&live),
            schemas: self.schemas,
            rules: &rules,
            options: self.options,
            facts: Facts {
                app: "matrix",
                previous: match memory {
                    Memory::Same => Previous::Same,
                    Memory::Changed => Previous::Changed(None),
                    Memory::Before(previous) => Previous::Changed(Some(previous)),
                    Memory::Unknown => Previous::Unknown,
                },
                ..Facts::default()
            },
            answers: Answers { dry_run: answer, ..Answers::default() },
            now: jiff::Timestamp::now(),
        });
        match outcome {
            Outcome::Settled(verdict) => Ok(Some(*verdict)),
            Outcome::Ask(questions) => {
                anyhow::ensure!(answer.is_none(), "{}: asks again: {questions:?}", desired.key);
                anyhow::ensure!(questions == [Question::DryRun], "{}: asks {questions:?}", desired.key);
                Ok(None)
            }
        }
    }

    /// Judges the live object, and asks the server if needed.
    pub async fn judge(
        &self,
        kind: &Kind,
        desired: &DesiredObject,
        live: &Value,
        memory: Memory<'_>,
    ) -> Result<Judged> {
        if let Some(verdict) = self.at_once(desired, live, memory, None)? {
            return Ok(Judged { verdict, asked: false });
        }
        let manifest = manifest_to_apply(&desired.manifest, self.schemas);
        let answer = self.server.apply(kind, manifest.value(), Effect::DryRun).await?;
        let verdict = if answer.is_fine() {
            let object = Manifest::new(answer.body).context("an answer")?;
            self.at_once(desired, live, memory, Some(DryRun::Object(&object)))?
        } else {
            let failure = failure(&answer.body);
            self.at_once(desired, live, memory, Some(DryRun::Refused(&failure)))?
        };
        Ok(Judged { verdict: verdict.context("no verdict")?, asked: true })
    }
}

fn failure(status: &Value) -> ApiFailure {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let message = text(status, "message");
    if message.starts_with("failed to create typed patch object") {
        return ApiFailure::mistyped(&message);
    }
    let causes = status["details"]["causes"].as_array().into_iter().flatten().map(|cause| FailureCause {
        reason: text(cause, "reason"),
        message: text(cause, "message"),
        field: text(cause, "field"),
    });
    ApiFailure {
        code: status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500),
        reason: text(status, "reason"),
        message: text(status, "message"),
        causes: causes.collect(),
    }
}
