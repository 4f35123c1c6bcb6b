//! From tokens to a tree: what one document says, before anything is resolved.

use std::collections::HashMap;

use compact_str::CompactString;

use super::memory::{Memory, NODE};
use super::scalar::Tag;
use super::scanner::Scanner;
use super::span::{Span, Spans, Style};
use super::token::{Kind, Place, ScalarStyle, Token};
use super::{YamlError, YamlProblem};

/// One document.
pub(super) struct Tree {
    nodes: Vec<Node>,
    root: NodeId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(usize);

impl NodeId {
    /// Its place in the list of spans.
    pub(super) fn index(self) -> usize {
        self.0
    }
}

/// One node with its place.
pub(super) struct Node {
    pub line: usize,
    pub column: usize,
    pub content: Content,
}

pub(super) enum Content {
    Scalar { text: CompactString, tag: Tag },
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
        matches!(&self.content, Content::Scalar { text, tag: Tag::Implicit | Tag::Bang | Tag::Merge } if text == "<<")
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

    /// Every alias: its id and the node that it stands for.
    pub(super) fn aliases(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        self.nodes.iter().enumerate().filter_map(|(id, node)| match node.content {
            Content::Alias(target) => Some((NodeId(id), target)),
            Content::Scalar { .. } | Content::Sequence(_) | Content::Mapping(_) => None,
        })
    }
}

/// Reads the document in a text; `None` if there is nothing in it. What follows the document is an
/// error, where Go's library stops reading in silence.
pub(super) fn parse(
    text: &str,
    first_line: usize,
    max_depth: usize,
    memory: &mut Memory,
) -> Result<Option<Tree>, YamlError> {
    let parsed = parse_into(text, first_line, max_depth, memory, Spans::new(false))?;
    Ok(parsed.map(|(tree, _)| tree))
}

/// The same, and where every node is.
pub(super) fn parse_with_spans(
    text: &str,
    first_line: usize,
    max_depth: usize,
    memory: &mut Memory,
) -> Result<Option<(Tree, Vec<Span>)>, YamlError> {
    parse_into(text, first_line, max_depth, memory, Spans::new(true))
}

fn parse_into(
    text: &str,
    first_line: usize,
    max_depth: usize,
    memory: &mut Memory,
    spans: Spans,
) -> Result<Option<(Tree, Vec<Span>)>, YamlError> {
    let mut parser = Parser {
        scanner: Scanner::new(text, first_line, max_depth),
        nodes: Vec::new(),
        anchors: HashMap::new(),
        depth: 0,
        max_depth,
        memory,
        spans,
    };
    let Some(root) = parser.document()? else { return Ok(None) };
    Ok(Some((Tree { nodes: parser.nodes, root }, parser.spans.into_inner())))
}

struct Parser<'text> {
    scanner: Scanner<'text>,
    nodes: Vec<Node>,
    /// The last node with each anchor.
    anchors: HashMap<String, NodeId>,
    depth: usize,
    max_depth: usize,
    memory: &'text mut Memory,
    spans: Spans,
}

