//! What a proposal is made from.

use crate::desired::Origin;
use crate::drift::Finding;
use crate::object::Manifest;

/// A finding with what is known about its object.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'facts> {
    /// The finding.
    pub finding: &'facts Finding,
    /// The object in Git; for a hook, the hook.
    pub desired: Option<&'facts Manifest>,
    /// Where Git has it.
    pub origin: Option<&'facts Origin>,
    /// The object in the cluster.
    pub live: Option<&'facts Manifest>,
    /// Does Argo CD show the object as `OutOfSync`? `None` if it is not known.
    pub is_red_in_argo_cd: Option<bool>,
    /// The user wants Git to take over what was edited in the cluster.
    pub keeps_live: bool,
    /// Who keeps an object that several apps render, if the user chose.
    pub keeper: Option<Keeper<'facts>>,
    /// The object as the app that keeps it asks for it, if its Git is known.
    pub kept: Option<&'facts Manifest>,
    /// The user asked for this class by its name.
    pub is_asked_for: bool,
    /// Argo CD sees no other difference. If it shows the object as `OutOfSync`, it is because of this one.
    pub is_alone: bool,
    /// What the last sync did with the object.
    pub last_sync: LastSync<'facts>,
}

/// The app that keeps an object which several apps render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper<'facts> {
    /// The app of the finding.
    ThisApp,
    /// Another app, by its name.
    Other(&'facts str),
}

/// What the last sync of the app did with an object, as far as the status of the app tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastSync<'facts> {
    /// It applied the object.
    Applied,
    /// The API server refused the object, with this message.
    Refused(&'facts str),
    /// The status says nothing about the object.
    Unknown,
}
