//! One diagnosis in every format.

use expect_test::expect;

use super::scene::*;
use crate::doctor::*;

#[test]
fn formats() {
    let diagnosis = diagnose(&cluster(), &Filter::default(), now());
    expect![[r"
        # plumb doctor

        ## Unhealthy for too long

        | app | object | health | for | cause |
        |---|---|---|---|---|
        | rollouts | apps/Deployment shop/rollouts | Progressing | 21d 2h | Pod shop/rollouts-6b4c: container main keeps crashing (CrashLoopBackOff): 1154 restarts, exit code 1 |
        | payments | Service shop/lb | Degraded | 1h 0m | no address |

        ## Wrong

        | class | app | object | fields | by | for |
        |---|---|---|---|---|---|
        | Blocked | payments | Service shop/lb | /spec/ports |  |  |
        | LiveEdit | payments | apps/Deployment shop/web | /spec/replicas | kubectl | 3h 0m |
        | LiveEdit | team/payments | apps/Deployment shop/api | /spec/replicas | kubectl | 2d 0h |

        ## Red, but nothing is wrong

        | class | app | object | fields | by | for |
        |---|---|---|---|---|---|
        | PhantomDefault | payments | ConfigMap shop/c | /data/x |  |  |

        ## Not in Git

        | class | app | object | fields | by | for |
        |---|---|---|---|---|---|
        | Orphan | payments | Secret shop/old\|one |  |  | 6d 23h |

        ## Rendered differently each time

        | class | app | object | fields | by | for |
        |---|---|---|---|---|---|
        | UnstableRender | team/payments | apps/Deployment shop/api | /spec/template/metadata/annotations/t |  |  |
    "]].assert_eq(&markdown(&diagnosis, "argocd", now()));
    expect![[r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="plumb doctor">
          <testsuite name="unhealthy" tests="2" failures="2">
            <testcase classname="argocd/rollouts" name="apps/Deployment shop/rollouts is healthy">
              <failure message="Progressing">apps/Deployment shop/rollouts: Progressing: 0 of 1 updated replicas are available
        Pod shop/rollouts-6b4c: container main keeps crashing (CrashLoopBackOff): 1154 restarts, exit code 1</failure>
            </testcase>
            <testcase classname="argocd/payments" name="Service shop/lb is healthy">
              <failure message="Degraded">no address</failure>
            </testcase>
          </testsuite>
          <testsuite name="wrong" tests="3" failures="3">
            <testcase classname="argocd/payments" name="Service shop/lb has no Blocked">
              <failure message="Blocked">/spec/ports
        what was seen
        the fix of Blocked</failure>
            </testcase>
            <testcase classname="argocd/payments" name="apps/Deployment shop/web has no LiveEdit">
              <failure message="LiveEdit">/spec/replicas
        what was seen
        the fix of LiveEdit</failure>
            </testcase>
            <testcase classname="team/payments" name="apps/Deployment shop/api has no LiveEdit">
              <failure message="LiveEdit">/spec/replicas
        what was seen
        the fix of LiveEdit</failure>
            </testcase>
          </testsuite>
          <testsuite name="harmless" tests="1" failures="0">
            <testcase classname="argocd/payments" name="ConfigMap shop/c has no PhantomDefault"/>
          </testsuite>
          <testsuite name="redWithoutDifference" tests="0" failures="0">
          </testsuite>
          <testsuite name="unjudged" tests="0" failures="0">
          </testsuite>
          <testsuite name="orphans" tests="1" failures="1">
            <testcase classname="argocd/payments" name="Secret shop/old|one has no Orphan">
              <failure message="Orphan">what was seen
        the fix of Orphan</failure>
            </testcase>
          </testsuite>
          <testsuite name="unstable" tests="1" failures="0">
            <testcase classname="team/payments" name="apps/Deployment shop/api has no UnstableRender"/>
          </testsuite>
        </testsuites>
    "#]].assert_eq(&junit(&diagnosis));
    let pretty = |value| serde_json::to_string_pretty(&value).expect("JSON");
    expect![[r#"
        {
          "harmless": [
            {
              "app": "argocd/payments",
              "class": "PhantomDefault",
              "counts": false,
              "evidence": [
                "what was seen"
              ],
              "fields": [
                "/data/x"
              ],
              "fix": "the fix of PhantomDefault",
              "kind": "ConfigMap",
              "name": "c",
              "namespace": "shop",
              "red": true,
              "rule": "a-rule"
            }
          ],
          "orphans": [
            {
              "app": "argocd/payments",
              "class": "Orphan",
              "counts": true,
              "evidence": [
                "what was seen"
              ],
              "fix": "the fix of Orphan",
              "kind": "Secret",
              "name": "old|one",
              "namespace": "shop",
              "red": false,
              "rule": "a-rule",
              "since": "2026-04-10T00:00:00Z"
            }
          ],
          "pauses": [
            {
              "app": "argocd/payments",
              "kind": "Deployment",
              "name": "web",
              "namespace": "shop",
              "reason": "load test",
              "until": "2026-04-17T01:00:00Z"
            }
          ],
          "plainSecrets": [],
          "redWithoutDifference": [],
          "summary": {
            "apps": 3,
            "harmless": 1,
            "orphans": 1,
            "plainSecrets": 0,
            "quiet": 1,
            "redWithoutDifference": 0,
            "unhealthy": 2,
            "unjudged": 0,
            "unstable": 1,
            "wrong": 3
          },
          "unhealthy": [
            {
              "app": "argocd/rollouts",
              "causes": [
                "apps/Deployment shop/rollouts: Progressing: 0 of 1 updated replicas are available",
                "Pod shop/rollouts-6b4c: container main keeps crashing (CrashLoopBackOff): 1154 restarts, exit code 1"
              ],
              "group": "apps",
              "health": "Progressing",
              "kind": "Deployment",
              "name": "rollouts",
              "namespace": "shop",
              "since": "2026-03-26T21:00:00Z",
              "stuck": true
            },
            {
              "app": "argocd/payments",
              "causes": [
                "no address"
              ],
              "health": "Degraded",
              "kind": "Service",
              "name": "lb",
              "namespace": "shop",
              "since": "2026-04-16T22:00:00Z",
              "stuck": false
            }
          ],
          "unjudged": [],
          "unstable": [
            {
              "app": "team/payments",
              "class": "UnstableRender",
              "counts": false,
              "evidence": [
                "what was seen"
              ],
              "fields": [
                "/spec/template/metadata/annotations/t"
              ],
              "fix": "the fix of UnstableRender",
              "group": "apps",
              "kind": "Deployment",
              "name": "api",
              "namespace": "shop",
              "red": false,
              "rule": "a-rule"
            }
          ],
          "wrong": [
            {
              "app": "argocd/payments",
              "class": "Blocked",
              "counts": true,
              "evidence": [
                "what was seen"
              ],
              "fields": [
                "/spec/ports"
              ],
              "fix": "the fix of Blocked",
              "kind": "Service",
              "name": "lb",
              "namespace": "shop",
              "red": false,
              "rule": "a-rule"
            },
            {
              "actor": "kubectl",
              "app": "argocd/payments",
              "class": "LiveEdit",
              "counts": true,
              "evidence": [
                "what was seen"
              ],
              "fields": [
                "/spec/replicas"
              ],
              "fix": "the fix of LiveEdit",
              "group": "apps",
              "kind": "Deployment",
              "name": "web",
              "namespace": "shop",
              "red": true,
              "rule": "a-rule",
              "since": "2026-04-16T20:00:00Z"
            },
            {
              "actor": "kubectl",
              "app": "team/payments",
              "class": "LiveEdit",
              "counts": true,
              "evidence": [
                "what was seen"
              ],
              "fields": [
                "/spec/replicas"
              ],
              "fix": "the fix of LiveEdit",
              "group": "apps",
              "kind": "Deployment",
              "name": "api",
              "namespace": "shop",
              "red": false,
              "rule": "a-rule",
              "since": "2026-04-14T23:00:00Z"
            }
          ]
        }"#]].assert_eq(&pretty(data(&diagnosis)));
    expect![[r#"
        {
          "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
          "runs": [
            {
              "results": [
                {
                  "level": "error",
                  "locations": [
                    {
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "argocd/rollouts: apps/Deployment shop/rollouts",
                          "kind": "resource",
                          "name": "apps/Deployment shop/rollouts"
                        }
                      ]
                    }
                  ],
                  "message": {
                    "text": "apps/Deployment shop/rollouts is Progressing: Pod shop/rollouts-6b4c: container main keeps crashing (CrashLoopBackOff): 1154 restarts, exit code 1"
                  },
                  "partialFingerprints": {
                    "plumb/v1": "Unhealthy argocd/rollouts apps/Deployment shop/rollouts"
                  },
                  "ruleId": "Unhealthy"
                },
                {
                  "level": "error",
                  "locations": [
                    {
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "argocd/payments: Service shop/lb",
                          "kind": "resource",
                          "name": "Service shop/lb"
                        }
                      ]
                    }
                  ],
                  "message": {
                    "text": "Service shop/lb is Degraded: no address"
                  },
                  "partialFingerprints": {
                    "plumb/v1": "Unhealthy argocd/payments Service shop/lb"
                  },
                  "ruleId": "Unhealthy"
                },
                {
                  "level": "error",
                  "locations": [
                    {
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "argocd/payments: Service shop/lb",
                          "kind": "resource",
                          "name": "Service shop/lb"
                        }
                      ]
                    }
                  ],
                  "message": {
                    "text": "Service shop/lb: /spec/ports (what was seen). the fix of Blocked"
                  },
                  "partialFingerprints": {
                    "plumb/v1": "Blocked argocd/payments Service shop/lb"
                  },
                  "ruleId": "Blocked"
                },
                {
                  "level": "error",
                  "locations": [
                    {
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "argocd/payments: apps/Deployment shop/web",
                          "kind": "resource",
                          "name": "apps/Deployment shop/web"
                        }
                      ]
                    }
                  ],
                  "message": {
                    "text": "apps/Deployment shop/web: /spec/replicas (what was seen). the fix of LiveEdit"
                  },
                  "partialFingerprints": {
                    "plumb/v1": "LiveEdit argocd/payments apps/Deployment shop/web"
                  },
                  "ruleId": "LiveEdit"
                },
                {
                  "level": "error",
                  "locations": [
                    {
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "team/payments: apps/Deployment shop/api",
                          "kind": "resource",
                          "name": "apps/Deployment shop/api"
                        }
                      ]
                    }
                  ],
                  "message": {
                    "text": "apps/Deployment shop/api: /spec/replicas (what was seen). the fix of LiveEdit"
                  },
                  "partialFingerprints": {
                    "plumb/v1": "LiveEdit team/payments apps/Deployment shop/api"
                  },
                  "ruleId": "LiveEdit"
                },
                {
                  "level": "note",
                  "locations": [
                    {
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "argocd/payments: ConfigMap shop/c",
                          "kind": "resource",
                          "name": "ConfigMap shop/c"
                        }
                      ]
                    }
                  ],
                  "message": {
                    "text": "ConfigMap shop/c: /data/x (what was seen). the fix of PhantomDefault"
                  },
                  "partialFingerprints": {
                    "plumb/v1": "PhantomDefault argocd/payments ConfigMap shop/c"
                  },
                  "ruleId": "PhantomDefault"
                },
                {
                  "level": "warning",
                  "locations": [
                    {
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "argocd/payments: Secret shop/old|one",
                          "kind": "resource",
                          "name": "Secret shop/old|one"
                        }
                      ]
                    }
                  ],
                  "message": {
                    "text": "Secret shop/old|one (what was seen). the fix of Orphan"
                  },
                  "partialFingerprints": {
                    "plumb/v1": "Orphan argocd/payments Secret shop/old|one"
                  },
                  "ruleId": "Orphan"
                },
                {
                  "level": "note",
                  "locations": [
                    {
                      "logicalLocations": [
                        {
                          "fullyQualifiedName": "team/payments: apps/Deployment shop/api",
                          "kind": "resource",
                          "name": "apps/Deployment shop/api"
                        }
                      ]
                    }
                  ],
                  "message": {
                    "text": "apps/Deployment shop/api: /spec/template/metadata/annotations/t (what was seen). the fix of UnstableRender"
                  },
                  "partialFingerprints": {
                    "plumb/v1": "UnstableRender team/payments apps/Deployment shop/api"
                  },
                  "ruleId": "UnstableRender"
                }
              ],
              "tool": {
                "driver": {
                  "name": "plumb",
                  "rules": [
                    {
                      "id": "Blocked"
                    },
                    {
                      "id": "LiveEdit"
                    },
                    {
                      "id": "Orphan"
                    },
                    {
                      "id": "PhantomDefault"
                    },
                    {
                      "id": "Unhealthy"
                    },
                    {
                      "id": "UnstableRender"
                    }
                  ],
                  "version": "1.2.3"
                }
              }
            }
          ],
          "version": "2.1.0"
        }"#]].assert_eq(&pretty(sarif(&diagnosis, "1.2.3")));
}
