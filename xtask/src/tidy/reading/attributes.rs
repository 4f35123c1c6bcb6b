//! Which items are test code.

use syn::{Attribute, ImplItem, Item, Meta};

/// True for `#[cfg(test)]` and `#[cfg(all(test, …))]`.
pub(in crate::tidy) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string().replace(' ', "");
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test"))
    })
}

/// True for `#[test]` and `#[tokio::test]`.
pub(in crate::tidy) fn is_test_function(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
    };
    attributes.iter().any(is_test)
}

pub(in crate::tidy) fn of_item(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub(in crate::tidy) fn of_impl_item(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_code_is_told_from_production_code() {
        for (source, is_test) in [
            ("#[cfg(test)] mod tests;", true),
            ("#[cfg(all(test, unix))] mod tests;", true),
            ("#[cfg(not(test))] mod real;", false),
            ("#[cfg(feature = \"test\")] mod kit;", false),
            ("mod plain;", false),
        ] {
            let item: Item = syn::parse_str(source).unwrap();
            assert_eq!(is_test_only(of_item(&item)), is_test, "{source}");
        }
    }
}
