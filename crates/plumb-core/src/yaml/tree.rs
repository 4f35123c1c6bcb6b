//! The parser's events as a tree: what one document says, before anything is resolved.

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag as ParsedTag};

use super::scalar::Tag;
use super::{YamlError, YamlProblem};

/// One document of a stream.
pub(super) struct Tree {
    nodes: Vec<Node>,
    root: NodeId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(usize);

/// One node with its place.
pub(super) struct Node {
    pub line: usize,
    pub column: usize,
    pub content: Content,
}

pub(super) enum Content {
    Scalar { text: String, tag: Tag },
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
    Alias(NodeId),
}

impl Node {
    pub(super) fn error(&self, what: YamlProblem) -> YamlError {
        YamlError { line: self.line, column: self.column, what }
    }

    /// Is it a key that merges? Only a plain `<<`, or one that says so.
    pub(super) fn is_merge_key(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, tag: Tag::Implicit | Tag::Merge } if text == "<<")
    }
}

impl Tree {
    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        // Ids come from `push` alone and nodes are never removed.
        &self.nodes[id.0]
    }
}

/// Reads every document of a stream.
pub(super) fn parse(text: &str, max_depth: usize) -> Result<Vec<Tree>, YamlError> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: max_depth,
        block_nesting_limit: max_depth,
    };
    let mut trees = Vec::new();
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax_error(&error, max_depth))?;
        if let Some(tree) = builder.take(event, &span.start)? {
            trees.push(tree);
        }
    }
    Ok(trees)
}

/// A parser's error as ours; the library counts columns from 0.
fn syntax_error(error: &ScanError, max_depth: usize) -> YamlError {
    let what = match error.kind() {
        granit_parser::ErrorKind::RecursionLimitExceeded => YamlProblem::TooDeep { limit: max_depth },
        _ => YamlProblem::Syntax(error.info()),
    };
    let place = error.marker();
    YamlError { line: place.line(), column: place.col() + 1, what }
}

/// The tree of the document that is being read.
#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    root: Option<NodeId>,
    /// Collections that are not closed yet, from the outside in.
    open: Vec<Open>,
    /// Anchored nodes by the parser's ids, which grow through the whole stream.
    anchors: std::collections::HashMap<usize, NodeId>,
}

enum Open {
    Sequence(NodeId, Vec<NodeId>),
    Mapping(NodeId, Vec<(NodeId, NodeId)>, Option<NodeId>),
}

impl Builder {
    /// Takes one event in; gives a tree back when a document is complete.
    fn take(&mut self, event: Event<'_>, place: &Marker) -> Result<Option<Tree>, YamlError> {
        match event {
            Event::DocumentStart(_, Some(version)) if (version.major, version.minor) != (1, 1) => {
                let what = YamlProblem::Version { major: version.major, minor: version.minor };
                return Err(YamlError { line: place.line(), column: place.col() + 1, what });
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = match tag {
                    Some(tag) => known_tag(&tag),
                    None if style == ScalarStyle::Plain => Tag::Implicit,
                    None => Tag::Text,
                };
                let id = self.push(place, anchor, Content::Scalar { text: text.into_owned(), tag });
                self.place_node(id);
            }
            Event::Alias(anchor) => {
                let target = self.anchors.get(&anchor).copied();
                let missing = || YamlProblem::Syntax("the alias names no anchor before it".to_owned());
                let target = target.ok_or_else(|| YamlError {
                    line: place.line(),
                    column: place.col() + 1,
                    what: missing(),
                })?;
                let id = self.push(place, 0, Content::Alias(target));
                self.place_node(id);
            }
            // Tags of collections mean nothing to the Go library.
            Event::SequenceStart(_, anchor, _) => {
                let id = self.push(place, anchor, Content::Sequence(Vec::new()));
                self.open.push(Open::Sequence(id, Vec::new()));
            }
            Event::MappingStart(_, anchor, _) => {
                let id = self.push(place, anchor, Content::Mapping(Vec::new()));
                self.open.push(Open::Mapping(id, Vec::new(), None));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let closed = match self.open.pop() {
                    Some(Open::Sequence(id, items)) => Some((id, Content::Sequence(items))),
                    Some(Open::Mapping(id, pairs, _)) => Some((id, Content::Mapping(pairs))),
                    None => None,
                };
                if let Some((id, content)) = closed {
                    self.nodes[id.0].content = content;
                    self.place_node(id);
                }
            }
            Event::DocumentEnd => {
                let nodes = std::mem::take(&mut self.nodes);
                self.anchors.clear();
                return Ok(self.root.take().map(|root| Tree { nodes, root }));
            }
            // Starts, ends and comments; the library may add more.
            _ => {}
        }
        Ok(None)
    }

    fn push(&mut self, place: &Marker, anchor: usize, content: Content) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node { line: place.line(), column: place.col() + 1, content });
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        id
    }

    /// Puts a finished node into the collection that is open, or at the root.
    fn place_node(&mut self, id: NodeId) {
        match self.open.last_mut() {
            None => self.root = Some(id),
            Some(Open::Sequence(_, items)) => items.push(id),
            Some(Open::Mapping(_, pairs, key)) => match key.take() {
                Some(key) => pairs.push((key, id)),
                None => *key = Some(id),
            },
        }
    }
}

fn known_tag(tag: &ParsedTag) -> Tag {
    let (handle, suffix) = tag.parts();
    match format!("{handle}{suffix}").strip_prefix("tag:yaml.org,2002:") {
        Some("str") => Tag::Str,
        Some("bool") => Tag::Bool,
        Some("int") => Tag::Int,
        Some("float") => Tag::Float,
        Some("null") => Tag::Null,
        Some("timestamp") => Tag::Timestamp,
        Some("binary") => Tag::Binary,
        Some("merge") => Tag::Merge,
        Some(_) | None => Tag::Text,
    }
}
