//! Finds `pub(crate)` declarations whose names occur only in their own top-level module. Goes by name alone, so
//! that a name which also occurs elsewhere is never reported.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use proc_macro2::{TokenStream, TokenTree};
use syn::Item;

use super::declarations::{Declaration, declarations};
use crate::tidy::reading::{Crate, Module, RustFile, Tree, crates};
use crate::tidy::violation::Violation;

pub(in crate::tidy) fn check(tree: &Tree) -> Vec<Violation> {
    crates(tree).iter().flat_map(violations).collect()
}

fn violations(krate: &Crate<'_>) -> Vec<Violation> {
    let mut by_top: BTreeMap<&str, Vec<&Module<'_>>> = BTreeMap::new();
    for module in &krate.modules {
        by_top.entry(module.top()).or_default().push(module);
    }
    let names: BTreeMap<&str, BTreeSet<String>> = by_top
        .iter()
        .map(|(top, modules)| (*top, modules.iter().flat_map(|module| names_in(module.file)).collect()))
        .collect();
    let root_names = names_in(krate.root);
    let mut found = Vec::new();
    for (top, modules) in &by_top {
        let in_macros: BTreeSet<String> =
            modules.iter().flat_map(|module| names_in_macros(module.file)).collect();
        let occurs_outside = |name: &str| {
            let others = names.iter().filter(|(other, _)| other != &top).map(|(_, names)| names);
            root_names.contains(name)
                || in_macros.contains(name)
                || others.into_iter().any(|names| names.contains(name))
        };
        let declared: Vec<(&Module<'_>, Declaration)> = modules
            .iter()
            .filter(|module| !module.is_test)
            .flat_map(|module| declarations(&module.file.syntax).into_iter().map(move |one| (*module, one)))
            .collect();
        let needed = needed_outside(&declared, occurs_outside);
        for (module, declaration) in
            declared.iter().filter(|(_, one)| one.is_crate_wide && !needed.contains(&one.name))
        {
            let place = format!("{} {}", module.file.path.display(), declaration.name);
            let what =
                format!("`pub(crate)`, but only `{top}` uses it: `pub(super)` or `pub(in crate::{top})`");
            found.push(Violation::new(place, what));
        }
    }
    found
}

/// The names that occur outside, and the names that their signatures show, and so on.
fn needed_outside(
    declared: &[(&Module<'_>, Declaration)],
    occurs_outside: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let mut needed: BTreeSet<String> =
        declared.iter().map(|(_, one)| one.name.clone()).filter(|name| occurs_outside(name)).collect();
    loop {
        let shown: BTreeSet<String> = declared
            .iter()
            .filter(|(_, one)| needed.contains(&one.name))
            .flat_map(|(_, one)| one.shown.iter().cloned())
            .collect();
        let before = needed.len();
        needed.extend(shown);
        if needed.len() == before {
            return needed;
        }
    }
}

/// Every identifier of a file, those in macros included. The two uses of a name are not told apart.
fn names_in(file: &RustFile) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // The file was parsed before, so that it has tokens.
    add_names(TokenStream::from_str(&file.text).unwrap_or_default(), &mut names);
    names
}

/// The identifiers in the `macro_rules!` of a file. A macro puts them wherever it is used.
fn names_in_macros(file: &RustFile) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for item in &file.syntax.items {
        if let Item::Macro(item) = item {
            add_names(item.mac.tokens.clone(), &mut names);
        }
    }
    names
}

fn add_names(tokens: TokenStream, names: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                names.insert(name.to_string());
            }
            TokenTree::Group(group) => add_names(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(inside: &str, outside: &str, expected: &[&str]) {
        let tree = Tree::of(&[
            ("crates/x/src/lib.rs", "mod a;\nmod b;"),
            ("crates/x/src/a.rs", inside),
            ("crates/x/src/b.rs", outside),
        ]);
        let found = super::check(&tree);
        let places: Vec<&str> =
            found.iter().filter_map(|violation| violation.place.strip_prefix("crates/x/src/a.rs ")).collect();
        assert_eq!(places, expected, "{inside} with {outside}");
    }

    #[test]
    fn only_names_that_no_other_module_has_are_reported() {
        check("pub(crate) fn f() {} pub(crate) fn g() {}", "fn h() { crate::a::f() }", &["g"]);
        check("pub(super) fn f() {} fn g() {} pub(in crate::a) fn h() {}", "", &[]);
        check(
            "pub(crate) struct S { pub(crate) x: u8, pub(crate) y: u8 }",
            "use crate::a::S; fn f(s: S) { s.x }",
            &["y"],
        );
        check("pub(crate) use inner::{A, B as C};", "use crate::a::A;", &["C"]);
        check("#[cfg(test)] pub(crate) fn f() {}", "", &[]);
        check("macro_rules! m { () => { $crate::a::f() } } pub(crate) fn f() {}", "", &[]);
        check(
            "impl S { pub(crate) fn f(&self) {} pub(crate) fn g(&self) {} }",
            "fn h() { println!(\"{}\", s.f()) }",
            &["g"],
        );
    }

    #[test]
    fn a_type_that_a_used_signature_shows_is_not_reported() {
        check("pub(crate) struct S; pub(crate) fn f() -> S {}", "fn h() { crate::a::f(); }", &[]);
        check("pub(crate) struct S; pub(crate) fn f() -> S {}", "", &["S", "f"]);
        check(
            "pub(crate) enum E { V(S) } pub(crate) struct S { pub(crate) t: T } pub(crate) struct T;",
            "use crate::a::E;",
            &["t", "T"],
        );
        check(
            "pub(crate) struct I; pub(crate) struct S; impl Iterator for I { type Item = S; }",
            "use crate::a::I;",
            &[],
        );
    }
}
