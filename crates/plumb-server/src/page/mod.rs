//! The page: its files, what it reads (`/api/plumb/v1`), and what it does through the handlers of the API.

mod reply;
mod feed;
mod caller;
mod stream;
mod users;
mod settings;
mod reads;
mod acts;
mod undo;
mod routes;

pub use caller::PageMode;
pub(crate) use routes::{Page, PageRequest, is_page_path};
