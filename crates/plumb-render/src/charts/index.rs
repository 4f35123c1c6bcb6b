//! `index.yaml` of a Helm repository. It lists every version of every chart, so it can be large. It is read as a stream,
//! and only the versions of one chart are kept.

use std::io::{BufRead, Read};

use plumb_core::version::{Constraint, Version};
use plumb_core::yaml::{self, YamlError};
use serde_json::Value;

use super::index_json;

/// Longest line, in bytes.
const MAX_LINE: u64 = 1 << 20;
/// Most bytes that describe one version.
const MAX_ENTRY: usize = 256 << 10;
/// Most bytes of one chart's versions that are kept.
const MAX_KEPT: usize = 8 << 20;
/// Most versions of one chart.
pub(super) const MAX_VERSIONS: usize = 20_000;
/// Largest index that `helm repo index` did not write and that is no JSON: such an index is read as a whole.
const MAX_UNUSUAL: usize = 1 << 20;

/// Why an index cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Not YAML.
    #[error("not valid YAML")]
    Yaml(#[source] YamlError),
    /// No `entries`.
    #[error("it has no `entries`; is this the address of a Helm repository?")]
    NoEntries,
    /// More than the limits.
    #[error("it has more than {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The file on disk cannot be read.
    #[error("reading it failed: {0}")]
    Io(String),
    /// The task that parses it was cancelled.
    #[error("reading it was interrupted")]
    Interrupted,
}

/// The versions of one chart.
#[derive(Debug, Default)]
pub(super) struct ChartVersions {
    versions: Vec<IndexEntry>,
    /// How many charts were seen before this one, or in all if this one is not there.
    n_charts: usize,
    found: bool,
    n_bytes: usize,
}

/// One version of one chart.
#[derive(Clone, Debug)]
pub(super) struct IndexEntry {
    pub(super) version: String,
    /// Where the archive is.
    pub(super) url: String,
    pub(super) digest: String,
}

impl ChartVersions {
    /// Reads the versions of one chart. `open` starts at the beginning of the index.
    pub(super) fn read<R: Read>(open: impl Fn() -> R, name: &str) -> Result<Self, IndexError> {
        let start = |mut reader: std::io::BufReader<R>| -> Result<_, IndexError> {
            let is_json = loop {
                let buffer = reader.fill_buf()?;
                let Some(first) = buffer.first() else { break false };
                if !first.is_ascii_whitespace() {
                    break *first == b'{';
                }
                reader.consume(1);
            };
            Ok((is_json, reader))
        };
        let (is_json, reader) = start(std::io::BufReader::new(open()))?;
        let found = if is_json {
            index_json::read(reader, name)?
        } else {
            Block::new(name).read(std::io::BufReader::new(open()))?
        };
        found.map_or_else(|| Self::unusual(open(), name), Ok)
    }

    pub(super) fn new(found: bool, n_charts: usize) -> Self {
        Self { n_charts, found, ..Self::default() }
    }

    /// Adds a version, unless a client could not use it.
    pub(super) fn push(&mut self, entry: IndexEntry) -> Result<(), IndexError> {
        if self.versions.len() >= MAX_VERSIONS {
            return Err(IndexError::TooLarge { what: "versions of one chart", limit: MAX_VERSIONS });
        }
        let is_usable = entry.version.len() <= 256 && entry.url.len() <= 4096 && entry.digest.len() <= 256;
        if is_usable {
            self.n_bytes +=
                size_of::<IndexEntry>() + entry.version.len() + entry.url.len() + entry.digest.len();
            self.versions.push(entry);
        }
        if self.n_bytes > MAX_KEPT {
            return Err(IndexError::TooLarge { what: "bytes of versions of one chart", limit: MAX_KEPT });
        }
        Ok(())
    }

    /// How many versions there are.
    pub(super) fn len(&self) -> usize {
        self.versions.len()
    }

