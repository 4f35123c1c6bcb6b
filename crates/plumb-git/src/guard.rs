//! Keeps git and ssh away from servers that the address policy does not permit.
//!
//! git looks up names and follows redirects by itself. So for http(s) it connects through a SOCKS proxy inside plumb,
//! which looks up each name, asks the policy about the IP address, and connects to that very address. ssh knows no
//! redirects: it gets the IP address that was checked. A proxy of the repository's Secret is the operator's, and decides
//! itself.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plumb_core::source::{AddressPolicy, AddressRefused};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::access::{Environment, RepoAccess};
use crate::command::CommandError;
use crate::url::{RepoUrl, Transport};

/// Longest time for a lookup and a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Holds the proxy of one run of git. Dropping it ends the proxy.
#[derive(Default)]
pub(crate) struct Guard {
    failure: FailureSlot,
    proxy: Option<tokio::task::JoinHandle<()>>,
}

/// Why the proxy did not connect last time.
type FailureSlot = Arc<Mutex<Option<Failure>>>;

#[derive(Clone)]
enum Failure {
    Refused(AddressRefused),
    Connect(String),
}

/// Why git is not run.
pub(crate) enum GuardError {
    Refused(AddressRefused),
    Io(std::io::Error),
}

impl From<std::io::Error> for GuardError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl Guard {
    /// Judges the address, and changes the environment so that git can reach permitted servers only.
    pub(crate) async fn new(
        url: &RepoUrl,
        access: &RepoAccess,
        environment: &mut Environment,
    ) -> Result<Self, GuardError> {
        let mut guard = Self::default();
        if url.transport() == Transport::File {
            return Ok(guard);
        }
        let (host, port) = host_and_port(url);
        access.policy.permits_host(host, port).map_err(GuardError::Refused)?;
        match url.transport() {
            Transport::Http | Transport::Https if access.proxy.is_none() => {
                guard.proxy = Some(guard.start_proxy(Arc::clone(&access.policy), environment).await?);
            }
            Transport::Http | Transport::Https | Transport::File => {}
            Transport::Ssh => {
                let address = permitted(&access.policy, host, port).await?;
                // The known hosts have the name, not the IP address.
                let alias = if port == 22 { host.to_owned() } else { format!("[{host}]:{port}") };
                let options = format!(" -o HostName={} -o 'HostKeyAlias={alias}'", address.ip());
                environment.append("GIT_SSH_COMMAND", &options);
            }
            Transport::Git => {
                permitted(&access.policy, host, port).await?;
            }
        }
        Ok(guard)
    }

    /// The error of git, or why the proxy did not connect: git only knows that it did not.
    pub(crate) fn explain(&self, error: CommandError) -> CommandError {
        match (self.failure.lock().clone(), error) {
            (Some(Failure::Refused(refused)), _) => CommandError::Refused(refused),
            (Some(Failure::Connect(message)), CommandError::Failed { command, code, .. }) => {
                CommandError::Failed { command, code, message }
            }
            (_, error) => error,
        }
    }

    async fn start_proxy(
        &self,
        policy: Arc<AddressPolicy>,
        environment: &mut Environment,
    ) -> std::io::Result<tokio::task::JoinHandle<()>> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let password = random_password();
        let address = listener.local_addr()?;
        environment.config("http.proxy", &format!("socks5h://git:{password}@{address}"));
        // These would take connections away from the proxy.
        environment.set("no_proxy", "");
        environment.set("NO_PROXY", "");
        let failure = Arc::clone(&self.failure);
        Ok(tokio::spawn(async move {
            // Connections end with this task.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let connection = Connection {
                    policy: Arc::clone(&policy),
                    password: password.clone(),
                    failure: Arc::clone(&failure),
                };
                // A connection that breaks is reported by git.
                connections.spawn(async move { drop(connection.serve(client).await) });
            }
        }))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(proxy) = &self.proxy {
            proxy.abort();
        }
    }
}

/// One connection of git to the proxy.
struct Connection {
    policy: Arc<AddressPolicy>,
    password: String,
    failure: FailureSlot,
}

