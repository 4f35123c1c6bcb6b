//! `plumb run`

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use plumb_core::glob::Glob;
use plumb_core::source::{AddressRange, AddressRule};
use plumb_crd::install::{METRICS_PORT, WEB_PORT};
use plumb_engine::{EventFilter, Handle, Options, RunsIn, StartError, WitnessPlace};
use plumb_kube::{Connection, ExecPlugins};
use plumb_web::{ApiOptions, ApiStart, PageMode, Server, Side, Transport};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::bootstrap;
use crate::config;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::listen::{Address, ListenerArgs};
use crate::log_writer::{LogStyle, LogWriter};
use crate::unsupported::ServerFlags;

/// Reconcile Applications until stopped.
///
/// On a laptop: `plumb run --install`. In a cluster it uses its service account. Two controllers must not reconcile the
/// same Applications: scale Argo CD's application controller to 0 first.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// Apply CRDs, namespace and the default project first, if they are missing.
    #[arg(long)]
    install: bool,
    /// Directory for Git mirrors and rendered manifests. It may be deleted at any time.
    #[arg(long, env = "PLUMB_CACHE_DIR")]
    cache_dir: Option<PathBuf>,
    /// The helm program.
    #[arg(long, env = "PLUMB_HELM", default_value = "helm")]
    helm: PathBuf,
    /// The kustomize program.
    #[arg(long, env = "PLUMB_KUSTOMIZE", default_value = "kustomize")]
    kustomize: PathBuf,
    /// How many apps are reconciled at the same time [default: `controller.status.processors` in
    /// argocd-cmd-params-cm, or 24].
    #[arg(long)]
    workers: Option<usize>,
    /// How often Git is polled without a webhook, in seconds; 0 never [default: `timeout.reconciliation` in
    /// argocd-cm].
    #[arg(long)]
    poll_seconds: Option<u64>,
    /// Address at which the API server calls plumb's webhook, which records who writes an object: `HOST:PORT`, `off`,
    /// or `auto` (on if the API server runs on this machine). Without it, a finding cannot name the user who removed a
    /// field or reordered a list.
    #[arg(long, default_value = "auto", value_parser = WitnessArg::parse)]
    witness: WitnessArg,
    /// Address of `/metrics`, `/healthz` and `/readyz`, or `off` [default: port 8082; only on loopback with a
    /// kubeconfig].
    #[arg(long, env = "PLUMB_METRICS_ADDRESS", value_name = "ADDRESS")]
    metrics_address: Option<Address>,
    /// Address of the API and of webhooks (`/api/webhook`), or `off` [default: port 8080; only on loopback with a
    /// kubeconfig]. `--server off` serves webhooks alone, `--insecure` serves without TLS, for a proxy that has the
    /// certificate.
    #[arg(long, env = "PLUMB_WEB_ADDRESS", value_name = "ADDRESS")]
    web_address: Option<Address>,
    /// What the flags that argocd has, too, mean to this command.
    #[arg(skip)]
    server_flags: ServerFlags,
    /// Serve the API and webhooks below this path.
    #[arg(long, env = "ARGOCD_SERVER_ROOTPATH", default_value = "", value_name = "PATH")]
    rootpath: String,
    /// The path of cookies, if a proxy in front of plumb removes it [default: that of --rootpath].
    #[arg(long, env = "ARGOCD_SERVER_BASEHREF", default_value = "", value_name = "PATH")]
    basehref: String,
    /// The address of the pod, at which other replicas reach this one. They pass requests on to the one that leads.
    #[arg(long, env = "POD_IP", value_name = "ADDRESS")]
    pod_ip: Option<String>,
    /// The page at the address of the API: `on`, `read-only` (it shows commands instead of buttons), or `off`.
    #[arg(long, env = "PLUMB_PAGE_MODE", value_enum, default_value_t = PageArg::On, value_name = "MODE")]
    page: PageArg,
    /// Which Kubernetes events to write: `all`, `none`, or reasons such as `OperationStarted,OperationCompleted`.
    #[arg(long, env = "ARGOCD_ENABLE_K8S_EVENT", default_value = "all", value_name = "REASONS")]
    events: EventFilter,
    /// Start although another application controller runs in the same namespace. Only safe for Applications that it
    /// skips (`argocd.argoproj.io/skip-reconcile`): otherwise each controller undoes the changes of the other.
    #[arg(long)]
    beside_other_controllers: bool,
    /// Further namespaces whose Applications are reconciled, comma separated: globs, or regular expressions between
    /// slashes. Added to those of the setting `application.namespaces`.
    #[arg(long, env = "ARGOCD_APPLICATION_NAMESPACES", value_delimiter = ',')]
    application_namespaces: Vec<String>,
    /// Allow cluster Secrets to get credentials from a program (`execProviderConfig`). Everyone who may write such a
    /// Secret can then run programs as plumb.
    #[arg(long)]
    cluster_exec_plugins: bool,
    /// Allow Applications to use Git repositories on the local disk below this directory; `any` allows all. Repeatable.
    /// With a kubeconfig, the temporary directory and the current directory are allowed without it.
    #[arg(long, value_name = "DIR", env = "PLUMB_LOCAL_REPOSITORIES", value_delimiter = ',')]
    local_repositories: Vec<PathBuf>,
    /// Disk space for all Git mirrors, in GiB. One mirror may use half of it [default: 6; 20 with a kubeconfig].
    #[arg(long, value_name = "GIB", env = "PLUMB_MIRROR_SPACE_GIB")]
    mirror_space_gib: Option<u64>,
    /// Allow repositories at this address although plumb does not connect there by default (loopback, link-local,
    /// metadata services, the API server): an IP address, a range like 127.0.0.0/8, or a host with an optional port.
    /// Repeatable. With a kubeconfig, loopback is allowed without it.
    #[arg(long, value_name = "ADDRESS", env = "PLUMB_ALLOW_ADDRESS", value_delimiter = ',')]
    allow_address: Vec<AddressRule>,
    /// Do not connect to repositories in this range of IP addresses, such as that of Services. Repeatable.
    #[arg(long, value_name = "RANGE", env = "PLUMB_DENY_ADDRESS", value_delimiter = ',')]
    deny_address: Vec<AddressRange>,
    /// Format of the log.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// What to log, such as `info` or `plumb_engine=debug`.
    #[arg(long, env = "PLUMB_LOG", default_value = "info")]
    log_level: String,
    /// Send traces to the OpenTelemetry collector at this address (OTLP over HTTP), such as `http://127.0.0.1:4318`.
    #[cfg(feature = "traces")]
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    traces_endpoint: Option<String>,
    /// Stop when stdin closes, so that plumb ends with the program that started it.
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
    /// Keep the lease for this long without a renewal. For tests that stop the API server.
    #[arg(long, hide = true)]
    lease_deadline_seconds: Option<u64>,
}

