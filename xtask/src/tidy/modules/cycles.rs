//! No top-level modules use each other in a circle, in whatever order they are listed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::graph::Graph;
use crate::tidy::reading::{Tree, crates};
use crate::tidy::violation::Violation;

pub(in crate::tidy) fn check_cycles(tree: &Tree) -> Vec<Violation> {
    let crates = crates(tree);
    let found = crates.iter().flat_map(|krate| {
        let graph = Graph::of(krate);
        let messages: Vec<String> = components(&graph).iter().map(|group| message(&graph, group)).collect();
        messages.into_iter().map(|what| Violation::new(&krate.name, what))
    });
    found.collect()
}

/// The strongly connected components of more than one module: sets in which each module reaches every other.
fn components(graph: &Graph) -> Vec<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.modules.iter().map(|module| (module.as_str(), reachable(graph, module))).collect();
    let mut left: BTreeSet<&str> = reached.keys().copied().collect();
    let mut found = Vec::new();
    while let Some(module) = left.pop_first() {
        let mutual = |other: &&str| reached[module].contains(other) && reached[other].contains(module);
        let group: Vec<&str> = [module].into_iter().chain(left.iter().copied().filter(mutual)).collect();
        left.retain(|other| !group.contains(other));
        if group.len() > 1 {
            found.push(group);
        }
    }
    found
}

fn reachable<'a>(graph: &'a Graph, from: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&str> = graph.used_by(from).collect();
    while let Some(module) = next.pop() {
        if seen.insert(module) {
            next.extend(graph.used_by(module));
        }
    }
    seen
}

/// Names the shortest cycle through the first module of the component, with the files that make it.
fn message(graph: &Graph, group: &[&str]) -> String {
    let cycle =
        group.iter().map(|module| shortest_cycle(graph, module)).min_by_key(Vec::len).unwrap_or_default();
    let files: Vec<String> = cycle
        .windows(2)
        .filter_map(|pair| graph.uses.get(&(pair[0].to_owned(), pair[1].to_owned())))
        .map(|file| file.display().to_string())
        .collect();
    let size = match group.len() {
        n if n + 1 == cycle.len() => String::new(),
        n => format!("; {n} modules are in such cycles: {}", group.join(", ")),
    };
    format!("import cycle {} ({}){size}", cycle.join(" → "), files.join(", "))
}

/// The shortest way from a module back to itself; empty if there is none.
fn shortest_cycle<'a>(graph: &'a Graph, start: &'a str) -> Vec<&'a str> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(module) = next.pop_front() {
        for used in graph.used_by(module) {
            if used == start {
                let mut cycle = vec![start, module];
                while let Some(before) = cycle.last().and_then(|last| came_from.get(last)) {
                    cycle.push(before);
                }
                cycle.reverse();
                return cycle;
            }
            if !came_from.contains_key(used) {
                came_from.insert(used, module);
                next.push_back(used);
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uses: &[(&str, &str)], expected: &[&str]) {
        let modules: BTreeSet<&str> = uses.iter().flat_map(|(user, used)| [*user, *used]).collect();
        let graph = Graph {
            modules: modules.iter().map(|&module| module.to_owned()).collect(),
            uses: uses
                .iter()
                .map(|(user, used)| (((*user).to_owned(), (*used).to_owned()), format!("{user}.rs").into()))
                .collect(),
        };
        let found: Vec<String> = components(&graph).iter().map(|group| message(&graph, group)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn cycles_are_named_and_plain_chains_are_not() {
        check(&[("a", "b"), ("b", "c"), ("a", "c")], &[]);
        check(&[("a", "b"), ("b", "a"), ("c", "a")], &["import cycle a → b → a (a.rs, b.rs)"]);
        check(
            &[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "c"), ("x", "y"), ("y", "x")],
            &[
                "import cycle c → d → c (c.rs, d.rs); 4 modules are in such cycles: a, b, c, d",
                "import cycle x → y → x (x.rs, y.rs)",
            ],
        );
    }
}
