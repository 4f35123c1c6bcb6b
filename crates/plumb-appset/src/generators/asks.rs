//! Whose empty answer proves nothing.

use plumb_crd::application_set::ApplicationSetGenerator;
use plumb_crd::wire::Wire as _;
use serde_json::Value as Json;

/// How deep generators are nested.
const MAX_DEPTH: u32 = 3;

/// Does this entry ask a server, or is it of a kind that is not known? An empty answer of such an entry proves nothing. Pull
/// requests are different: that the last one is closed is usual.
pub(crate) fn asks_servers(entry: &ApplicationSetGenerator) -> bool {
    asks(entry, 0)
}

fn asks(entry: &ApplicationSetGenerator, depth: u32) -> bool {
    if entry.git.is_some()
        || entry.scm_provider.is_some()
        || entry.plugin.is_some()
        || entry.cluster_decision_resource.is_some()
    {
        return true;
    }
    let matrix = entry.matrix.iter().flat_map(|matrix| &matrix.generators);
    let merge = entry.merge.iter().flat_map(|merge| &merge.generators);
    let mut children = matrix.chain(merge).peekable();
    if children.peek().is_none() {
        return entry.list.is_none() && entry.clusters.is_none() && entry.pull_request.is_none();
    }
    depth < MAX_DEPTH
        && children.any(|child| {
            let child = ApplicationSetGenerator::read(&Json::Object(child.0.clone()));
            child.is_ok_and(|child| asks(&child, depth + 1))
        })
}