/// Numbers of the protocol: RFC 1928 and RFC 1929.
mod socks {
    pub(super) const VERSION: u8 = 5;
    pub(super) const LOGIN_VERSION: u8 = 1;
    pub(super) const PASSWORD: u8 = 2;
    pub(super) const NO_METHOD: u8 = 0xff;
    pub(super) const CONNECT: u8 = 1;
    pub(super) const IPV4: u8 = 1;
    pub(super) const NAME: u8 = 3;
    pub(super) const IPV6: u8 = 4;
    pub(super) const SUCCEEDED: u8 = 0;
    pub(super) const NOT_ALLOWED: u8 = 2;
    pub(super) const UNREACHABLE: u8 = 4;
}

impl Connection {
    async fn serve(self, mut client: TcpStream) -> std::io::Result<()> {
        let (host, port) = tokio::time::timeout(CONNECT_TIMEOUT, self.greet(&mut client)).await??;
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, self.connect(&host, port)).await;
        let cannot = |reason: &str| Failure::Connect(format!("cannot connect to {host}:{port}: {reason}"));
        let (reply, outcome) = match connected {
            Ok(Ok(server)) => (socks::SUCCEEDED, Ok(server)),
            Ok(Err(GuardError::Refused(refused))) => (socks::NOT_ALLOWED, Err(Failure::Refused(refused))),
            Ok(Err(GuardError::Io(error))) => (socks::UNREACHABLE, Err(cannot(&error.to_string()))),
            Err(_) => (socks::UNREACHABLE, Err(cannot("the server does not answer"))),
        };
        let server = outcome.map_err(|failure| *self.failure.lock() = Some(failure)).ok();
        client.write_all(&[socks::VERSION, reply, 0, socks::IPV4, 0, 0, 0, 0, 0, 0]).await?;
        if let Some(mut server) = server {
            tokio::io::copy_bidirectional(&mut client, &mut server).await?;
        }
        Ok(())
    }

    /// The password, then the host and port that git wants.
    async fn greet(&self, client: &mut TcpStream) -> std::io::Result<(String, u16)> {
        let bad = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        if client.read_u8().await? != socks::VERSION {
            return Err(bad());
        }
        if !read_counted(client).await?.contains(&socks::PASSWORD) {
            client.write_all(&[socks::VERSION, socks::NO_METHOD]).await?;
            return Err(bad());
        }
        client.write_all(&[socks::VERSION, socks::PASSWORD]).await?;
        let version = client.read_u8().await?;
        let (_, password) = (read_counted(client).await?, read_counted(client).await?);
        let is_git = version == socks::LOGIN_VERSION && password == self.password.as_bytes();
        client.write_all(&[socks::LOGIN_VERSION, u8::from(!is_git)]).await?;
        let mut start = [0; 4];
        client.read_exact(&mut start).await?;
        let [version, command, _, kind] = start;
        if !is_git || version != socks::VERSION || command != socks::CONNECT {
            return Err(bad());
        }
        let host = match kind {
            socks::IPV4 => {
                let mut octets = [0; 4];
                client.read_exact(&mut octets).await?;
                IpAddr::from(octets).to_string()
            }
            socks::IPV6 => {
                let mut octets = [0; 16];
                client.read_exact(&mut octets).await?;
                format!("[{}]", IpAddr::from(octets))
            }
            socks::NAME => String::from_utf8(read_counted(client).await?).map_err(|_| bad())?,
            _ => return Err(bad()),
        };
        Ok((host, client.read_u16().await?))
    }

    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, GuardError> {
        self.policy.permits_host(host, port).map_err(GuardError::Refused)?;
        let addresses = all_permitted(&self.policy, host, port).await?;
        Ok(TcpStream::connect(&addresses[..]).await?)
    }
}

/// A byte that says how many bytes follow, and these.
async fn read_counted(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(client.read_u8().await?)];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// The first permitted IP address of a host.
async fn permitted(policy: &AddressPolicy, host: &str, port: u16) -> Result<SocketAddr, GuardError> {
    let addresses = all_permitted(policy, host, port).await?;
    addresses.first().copied().ok_or_else(|| GuardError::Io(std::io::ErrorKind::NotFound.into()))
}

