//! Which template an object comes from.

use plumb_core::desired::Origin;
use plumb_core::source::RepoPath;

/// The `# Source: chart/templates/x.yaml` comments of Helm's output, by line.
pub(super) struct Origins {
    /// Line of the comment, and the file.
    comments: Vec<(usize, String)>,
    source: usize,
}

impl Origins {
    pub(super) fn read(output: &[u8], chart: &RepoPath, source: usize) -> Self {
        let text = String::from_utf8_lossy(output);
        let comments = text
            .lines()
            .enumerate()
            .filter_map(|(index, line)| {
                let file = line.strip_prefix("# Source: ")?;
                // The first component is the chart's name, which may differ from the directory's.
                let below = file.split_once('/').map_or(file, |(_, below)| below);
                Some((index + 1, chart.join(below).ok()?.as_str().to_owned()))
            })
            .collect();
        Self { comments, source }
    }

    /// The last comment before the document's first line.
    pub(super) fn at(&self, line: usize) -> Option<Origin> {
        let index = self.comments.partition_point(|(at, _)| *at <= line).checked_sub(1)?;
        let (_, file) = self.comments.get(index)?;
        Some(Origin { source: self.source, file: file.clone(), line: 1, verbatim: false })
    }
}
