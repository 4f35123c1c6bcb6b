//! No production function has more than 60 lines, unless the comment above it gives the reason: "Long because …".

use syn::visit::{self, Visit};
use syn::{Attribute, Block, ImplItem, ImplItemFn, Item, ItemFn, ItemImpl, Signature, TraitItemFn, Type};

use super::reading::{RustFile, Tree, crates, is_test_function, is_test_only, of_impl_item, of_item};
use super::violation::Violation;

const MOST_LINES: usize = 60;

/// The words that give the reason for a long function.
const REASON: &str = "Long because";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let crates = crates(tree);
    let files = crates.iter().flat_map(|krate| {
        let modules = krate.modules.iter().filter(|module| !module.is_test).map(|module| module.file);
        [krate.root].into_iter().chain(modules)
    });
    files.flat_map(violations).collect()
}

fn violations(file: &RustFile) -> Vec<Violation> {
    let mut reader = Reader { owner: String::new(), functions: Vec::new() };
    reader.visit_file(&file.syntax);
    let lines: Vec<&str> = file.text.lines().collect();
    let too_long = reader.functions.iter().filter(|function| function.n_lines() > MOST_LINES);
    too_long
        .filter(|function| !function.has_reason(&lines))
        .map(|function| {
            let place = format!("{} {}", file.path.display(), function.name);
            let what = format!(
                "{} lines at line {}, at most {MOST_LINES}: split it, or say why in a comment (`{REASON} …`)",
                function.n_lines(),
                function.first
            );
            Violation::new(place, what)
        })
        .collect()
}

struct Function {
    name: String,
    /// The line of its first attribute or doc comment.
    attributes: usize,
    /// The line of its signature.
    first: usize,
    last: usize,
}

impl Function {
    fn n_lines(&self) -> usize {
        self.last - self.first + 1
    }

    fn has_reason(&self, lines: &[&str]) -> bool {
        let above = lines.iter().take(self.attributes.saturating_sub(1)).rev();
        let comment = above.take_while(|line| line.trim_start().starts_with("//"));
        let attributes = lines.iter().take(self.first).skip(self.attributes.saturating_sub(1));
        let all: Vec<&str> = comment.chain(attributes).copied().collect();
        all.iter().any(|line| line.contains(REASON))
    }
}

struct Reader {
    /// The type whose `impl` is being read.
    owner: String,
    functions: Vec<Function>,
}

impl Reader {
    fn add(&mut self, attributes: &[Attribute], signature: &Signature, body: &Block) {
        let first = signature.fn_token.span.start().line;
        let owner = if self.owner.is_empty() { String::new() } else { format!("{}::", self.owner) };
        self.functions.push(Function {
            name: format!("{owner}{}", signature.ident),
            attributes: attributes
                .iter()
                .map(|attribute| attribute.pound_token.span.start().line)
                .min()
                .unwrap_or(first),
            first,
            last: body.brace_token.span.close().end().line,
        });
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(of_item(item)) && !is_test_function(of_item(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !is_test_only(of_impl_item(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let name = match &*item.self_ty {
            Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        let outer = std::mem::replace(&mut self.owner, name.unwrap_or_default());
        visit::visit_item_impl(self, item);
        self.owner = outer;
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.add(&item.attrs, &item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.add(&item.attrs, &item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.attrs, &item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `HERE` becomes a body that makes its function as many lines long.
    fn check(source: &str, n_lines: usize, expected: &[&str]) {
        let body = "    f();\n".repeat(n_lines - 2);
        let text = source.replace("HERE", &format!("{{\n{body}}}"));
        let found = violations(&RustFile::new("a.rs", text).unwrap());
        let found: Vec<String> = found.into_iter().map(|violation| violation.place).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn only_a_long_function_without_a_reason_is_reported() {
        check("fn f() HERE", MOST_LINES, &[]);
        check("fn f() HERE", MOST_LINES + 1, &["a.rs f"]);
        check("impl X<'_> { async fn f(&self) HERE }", 61, &["a.rs X::f"]);
        check("// Long because it is a table.\nfn f() HERE", 61, &[]);
        check("/// Does it. Long because it is a table.\n#[expect(x, reason = \"y\")]\nfn f() HERE", 61, &[]);
        check("// Long because.\n\nfn f() HERE", 61, &["a.rs f"]);
        check("#[cfg(test)]\nmod tests { fn f() HERE }", 61, &[]);
        check("#[tokio::test]\nasync fn f() HERE", 61, &[]);
        check("mod inner { fn f() HERE }", 61, &["a.rs f"]);
    }
}
