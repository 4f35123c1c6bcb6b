//! A repository as a whole: the Applications in its files and of its sets, rendered at one state, without a cluster.

mod state;
mod applications;
mod offline;
mod bare;
mod renderer;
mod app;
mod sets;
mod load;

pub(crate) use app::{Failure, RepositoryApp};
pub(crate) use load::{LoadedRepository, load};
pub(crate) use offline::Offline;
pub(crate) use renderer::RepositoryRenderer;
pub(crate) use state::RepositoryState;
