//! Which servers plumb may connect to for a source. Users who may only write Applications choose the addresses, and DNS
//! chooses the IP addresses, so the decision is about the IP address that is connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::address::{RepoAddress, normal_host};

/// Which IP addresses may be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPolicy {
    loopback: bool,
    /// Addresses and names of the API server that plumb runs in.
    api_server: Vec<IpAddr>,
    denied: Vec<AddressRange>,
    allowed: Vec<AddressRule>,
    /// Host and port of repositories that the operator registered.
    declared: Vec<(String, u16)>,
}

/// An exception of the operator: `10.0.0.0/8`, `::1`, `git.example.com`, `localhost:3000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressRule {
    /// These IP addresses.
    Range(AddressRange),
    /// This host, whatever its IP address is.
    Host {
        /// In lower case.
        name: String,
        /// `None`: every port.
        port: Option<u16>,
    },
}

/// A range of IP addresses in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    prefix: u8,
}

/// The text is not an exception.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an IP address, a range like 10.0.0.0/8, or a host with an optional port")]
pub struct BadAddressRule(pub String);

/// A server that plumb does not connect to. No connection was tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{host} is not permitted: it is {kind} (to permit it, an operator registers the repository in a Secret or uses \
     --allow-address)"
)]
pub struct AddressRefused {
    /// The host, as the address has it.
    pub host: String,
    kind: &'static str,
}

impl Default for AddressPolicy {
    fn default() -> Self {
        Self::workstation()
    }
}

impl AddressPolicy {
    /// For a user's machine: its own servers are the user's own.
    pub fn workstation() -> Self {
        Self {
            loopback: true,
            api_server: Vec::new(),
            denied: Vec::new(),
            allowed: Vec::new(),
            declared: Vec::new(),
        }
    }

    /// For a pod: containers beside plumb and the API server are not for users.
    pub fn cluster(api_server: impl IntoIterator<Item = IpAddr>) -> Self {
        Self { loopback: false, api_server: api_server.into_iter().collect(), ..Self::workstation() }
    }

    /// With exceptions and ranges to deny as well; an exception wins.
    #[must_use]
    pub fn with_rules(
        self,
        allowed: impl IntoIterator<Item = AddressRule>,
        denied: impl IntoIterator<Item = AddressRange>,
    ) -> Self {
        let mut policy = self;
        policy.allowed.extend(allowed);
        policy.denied.extend(denied);
        policy
    }

    /// With repositories that the operator registered. The IP address in such an address is permitted; a name is
    /// permitted to mean this machine, but not to mean a metadata or link-local address: the owner of the name may be
    /// another person than the operator.
    #[must_use]
    pub fn with_declared<'a>(&self, urls: impl IntoIterator<Item = &'a str>) -> Self {
        let addresses = urls.into_iter().filter_map(|url| RepoAddress::parse(url).ok());
        let declared = addresses.filter(|address| !address.is_local());
        let declared = declared.map(|address| (address.host().to_owned(), address.port()));
        Self { declared: self.declared.iter().cloned().chain(declared).collect(), ..self.clone() }
    }

    /// May a name be looked up? The API server's own names mean an address that is not permitted.
    pub fn permits_host(&self, host: &str, port: u16) -> Result<(), AddressRefused> {
        let refused = |kind| AddressRefused { host: host.to_owned(), kind };
        let Ok(name) = normal_host(host) else {
            return Err(refused("not a host name or IP address in its usual notation"));
        };
        if let Some(address) = literal(&name) {
            return self.permits(host, port, address);
        }
        let is_api_server = name == "kubernetes"
            || name == "kubernetes.default"
            || name == "kubernetes.default.svc"
            || name.starts_with("kubernetes.default.svc.");
        if is_api_server && !self.loopback && !self.is_allowed_host(&name, port) {
            return Err(refused("the API server"));
        }
        Ok(())
    }

    /// May this IP address, which the host has, be connected to?
    pub fn permits(&self, host: &str, port: u16, address: IpAddr) -> Result<(), AddressRefused> {
        let name = normal_host(host).unwrap_or_default();
        let is_declared = self.declared.iter().any(|(host, at)| *host == name && *at == port);
        let is_literal = literal(&name) == Some(address);
        if self.is_allowed_host(&name, port) || self.is_allowed_range(address) || (is_declared && is_literal)
        {
            return Ok(());
        }
        // An IPv6 address may lead to the IPv4 address in it.
        let meanings = std::iter::once(address).chain(embedded(address).into_iter().map(IpAddr::V4));
        for meaning in meanings {
            let kind = match kind(meaning) {
                Some(AddressKind::Loopback) if self.loopback || is_declared => None,
                Some(kind) => Some(kind.text()),
                None if self.api_server.contains(&meaning) => Some("the API server"),
                None if self.denied.iter().any(|range| range.contains(meaning)) => Some("in a denied range"),
                None => None,
            };
            if let Some(kind) = kind {
                return Err(AddressRefused { host: host.to_owned(), kind });
            }
        }
        Ok(())
    }

    fn is_allowed_host(&self, wanted: &str, at: u16) -> bool {
        self.allowed.iter().any(|rule| match rule {
            AddressRule::Host { name, port } => name == wanted && port.is_none_or(|port| port == at),
            AddressRule::Range(_) => false,
        })
    }

    fn is_allowed_range(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|rule| match rule {
            AddressRule::Range(range) => range.contains(address),
            AddressRule::Host { .. } => false,
        })
    }
}

