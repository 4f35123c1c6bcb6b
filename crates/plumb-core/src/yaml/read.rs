//! From a tree to the value that Kubernetes sees.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::memory::{ENTRY, MAP, Memory, VALUE};
use super::scalar::resolve;
use super::tree::{Content, Node, NodeId, Tree};
use super::{YamlError, YamlProblem, text, tree};

/// One document of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// Line of its first node, from 1.
    pub line: usize,
    /// The memory that its value takes, in bytes; an estimate that is not too low.
    pub memory: usize,
}

/// What reading may cost. One kilobyte of text never costs more than a few megabytes under any limits, since
/// aliases may expand to at most a hundred times what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole text.
    pub max_bytes: usize,
    /// Nesting of maps and lists, aliases included. Values deeper than some thousand levels would overflow
    /// the stack of code that walks them.
    pub max_depth: usize,
    /// Bytes of text that aliases may copy, per document.
    pub max_alias_bytes: usize,
    /// Memory that all documents take together, in bytes.
    pub max_memory: usize,
}

impl Default for Limits {
    /// 10 MiB as Argo CD's limit on a directory's manifests, and depths that no real object reaches.
    fn default() -> Self {
        Self { max_bytes: 10 << 20, max_depth: 200, max_alias_bytes: 16 << 20, max_memory: 512 << 20 }
    }
}

/// Reads a stream of documents. Those with nothing in them, or nothing but comments, are left out; one that
/// says `null` is in the result.
pub fn parse_documents(text: &str, limits: &Limits) -> Result<Vec<Document>, YamlError> {
    if text.len() > limits.max_bytes {
        let what = YamlProblem::TooLarge { limit: limits.max_bytes };
        return Err(YamlError { line: 1, column: 1, what });
    }
    let mut documents = Vec::new();
    let mut memory = Memory::new(limits.max_memory);
    for chunk in text::split(text)? {
        documents.extend(read_chunk(&chunk, limits, Duplicates::Refused, &mut memory)?);
    }
    Ok(documents)
}

/// Reads the first document and nothing after it. Of a key that is there twice the last one counts, as in Go: for
/// files that are parameters, where Argo CD says nothing about such a key.
pub fn parse_first(text: &str, limits: &Limits) -> Result<Option<Document>, YamlError> {
    if text.len() > limits.max_bytes {
        let what = YamlProblem::TooLarge { limit: limits.max_bytes };
        return Err(YamlError { line: 1, column: 1, what });
    }
    let mut memory = Memory::new(limits.max_memory);
    for chunk in text::split(text)? {
        let document = read_chunk(&chunk, limits, Duplicates::LastCounts, &mut memory)?;
        if document.is_some() {
            return Ok(document);
        }
    }
    Ok(None)
}

fn read_chunk(
    chunk: &text::Chunk<'_>,
    limits: &Limits,
    duplicates: Duplicates,
    memory: &mut Memory,
) -> Result<Option<Document>, YamlError> {
    let before = memory.n_bytes();
    let parsed = tree::parse(&chunk.text, chunk.first_line, limits.max_depth, memory)?;
    let Some(tree) = parsed else { return Ok(None) };
    let of_tree = memory.n_bytes() - before;
    let value = Reader::new(&tree, limits, duplicates, memory).value(tree.root())?;
    memory.give_back(of_tree);
    let memory = memory.n_bytes() - before;
    Ok(Some(Document { value, line: tree.node(tree.root()).line, memory }))
}

/// The same for bytes, which need not be a text at all.
pub fn parse_documents_bytes(bytes: &[u8], limits: &Limits) -> Result<Vec<Document>, YamlError> {
    if bytes.len() > limits.max_bytes {
        let what = YamlProblem::TooLarge { limit: limits.max_bytes };
        return Err(YamlError { line: 1, column: 1, what });
    }
    parse_documents(&text::decode(bytes)?, limits)
}

/// The value of a tree.
pub(super) fn value_of(tree: &Tree, limits: &Limits, memory: &mut Memory) -> Result<Value, YamlError> {
    Reader::new(tree, limits, Duplicates::Refused, memory).value(tree.root())
}

/// What a key means that is there twice in one map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duplicates {
    Refused,
    LastCounts,
}

/// The walk over one document, with what it has spent.
struct Reader<'tree> {
    tree: &'tree Tree,
    limits: Limits,
    duplicates: Duplicates,
    memory: &'tree mut Memory,
    depth: usize,
    /// Nodes visited, and those of them under an alias.
    visits: usize,
    alias_visits: usize,
    alias_bytes: usize,
    /// Aliases that are being followed.
    following: Vec<NodeId>,
}

impl<'tree> Reader<'tree> {
    fn new(tree: &'tree Tree, limits: &Limits, duplicates: Duplicates, memory: &'tree mut Memory) -> Self {
        Self {
            tree,
            limits: *limits,
            duplicates,
            memory,
            depth: 0,
            visits: 0,
            alias_visits: 0,
            alias_bytes: 0,
            following: Vec::new(),
        }
    }

    fn value(&mut self, id: NodeId) -> Result<Value, YamlError> {
        let node = self.visit(id)?;
        match &node.content {
            Content::Scalar { text, tag } => {
                self.copy(node, text)?;
                self.take(node, VALUE + text.len())?;
                resolve(*tag, text)
                    .and_then(super::scalar::Resolved::into_value)
                    .map_err(|what| node.error(what))
            }
            Content::Alias(target) => self.follow(id, *target, |reader| reader.value(*target)),
            Content::Sequence(items) => self.nested(node, |reader| {
                reader.take(node, VALUE)?;
                let values: Result<_, _> = items.iter().map(|item| reader.value(*item)).collect();
                values.map(Value::Array)
            }),
            Content::Mapping(_) => {
                self.take(node, MAP)?;
                let mut map = Map::new();
                self.fill(id, &mut map)?;
                Ok(Value::Object(map))
            }
        }
    }

