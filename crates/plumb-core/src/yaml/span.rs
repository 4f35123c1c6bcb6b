//! Where the parts of a document are, for those who change its text.

/// Where one node is, as bytes of its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Its first byte, be it that of its anchor or tag.
    pub start: usize,
    /// The first byte of its value, behind anchor and tag.
    pub content: usize,
    /// The byte behind its last one. Comments and blanks behind the value do not belong to it.
    pub end: usize,
    /// Column of its first byte, from 0. In a block map or list, every key or `-` is in this column.
    pub column: usize,
    pub style: Style,
    /// One for each key of a map and each item of a list.
    pub entries: Vec<EntrySpan>,
}

/// Where an entry of a map or list starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntrySpan {
    /// The first byte: of the key or its `?`, of `-`, or in a flow list of the item.
    pub start: usize,
    /// The byte behind `:` or `-`, where there is one.
    pub indicator_end: Option<usize>,
}

/// How a node is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// There is no text: null.
    Empty,
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// A text behind `|` or `>`.
    BlockText,
    /// A map or list of lines.
    Block,
    /// A map or list in brackets.
    Flow,
    /// A map of one key inside `[ ]`, without brackets of its own.
    FlowPair,
    Alias,
}

/// The spans of a document's nodes. Only an edit asks for them: reading alone does not need them.
pub(super) struct Spans {
    /// By the node's number.
    spans: Option<Vec<Span>>,
    /// The byte behind the last token that was taken.
    last_end: usize,
}

impl Spans {
    pub(super) fn new(is_wanted: bool) -> Self {
        Self { spans: is_wanted.then(Vec::new), last_end: 0 }
    }

    pub(super) fn into_inner(self) -> Vec<Span> {
        self.spans.unwrap_or_default()
    }

    /// A token was taken.
    pub(super) fn took(&mut self, end: usize) {
        self.last_end = self.last_end.max(end);
    }

    /// A node was made that has no text yet: it is behind the last token.
    pub(super) fn push(&mut self) {
        let at = self.last_end;
        if let Some(spans) = &mut self.spans {
            let style = Style::Empty;
            spans.push(Span { start: at, content: at, end: at, column: 0, style, entries: Vec::new() });
        }
    }

    /// The node has been read to its end.
    pub(super) fn settle(&mut self, node: usize, start: usize, content: (usize, usize), style: Style) {
        let end = self.last_end;
        if let Some(span) = self.spans.as_mut().and_then(|spans| spans.get_mut(node)) {
            (span.start, span.content, span.column) = (start, content.0, content.1);
            (span.end, span.style) = (end, style);
        }
    }

    /// The node is nothing but an anchor or a tag.
    pub(super) fn settle_empty(&mut self, node: usize, start: usize) {
        let end = self.last_end;
        self.settle(node, start, (end, 0), Style::Empty);
    }

    /// An entry of a map or list was read.
    pub(super) fn entry(&mut self, node: usize, start: usize, indicator_end: Option<usize>) {
        if let Some(span) = self.spans.as_mut().and_then(|spans| spans.get_mut(node)) {
            span.entries.push(EntrySpan { start, indicator_end });
        }
    }
}