impl std::str::FromStr for AddressRule {
    type Err = BadAddressRule;

    fn from_str(text: &str) -> Result<Self, BadAddressRule> {
        let text = text.trim();
        let bad = || BadAddressRule(text.to_owned());
        if let Ok(range) = text.parse() {
            return Ok(Self::Range(range));
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, Some(port.parse().map_err(|_| bad())?)),
            _ => (text, None),
        };
        Ok(Self::Host { name: normal_host(name).map_err(|_| bad())?, port })
    }
}

impl std::str::FromStr for AddressRange {
    type Err = BadAddressRule;

    fn from_str(text: &str) -> Result<Self, BadAddressRule> {
        let bad = || BadAddressRule(text.to_owned());
        let (address, prefix) =
            text.trim().split_once('/').map_or((text.trim(), None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(longest), str::parse).map_err(|_| bad())?;
        if prefix > longest { Err(bad()) } else { Ok(Self { address, prefix }) }
    }
}

impl AddressRange {
    /// Is the address in the range?
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(range), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix);
                (u32::from(range) ^ u32::from(address)).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(range), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.prefix);
                (u128::from(range) ^ u128::from(address)).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// The IP address that a host is written as.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// An address that no repository of another person has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AddressKind {
    Loopback,
    Unspecified,
    LinkLocal,
    Metadata,
    Multicast,
    Reserved,
}

impl AddressKind {
    fn text(self) -> &'static str {
        match self {
            Self::Loopback => "a loopback address",
            Self::Unspecified => "the unspecified address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a cloud's metadata service",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
        }
    }
}

/// The metadata services of clouds outside the link-local range.
const METADATA: [IpAddr; 5] = [
    // Alibaba Cloud.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Oracle Cloud.
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    // Azure.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Google Cloud.
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    // Alibaba Cloud.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x100, 0x100, 0x100, 0, 0, 0, 0x200)),
];

fn kind(address: IpAddr) -> Option<AddressKind> {
    if METADATA.contains(&address) {
        return Some(AddressKind::Metadata);
    }
    match address {
        IpAddr::V4(address) => match address.octets() {
            [127, ..] => Some(AddressKind::Loopback),
            [0, ..] => Some(AddressKind::Unspecified),
            [169, 254, 169, 254] => Some(AddressKind::Metadata),
            [169, 254, ..] => Some(AddressKind::LinkLocal),
            [224..=239, ..] => Some(AddressKind::Multicast),
            [240..=255, ..] => Some(AddressKind::Reserved),
            _ => None,
        },
        IpAddr::V6(address) => match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 1] => Some(AddressKind::Loopback),
            [0, 0, 0, 0, 0, 0, 0, 0] => Some(AddressKind::Unspecified),
            // All services that AWS offers to its machines.
            [0xfd00, 0xec2, ..] => Some(AddressKind::Metadata),
            // Link-local, and the older site-local.
            [0xfe80..=0xfeff, ..] => Some(AddressKind::LinkLocal),
            [0xff00..=0xffff, ..] => Some(AddressKind::Multicast),
            _ => None,
        },
    }
}

