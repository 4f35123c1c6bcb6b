//! Which kinds a cluster serves, in which versions, under which URL paths. A value: reading it from the API server is
//! the job of `discovery`.

mod kinds;
mod resource;
mod tagged;

pub use kinds::{Catalog, ServedKind, ServedVersion, ServerVersion, Verbs};
pub use resource::Resource;
pub(crate) use resource::percent_encode;
pub(crate) use tagged::{DiscoveryCache, Tagged};