    /// About how much memory it takes.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes + size_of::<Self>()
    }

    /// An index in flow style, with anchors and the like.
    fn unusual(reader: impl Read, name: &str) -> Result<Self, IndexError> {
        let mut bytes = Vec::new();
        reader.take(MAX_UNUSUAL as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > MAX_UNUSUAL {
            let what = "bytes and is not in the form that `helm repo index` writes";
            return Err(IndexError::TooLarge { what, limit: MAX_UNUSUAL });
        }
        let documents = parse(&bytes)?;
        let value = documents.into_iter().next().map(|document| document.value).unwrap_or_default();
        let entries = value.get("entries").and_then(Value::as_object).ok_or(IndexError::NoEntries)?;
        let mut versions = Self::new(entries.contains_key(name), entries.len());
        for value in entries.get(name).and_then(Value::as_array).into_iter().flatten() {
            if let Some(entry) = entry(value) {
                versions.push(entry)?;
            }
        }
        Ok(versions)
    }

    /// The exact version, else the newest that satisfies the constraint.
    pub(super) fn find(&self, version: &str) -> Option<&IndexEntry> {
        let entries = &self.versions;
        if let Some(exact) = entries.iter().find(|entry| entry.version == version) {
            return Some(exact);
        }
        // `v1.2.3` and `1.2.3` mean the same.
        if let Some(wanted) = Version::parse(version) {
            return entries.iter().find(|entry| {
                Version::parse(&entry.version).is_some_and(|found| found.precedence(&wanted).is_eq())
            });
        }
        let newest =
            Constraint::parse(version)?.newest(entries.iter().map(|entry| entry.version.as_str()))?;
        entries.iter().find(|entry| entry.version == newest)
    }

    /// What the repository has instead, for an error message.
    pub(super) fn hint(&self) -> String {
        if !self.found {
            return format!("; it has {} charts, none of this name", self.n_charts);
        }
        newest_hint(self.versions.iter().map(|entry| entry.version.as_str()))
    }
}

/// The newest version, for an error message.
pub(super) fn newest_hint<'a>(versions: impl Iterator<Item = &'a str>) -> String {
    let newest = Constraint::parse(">=0-0").and_then(|any| any.newest(versions));
    newest.map_or_else(String::new, |version| format!("; the newest is {version}"))
}

/// Reads the form that `helm repo index` writes, line by line: the charts are keys below `entries:`, their versions
/// the items of a list. The lines of other charts are skipped.
struct Block<'a> {
    name: &'a str,
    versions: ChartVersions,
    place: Place,
    /// The columns of the charts' names and of the versions.
    name_column: Option<usize>,
    item_column: Option<usize>,
    /// The lines of the version that is being read.
    item: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    BeforeEntries,
    OtherChart,
    Chart,
}

/// What a line means.
enum Step {
    Next,
    /// The chart is complete.
    Done,
    /// The index has another form.
    Unusual,
}

impl<'a> Block<'a> {
    fn new(name: &'a str) -> Self {
        Self {
            name,
            versions: ChartVersions::default(),
            place: Place::BeforeEntries,
            name_column: None,
            item_column: None,
            item: Vec::new(),
        }
    }

