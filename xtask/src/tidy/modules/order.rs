//! A top-level module uses only modules that are listed above it.

use super::graph::Graph;
use crate::tidy::reading::{Tree, crates};
use crate::tidy::violation::Violation;

pub(in crate::tidy) fn check_order(tree: &Tree) -> Vec<Violation> {
    let crates = crates(tree);
    let found = crates.iter().flat_map(|krate| {
        violations(&Graph::of(krate)).into_iter().map(|what| Violation::new(&krate.name, what))
    });
    found.collect()
}

fn violations(graph: &Graph) -> Vec<String> {
    let position = |module: &str| graph.modules.iter().position(|name| name == module);
    let points_down = graph.uses.iter().filter(|((user, used), _)| position(used) > position(user));
    points_down
        .map(|((user, used), file)| {
            format!("`{user}` uses `{used}`, which is listed below it ({})", file.display())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_use_of_a_module_below_is_reported() {
        let tree = Tree::of(&[
            ("crates/x/src/lib.rs", "mod low;\nmod high;"),
            ("crates/x/src/low.rs", "use crate::high::H;"),
            ("crates/x/src/high.rs", "use crate::low::L;"),
        ]);
        let found: Vec<String> = check_order(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(found, [": x: `low` uses `high`, which is listed below it (crates/x/src/low.rs)"]);
    }
}
