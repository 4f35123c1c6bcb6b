//! Settings of Argo CD that have no effect on plumb. plumb logs each one that is set, once, with the reason.

use super::{ConfigData, SettingsProblem};

/// Object, key, the value that matches what plumb does anyway, and the reason.
const WITHOUT_EFFECT: [(&str, &str, &str, &str); 30] = [
    (
        "argocd-cm",
        "helm.valuesFileSchemes",
        "",
        "value files by URL are refused: all inputs of a rendering come from the repositories",
    ),
    (PARAMETERS, "controller.operation.processors", "", "a sync occupies no worker while it waits"),
    (
        PARAMETERS,
        "controller.repo.error.grace.period.seconds",
        "0",
        "errors of a repository are shown at once",
    ),
    (PARAMETERS, "controller.self.heal.backoff.cooldown.seconds", "", "it has no effect in Argo CD either"),
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
        "plumb does not use kubectl, and adapts the number of concurrent requests to the API server",
    ),
    (PARAMETERS, "controller.k8s.client.qps", "", REQUESTS),
    (PARAMETERS, "controller.k8s.client.burst", "", REQUESTS),
    (
        PARAMETERS,
        "controller.ignore.normalizer.jq.timeout",
        "",
        "expressions that might not terminate are refused, so no timeout is needed",
    ),
    (PARAMETERS, "controller.app.state.cache.expiration", "", CACHE),
    (PARAMETERS, "controller.default.cache.expiration", "", CACHE),
    (PARAMETERS, "reposerver.repo.cache.expiration", "", CACHE),
    (
        PARAMETERS,
        "controller.cluster.cache.batch.events.processing",
        "",
        "events are always processed in batches, within milliseconds",
    ),
    (
        PARAMETERS,
        "controller.cluster.cache.events.processing.interval",
        "",
        "events are always processed in batches, within milliseconds",
    ),
    (PARAMETERS, "controller.sharding.algorithm", "", "one leader process manages all clusters"),
    (PARAMETERS, "controller.metrics.cache.expiration", "", "the metrics of an app are removed with the app"),
    (
        PARAMETERS,
        "applicationsetcontroller.concurrent.reconciliations.max",
        "",
        "4 sets generate at the same time",
    ),
    (
        PARAMETERS,
        "applicationsetcontroller.enable.git.submodule",
        "false",
        "generators read the files of the repository itself, without submodules",
    ),
    (
        PARAMETERS,
        "applicationsetcontroller.scm.root.ca.path",
        "",
        "plumb has no such file: name a ConfigMap with caRef in the generator",
    ),
    (PARAMETERS, "controller.log.level", "info", LOG),
    (PARAMETERS, "controller.log.format", "text", LOG),
    (PARAMETERS, "server.log.level", "info", LOG),
    (PARAMETERS, "server.log.format", "text", LOG),
    (
        PARAMETERS,
        "server.disable.auth",
        "false",
        "the API always asks for a login; users.anonymous.enabled in argocd-cm lets users in without one",
    ),
    (
        PARAMETERS,
        "server.listen.address",
        "0.0.0.0",
        "the flag --web-address of `plumb run` is the address of the API",
    ),
    (PARAMETERS, "server.x.frame.options", "sameorigin", FRAMES),
    (PARAMETERS, "server.content.security.policy", "frame-ancestors 'self';", FRAMES),
    (PARAMETERS, "server.staticassets", "/shared/app", "the page is part of the program"),
    (PARAMETERS, "hydrator.enabled", "false", "rendering to branches is not supported yet"),
    (PARAMETERS, "controller.hydration.processors", "", "rendering to branches is not supported yet"),
];

const PARAMETERS: &str = "argocd-cmd-params-cm";
const LOG: &str = "--log-level and --log-format of `plumb run` decide about plumb's log";
const FRAMES: &str = "no other page may show plumb's page in a frame";
const CACHE: &str = "cached data is used until its inputs change";
const REQUESTS: &str = "plumb adapts the number of concurrent requests to the API server";

/// Settings that are set and have no effect.
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
    fn settings_without_effect_are_reported_if_they_are_set() {
        check(&[], &[], &[]);
        check(
            &[("helm.valuesFileSchemes", "https")],
            &[("controller.sync.wave.delay.seconds", "10"), ("hydrator.enabled", "false")],
            &[
                "argocd-cm helm.valuesFileSchemes: value files by URL are refused: all inputs of a rendering come \
                 from the repositories",
                "argocd-cmd-params-cm controller.sync.wave.delay.seconds: a wave begins when the one before it is \
                 healthy",
            ],
        );
        check(
            &[],
            &[("controller.sync.wave.delay.seconds", "0"), ("controller.operation.processors", " ")],
            &[],
        );
        check(
            &[],
            &[("server.disable.auth", "true"), ("server.insecure", "true"), ("server.log.level", "info")],
            &[
                "argocd-cmd-params-cm server.disable.auth: the API always asks for a login; users.anonymous.enabled in \
                 argocd-cm lets users in without one",
            ],
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
