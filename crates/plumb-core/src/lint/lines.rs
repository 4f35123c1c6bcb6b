//! The line of each finding.

use std::collections::BTreeMap;

use super::LintFinding;
use crate::desired::Origin;
use crate::fix::locate;
use crate::object::FieldPath;
use crate::yaml::{Document, Limits, line_of, parse_documents_bytes};

/// Finding a line costs reading the file again. Who has more findings in one file does not go through them by line.
const MOST_IN_A_FILE: usize = 300;

/// A file that was read once.
struct File {
    text: Vec<u8>,
    documents: Vec<Document>,
    n_findings: usize,
}

/// Sorts the findings, the worst first, and moves each from the first line of its document to the line of its first
/// field. `read` gives the text of the file of an app; where it does not, or where the document is a template, the line
/// stays.
pub fn with_lines(
    mut findings: Vec<LintFinding>,
    read: impl Fn(&str, &Origin) -> Option<Vec<u8>>,
) -> Vec<LintFinding> {
    let mut files: BTreeMap<(String, usize, String), Option<File>> = BTreeMap::new();
    for finding in &mut findings {
        let Some(origin) = finding.origin.clone().filter(|origin| origin.verbatim) else { continue };
        let place = (finding.app.clone(), origin.source, origin.file.clone());
        let file = files.entry(place).or_insert_with(|| File::read(read(&finding.app, &origin)?));
        let Some(file) = file.as_mut().filter(|file| file.n_findings < MOST_IN_A_FILE) else { continue };
        file.n_findings += 1;
        if let (Some(line), Some(origin)) = (file.line(finding, &origin), &mut finding.origin) {
            origin.line = line;
        }
    }
    findings.sort_by_cached_key(|finding| {
        let place = finding.place().map(|(file, line)| (file.to_owned(), line));
        (finding.severity, finding.rule, finding.app.clone(), place, finding.key.clone())
    });
    findings
}

impl File {
    fn read(text: Vec<u8>) -> Option<Self> {
        let documents = parse_documents_bytes(&text, &Limits::default()).ok()?;
        Some(Self { text, documents, n_findings: 0 })
    }

    fn line(&self, finding: &LintFinding, origin: &Origin) -> Option<usize> {
        let place = locate(&self.documents, finding.key.as_ref()?, origin.line)?;
        let metadata = FieldPath::root().field("metadata");
        // Without a field, the name is the best place to point at.
        let field = finding.fields.first().cloned().unwrap_or_else(|| metadata.field("name"));
        let mut whole = place.path.clone();
        for segment in field.segments() {
            whole.push(segment.clone());
        }
        line_of(&self.text, place.document, &whole)
    }
}