/// The version of Argo CD whose API clients find here. Some clients use features only from a version on.
const ARGO_CD_VERSION: &str = "v3.6.0";

/// `--witness`.
#[derive(Clone, Debug)]
enum WitnessArg {
    Auto,
    Place(WitnessPlace),
}

impl WitnessArg {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Place(WitnessPlace::Off)),
            place => {
                let (host, port) = place.rsplit_once(':').ok_or("expected HOST:PORT, auto or off")?;
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                let port = port.parse().map_err(|_| format!("{port} is not a port"))?;
                Ok(Self::Place(WitnessPlace::At { host, port }))
            }
        }
    }

    fn place(self, connection: &Connection) -> WitnessPlace {
        match self {
            Self::Place(place) => place,
            Self::Auto if connection.is_loopback() => WitnessPlace::Loopback,
            Self::Auto => WitnessPlace::Off,
        }
    }
}

impl Args {
    /// Takes over flags that argocd has for its clients.
    pub(crate) fn set_server_flags(&mut self, flags: ServerFlags) {
        self.server_flags = flags;
    }
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

pub(crate) async fn run(context: &Context, args: Args) -> Result<ExitCode, CommandError> {
    let _logging = start_logging(&args)?;
    let place = if context.connection.is_in_cluster() { RunsIn::Cluster } else { RunsIn::Workstation };
    let wanted = [
        ListenerArgs {
            side: Side::Inside,
            flag: "--metrics-address",
            asked: args.metrics_address,
            port: METRICS_PORT,
        },
        ListenerArgs { side: Side::Outside, flag: "--web-address", asked: args.web_address, port: WEB_PORT },
    ];
    if args.install {
        plumb_engine::wait_until_reachable(&context.connect().await?).await.map_err(engine_error)?;
        bootstrap::apply_for_laptop(context).await?;
    }
    let application_namespaces = namespaces(&args.application_namespaces)?;
    let api = api_start(context, &args).await?;
    let options = Options {
        application_namespaces,
        runs_in: place,
        mirror_space: place.mirror_space(args.mirror_space_gib),
        addresses: place
            .addresses(config::api_server_address())
            .with_rules(args.allow_address.iter().cloned(), args.deny_address.iter().copied()),
        local_repositories: place.local_repositories(&args.local_repositories, config::usual_repositories()),
        exec_plugins: if args.cluster_exec_plugins { ExecPlugins::On } else { ExecPlugins::Off },
        namespace: context.namespace().to_owned(),
        cache_dir: args.cache_dir.unwrap_or_else(config::default_cache_dir),
        helm: config::find_program(args.helm),
        kustomize: config::find_program(args.kustomize),
        jsonnet: config::jsonnet_command(),
        launcher: config::launcher_command(),
        identity: config::identity(),
        workers: args.workers.map(|workers| workers.max(1)),
        poll: args.poll_seconds.map(Duration::from_secs),
        events: args.events,
        beside_others: args.beside_other_controllers,
        witness: args.witness.place(&context.connect().await?),
        lease_deadline: args.lease_deadline_seconds.map(Duration::from_secs),
    };
    let handle = Handle::default();
    let mut listeners = Vec::new();
    for wanted in &wanted {
        listeners.extend(wanted.bind(place)?);
    }
    let server = Server::start(listeners, &handle, api)
        .map_err(|error| CommandError::because("serve health, metrics and the API", error))?;
    let asked_to_stop = stopped(args.until_stdin_closes);
    let ended = plumb_engine::run(context.connect().await?, options, handle, asked_to_stop).await;
    // Health is served until the engine has stopped.
    server.stop().await;
    ended.map_err(engine_error)?;
    Ok(ExitCode::Success)
}

/// The values of `--page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PageArg {
    On,
    ReadOnly,
    Off,
}

