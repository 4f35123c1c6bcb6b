//! The object exists, and no app that renders it tracks it.

use super::stale_ownership;
use crate::drift::case::{Case, is_tracking_mark};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};
use crate::object::FieldPath;

/// The live object has no tracking mark, or the mark of an app that no longer renders it.
pub(in crate::drift) fn explain(case: &Case<'_>, former_owner: Option<&str>) -> Vec<Explained> {
    // The tracking mark makes it unadopted; it is not a difference of content.
    let differences =
        || case.comparison.differences.iter().filter(|difference| !is_tracking_mark(&difference.path));
    let what = if differences().next().is_none() {
        "its content matches Git"
    } else {
        "its content differs from Git"
    };
    let whose = match former_owner {
        Some(app) => format!("it is tracked by app `{app}`, which no longer renders it"),
        None => "the object exists, and no app tracks it".to_owned(),
    };
    let mut explained =
        Explained::new(DriftClass::Unadopted, FieldPath::root(), true, format!("{whose}; {what}"));
    explained.actor = former_owner.map(str::to_owned);
    let fields = differences().map(|difference| {
        Explained::new(DriftClass::Unadopted, difference.path.clone(), true, case.values(difference))
    });
    // The adoption removes what an earlier apply left and Git does not have.
    let leftovers = case.comparison.additions.iter().filter_map(|addition| {
        let entry = stale_ownership::owner(case, addition)?;
        let stale = stale_ownership::addition(case, addition, entry)?;
        Some(Explained { class: DriftClass::Unadopted, ..stale })
    });
    std::iter::once(explained).chain(fields).chain(leftovers).collect()
}

pub(in crate::drift) fn fix(app: &str) -> Fix {
    Fix::new(
        FixKind::Adopt,
        format!(
            "a sync adopts it (`plumb app sync {app}`): the object gets this app's tracking mark and Git's content"
        ),
    )
}