    /// `None` if the index has another form.
    fn read(mut self, mut reader: impl BufRead) -> Result<Option<ChartVersions>, IndexError> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let n_read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line)?;
            if n_read == 0 {
                break;
            }
            if n_read as u64 == MAX_LINE && line.last() != Some(&b'\n') {
                return Ok(None);
            }
            match self.line(&line)? {
                Step::Next => {}
                Step::Done => break,
                Step::Unusual => return Ok(None),
            }
        }
        if self.place == Place::BeforeEntries {
            return Ok(None);
        }
        self.end_item()?;
        Ok(Some(self.versions))
    }

    fn line(&mut self, line: &[u8]) -> Result<Step, IndexError> {
        let column = line.iter().take_while(|byte| **byte == b' ').count();
        let text = line.get(column..).unwrap_or_default().trim_ascii_end();
        if self.place == Place::BeforeEntries {
            if let Some(rest) = text.strip_prefix(b"entries:").filter(|_| column == 0) {
                self.place = Place::OtherChart;
                return Ok(if is_empty(rest) { Step::Next } else { Step::Unusual });
            }
            return Ok(Step::Next);
        }
        if text.is_empty() || text.first() == Some(&b'#') {
            self.keep(line)?;
            return Ok(Step::Next);
        }
        if column == 0 {
            return Ok(Step::Done);
        }
        let name_column = *self.name_column.get_or_insert(column);
        let is_item = text == b"-" || text.starts_with(b"- ");
        if column == name_column && !is_item {
            return Ok(self.chart(text));
        }
        if self.place == Place::Chart {
            if is_item && column == *self.item_column.get_or_insert(column) {
                self.end_item()?;
            } else if self.item.is_empty() {
                return Ok(Step::Unusual);
            }
            self.item.extend_from_slice(line);
            self.check_item()?;
        }
        Ok(Step::Next)
    }

    /// A line with the name of a chart.
    fn chart(&mut self, text: &[u8]) -> Step {
        if self.place == Place::Chart {
            return Step::Done;
        }
        let Some(colon) =
            text.windows(2).position(|pair| pair == b": ").or_else(|| text.len().checked_sub(1))
        else {
            return Step::Unusual;
        };
        let (name, rest) = text.split_at(colon);
        let Some(rest) = rest.strip_prefix(b":") else { return Step::Unusual };
        self.versions.n_charts += 1;
        let quote = |byte: &u8| matches!(byte, b'"' | b'\'');
        let name = name.strip_prefix(b"\"").or_else(|| name.strip_prefix(b"'")).unwrap_or(name);
        let name = if name.last().is_some_and(quote) {
            name.split_last().map_or(name, |(_, rest)| rest)
        } else {
            name
        };
        if name != self.name.as_bytes() {
            return Step::Next;
        }
        self.versions.found = true;
        self.place = Place::Chart;
        self.item_column = None;
        match rest.trim_ascii() {
            b"[]" | b"null" | b"~" => Step::Done,
            rest if is_empty(rest) => Step::Next,
            _ => Step::Unusual,
        }
    }

    /// A blank line or comment: it may belong to a text of several lines.
    fn keep(&mut self, line: &[u8]) -> Result<(), IndexError> {
        if self.place == Place::Chart && !self.item.is_empty() {
            self.item.extend_from_slice(line);
            self.check_item()?;
        }
        Ok(())
    }

    fn check_item(&self) -> Result<(), IndexError> {
        if self.item.len() > MAX_ENTRY {
            return Err(IndexError::TooLarge { what: "bytes about one version", limit: MAX_ENTRY });
        }
        Ok(())
    }

    fn end_item(&mut self) -> Result<(), IndexError> {
        if self.item.is_empty() {
            return Ok(());
        }
        let documents = parse(&self.item)?;
        self.item.clear();
        let item = documents.first().and_then(|document| document.value.get(0));
        item.and_then(entry).map_or(Ok(()), |entry| self.versions.push(entry))
    }
}

/// Nothing, or a comment.
fn is_empty(text: &[u8]) -> bool {
    text.trim_ascii().first().is_none_or(|byte| *byte == b'#')
}

impl From<std::io::Error> for IndexError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

fn parse(bytes: &[u8]) -> Result<Vec<yaml::Document>, IndexError> {
    let limits = yaml::Limits {
        max_bytes: MAX_UNUSUAL,
        max_depth: 50,
        max_alias_bytes: MAX_ENTRY,
        max_memory: 64 * MAX_UNUSUAL,
    };
    yaml::parse_documents_bytes(bytes, &limits).map_err(IndexError::Yaml)
}

