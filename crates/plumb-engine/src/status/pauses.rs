//! What a person holds.

use plumb_core::app::{App, Pause};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_crd::Application;

use crate::compare::run::Compared;
use crate::reconcile::run::Run;

impl Run<'_> {
    /// Why an object is held by a person, if it is.
    pub(crate) fn paused(&self, live: &Manifest) -> Option<String> {
        self.pause_of(live).map(|pause| pause.reason)
    }

    fn pause_of(&self, live: &Manifest) -> Option<Pause> {
        let pause = Pause::parse(live.annotation(Pause::ANNOTATION)?);
        pause.holds_at(self.now).then_some(pause)
    }

    /// What a person holds: the app itself first, then its objects.
    pub(crate) fn pauses(&self, app: &App, compared: &Compared) -> Vec<(ObjectKey, Pause)> {
        let itself = app.pause.clone().filter(|pause| pause.holds_at(self.now)).map(|pause| {
            let key = ObjectKey::new(
                "argoproj.io",
                Application::KIND,
                Some(app.id.namespace.clone()),
                app.id.name.clone(),
            );
            (key, pause)
        });
        let objects = compared.live.objects.iter();
        itself
            .into_iter()
            .chain(objects.filter_map(|(key, live)| Some((key.clone(), self.pause_of(live)?))))
            .collect()
    }
}