/// The IPv4 addresses that an IPv6 address can lead to: mapped, compatible, translated, NAT64, ISATAP, 6to4, Teredo. An
/// address may have several of these forms at once.
fn embedded(address: IpAddr) -> Vec<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return Vec::new() };
    let (parts, octets) = (address.segments(), address.octets());
    let ipv4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    let mut found = Vec::new();
    match parts {
        // `::` and `::1` have meanings of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return found,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, .., high, low]
        | [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => found.push(ipv4(high, low)),
        _ => {}
    }
    match parts {
        [0x2002, high, low, ..] => found.push(ipv4(high, low)),
        // Server and, inverted, client.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            found.extend([ipv4(server_high, server_low), ipv4(!high, !low)]);
        }
        // NAT64 with a prefix of 48 bits has the address around its ninth byte.
        [0x64, 0xff9b, 1, ..] => found.push(Ipv4Addr::new(octets[6], octets[7], octets[9], octets[10])),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(policy: &AddressPolicy, host: &str, address: &str) -> Option<&'static str> {
        policy.permits(host, 443, address.parse().unwrap()).err().map(|refused| refused.kind)
    }

    #[test]
    fn addresses_of_the_machine_and_of_the_cloud_are_refused_in_a_cluster() {
        let policy = AddressPolicy::cluster(["10.96.0.1".parse().unwrap()]);
        for (address, word) in [
            ("127.0.0.1", "loopback"),
            ("127.9.9.9", "loopback"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::127.0.0.1", "loopback"),
            ("::ffff:0:127.0.0.1", "loopback"),
            ("64:ff9b::127.0.0.1", "loopback"),
            ("64:ff9b:1::127.0.0.1", "loopback"),
            ("2002:7f00:1::", "loopback"),
            ("64:ff9b:1:7f00:0:100:808:808", "loopback"),
            ("2002:7f00:1::5efe:808:808", "loopback"),
            ("fe80::5efe:127.0.0.1", "link-local"),
            ("2001:db8::5efe:127.0.0.1", "loopback"),
            // Teredo: the client's address is inverted.
            ("2001:0:102:304:0:0:80ff:fffe", "loopback"),
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("::", "unspecified"),
            ("169.254.169.254", "metadata"),
            ("169.254.1.1", "link-local"),
            ("::ffff:169.254.169.254", "metadata"),
            ("2002:a9fe:a9fe::1", "metadata"),
            ("fd00:ec2::254", "metadata"),
            ("fd20:ce::254", "metadata"),
            ("100.100.100.200", "metadata"),
            ("168.63.129.16", "metadata"),
            ("fe80::1", "link-local"),
            ("fec0::1", "link-local"),
            ("224.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("255.255.255.255", "reserved"),
            ("10.96.0.1", "API server"),
            ("::ffff:10.96.0.1", "API server"),
        ] {
            let kind = refused(&policy, "git.example.com", address);
            assert!(kind.is_some_and(|kind| kind.contains(word)), "{address}: {kind:?}");
        }
        for address in
            ["10.96.0.2", "10.0.0.1", "172.16.0.1", "192.168.1.1", "fd12::1", "8.8.8.8", "2606:4700::1"]
        {
            assert_eq!(refused(&policy, "git.example.com", address), None, "{address}");
        }
    }

    #[test]
    fn a_workstation_reaches_its_own_servers() {
        let policy = AddressPolicy::workstation();
        for (address, expected) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("169.254.169.254", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(refused(&policy, "h", address).is_none(), expected, "{address}");
        }
        assert_eq!(policy.permits_host("kubernetes.default.svc", 443), Ok(()));
    }

    #[test]
    fn exceptions_are_the_operators() {
        let rule = |text: &str| text.parse::<AddressRule>().unwrap();
        let policy = AddressPolicy::cluster([]).with_rules(
            [rule("127.0.0.0/30"), rule("Side.example.com:3000"), rule("meta.example.com"), rule("10.1.1.1")],
            ["10.0.0.0/8".parse().unwrap()],
        );
        for (host, port, address, expected) in [
            ("h", 443, "127.0.0.3", true),
            ("h", 443, "127.0.0.4", false),
            ("side.example.com", 3000, "127.0.0.9", true),
            ("side.example.com", 3001, "127.0.0.9", false),
            ("meta.example.com", 80, "169.254.169.254", true),
            ("h", 443, "10.1.1.1", true),
            ("h", 443, "10.1.1.2", false),
            ("h", 443, "11.1.1.2", true),
        ] {
            let permitted = policy.permits(host, port, address.parse().unwrap()).is_ok();
            assert_eq!(permitted, expected, "{host}:{port} {address}");
        }
        for text in ["", "10.0.0.0/33", "a b", "host:x", "::1/129", "0x7f.1"] {
            assert!(text.parse::<AddressRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_registered_repository_declares_its_host() {
        let declared = ["http://localhost:3000/org", "https://169.254.1.1/x", "https://git.example.com/x"];
        let policy = AddressPolicy::cluster([]).with_declared(declared);
        for (host, port, address, expected) in [
            ("localhost", 3000, "127.0.0.1", true),
            ("LOCALHOST.", 3000, "::1", true),
            ("localhost", 6379, "127.0.0.1", false),
            ("other", 3000, "127.0.0.1", false),
            ("169.254.1.1", 443, "169.254.1.1", true),
            ("169.254.1.1", 80, "169.254.1.1", false),
            // Who owns the name may point it anywhere.
            ("git.example.com", 443, "169.254.169.254", false),
        ] {
            let permitted = policy.permits(host, port, address.parse().unwrap()).is_ok();
            assert_eq!(permitted, expected, "{host}:{port} {address}");
        }
    }

    #[test]
    fn names_of_the_api_server_are_not_looked_up() {
        let policy = AddressPolicy::cluster([]);
        for host in [
            "kubernetes",
            "kubernetes.default",
            "Kubernetes.Default.svc",
            "kubernetes.default.svc.cluster.local.",
            "127.0.0.1",
            "[::1]",
            "0x7f.1",
            "2130706433",
        ] {
            assert!(policy.permits_host(host, 443).is_err(), "{host}");
        }
        for host in ["kubernetes.example.com", "gitea.git.svc.cluster.local", "10.0.0.1"] {
            assert_eq!(policy.permits_host(host, 443), Ok(()), "{host}");
        }
        let open = policy.with_rules(["kubernetes.default.svc".parse().unwrap()], []);
        assert_eq!(open.permits_host("kubernetes.default.svc", 443), Ok(()));
    }
}
