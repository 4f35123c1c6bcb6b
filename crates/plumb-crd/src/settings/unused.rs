//! Settings of Argo CD that have no effect on plumb. Whoever set one is told, once, and why.

use super::{ConfigData, SettingsProblem};

/// Object, key, the value that says what plumb does anyway, and the reason.
const WITHOUT_EFFECT: [(&str, &str, &str, &str); 18] = [
    (
        "argocd-cm",
        "helm.valuesFileSchemes",
        "",
        "value files by URL are refused: what is rendered comes from the repositories",
    ),
    (PARAMETERS, "controller.operation.processors", "", "a sync occupies no worker while it waits"),
    (
        PARAMETERS,
        "controller.repo.error.grace.period.seconds",
        "0",
        "errors of a repository are shown at once",
    ),
    (PARAMETERS, "controller.self.heal.backoff.cooldown.seconds", "", "it has none in Argo CD either"),
    (
        PARAMETERS,
        "controller.sync.wave.delay.seconds",
        "0",
        "a wave begins when the one before it is healthy",
    ),
    (
        PARAMETERS,
        "controller.kubectl.parallelism.limit",
        "",
        "there is no kubectl; plumb has as many requests in flight as the API server answers well",
    ),
    (PARAMETERS, "controller.k8s.client.qps", "", REQUESTS),
    (PARAMETERS, "controller.k8s.client.burst", "", REQUESTS),
    (
        PARAMETERS,
        "controller.ignore.normalizer.jq.timeout",
        "",
        "expressions that might not end are refused, so none has to be cut off",
    ),
    (PARAMETERS, "controller.app.state.cache.expiration", "", CACHE),
    (PARAMETERS, "controller.default.cache.expiration", "", CACHE),
    (PARAMETERS, "reposerver.repo.cache.expiration", "", CACHE),
    (
        PARAMETERS,
        "controller.cluster.cache.batch.events.processing",
        "",
        "events are always taken in together, after milliseconds",
    ),
    (
        PARAMETERS,
        "controller.cluster.cache.events.processing.interval",
        "",
        "events are always taken in together, after milliseconds",
    ),
    (PARAMETERS, "controller.sharding.algorithm", "", "one process leads and works on all clusters"),
    (PARAMETERS, "controller.metrics.cache.expiration", "", "the numbers of an app go with the app"),
    (PARAMETERS, "hydrator.enabled", "false", "rendering to branches is not there yet"),
    (PARAMETERS, "controller.hydration.processors", "", "rendering to branches is not there yet"),
];

const PARAMETERS: &str = "argocd-cmd-params-cm";
const CACHE: &str = "what is kept is used until what it was made from changes";
const REQUESTS: &str = "plumb has as many requests in flight as the API server answers well";

/// What is set and has no effect.
pub fn without_effect(config: &ConfigData, parameters: &ConfigData) -> Vec<SettingsProblem> {
    const FIXED: &str = "controller.self.heal.timeout.seconds";
    const BACKOFF: &str = "controller.self.heal.backoff.timeout.seconds";
    let mut found: Vec<SettingsProblem> = WITHOUT_EFFECT
        .iter()
        .filter(|(object, key, anyway, _)| {
            let map = if *object == PARAMETERS { parameters } else { config };
            map.get(*key).map(|value| value.trim()).is_some_and(|value| !value.is_empty() && value != *anyway)
        })
        .map(|(object, key, _, reason)| SettingsProblem {
            place: format!("{object} {key}"),
            reason: (*reason).to_owned(),
        })
        .collect();
    let value = |key: &str| parameters.get(key).map(|value| value.trim()).unwrap_or_default();
    if !matches!(value(FIXED), "" | "0") && value(BACKOFF) != "0" {
        found.push(SettingsProblem {
            place: format!("{PARAMETERS} {FIXED}"),
            reason: format!("it counts only where {BACKOFF} is 0"),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: &[(&str, &str)], parameters: &[(&str, &str)], expected: &[&str]) {
        let data = |pairs: &[(&str, &str)]| -> ConfigData {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let found = without_effect(&data(config), &data(parameters));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_has_no_effect_is_told_where_somebody_set_it() {
        check(&[], &[], &[]);
        check(
            &[("helm.valuesFileSchemes", "https")],
            &[("controller.sync.wave.delay.seconds", "10"), ("hydrator.enabled", "false")],
            &[
                "argocd-cm helm.valuesFileSchemes: value files by URL are refused: what is rendered comes from the \
                 repositories",
                "argocd-cmd-params-cm controller.sync.wave.delay.seconds: a wave begins when the one before it is \
                 healthy",
            ],
        );
        check(
            &[],
            &[("controller.sync.wave.delay.seconds", "0"), ("controller.operation.processors", " ")],
            &[],
        );
    }

    #[test]
    fn a_fixed_wait_counts_only_without_a_growing_one() {
        let fixed = ("controller.self.heal.timeout.seconds", "5");
        let says = "argocd-cmd-params-cm controller.self.heal.timeout.seconds: it counts only where \
                    controller.self.heal.backoff.timeout.seconds is 0";
        check(&[], &[fixed], &[says]);
        check(&[], &[fixed, ("controller.self.heal.backoff.timeout.seconds", "2")], &[says]);
        check(&[], &[fixed, ("controller.self.heal.backoff.timeout.seconds", "0")], &[]);
        check(&[], &[("controller.self.heal.timeout.seconds", "0")], &[]);
    }
}