impl From<PageArg> for PageMode {
    fn from(page: PageArg) -> Self {
        match page {
            PageArg::On => Self::On,
            PageArg::ReadOnly => Self::ReadOnly,
            PageArg::Off => Self::Off,
        }
    }
}

/// What the API needs, unless `--server off` leaves it out.
async fn api_start(context: &Context, args: &Args) -> Result<Option<ApiStart>, CommandError> {
    if args.server_flags.without_api {
        return Ok(None);
    }
    let options = ApiOptions {
        namespace: context.namespace().to_owned(),
        transport: if args.server_flags.without_tls { Transport::Plain } else { Transport::Tls },
        root_path: below(&args.rootpath),
        base_href: below(&args.basehref),
        page: args.page.into(),
        version: format!("{ARGO_CD_VERSION}+plumb.{}", env!("CARGO_PKG_VERSION")),
        own_address: args.pod_ip.clone(),
    };
    Ok(Some(ApiStart { connection: context.connect().await?, options }))
}

/// A path below which something is served. Argo CD's settings say `/` where there is none.
fn below(path: &str) -> String {
    let path = path.trim();
    if path.trim_matches('/').is_empty() { String::new() } else { path.to_owned() }
}

fn namespaces(patterns: &[String]) -> Result<Vec<Glob>, CommandError> {
    let patterns = patterns.iter().map(|pattern| pattern.trim()).filter(|pattern| !pattern.is_empty());
    patterns
        .map(|pattern| {
            Glob::regex_or_plain(pattern).map_err(|error| {
                CommandError::because(format!("read --application-namespaces {pattern}"), error)
                    .exit(ExitCode::Usage)
            })
        })
        .collect()
}