/// What may occur in place of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    /// Anything.
    Block,
    /// Anything, and `-` in the column of the key.
    BlockValue,
    /// No block collections.
    Flow,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Option<NodeId>, YamlError> {
        let first = self.scanner.peek()?.clone();
        if first.kind == Kind::DocumentStart {
            self.take()?;
        }
        let root = match self.kind()? {
            Kind::End | Kind::DocumentEnd => None,
            _ => Some(self.node(Context::Block)?),
        };
        while *self.kind()? == Kind::DocumentEnd {
            self.take()?;
        }
        let behind = self.take()?;
        if behind.kind == Kind::End { Ok(root) } else { Err(unexpected(&behind, "the end of the document")) }
    }

    /// Takes the next token.
    fn take(&mut self) -> Result<Token, YamlError> {
        let token = self.scanner.next()?;
        // These have no text, and are where the next token is.
        if !matches!(token.kind, Kind::BlockEnd | Kind::End) {
            self.spans.took(token.end);
        }
        Ok(token)
    }

    fn kind(&mut self) -> Result<&Kind, YamlError> {
        self.scanner.peek().map(|token| &token.kind)
    }

    fn place(&mut self) -> Result<Place, YamlError> {
        self.scanner.peek().map(|token| token.place)
    }

    fn push(&mut self, place: Place, content: Content) -> Result<NodeId, YamlError> {
        self.memory.take(NODE).map_err(|what| place.error(what))?;
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node { line: place.line, column: place.column + 1, content });
        self.spans.push();
        Ok(id)
    }

    /// A node that is not there: null.
    fn empty(&mut self, place: Place) -> Result<NodeId, YamlError> {
        self.push(place, Content::Scalar { text: CompactString::default(), tag: Tag::Implicit })
    }

    fn node(&mut self, context: Context) -> Result<NodeId, YamlError> {
        let place = self.place()?;
        if self.depth > self.max_depth {
            return Err(place.error(YamlProblem::TooDeep { limit: self.max_depth }));
        }
        self.depth += 1;
        let node = self.node_at(place, context);
        self.depth -= 1;
        node
    }

    fn node_at(&mut self, place: Place, context: Context) -> Result<NodeId, YamlError> {
        if let Kind::Alias(name) = self.kind()? {
            let name = name.clone();
            self.take()?;
            let missing =
                || place.error(YamlProblem::Syntax("the alias names no anchor before it".to_owned()));
            let target = self.anchors.get(&name).copied().ok_or_else(missing)?;
            let id = self.push(place, Content::Alias(target))?;
            self.spans.settle(id.0, place.offset, (place.offset, place.column), Style::Alias);
            return Ok(id);
        }
        let (anchor, tag) = self.properties()?;
        // The anchor is known inside its own value, where an alias of it is an error that says so.
        let id = self.empty(place)?;
        let anchored = anchor.is_some();
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
        let block = context != Context::Flow;
        let token = self.scanner.peek()?.clone();
        let style = written_as(&token.kind);
        let found = match token.kind {
            Kind::BlockEntry if context == Context::BlockValue => self.indentless_sequence(id)?,
            Kind::Scalar { text, style } => {
                self.take()?;
                let untagged = if style == ScalarStyle::Plain { Tag::Implicit } else { Tag::Text };
                self.memory.take(text.len()).map_err(|what| place.error(what))?;
                Content::Scalar { text: text.into(), tag: tag.unwrap_or(untagged) }
            }
            Kind::FlowSequenceStart => self.flow_sequence(id)?,
            Kind::FlowMappingStart => self.flow_mapping(id)?,
            Kind::BlockSequenceStart if block => self.block_sequence(id)?,
            Kind::BlockMappingStart if block => self.block_mapping(id)?,
            _ if anchored || tag.is_some() => {
                self.nodes[id.0].content =
                    Content::Scalar { text: CompactString::default(), tag: tag.unwrap_or(Tag::Implicit) };
                self.spans.settle_empty(id.0, place.offset);
                return Ok(id);
            }
            _ => return Err(unexpected(&token, "a value")),
        };
        self.nodes[id.0].content = found;
        self.spans.settle(id.0, place.offset, (token.place.offset, token.place.column), style);
        Ok(id)
    }

    /// An anchor and a tag, in either order.
    fn properties(&mut self) -> Result<(Option<String>, Option<Tag>), YamlError> {
        let (mut anchor, mut tag) = (None, None);
        loop {
            match self.kind()? {
                Kind::Anchor(name) if anchor.is_none() => anchor = Some(name.clone()),
                Kind::Tag(found) if tag.is_none() => tag = Some(*found),
                _ => return Ok((anchor, tag)),
            }
            self.take()?;
        }
    }

    fn block_sequence(&mut self, id: NodeId) -> Result<Content, YamlError> {
        self.take()?;
        let mut items = Vec::new();
        loop {
            let token = self.take()?;
            match token.kind {
                Kind::BlockEntry => {
                    self.spans.entry(id.0, token.place.offset, Some(token.end));
                    let missing = matches!(self.kind()?, Kind::BlockEntry | Kind::BlockEnd);
                    items.push(if missing { self.empty(token.place)? } else { self.node(Context::Block)? });
                }
                Kind::BlockEnd => return Ok(Content::Sequence(items)),
                _ => return Err(unexpected(&token, "`-`")),
            }
        }
    }

    /// A list whose `-` are in the column of the key that it belongs to.
    fn indentless_sequence(&mut self, id: NodeId) -> Result<Content, YamlError> {
        let mut items = Vec::new();
        while *self.kind()? == Kind::BlockEntry {
            let token = self.take()?;
            self.spans.entry(id.0, token.place.offset, Some(token.end));
            let missing = matches!(self.kind()?, Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd);
            items.push(if missing { self.empty(token.place)? } else { self.node(Context::Block)? });
        }
        Ok(Content::Sequence(items))
    }

    fn block_mapping(&mut self, id: NodeId) -> Result<Content, YamlError> {
        self.take()?;
        let mut pairs = Vec::new();
        loop {
            let token = self.take()?;
            match token.kind {
                Kind::Key => {
                    let key = self.block_part(token.place)?;
                    let place = self.place()?;
                    let value = if *self.kind()? == Kind::Value {
                        let colon = self.take()?;
                        self.spans.entry(id.0, token.place.offset, Some(colon.end));
                        self.block_part(place)?
                    } else {
                        self.spans.entry(id.0, token.place.offset, None);
                        self.empty(place)?
                    };
                    pairs.push((key, value));
                }
                Kind::BlockEnd => return Ok(Content::Mapping(pairs)),
                _ => return Err(unexpected(&token, "a key")),
            }
        }
    }

    /// The key or value of a block mapping, behind its indicator.
    fn block_part(&mut self, place: Place) -> Result<NodeId, YamlError> {
        if matches!(self.kind()?, Kind::Key | Kind::Value | Kind::BlockEnd) {
            self.empty(place)
        } else {
            self.node(Context::BlockValue)
        }
    }

    fn flow_sequence(&mut self, id: NodeId) -> Result<Content, YamlError> {
        self.take()?;
        let mut items = Vec::new();
        while self.flow_entry(items.is_empty(), &Kind::FlowSequenceEnd)? {
            let start = self.place()?.offset;
            self.spans.entry(id.0, start, None);
            items.push(if *self.kind()? == Kind::Key {
                self.flow_pair()?
            } else {
                self.node(Context::Flow)?
            });
        }
        Ok(Content::Sequence(items))
    }

    /// Steps over the comma between entries; says whether an entry follows. At the end steps over that.
    fn flow_entry(&mut self, first: bool, end: &Kind) -> Result<bool, YamlError> {
        if !first && self.kind()? != end {
            let token = self.take()?;
            if token.kind != Kind::FlowEntry {
                return Err(unexpected(
                    &token,
                    if *end == Kind::FlowMappingEnd { "`,` or `}`" } else { "`,` or `]`" },
                ));
            }
        }
        if self.kind()? != end {
            return Ok(true);
        }
        self.take()?;
        Ok(false)
    }

    /// `key: value` inside `[ ]`: a map of one.
    fn flow_pair(&mut self) -> Result<NodeId, YamlError> {
        let start = self.take()?;
        let place = start.place;
        let id = self.empty(place)?;
        let key = if matches!(self.kind()?, Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd) {
            // The library forgets this token. What comes then is hardly ever right, but always the same.
            let token = self.take()?;
            self.empty(token.place)?
        } else {
            self.node(Context::Flow)?
        };
        let value = self.flow_value(&Kind::FlowSequenceEnd, (id, place.offset))?;
        self.nodes[id.0].content = Content::Mapping(vec![(key, value)]);
        self.spans.settle(id.0, place.offset, (place.offset, place.column), Style::FlowPair);
        Ok(id)
    }

    /// The value of a key in a flow collection, if there is one; with the map and the start of its key.
    fn flow_value(&mut self, end: &Kind, (map, start): (NodeId, usize)) -> Result<NodeId, YamlError> {
        let has_value = *self.kind()? == Kind::Value;
        let colon = if has_value { Some(self.take()?.end) } else { None };
        self.spans.entry(map.0, start, colon);
        if has_value {
            let kind = self.kind()?;
            if *kind != Kind::FlowEntry && kind != end {
                return self.node(Context::Flow);
            }
        }
        let place = self.place()?;
        self.empty(place)
    }

    fn flow_mapping(&mut self, id: NodeId) -> Result<Content, YamlError> {
        self.take()?;
        let mut pairs = Vec::new();
        while self.flow_entry(pairs.is_empty(), &Kind::FlowMappingEnd)? {
            let place = self.place()?;
            if *self.kind()? == Kind::Key {
                self.take()?;
                let missing = matches!(self.kind()?, Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd);
                let key = if missing { self.empty(place)? } else { self.node(Context::Flow)? };
                pairs.push((key, self.flow_value(&Kind::FlowMappingEnd, (id, place.offset))?));
            } else {
                self.spans.entry(id.0, place.offset, None);
                let key = self.node(Context::Flow)?;
                let place = self.place()?;
                pairs.push((key, self.empty(place)?));
            }
        }
        Ok(Content::Mapping(pairs))
    }
}

/// How a node is written that starts with this token.
fn written_as(kind: &Kind) -> Style {
    match kind {
        Kind::Scalar { style: ScalarStyle::Plain, .. } => Style::Plain,
        Kind::Scalar { style: ScalarStyle::SingleQuoted, .. } => Style::SingleQuoted,
        Kind::Scalar { style: ScalarStyle::DoubleQuoted, .. } => Style::DoubleQuoted,
        Kind::Scalar { style: ScalarStyle::Block, .. } => Style::BlockText,
        Kind::FlowSequenceStart | Kind::FlowMappingStart => Style::Flow,
        Kind::BlockSequenceStart | Kind::BlockMappingStart | Kind::BlockEntry => Style::Block,
        _ => Style::Empty,
    }
}

fn unexpected(token: &Token, wanted: &str) -> YamlError {
    token.place.error(YamlProblem::Syntax(format!("expected {wanted}, found {}", token.kind.name())))
}
