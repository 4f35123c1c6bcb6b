//! The addresses that `plumb run` serves HTTP on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use plumb_core::error_chain::error_chain;
use plumb_engine::RunsIn;
use plumb_web::{BindError, Listener, Side};
use tracing::{info, warn};

use crate::error::CommandError;

/// The address of one listener, from the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Off,
    At(SocketAddr),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self::Off);
        }
        text.parse().map(Self::At).map_err(|_| "an address such as 127.0.0.1:8080, or `off`".to_owned())
    }
}

/// One listener to bind.
pub(crate) struct ListenerArgs {
    pub(crate) side: Side,
    /// The flag, for messages.
    pub(crate) flag: &'static str,
    pub(crate) asked: Option<Address>,
    pub(crate) port: u16,
}

impl ListenerArgs {
    /// Binds the address. An address from the command line must be free. By default plumb serves on all interfaces in
    /// a cluster, where a port in use is an error, and on loopback on a workstation. There another plumb may use the port:
    /// then a warning is logged and nothing is served.
    pub(crate) fn bind(&self, place: RunsIn) -> Result<Option<Listener>, CommandError> {
        let bound = match (self.asked, place) {
            (Some(Address::Off), _) => return Ok(None),
            (Some(Address::At(address)), _) => Listener::bind(address, self.side),
            (None, RunsIn::Workstation) => self.bind_to(Ipv4Addr::LOCALHOST.into()),
            (None, RunsIn::Cluster) => match self.bind_to(Ipv6Addr::UNSPECIFIED.into()) {
                Ok(listener) => Ok(listener),
                // The node has no IPv6.
                Err(_) => self.bind_to(Ipv4Addr::UNSPECIFIED.into()),
            },
        };
        match bound {
            Ok(listener) => {
                let address = listener.address().map(|address| address.to_string()).unwrap_or_default();
                info!(side = self.name(), address, "listening");
                Ok(Some(listener))
            }
            Err(error) if self.asked.is_none() && place == RunsIn::Workstation => {
                warn!(
                    error = error_chain(&error),
                    "{} are not served, perhaps because another plumb runs: {flag}=127.0.0.1:0 takes any free port, \
                     {flag}=off none",
                    self.name(),
                    flag = self.flag,
                );
                Ok(None)
            }
            Err(error) => Err(CommandError::because(format!("serve {}", self.name()), error)
                .hint(format!("{} sets another address, or `off`", self.flag))),
        }
    }

    fn bind_to(&self, ip: IpAddr) -> Result<Listener, BindError> {
        Listener::bind(SocketAddr::new(ip, self.port), self.side)
    }

    fn name(&self) -> &'static str {
        match self.side {
            Side::Inside => "metrics and health",
            Side::Outside => "API and webhooks",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(asked: Option<Address>, port: u16) -> ListenerArgs {
        ListenerArgs { side: Side::Inside, flag: "--metrics-address", asked, port }
    }

    #[test]
    fn an_address_or_off() {
        assert_eq!("off".parse(), Ok(Address::Off));
        assert_eq!("127.0.0.1:0".parse(), Ok(Address::At(([127, 0, 0, 1], 0).into())));
        assert!("8080".parse::<Address>().is_err());
    }

    #[test]
    fn a_taken_port_is_an_error_only_if_it_was_asked_for() {
        let any = Address::At(([127, 0, 0, 1], 0).into());
        let first = wanted(Some(any), 0).bind(RunsIn::Workstation).unwrap().unwrap();
        let taken = first.address().unwrap();
        assert!(wanted(None, taken.port()).bind(RunsIn::Workstation).unwrap().is_none());
        let error = wanted(Some(Address::At(taken)), 0).bind(RunsIn::Workstation).err().unwrap();
        let error = error.to_string();
        assert!(error.contains(&taken.to_string()) && error.contains("--metrics-address"), "{error}");
        assert!(wanted(Some(Address::Off), 0).bind(RunsIn::Cluster).unwrap().is_none());
    }
}
