//! Lists and watches the objects of one kind: a streamed list, a watch that resumes, and when to list again.

mod follow;
mod head;
mod lines;
mod objects;

pub(crate) use follow::{FeedEvent, FeedSource, follow};
pub use head::Marks;
pub(crate) use head::{Head, Text};
pub use objects::{ObjectEvent, ObjectStream};
