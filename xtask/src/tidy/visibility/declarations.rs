//! What a file declares, and which names each declaration shows to its users.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Field, Ident, ImplItem, Item, ItemImpl, Type, UseTree, Visibility};

use crate::tidy::reading::{is_test_only, of_impl_item, of_item};

/// An item, a method or a field.
pub(super) struct Declaration {
    pub(super) name: String,
    /// Declared as `pub(crate)`.
    pub(super) is_crate_wide: bool,
    /// The names in its signature. The types among them must be at least as visible as the declaration.
    pub(super) shown: BTreeSet<String>,
}

/// The declarations of a file's production code.
pub(super) fn declarations(syntax: &syn::File) -> Vec<Declaration> {
    let mut reader = Reader { found: Vec::new() };
    reader.visit_file(syntax);
    reader.found
}

struct Reader {
    found: Vec<Declaration>,
}

impl Reader {
    fn add(&mut self, name: &Ident, visibility: &Visibility, show: impl FnOnce(&mut Names)) {
        let mut names = Names::default();
        show(&mut names);
        let is_crate_wide = is_crate_wide(visibility);
        self.found.push(Declaration { name: name.to_string(), is_crate_wide, shown: names.0 });
    }

    fn add_use(&mut self, visibility: &Visibility, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.add_use(visibility, &path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_use(visibility, tree)),
            UseTree::Name(name) => self.add(&name.ident, visibility, |_| {}),
            UseTree::Rename(name) => {
                self.add(&name.rename, visibility, |names| names.visit_ident(&name.ident));
            }
            UseTree::Glob(_) => {}
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test_only(of_item(item)) {
            return;
        }
        match item {
            Item::Const(item) => self.add(&item.ident, &item.vis, |names| names.visit_type(&item.ty)),
            Item::Static(item) => self.add(&item.ident, &item.vis, |names| names.visit_type(&item.ty)),
            Item::Type(item) => self.add(&item.ident, &item.vis, |names| names.visit_type(&item.ty)),
            Item::Fn(item) => {
                self.add(&item.sig.ident, &item.vis, |names| names.visit_signature(&item.sig));
            }
            Item::Struct(item) => {
                self.add(&item.ident, &item.vis, |names| names.visit_generics(&item.generics));
            }
            Item::Enum(item) => self.add(&item.ident, &item.vis, |names| {
                names.visit_generics(&item.generics);
                item.variants.iter().for_each(|variant| names.visit_variant(variant));
            }),
            Item::Trait(item) => self.add(&item.ident, &item.vis, |names| names.visit_item_trait(item)),
            Item::Mod(item) => self.add(&item.ident, &item.vis, |_| {}),
            Item::Use(item) => self.add_use(&item.vis, &item.tree),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let Type::Path(owner) = &*item.self_ty else { return };
        for member in item.items.iter().filter(|member| !is_test_only(of_impl_item(member))) {
            match member {
                ImplItem::Fn(member) => {
                    self.add(&member.sig.ident, &member.vis, |names| names.visit_signature(&member.sig));
                }
                ImplItem::Const(member) => {
                    self.add(&member.ident, &member.vis, |names| names.visit_type(&member.ty));
                }
                // `impl Iterator for X { type Item = Y; }` shows `Y` to every user of `X`.
                ImplItem::Type(member) => {
                    if let Some(owner) = owner.path.segments.last() {
                        self.add(&owner.ident, &Visibility::Inherited, |names| names.visit_type(&member.ty));
                    }
                }
                _ => {}
            }
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if let Some(name) = &field.ident {
            self.add(name, &field.vis, |names| names.visit_type(&field.ty));
        }
    }
}

fn is_crate_wide(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Restricted(restricted)
        if restricted.in_token.is_none() && restricted.path.is_ident("crate"))
}

/// The names in a part of the source.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_ident(&mut self, name: &'ast Ident) {
        self.0.insert(name.to_string());
    }
}