    /// Puts the entries of a mapping into `map`, in the order of the text: what comes later wins, be it a key
    /// of the mapping or of a merged one.
    fn fill(&mut self, id: NodeId, map: &mut Map<String, Value>) -> Result<(), YamlError> {
        let node = self.tree.node(id);
        let Content::Mapping(pairs) = &node.content else { return Ok(()) };
        self.nested(node, |reader| {
            let mut lines: BTreeMap<String, usize> = BTreeMap::new();
            for &(key_id, value_id) in pairs {
                let key_node = reader.tree.node(key_id);
                if key_node.is_merge_key() {
                    reader.merge(value_id, map)?;
                    continue;
                }
                let key = reader.key(key_id)?;
                let first_line = lines.get(&key).filter(|_| reader.duplicates == Duplicates::Refused);
                if let Some(&first_line) = first_line {
                    return Err(key_node.error(YamlProblem::DuplicateKey { key, first_line }));
                }
                lines.insert(key.clone(), key_node.line);
                let value = reader.value(value_id)?;
                map.insert(key, value);
            }
            Ok(())
        })
    }

    fn key(&mut self, id: NodeId) -> Result<String, YamlError> {
        let node = self.visit(id)?;
        match &node.content {
            Content::Scalar { text, tag } => {
                self.copy(node, text)?;
                self.take(node, ENTRY + 2 * text.len())?;
                resolve(*tag, text)
                    .and_then(super::scalar::Resolved::into_key)
                    .map_err(|what| node.error(what))
            }
            Content::Alias(target) => self.follow(id, *target, |reader| reader.key(*target)),
            Content::Sequence(_) | Content::Mapping(_) => Err(node.error(YamlProblem::CompositeKey)),
        }
    }

    /// The value of `<<`: a map, an alias of one, or a list of such, of which the first wins.
    fn merge(&mut self, id: NodeId, map: &mut Map<String, Value>) -> Result<(), YamlError> {
        let node = self.tree.node(id);
        match &node.content {
            Content::Mapping(_) | Content::Alias(_) => self.merge_one(id, map),
            Content::Sequence(items) => items.iter().rev().try_for_each(|item| self.merge_one(*item, map)),
            Content::Scalar { .. } => Err(node.error(YamlProblem::Merge { found: "a scalar" })),
        }
    }

    fn merge_one(&mut self, id: NodeId, map: &mut Map<String, Value>) -> Result<(), YamlError> {
        let node = self.visit(id)?;
        match &node.content {
            Content::Mapping(_) => self.fill(id, map),
            Content::Alias(target) => {
                if !matches!(self.tree.node(*target).content, Content::Mapping(_)) {
                    return Err(node.error(YamlProblem::Merge { found: "an alias of something else" }));
                }
                self.follow(id, *target, |reader| {
                    reader.visit(*target)?;
                    reader.fill(*target, map)
                })
            }
            Content::Sequence(_) => Err(node.error(YamlProblem::Merge { found: "a list in a list" })),
            Content::Scalar { .. } => Err(node.error(YamlProblem::Merge { found: "a scalar" })),
        }
    }

    fn follow<T>(
        &mut self,
        alias: NodeId,
        target: NodeId,
        read: impl FnOnce(&mut Self) -> Result<T, YamlError>,
    ) -> Result<T, YamlError> {
        if self.following.contains(&target) {
            return Err(self.tree.node(alias).error(YamlProblem::Recursive));
        }
        self.following.push(target);
        let result = read(self);
        self.following.pop();
        result
    }

    fn nested<T>(
        &mut self,
        node: &Node,
        read: impl FnOnce(&mut Self) -> Result<T, YamlError>,
    ) -> Result<T, YamlError> {
        if self.depth >= self.limits.max_depth {
            return Err(node.error(YamlProblem::TooDeep { limit: self.limits.max_depth }));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Counts a visit. The rule is the Go library's: of the first 400,000 visits 99 in 100 may be due to
    /// aliases, of 4,000,000 only one in ten.
    fn visit(&mut self, id: NodeId) -> Result<&'tree Node, YamlError> {
        const SMALL: usize = 400_000;
        const LARGE: usize = 4_000_000;
        let node = self.tree.node(id);
        self.visits += 1;
        if !self.following.is_empty() {
            self.alias_visits += 1;
        }
        if self.alias_visits <= 100 || self.visits <= 1000 {
            return Ok(node);
        }
        let percent_allowed = match self.visits {
            ..=SMALL => 99,
            LARGE.. => 10,
            visits => 99 - 89 * (visits - SMALL) / (LARGE - SMALL),
        };
        if self.alias_visits * 100 > self.visits * percent_allowed {
            return Err(node.error(YamlProblem::TooManyAliases));
        }
        Ok(node)
    }

    /// Counts memory.
    fn take(&mut self, node: &Node, n_bytes: usize) -> Result<(), YamlError> {
        self.memory.take(n_bytes).map_err(|what| node.error(what))
    }

    /// Counts text that an alias copies.
    fn copy(&mut self, node: &Node, text: &str) -> Result<(), YamlError> {
        if !self.following.is_empty() {
            self.alias_bytes = self.alias_bytes.saturating_add(text.len());
            if self.alias_bytes > self.limits.max_alias_bytes {
                return Err(node.error(YamlProblem::TooManyAliases));
            }
        }
        Ok(())
    }
}
