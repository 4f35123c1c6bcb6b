//! A thousand random values in every place that a secret can be in. Nothing that plumb writes has one of them, whatever
//! its dress: plain, base64, hex, escaped for an address or for JSON, or one of these inside of base64.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use plumb_testkit::objects;
use serde_json::{Map, Value, json};

use crate::canary_places::{self, Asked, without_spec};
use crate::outside::{get, http};
use crate::server::admin;
use crate::stage::Stage;

/// How many, by place. They are a thousand together.
const IN_GIT: usize = 500;
const EDITED: usize = 75;
const IN_ANNOTATIONS: usize = 100;
const IN_CUSTOM_RESOURCES: usize = 100;
const IN_VALUES: usize = 60;
const IN_FAILURES: usize = 3;
const IN_REFUSALS: usize = 2;
const IN_ADDRESSES: usize = 20;
const IN_PLUGINS: usize = 20;
const IN_VARIABLES: usize = 20;
const IN_REQUESTS: usize = 50;
const IN_SETTINGS: usize = 30;
const IN_SESSIONS: usize = 20;
const PER_SECRET: usize = 25;
/// Every look is at so many bytes.
const WINDOW: usize = 16;
/// Shorter runs of base64 hold no object with a value.
const SHORTEST_ENCODED: usize = 64;

/// Values that nobody else can have, and how each would look.
struct Canaries {
    random: aws_lc_rs::rand::SystemRandom,
    looks: HashSet<[u8; WINDOW]>,
    n: usize,
}

impl Canaries {
    fn new() -> Self {
        Self { random: aws_lc_rs::rand::SystemRandom::new(), looks: HashSet::new(), n: 0 }
    }

    /// A new value: characters that every format escapes, then letters and digits that none does.
    fn hatch(&mut self) -> Result<String> {
        use aws_lc_rs::rand::SecureRandom as _;
        const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
        let mut bytes = [0_u8; 20];
        self.random.fill(&mut bytes).ok().context("randomness")?;
        let tail: String = bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
        self.know(&tail)?;
        self.n += 1;
        Ok(format!("\"&/\\%{tail}"))
    }

    /// The same without characters that a header or an address cannot have.
    fn hatch_plain(&mut self) -> Result<String> {
        Ok(self.hatch()?.split_off(5))
    }

    /// Base64 begins at any of three positions; 12 bytes of the value are 16 characters.
    fn know(&mut self, tail: &str) -> Result<()> {
        let hex = tail.bytes().take(8).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        let mut looks = vec![tail.to_owned(), hex.to_uppercase(), hex];
        for start in 0..3 {
            let piece = tail.get(start..start + 12).context("a piece")?;
            looks.extend([STANDARD.encode(piece), URL_SAFE.encode(piece)]);
        }
        for look in looks {
            self.looks.insert(look.as_bytes().first_chunk::<WINDOW>().copied().context("a long look")?);
        }
        Ok(())
    }

    fn map(&mut self, n: usize) -> Result<Map<String, Value>> {
        (0..n).map(|number| Ok((format!("key{number}"), json!(self.hatch()?)))).collect()
    }

