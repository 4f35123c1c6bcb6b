//! The API of the server in the shape of a Kubernetes API server, so that commands are written once: with credentials
//! of the cluster their client talks to Kubernetes, and after `plumb login` to this.
//!
//! It answers what commands ask for: Applications, projects, the Secrets that register clusters and repositories (without
//! credentials), reports, and the objects of the Application that was read last. Every answer is a call of the API, so the
//! permissions of the user count, not those of a kubeconfig.

mod answer;
mod asked;
mod discovery;
mod state;
mod applications;
mod projects;
mod registrations;
mod objects;
mod door;

pub(crate) use state::Door;
