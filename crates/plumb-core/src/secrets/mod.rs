//! Secrets and what stands for them in Git.
//!
//! - `scope`, `plain`, `sealed`, `merge`, `env_file`: from a Secret to a `SealedSecret`. The encryption itself is done
//!   by the caller: this crate has no randomness and no keys.
//! - `plain_in_git`, `tokens`, `sops`: what must not be in Git, or not as it is.
//! - `unknown`, `writers`, `expiry`: Secrets of a cluster that Git does not know, that somebody edited, that end soon;
//!   `report` puts them together, `clusters` those of several clusters.
//! - `external`: checks of `ExternalSecrets`.
//!
//! Plain values come in and go out as bytes. No error, no finding and no `Debug` output of this module has one.

mod expiry;
mod plain;
mod env_file;
mod external;
mod merge;
mod sops;
mod plain_in_git;
mod commands;
mod report;
mod clusters;
mod scope;
mod sealed;
mod stored;
mod tokens;
mod unknown;
mod uses;
mod writers;

pub use clusters::{SecretsOfCluster, SecretsOfClusters};
pub use env_file::{EnvFileError, parse_env_file};
pub use expiry::Expiry;
pub use external::{ExternalProblem, ExternalProblemKind, external_problems, external_secret_for, store_key};
pub use merge::{MergeProblem, Merged, merge};
pub use plain::{PlainSecret, PlainSecretProblem, Values};
pub use plain_in_git::{
    plain_fields, plain_keys, plain_keys_of, plain_secrets, plain_secrets_message, shown_keys,
};
pub use report::{EditedSecret, ExpiringCertificate, PlainInGit, SecretsReport};
pub use scope::SealingScope;
pub use sealed::{is_sealed_secret, sealed_secret};
pub use sops::{has_sops_values, is_sops, sops_message, sops_recipients};
pub use stored::as_stored;
pub use tokens::{TokenHint, is_secret_reference, looks_like, looks_random, token_hints};
pub use unknown::{SecretFacts, UnknownSecret, unknown_secrets};
pub use uses::secrets_used;
pub use writers::{HandEdit, Writer, controller_of, edited_by_hand, may_be_edited_by_hand, removed_by_hand};