    /// Is one of them in there, or in what is in there as base64?
    fn check(&self, place: &str, said: &[u8]) -> Result<()> {
        self.check_as_it_is(place, said)?;
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
        let runs = said.split(|byte| !is_base64(byte)).filter(|run| run.len() >= SHORTEST_ENCODED);
        for run in runs {
            // Other letters may stand before it.
            for part in (0..4).filter_map(|start| run.get(start..)) {
                let whole = part.get(..part.len() / 4 * 4).unwrap_or_default();
                for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                    if let Ok(inside) = engine.decode(whole) {
                        self.check_as_it_is(place, &inside)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn check_as_it_is(&self, place: &str, said: &[u8]) -> Result<()> {
        let found = said.windows(WINDOW).position(|window| {
            window.first_chunk::<WINDOW>().is_some_and(|window| self.looks.contains(window))
        });
        if let Some(at) = found {
            let around = said.get(at.saturating_sub(200)..(at + 100).min(said.len())).unwrap_or_default();
            bail!("a value got out in {place}: … {} …", String::from_utf8_lossy(around));
        }
        Ok(())
    }
}

#[test]
fn a_canary_is_known_in_every_dress() {
    let mut canaries = Canaries::new();
    let value = canaries.hatch().unwrap();
    let tail = value.get(5..).unwrap();
    let hex = value.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    let mut dresses = vec![json!({"a": value}).to_string(), format!("x=%22%26%2F%5C%25{tail}"), hex.clone()];
    dresses.push(hex.to_uppercase());
    for before in ["", "a", "ab"] {
        dresses.push(STANDARD.encode(format!("{before}{value}")));
        dresses.push(URL_SAFE.encode(format!("{before}{value}")));
    }
    let object = json!({"kind": "Secret", "metadata": {"name": "a"}, "data": {"a": STANDARD.encode(&value)}});
    for before in ["", "b-", "abc"] {
        dresses.push(format!("{before}{}", STANDARD.encode(object.to_string())));
        dresses.push(format!("{before}{}", URL_SAFE.encode(format!("{object}{object}"))));
    }
    for dress in dresses {
        assert!(canaries.check("a test", dress.as_bytes()).is_err(), "{dress}");
    }
    assert!(canaries.check("a test", b"nothing of it").is_ok());
}

fn secret(name: &str, field: &str, values: Map<String, Value>) -> Value {
    let encoded = |value: &Value| json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    let values: Map<String, Value> = match field {
        "data" => values.iter().map(|(key, value)| (key.clone(), encoded(value))).collect(),
        _ => values,
    };
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, field: values})
}

const MASKED: &str = "example.com/token";
const GROUP: &str = "canaries.example.com";

/// Everything that comes from Git.
fn commit(stage: &Stage, canaries: &mut Canaries) -> Result<()> {
    let mut files = Vec::new();
    for number in 0..IN_GIT / PER_SECRET {
        let field = if number % 2 == 0 { "data" } else { "stringData" };
        let mut secret = secret(&format!("s{number}"), field, canaries.map(PER_SECRET)?);
        let share = IN_ANNOTATIONS * PER_SECRET / IN_GIT;
        let annotations = (0..share).map(|_| canaries.hatch()).collect::<Result<Vec<_>>>()?.concat();
        secret["metadata"]["annotations"] = json!({MASKED: annotations});
        files.push((format!("app/s{number}.yaml"), objects::manifests(&[secret])));
    }
    let custom = (0..IN_CUSTOM_RESOURCES)
        .map(|number| {
            // The schema marks one field, the settings name the other.
            let field = if number % 2 == 0 { "password" } else { "note" };
            Ok(objects::custom(GROUP, "Vault", &format!("v{number}"), &json!({field: canaries.hatch()?})))
        })
        .collect::<Result<Vec<_>>>()?;
    files.push(("app/custom.yaml".to_owned(), objects::manifests(&custom)));
    // The API server quotes what it refuses: of an object, and of a hook without a name.
    let refused: [String; IN_REFUSALS] = [canaries.hatch()?, canaries.hatch()?];
    let [object, mut hook] =
        refused.map(|word| objects::custom(GROUP, "Safe", "refused", &json!({"word": word})));
    hook["metadata"] =
        json!({"generateName": "refused-", "annotations": {"argocd.argoproj.io/hook": "PreSync"}});
    files.push(("refused/safe.yaml".to_owned(), objects::manifests(&[object])));
    // An app that has only hooks is Synced, and no automated sync starts.
    let beside = objects::config_map("beside-a-refused-hook", &[]);
    files.push(("refused-hook/safe.yaml".to_owned(), objects::manifests(&[hook, beside])));
    let values: Value = json!({"all": canaries.map(IN_VALUES)?});
    let template =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: charted}\nstringData: {{ .Values.all | toJson }}\n";
    let broken = "apiVersion: v1\nkind: Secret\nmetadata: {name: broken}\nstringData:\n  a: b\n {{ .Values.all | toJson }}\n";
    let fails = "{{ fail (printf \"%s is %q\" .Values.password .Values.secrets) }}\n";
    let mut failing = || canaries.hatch();
    let of_failure: [String; IN_FAILURES] = [failing()?, failing()?, failing()?];
    let of_failure = json!({"password": of_failure[0], "secrets": {"a": of_failure[1], "b": of_failure[2]}});
    let chart = "apiVersion: v2\nname: demo\nversion: 1.0.0\n";
    for (folder, template) in [("chart", template), ("broken", broken), ("fails", fails)] {
        let values = if folder == "fails" { &of_failure } else { &values };
        files.push((format!("{folder}/Chart.yaml"), chart.to_owned()));
        files.push((format!("{folder}/values.yaml"), values.to_string()));
        files.push((format!("{folder}/templates/secret.yaml"), template.to_owned()));
    }
    let files: Vec<(&str, String)> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
    stage.repo.commit(&files)?;
    Ok(())
}

/// Requests with values in their bodies, tokens and cookies.
async fn requests(stage: &Stage, canaries: &mut Canaries) -> Result<Vec<(String, String)>> {
    let (web, inside) = (stage.address("webhooks").await?, stage.address("metrics and health").await?);
    let mut said = Vec::new();
    for number in 0..IN_REQUESTS / 5 {
        let [token, cookie, bearer, path] = [(); 4].map(|()| canaries.hatch_plain());
        let (token, cookie, bearer, path) =
            (token?, format!("argocd.token={}", cookie?), format!("Bearer {}", bearer?), path?);
        let body = json!({"ref": canaries.hatch()?, "repository": {"html_url": "https://example.com/x"}})
            .to_string();
        let headers = [
            ("x-gitlab-token", token.as_str()),
            ("cookie", &cookie),
            ("authorization", &bearer),
            ("x-github-event", "push"),
        ];
        let body = if number % 2 == 0 { body } else { body.split_at(body.len() - 2).0.to_owned() };
        let (code, answer) = http(web, "POST", "/api/webhook", &headers, body.as_bytes()).await?;
        said.push((format!("the answer {code} to a webhook"), answer));
        let (code, answer) = http(web, "GET", &format!("/api/{path}"), &headers, &[]).await?;
        said.push((format!("the answer {code} to an unknown path"), answer));
    }
    for (name, address) in [("metrics", inside), ("readyz", web)] {
        said.push((name.to_owned(), get(address, &format!("/{name}")).await?.1));
    }
    Ok(said)
}

/// What plumb says in objects and on command lines.
async fn said(stage: &Stage) -> Result<Vec<(String, String)>> {
    let mut said = vec![("the log".to_owned(), stage.log()?)];
    for (version, kind) in [
        ("argoproj.io/v1alpha1", "Application"),
        ("argoproj.io/v1alpha1", "ApplicationSet"),
        ("argoproj.io/v1alpha1", "AppProject"),
        ("plumb.dev/v1alpha1", "DriftReport"),
        ("v1", "Event"),
        ("v1", "ConfigMap"),
        ("coordination.k8s.io/v1", "Lease"),
    ] {
        for (name, mut object) in stage.place.list(version, kind, "").await? {
            if kind == "Application" {
                without_spec(&mut object);
            }
            said.push((format!("{kind} {name}"), object.to_string()));
        }
    }
    // There `--namespace` is the object's; the settings that name what is hidden are those of the control plane.
    let all = format!("{}/thousand", stage.place.name());
    let commands: [&[&str]; 21] = [
        &["drift", "--all"],
        &["drift", "-o", "json"],
        &["doctor"],
        &["doctor", "--secrets"],
        &["doctor", "--secrets", "-o", "json"],
        &["app", "list", "-o", "wide"],
        &["app", "diff", "thousand", "--all"],
        &["app", "diff", "thousand-charted", "--all"],
        &["app", "manifests", "thousand"],
        &["app", "manifests", "thousand", "--source", "live"],
        &["app", "manifests", "thousand-charted"],
        &[
            "app",
            "get-resource",
            &all,
            "--kind",
            "Secret",
            "-o",
            "json",
            "--control-namespace",
            stage.place.name(),
        ],
        &[
            "app",
            "get-resource",
            &all,
            "--kind",
            "Vault",
            "-o",
            "yaml",
            "--control-namespace",
            stage.place.name(),
        ],
        &["app", "get", "thousand", "-o", "tree"],
        &["app", "get", "thousand-broken"],
        &["app", "get", "thousand-elsewhere"],
        &["app", "get", "thousand-plugin"],
        &["app", "get", "thousand-leak"],
        &["app", "get", "thousand-fails"],
        &["app", "get", "thousand-refused"],
        &["undo", "list"],
    ];
    for words in commands {
        said.push(canary_places::says(stage, words)?);
    }
    let deleted = stage.plumb_says(&["undo", "list", "thousand"])?;
    let ids = deleted.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let shown =
        ids.map(|id| canary_places::says(stage, &["undo", "show", id])).collect::<Result<Vec<_>>>()?;
    ensure!(shown.iter().any(|(_, said)| said.contains("s19")), "no deleted Secret is shown: {deleted}");
    said.extend(shown);
    Ok(said)
}

/// Every file below a folder, and whether only its owner can get at it: by its own mode, or by that of a folder on the
/// way. The folder of the test itself does not count.
fn files(folder: &Path, is_closed: bool, found: &mut Vec<(String, Vec<u8>, bool)>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // A file may be replaced while this looks: plumb is at work.
        let (Ok(data), path) = (entry.metadata(), entry.path()) else { continue };
        // The last six bits of a mode are those of the group and of everybody else.
        let is_closed = is_closed || data.permissions().mode().trailing_zeros() >= 6;
        if data.is_dir() {
            files(&path, is_closed, found)?;
        } else if data.is_file()
            && let Ok(content) = std::fs::read(&path)
        {
            found.push((path.display().to_string(), content, is_closed));
        }
    }
    Ok(())
}