fn entry(value: &Value) -> Option<IndexEntry> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let url = value.get("urls")?.as_array()?.iter().find_map(Value::as_str).unwrap_or_default().to_owned();
    Some(IndexEntry { version: text("version"), url, digest: text("digest") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, name: &str) -> Result<ChartVersions, IndexError> {
        ChartVersions::read(|| text.as_bytes(), name)
    }

    #[test]
    fn versions_are_found_exactly_or_by_constraint() {
        let text = "entries:\n  web:\n  - {version: 1.0.0, urls: [a]}\n  - {version: v1.10.0, urls: [b]}\n  \
                    - {version: 1.9.0, urls: [c]}\n  - {version: 2.0.0-rc.1, urls: [d]}\n  - {urls: 3}\n";
        let versions = read(text, "web").unwrap();
        let find = |version| versions.find(version).map(|entry| entry.url.as_str());
        assert_eq!(find("1.0.0"), Some("a"));
        assert_eq!(find("v1.0.0"), Some("a"));
        assert_eq!(find("^1.0"), Some("b"));
        assert_eq!(find("*"), Some("b"));
        assert_eq!(find(">=2.0.0-0"), Some("d"));
        assert_eq!(find("3.x"), None);
        let other = read(text, "other").unwrap();
        assert!(other.find("*").is_none());
        assert_eq!(other.hint(), "; it has 1 charts, none of this name");
        assert_eq!(versions.hint(), "; the newest is 2.0.0-rc.1");
        assert!(matches!(read("a: b", "web"), Err(IndexError::NoEntries)));
        assert!(matches!(read("a: [", "web"), Err(IndexError::Yaml(_))));
    }

    /// What Helm writes, and the same in other forms.
    #[test]
    fn all_forms_give_the_same_versions() {
        let helm = "apiVersion: v1\nentries:\n  api:\n  - apiVersion: v2\n    description: |\n      web:\n      - x\n    \
                    digest: d0\n    urls:\n    - u0\n    version: 9.0.0\n  web:\n  - apiVersion: v2\n    annotations:\n      \
                    text: |\n        one\n\n        # two\n      other: 'a: b'\n    dependencies:\n    - name: api\n      \
                    version: 9.9.9\n    digest: d1\n    urls:\n    - u1\n    - other\n    version: 1.0.0\n  - digest: d2\n    \
                    urls: [u2]\n    version: \"2.0.0\"\n  zoo:\n  - version: 7.0.0\n    urls: [u7]\ngenerated: \"x\"\n";
        let indented = "---\nentries: # all\n    'api':\n        - {version: 9.0.0, urls: [u0]}\n    # here\n    \"web\":\n        -\n          \
                        version: 1.0.0\n          urls: [u1]\n          digest: d1\n        - version: 2.0.0\n          \
                        urls: [u2]\n          digest: d2\n";
        let flow = "entries: {web: [{version: 1.0.0, urls: [u1], digest: d1}, {version: 2.0.0, urls: [u2], digest: d2}]}\n";
        let json = r#" {"apiVersion":"v1","entries":{"api":[{"version":"9.0.0","urls":["u0"]}],
            "web":[{"version":"1.0.0","urls":["u1","other"],"digest":"d1","x":{"urls":3}},
                   {"digest":"d2","urls":["u2"],"version":"2.0.0"}, {"urls":3}, 4]},"generated":"x"}"#;
        for text in [helm, &helm.replace('\n', "\r\n"), indented, flow, json] {
            let versions = read(text, "web").unwrap();
            let found: Vec<[&str; 3]> = versions
                .versions
                .iter()
                .map(|entry| [entry.version.as_str(), entry.url.as_str(), entry.digest.as_str()])
                .collect();
            assert_eq!(found, [["1.0.0", "u1", "d1"], ["2.0.0", "u2", "d2"]], "{text}");
            assert!(read(text, "none").unwrap().find("*").is_none());
        }
        for text in
            ["entries:\n  web: []\n", "entries:\n  web:\n", "entries: {}\n", "entries:\n", "{\"entries\":{}}"]
        {
            assert!(read(text, "web").map_or(true, |versions| versions.find("*").is_none()), "{text}");
        }
    }

    #[test]
    fn a_hostile_index_costs_nothing_or_is_refused() {
        let ones = "1,".repeat(4 << 20);
        // Lines and values of other charts are not kept.
        let others = format!(
            "entries:\n  aa: [\n{}   1]\n  web:\n  - {{version: 1.0.0, urls: [u]}}\n",
            "   1,\n".repeat(1 << 20)
        );
        assert_eq!(read(&others, "web").unwrap().versions.len(), 1);
        let json = format!(
            "{{\"zz\":[{ones}1],\"entries\":{{\"web\":[{{\"version\":\"1.0.0\",\"urls\":[\"u\"]}}]}}}}"
        );
        assert_eq!(read(&json, "web").unwrap().versions.len(), 1);
        for text in [
            format!("zz: [{ones}1]\nentries:\n  web:\n  - {{version: 1.0.0, urls: [u]}}\n"),
            format!("entries:\n  web: [{ones}1]\n"),
            format!("entries:\n  web:\n  - {{version: 1.0.0, urls: [u], x: [{}1]}}\n", "1,".repeat(1 << 18)),
            format!("entries:\n  web:\n{}", "  - {version: 1.0.0, urls: [u]}\n".repeat(MAX_VERSIONS + 1)),
            format!(
                "{{\"entries\":{{\"web\":[{}1]}}}}",
                "{\"version\":\"1.0.0\",\"urls\":[\"u\"]},".repeat(MAX_VERSIONS + 1)
            ),
        ] {
            assert!(
                matches!(read(&text, "web"), Err(IndexError::TooLarge { .. })),
                "{}",
                text.get(..60).unwrap()
            );
        }
    }
}
