//! The proxy's faults as a client sees them.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use plumb_testkit::{
    TestNamespace, objects,
    proxy::{Ending, Fault, FaultProxy, Requests, Times},
    wait::until_seen,
};

const LIMIT: Duration = Duration::from_secs(20);

struct Through {
    test: TestNamespace,
    proxy: FaultProxy,
    api: Api<ConfigMap>,
}

async fn through() -> Result<Through> {
    let test = TestNamespace::new().await?;
    let proxy = FaultProxy::start(test.kubeconfig()).await?;
    let api = Api::namespaced(proxy.client().await?, test.name());
    Ok(Through { test, proxy, api })
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

#[tokio::test]
async fn without_faults_it_is_the_api_server() -> Result<()> {
    let Through { test, proxy, api } = through().await?;
    test.apply(&objects::config_map("one", &[("a", "1")])).await?;
    let live = api.get("one").await?;
    assert_eq!(live.data.expect("it has data")["a"], "1");
    let missing = api.get("missing").await.unwrap_err();
    assert_eq!(code(&missing), Some(404), "the server's own errors pass");
    let big = objects::config_map("big", &[("a", &"x".repeat(900_000))]);
    let params = PatchParams::apply("test").force();
    let written = api.patch("big", &params, &Patch::Apply(&big)).await?;
    assert_eq!(written.data.expect("it has data")["a"].len(), 900_000);

    let recorded = proxy.recorded();
    assert_eq!(recorded.len(), 3);
    assert_eq!(recorded[0].method, Method::GET);
    assert_eq!(recorded[0].target, format!("/api/v1/namespaces/{}/configmaps/one", test.name()));
    assert_eq!(recorded[0].user_agent, "plumb-test-through-proxy");
    assert_eq!(proxy.count(&Requests::to("/configmaps/big").with(Method::PATCH)), 1);
    Ok(())
}

#[tokio::test]
async fn refusals_come_as_told_and_so_often() -> Result<()> {
    let Through { test, proxy, api } = through().await?;
    test.apply(&objects::config_map("one", &[])).await?;
    let one = || Requests::to("/configmaps/one");
    proxy.inject(Fault::TooManyRequests { retry_after: 7 }, one(), Times::ONCE);
    proxy.inject(Fault::Error(500), one(), Times::Exactly(2));
    proxy.inject(Fault::Drop, one(), Times::ONCE);
    proxy.inject(Fault::Gone, one(), Times::ONCE);

    let target = format!("/api/v1/namespaces/{}/configmaps/one", test.name());
    let request = http::Request::get(target).body(kube::client::Body::empty())?;
    let answer = proxy.client().await?.send(request).await?;
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after"], "7");
    for expected in [Some(500), Some(500), None, Some(410)] {
        let error = api.get("one").await.unwrap_err();
        assert_eq!(code(&error), expected, "{error}");
    }
    api.get("one").await?;
    assert_eq!(proxy.count(&one()), 6);

    proxy.inject(Fault::Error(503), Requests::all(), Times::Always);
    for _ in 0..3 {
        assert_eq!(code(&api.get("one").await.unwrap_err()), Some(503));
    }
    proxy.heal();
    api.get("one").await?;
    Ok(())
}

#[tokio::test]
async fn a_delay_passes_the_request_on_later() -> Result<()> {
    let Through { test, proxy, api } = through().await?;
    test.apply(&objects::config_map("one", &[])).await?;
    let delay = Duration::from_millis(400);
    proxy.inject(Fault::Delay(delay), Requests::to("/configmaps/one"), Times::ONCE);
    let start = Instant::now();
    api.get("one").await?;
    assert!(start.elapsed() >= delay, "{:?}", start.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_lost_request_and_a_lost_answer_differ_in_the_cluster() -> Result<()> {
    let Through { test, proxy, api } = through().await?;
    let params = PatchParams::apply("test").force();
    proxy.inject(Fault::Drop, Requests::to("/configmaps/lost"), Times::ONCE);
    proxy.inject(Fault::DropAnswer, Requests::to("/configmaps/done"), Times::ONCE);
    for name in ["lost", "done"] {
        let error =
            api.patch(name, &params, &Patch::Apply(&objects::config_map(name, &[]))).await.unwrap_err();
        assert_eq!(code(&error), None, "{error}");
    }
    assert!(test.get(&objects::config_map("lost", &[])).await?.is_none());
    assert!(test.get(&objects::config_map("done", &[])).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn watches_stream_and_end_in_each_way() -> Result<()> {
    let Through { test, proxy, api } = through().await?;
    let watches = || Requests::to(test.name()).and_to("/configmaps").watches();
    for ending in [Ending::Clean, Ending::Broken, Ending::Gone] {
        let version = api.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
        let mut events = api.watch(&WatchParams::default(), &version).await?.boxed();
        let name = format!("{ending:?}").to_lowercase();
        test.apply(&objects::config_map(&name, &[])).await?;
        let event = tokio::time::timeout(LIMIT, events.try_next()).await??;
        assert!(
            matches!(&event, Some(WatchEvent::Added(one)) if one.metadata.name.as_deref() == Some(&name)),
            "{event:?}"
        );

        assert_eq!(proxy.running_watches(&watches()), 1);
        assert_eq!(proxy.end_watches(&watches(), ending), 1);
        let last = tokio::time::timeout(LIMIT, events.try_next()).await?;
        match ending {
            Ending::Clean => assert!(matches!(last, Ok(None)), "{last:?}"),
            // The client hides how a watch ended; the next test looks at the bytes.
            Ending::Broken => assert!(matches!(last, Ok(None) | Err(_)), "{last:?}"),
            Ending::Gone => {
                assert!(
                    matches!(&last, Ok(Some(WatchEvent::Error(status))) if status.code == 410),
                    "{last:?}"
                );
                assert!(matches!(events.try_next().await, Ok(None)));
            }
        }
        until_seen(
            LIMIT,
            "it is off the list",
            async || proxy.running_watches(&watches()),
            |count| *count == 0,
        )
        .await?;
    }
    assert_eq!(proxy.count(&watches()), 3);
    Ok(())
}

#[tokio::test]
async fn a_broken_watch_is_cut_in_the_middle_of_its_body() -> Result<()> {
    let Through { test, proxy, .. } = through().await?;
    let target = format!("/api/v1/namespaces/{}/configmaps?watch=true", test.name());
    for (ending, whole) in [(Ending::Clean, true), (Ending::Broken, false)] {
        let request = http::Request::get(&target).body(kube::client::Body::empty())?;
        let answer = proxy.client().await?.send(request).await?;
        assert_eq!(answer.status(), 200);
        assert_eq!(proxy.end_watches(&Requests::all().watches(), ending), 1);
        let body = tokio::time::timeout(LIMIT, answer.into_body().collect_bytes()).await?;
        assert_eq!(body.is_ok(), whole, "{ending:?}: {body:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_watch_can_be_too_old_from_the_start_in_both_ways() -> Result<()> {
    let Through { test: _test, proxy, api } = through().await?;
    proxy.inject(Fault::Gone, Requests::to("/configmaps").watches(), Times::ONCE);
    proxy.inject(Fault::GoneInStream, Requests::to("/configmaps").watches(), Times::ONCE);
    let error = api.watch(&WatchParams::default(), "0").await.map(drop).unwrap_err();
    assert_eq!(code(&error), Some(410), "{error}");
    let mut events = api.watch(&WatchParams::default(), "0").await?.boxed();
    let event = events.try_next().await?;
    assert!(matches!(&event, Some(WatchEvent::Error(status)) if status.code == 410), "{event:?}");
    Ok(())
}

#[tokio::test]
async fn a_watch_that_its_client_leaves_is_forgotten() -> Result<()> {
    let Through { test, proxy, api } = through().await?;
    let watches = || Requests::to(test.name()).watches();
    let version = api.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    let events = api.watch(&WatchParams::default(), &version).await?.boxed();
    assert_eq!(proxy.running_watches(&watches()), 1);
    drop(events);
    // The proxy notices when it next has something to say.
    until_seen(
        LIMIT,
        "the watch is off the list",
        async || {
            let _ = test.apply(&objects::config_map("one", &[])).await;
            proxy.running_watches(&watches())
        },
        |count| *count == 0,
    )
    .await?;
    Ok(())
}