#[tokio::test]
async fn none_of_a_thousand_values_is_ever_written() -> Result<()> {
    let (mut canaries, mut of_git) = (Canaries::new(), Canaries::new());
    let mut stage = Stage::bare().await?;
    stage.arguments.extend(["--log-level=trace".to_owned(), "--insecure".to_owned()]);
    stage.serves = true;
    stage.begin().await?;
    let fields = format!("{GROUP}/Vault: [/spec/note]");
    let masks = [
        ("resource.sensitive.mask.annotations", MASKED),
        ("resource.sensitive.mask.fields", fields.as_str()),
    ];
    let settings =
        objects::labelled(objects::config_map("argocd-cm", &masks), "app.kubernetes.io/part-of", "argocd");
    stage.place.apply(&settings).await?;
    let schema = json!({"type": "object", "properties": {
        "password": {"type": "string", "format": "password"}, "note": {"type": "string"}}});
    stage.place.apply(&objects::crd(GROUP, "Vault", &schema)).await?;
    let word = json!({"type": "string", "format": "password", "pattern": "^short$"});
    let schema = json!({"type": "object", "properties": {"word": word}});
    stage.place.apply(&objects::crd(GROUP, "Safe", &schema)).await?;
    let leak = "metadata: {name: leak}\nspec: {generate: {command: [sh, -c], args: ['env | grep -v API_VERSIONS | sort >&2; exit 1']}}\n";
    let plugins = objects::config_map("plumb-plugins", &[("leak.yaml", leak)]);
    stage.place.apply(&objects::labelled(plugins, "app.kubernetes.io/part-of", "argocd")).await?;
    commit(&stage, &mut of_git)?;
    let of_path = |path: &'static str| {
        move |app: &mut Value| {
            app["spec"]["source"]["path"] = json!(path);
            app["spec"]["syncPolicy"] = json!({"automated": {"prune": true}, "retry": {"limit": 0}});
        }
    };
    let all = stage.application("thousand", of_path("app")).await?;
    let charted = stage.application("thousand-charted", of_path("chart")).await?;
    let broken = stage.application("thousand-broken", of_path("broken")).await?;
    // Addresses with credentials, and variables of a plugin that does not exist.
    let user: String =
        (0..IN_ADDRESSES).map(|_| canaries.hatch_plain()).collect::<Result<Vec<_>>>()?.concat();
    let elsewhere = stage
        .application("thousand-elsewhere", |app| {
            app["spec"]["source"]["repoURL"] = json!(format!("https://{user}:{user}@127.0.0.1:1/x.git"));
        })
        .await?;
    let variables = (0..IN_PLUGINS)
        .map(|number| Ok(json!({"name": format!("V{number}"), "value": canaries.hatch()?})))
        .collect::<Result<Vec<_>>>()?;
    let plugin = stage
        .application("thousand-plugin", |app| {
            app["spec"]["source"]["plugin"] = json!({"name": "none", "env": variables});
        })
        .await?;
    // A plugin that prints all its variables, and a chart that fails with its values.
    let (mut printed, mut announced) = (Vec::new(), Vec::new());
    for number in 0..IN_VARIABLES / 2 {
        printed.push(json!({"name": format!("V{number}"), "value": canaries.hatch()?}));
        announced.push(json!({"name": format!("p{number}"), "string": canaries.hatch()?}));
    }
    let leak = stage
        .application("thousand-leak", |app| {
            app["spec"]["source"]["plugin"] =
                json!({"name": "leak", "env": printed, "parameters": announced});
        })
        .await?;
    let fails = stage.application("thousand-fails", of_path("fails")).await?;
    let refused = stage.application("thousand-refused", of_path("refused")).await?;
    let refused_hook = stage.application("thousand-hook", of_path("refused-hook")).await?;
    stage.until_sync(&all, "Synced").await?;
    stage.until_sync(&charted, "Synced").await?;
    for app in [&refused, &refused_hook] {
        let has_failed = |live: &Value| live["status"]["operationState"]["phase"] == "Failed";
        let live = stage.place.wait(app, "has failed", has_failed).await?;
        let said = live["status"]["operationState"].to_string();
        ensure!(said.contains("should match '^short$'"), "the refusal says nothing: {said}");
    }
    let has_condition =
        |live: &Value| live["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty());
    for app in [&broken, &elsewhere, &plugin, &leak, &fails] {
        stage.place.wait(app, "has a condition", has_condition).await?;
    }
    let live = stage.place.get(&leak).await?.unwrap_or_default();
    let conditions = live["status"]["conditions"].to_string();
    ensure!(conditions.contains("ARGOCD_ENV_V0="), "the plugin's output is not shown at all: {conditions}");
    // A Secret leaves Git, and a user edits others.
    stage.repo.remove(&["app/s19.yaml"])?;
    stage.refresh(&all).await?;
    stage.place.wait_gone(&objects::secret("s19", &[])).await?;
    let is_over = |app: &Value| app["operation"].is_null() && app["status"]["sync"]["status"] == "Synced";
    stage.place.wait(&all, "is through with the deletion", is_over).await?;
    for number in 0..EDITED / PER_SECRET {
        let edited = objects::secret(&format!("s{number}"), &[]);
        let patch = json!({"stringData": canaries.map(PER_SECRET)?});
        stage.place.patch_as("kubectl-edit", &edited, &patch).await?;
    }
    stage.finding(&all, "Secret", "s0", "LiveEdit").await?;
    let mut answers = requests(&stage, &mut canaries).await?;
    let admin = admin(&stage).await?;
    canary_places::plant_settings(&stage, || canaries.hatch_plain(), IN_SETTINGS).await?;
    for name in ["thousand-private", "thousand-away"] {
        stage.place.wait(&stage.application_named(name), "has a condition", has_condition).await?;
    }
    answers.extend(canary_places::sessions(&admin, || canaries.hatch_plain(), IN_SESSIONS).await?);
    ensure!(canaries.n + of_git.n == 1000, "{} and {} values", canaries.n, of_git.n);

    let mut everything = said(&stage).await?;
    everything.extend(answers);
    let apps = [
        "thousand",
        "thousand-charted",
        "thousand-broken",
        "thousand-elsewhere",
        "thousand-plugin",
        "thousand-leak",
        "thousand-fails",
        "thousand-refused",
        "thousand-hook",
        "thousand-private",
        "thousand-away",
    ];
    let asked = Asked {
        apps: &apps,
        with_objects: "thousand",
        objects: &[("", "v1", "Secret", "s0"), (GROUP, "v1", "Vault", "v0"), (GROUP, "v1", "Vault", "v1")],
    };
    everything.extend(canary_places::api(&stage, &admin, &asked).await?);
    everything.extend(canary_places::page(&stage, &admin, &asked).await?);
    everything.extend(canary_places::assistant(&stage, &asked)?);
    everything.extend(canary_places::commands(&stage)?);
    everything.push(("the log at the end".to_owned(), stage.log()?));
    for (place, said) in &everything {
        canaries.check(place, said.as_bytes())?;
        of_git.check(place, said.as_bytes())?;
    }
    let mut on_disk = Vec::new();
    files(stage.cache(), false, &mut on_disk)?;
    ensure!(on_disk.len() > 3, "plumb has no files");
    for (path, content, is_closed) in &on_disk {
        canaries.check(path, content)?;
        // What Git has in plain text is also in plumb's copies of Git: the mirror and what was rendered from it.
        if !["/git/", "/render/"].iter().any(|copy| path.contains(copy)) {
            of_git.check(path, content)?;
        }
        // The story itself keeps the log.
        ensure!(*is_closed || path.ends_with("/plumb.log"), "{path} can be read by others");
    }
    // The values are where they belong, and the places did say something.
    let by =
        |command: &str| everything.iter().find(|(place, _)| place == command).map(|(_, said)| said.as_str());
    ensure!(by("plumb app manifests thousand").is_some_and(|said| said.contains("kind: Secret")));
    ensure!(by("plumb doctor --secrets").is_some_and(|said| said.contains("IN PLAIN TEXT in Git")));
    let live = stage.place.get(&objects::secret("s10", &[])).await?.context("the Secret")?.to_string();
    ensure!(of_git.check("the Secret itself", live.as_bytes()).is_err(), "no value was planted");
    Ok(())
}
