//! `--resource [!]GROUP:KIND:[NAMESPACE/]NAME`.

use std::str::FromStr;

use plumb_core::glob::Glob;

use crate::view::rows::ObjectRow;

/// One `--resource`.
#[derive(Clone, Debug)]
pub(crate) struct ResourceFilter {
    excludes: bool,
    group: Glob,
    kind: Glob,
    namespace: Option<Glob>,
    name: Glob,
}

impl FromStr for ResourceFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (excludes, rest) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let parts: Vec<&str> = rest.split(':').collect();
        let [group, kind, place] = parts.as_slice() else {
            return Err("expected GROUP:KIND:NAME, such as apps:Deployment:web or *:Service:*".to_owned());
        };
        let glob = |text: &str| Glob::plain(text).map_err(|error| error.to_string());
        let (namespace, name) = match place.split_once('/') {
            Some((namespace, name)) => (Some(glob(namespace)?), name),
            None => (None, *place),
        };
        Ok(Self { excludes, group: glob(group)?, kind: glob(kind)?, namespace, name: glob(name)? })
    }
}

impl ResourceFilter {
    fn matches(&self, state: &ObjectRow) -> bool {
        self.group.matches(&state.group)
            && self.kind.matches(&state.kind)
            && self.namespace.as_ref().is_none_or(|namespace| namespace.matches(&state.namespace))
            && self.name.matches(&state.name)
    }

    /// True if no `!` filter matches the object, and, if there are filters without `!`, one of them does.
    pub(crate) fn any_matches(filters: &[Self], state: &ObjectRow) -> bool {
        let excluded = filters.iter().any(|filter| filter.excludes && filter.matches(state));
        let mut included = filters.iter().filter(|filter| !filter.excludes).peekable();
        !excluded && (included.peek().is_none() || included.any(|filter| filter.matches(state)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_include_and_exclude() {
        let state = |group: &str, kind: &str, namespace: &str, name: &str| ObjectRow {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..ObjectRow::default()
        };
        let web = state("apps", "Deployment", "prod", "web");
        let service = state("", "Service", "prod", "web");
        let matches = |filters: &[&str], state: &ObjectRow| {
            let filters: Vec<ResourceFilter> = filters.iter().map(|text| text.parse().unwrap()).collect();
            ResourceFilter::any_matches(&filters, state)
        };
        assert!(matches(&["apps:Deployment:web"], &web) && !matches(&["apps:Deployment:web"], &service));
        assert!(matches(&[":Service:*"], &service) && matches(&["*:*:prod/web"], &web));
        assert!(!matches(&["*:*:test/web"], &web));
        assert!(matches(&["!apps:*:*"], &service) && !matches(&["!apps:*:*"], &web));
        assert!("Deployment:web".parse::<ResourceFilter>().is_err());
    }
}
