//! The interfaces of this machine: which may be used, and which often lead nowhere.

use parnass_base::socket::InterfaceAddress;
use std::net::IpAddr;

/// Prefixes of the names of interfaces that often lead nowhere from another host.
const DOUBTFUL: [&str; 18] = [
    "docker",
    "br-",
    "veth",
    "virbr",
    "vmnet",
    "vboxnet",
    "lxc",
    "lxd",
    "podman",
    "cni",
    "flannel",
    "cali",
    "tun",
    "tap",
    "wg",
    "tailscale",
    "zt",
    "ppp",
];

/// Whether an interface looks like one of containers, virtual machines or a private network: to be tried last.
pub fn is_doubtful(interface: &str) -> bool {
    DOUBTFUL.iter().any(|prefix| interface.starts_with(prefix))
}

/// Environment variable that names the interfaces (`eth0`) or networks (`10.1.0.0/16`) to be used, separated by commas.
pub const INTERFACE_VARIABLE: &str = "PARNASS_INTERFACE";

/// Which interfaces may be used: all, or those that the user names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Vec<String>);

impl Selection {
    /// From names and networks, separated by commas; empty: all.
    ///
    /// # Errors
    /// A word with a slash is no network.
    pub fn parse(text: &str) -> Result<Selection, String> {
        let words: Vec<String> =
            text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        match words.iter().find(|word| word.contains('/') && network(word).is_none()) {
            Some(word) => Err(format!("'{word}' is neither an interface nor a network such as 10.1.0.0/16")),
            None => Ok(Selection(words)),
        }
    }

    /// Whether an address may be used.
    pub fn takes(&self, entry: &InterfaceAddress) -> bool {
        self.0.is_empty()
            || self.0.iter().any(|word| match network(word) {
                Some((address, prefix)) => is_in(entry.address, address, prefix),
                None => *word == entry.interface,
            })
    }

    /// What a selection that leaves nothing says to the user.
    pub fn complaint(&self, host: &str, interfaces: &[InterfaceAddress]) -> String {
        let names: Vec<String> =
            interfaces.iter().map(|entry| format!("{} {}", entry.interface, entry.address)).collect();
        format!(
            "{INTERFACE_VARIABLE} is '{}', but host {host} has no such interface or network; it has: {}",
            self.0.join(","),
            names.join(", ")
        )
    }
}

fn network(word: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = word.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let prefix = prefix.parse().ok().filter(|prefix| *prefix <= if address.is_ipv4() { 32 } else { 128 })?;
    Some((address, prefix))
}

/// Whether an address can be told to others: those of one link alone need a name of this host's interface.
pub fn is_usable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !address.is_link_local() && !address.is_unspecified(),
        IpAddr::V6(address) => !address.is_unicast_link_local() && !address.is_unspecified(),
    }
}

/// Whether an address lies in a network.
pub fn is_in(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            prefix == 0 || (address.to_bits() ^ network.to_bits()) >> (32 - u32::from(prefix)) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            prefix == 0 || (address.to_bits() ^ network.to_bits()) >> (128 - u32::from(prefix)) == 0
        }
        _ => false,
    }
}

/// The interface of this machine that has `address`.
pub fn interface_of(mine: &[InterfaceAddress], address: IpAddr) -> &str {
    mine.iter().find(|own| own.address == address).map_or("an interface unknown", |own| &own.interface)
}

/// Names this machine as it runs now, and its network stack.
pub fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let stack = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), stack.display())
}

/// Which start of which machine a [`machine`] is, whatever its network stack.
pub fn boot_of(machine: &str) -> &str {
    machine.split(' ').next().unwrap_or_default()
}
