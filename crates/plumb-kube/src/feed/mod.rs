//! Following the objects of one kind: a list that streams, a watch that resumes, and the rules of when to
//! start over.

mod follow;
mod head;
mod lines;
mod objects;

pub(crate) use follow::{FeedEvent, FeedSource, follow};
pub use head::Marks;
pub(crate) use head::{Head, Text};
pub use objects::{ObjectEvent, ObjectStream};