/// The permitted IP addresses of a host; refused if it has only others.
async fn all_permitted(policy: &AddressPolicy, host: &str, port: u16) -> Result<Vec<SocketAddr>, GuardError> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::time::timeout(CONNECT_TIMEOUT, tokio::net::lookup_host((name, port)));
    let found: Vec<SocketAddr> = found.await.map_err(std::io::Error::from)??.collect();
    let (mut addresses, mut refusal) = (Vec::new(), None);
    for address in found {
        match policy.permits(host, port, address.ip()) {
            Ok(()) => addresses.push(address),
            Err(refused) => refusal = Some(refused),
        }
    }
    match refusal {
        Some(refused) if addresses.is_empty() => Err(GuardError::Refused(refused)),
        Some(_) | None => Ok(addresses),
    }
}

fn host_and_port(url: &RepoUrl) -> (&str, u16) {
    let usual = match url.transport() {
        Transport::Https => 443,
        Transport::Http => 80,
        Transport::Ssh => 22,
        Transport::Git => 9418,
        Transport::File => 0,
    };
    match url.host().rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(usual)),
        _ => (url.host(), usual),
    }
}

/// The proxy is for one run of git, not for other programs on this machine.
fn random_password() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let part = || RandomState::new().hash_one("plumb");
    format!("{:016x}{:016x}", part(), part())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_an_address() {
        for (text, expected) in [
            ("https://h/x", ("h", 443)),
            ("http://h:81/x", ("h", 81)),
            ("git@h:x", ("h", 22)),
            ("ssh://git@[::1]/x", ("[::1]", 22)),
            ("ssh://git@[::1]:2222/x", ("[::1]", 2222)),
            ("git://h/x", ("h", 9418)),
        ] {
            assert_eq!(host_and_port(&RepoUrl::parse(text).unwrap()), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn ssh_gets_the_address_that_was_checked() {
        for (url, alias) in
            [("git@localhost:x", "localhost"), ("ssh://git@localhost:2222/x", "[localhost]:2222")]
        {
            let url = RepoUrl::parse(url).unwrap();
            let guarded = async |policy: AddressPolicy| {
                let access = RepoAccess { policy: Arc::new(policy), ..RepoAccess::default() };
                let mut environment = Environment::default();
                environment.set("GIT_SSH_COMMAND", "ssh");
                let guard = Guard::new(&url, &access, &mut environment).await;
                let variables = environment.into_variables();
                let command = variables.into_iter().find(|(name, _)| name == "GIT_SSH_COMMAND").unwrap().1;
                (guard.is_ok(), command.into_string().unwrap())
            };
            let (is_permitted, command) = guarded(AddressPolicy::workstation()).await;
            let address = command.strip_prefix("ssh -o HostName=").and_then(|rest| rest.split(' ').next());
            assert!(is_permitted && address.unwrap().parse::<IpAddr>().unwrap().is_loopback(), "{command}");
            assert!(command.ends_with(&format!(" -o 'HostKeyAlias={alias}'")), "{command}");
            assert_eq!(guarded(AddressPolicy::cluster([])).await, (false, "ssh".to_owned()));
        }
    }

    #[tokio::test]
    async fn other_programs_cannot_use_the_proxy() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ask = async |password: &str, host: [u8; 4]| {
            let mut client = TcpStream::connect(proxy.local_addr().unwrap()).await.unwrap();
            let (accepted, _) = proxy.accept().await.unwrap();
            let connection = Connection {
                policy: Arc::new(AddressPolicy::workstation()),
                password: "right".to_owned(),
                failure: Arc::default(),
            };
            let serving = tokio::spawn(connection.serve(accepted));
            let mut bytes = vec![5, 1, 2, 1, 1, b'x', u8::try_from(password.len()).unwrap()];
            bytes.extend_from_slice(password.as_bytes());
            bytes.extend_from_slice(&[5, 1, 0, 1]);
            bytes.extend_from_slice(&host);
            bytes.extend_from_slice(&port.to_be_bytes());
            client.write_all(&bytes).await.unwrap();
            let mut answer = [0xee; 6];
            let _ = client.read_exact(&mut answer).await;
            drop(client);
            let _ = serving.await;
            answer
        };
        // Method, login, reply.
        assert_eq!(ask("right", [127, 0, 0, 1]).await, [5, 2, 1, 0, 5, socks::SUCCEEDED]);
        assert_eq!(ask("right", [169, 254, 169, 254]).await, [5, 2, 1, 0, 5, socks::NOT_ALLOWED]);
        assert_eq!(ask("wrong", [127, 0, 0, 1]).await[..4], [5, 2, 1, 1]);
    }
}