/// Sends the last traces when it is dropped.
struct Logging {
    #[cfg(feature = "traces")]
    traces: Option<plumb_traces::Traces>,
}

#[cfg(feature = "traces")]
impl Drop for Logging {
    fn drop(&mut self) {
        if let Some(traces) = &self.traces {
            // Other threads go on meanwhile: they send.
            tokio::task::block_in_place(|| traces.stop());
        }
    }
}

fn start_logging(args: &Args) -> Result<Logging, CommandError> {
    let filter = tracing_subscriber::EnvFilter::try_new(&args.log_level).map_err(|error| {
        CommandError::because(format!("read --log-level {}", args.log_level), error)
            .hint("try `info` or `plumb_engine=debug`")
            .exit(ExitCode::Usage)
    })?;
    let is_terminal = std::io::stderr().is_terminal();
    let style = match args.log_format {
        LogFormat::Json => LogStyle::Json,
        LogFormat::Text if is_terminal => LogStyle::Coloured,
        LogFormat::Text => LogStyle::Plain,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(LogWriter(style))
        .with_ansi(is_terminal)
        .with_target(false);
    let lines = match args.log_format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let registry = tracing_subscriber::registry().with(lines.with_filter(filter));
    #[cfg(feature = "traces")]
    if let Some(endpoint) = &args.traces_endpoint {
        let (layer, traces) = plumb_traces::layer(endpoint).map_err(|error| {
            CommandError::because(format!("send traces to {endpoint}"), error)
                .hint("try --traces-endpoint http://127.0.0.1:4318")
                .exit(ExitCode::Usage)
        })?;
        registry.with(layer).init();
        return Ok(Logging { traces: Some(traces) });
    }
    registry.init();
    Ok(Logging {
        #[cfg(feature = "traces")]
        traces: None,
    })
}

/// The error of an engine that cannot run, with a hint.
fn engine_error(error: StartError) -> CommandError {
    let hint = match &error {
        StartError::Beside { namespace, .. } => Some(format!(
            "two controllers would undo each other's changes: stop the other one, for example with `kubectl -n {namespace} \
             scale statefulset argocd-application-controller --replicas=0`; --beside-other-controllers starts anyway"
        )),
        StartError::Kinds { .. } => {
            Some("`plumb run --install` installs the definitions that are missing".to_owned())
        }
        StartError::Watch
        | StartError::Connect(_)
        | StartError::Discover(_)
        | StartError::Thread(_)
        | StartError::Cache { .. } => None,
    };
    let error = CommandError::because("run the engine", error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Resolves when the process is asked to stop.
async fn stopped(until_stdin_closes: bool) {
    let stdin_closed = async {
        if !until_stdin_closes {
            return std::future::pending().await;
        }
        let mut stdin = tokio::io::stdin();
        let mut buffer = [0; 64];
        while matches!(stdin.read(&mut buffer).await, Ok(read) if read > 0) {}
    };
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stdin_closed => {}
        () = terminated => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_alone_is_no_path() {
        assert_eq!(["", "/", " / ", "/argo", "argo/"].map(below), ["", "", "", "/argo", "argo/"]);
    }
}
