//! Which of libfabric's providers is taken: pure functions over what it offers.

use crate::library::Way;
use parnass_base::socket::InterfaceAddress;
use parnass_transport_stream::Selection;
use parnass_transport_stream::interfaces::{is_doubtful, is_usable};

/// Providers of hardware that TCP makes no use of, or a poorer one.
const HARDWARE: [&str; 10] = ["cxi", "efa", "verbs", "psm3", "psm2", "opx", "gni", "usnic", "ucx", "psm"];
/// The provider that is taken where libfabric is asked for and there is no such hardware.
const FALLBACK: &str = "tcp";

/// The provider without hardware that was seen to read memory faster than to send it, whatever its length: docs/wire/ofi.md has the figures.
const FASTER: &str = "tcp";

/// Whether a way leads over hardware of a fabric.
pub fn is_hardware(way: &Way) -> bool {
    HARDWARE.iter().any(|name| way.is_of(name))
}

/// Whether long messages are read out of the sender's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    Always,
    Never,
    /// Where that is faster.
    #[default]
    Auto,
}

impl Reads {
    /// From the value of the tunable.
    ///
    /// # Errors
    /// It is none; which there are.
    pub fn parse(text: &str) -> Result<Reads, String> {
        match text {
            "on" => Ok(Reads::Always),
            "off" => Ok(Reads::Never),
            "auto" | "" => Ok(Reads::Auto),
            other => Err(format!("'{other}': it may be on, off or auto")),
        }
    }

    /// Whether the endpoints of a way are to read. Those of shared memory never do: as long as a read goes on libfabric holds a lock in the
    /// memory of the peer, who spins for ever where the reader is killed.
    pub fn wants(self, way: &Way) -> bool {
        let wanted = match self {
            Reads::Always => true,
            Reads::Never => false,
            Reads::Auto => is_hardware(way) || way.is_of(FASTER),
        };
        wanted && way.reads() != 0 && !way.is_of("shm")
    }
}

/// Names what a way reaches, where that is not every host: shared memory reaches what sees the same files and names processes by
/// the same numbers.
pub fn reach(way: &Way) -> String {
    if !way.is_of("shm") {
        return String::new();
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let processes = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let files = rustix::fs::stat("/dev/shm").map_or(0, |files| files.st_dev);
    format!("{} {} {files}", boot.trim(), processes.display())
}

/// The ways as a person reads them, each once.
pub fn describe(ways: &[Way]) -> String {
    let mut words: Vec<String> = Vec::new();
    for way in ways {
        let word = match way.address {
            Some(address) => format!("{} ({} {address})", way.provider, way.domain),
            None => format!("{} ({})", way.provider, way.domain),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// The way that is taken: of the provider that is forced; else over hardware, and else over TCP. Of its addresses those
/// of `selection`, other machines' before the loopback, IPv4 before IPv6.
///
/// # Errors
/// A sentence for a person: what there is, and what to do.
pub fn choose<'a>(
    ways: &'a [Way],
    forced: Option<&str>,
    host: &str,
    selection: &Selection,
    interfaces: &[InterfaceAddress],
) -> Result<&'a Way, String> {
    let able = |way: &&Way| way.is_enough;
    let of = |name: &str| ways.iter().filter(able).filter(|way| way.is_of(name)).collect::<Vec<_>>();
    let candidates = match forced {
        Some(name) => of(name),
        None => {
            let best = ways.iter().filter(able).find(|way| is_hardware(way));
            best.map_or_else(|| of(FALLBACK), |best| of(&best.provider))
        }
    };
    let Some(first) = candidates.first() else {
        let wanted = forced.unwrap_or("tcp, nor one of hardware");
        return Err(format!(
            "libfabric on host {host} has no provider {wanted} that sends messages reliably and in order between hosts; \
             those that do: {}. Name one of them with `mpiexec --tunable provider=NAME`, or none, or use TCP: \
             `mpiexec --tunable network=tcp`",
            describe(ways)
        ));
    };
    let is_taken = |way: &&Way| match way.address {
        None => true,
        Some(address) => {
            let own = interfaces.iter().find(|own| own.address == address);
            is_usable(address) && own.is_none_or(|own| selection.takes(own))
        }
    };
    let place = |way: &&Way| {
        let address = way.address?;
        let own = interfaces.iter().find(|own| own.address == address);
        let doubtful = own.is_some_and(|own| is_doubtful(&own.interface));
        Some((address.is_loopback(), doubtful, address.is_ipv6()))
    };
    // The first of those that are equal: libfabric's own order.
    let same = candidates.iter().copied().filter(|way| way.provider == first.provider);
    same.filter(is_taken).min_by_key(place).ok_or_else(|| selection.complaint(host, interfaces))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(provider: &str, domain: &str, address: Option<&str>) -> Way {
        Way::sample(provider, domain, address.map(|address| address.parse().unwrap()))
    }

    fn interfaces() -> Vec<InterfaceAddress> {
        [
            ("lo", "127.0.0.1", 8),
            ("docker0", "172.17.0.1", 16),
            ("eth0", "10.0.0.1", 24),
            ("eth1", "10.1.0.1", 24),
        ]
        .map(|(interface, address, prefix)| InterfaceAddress {
            interface: interface.into(),
            address: address.parse().unwrap(),
            prefix,
        })
        .to_vec()
    }

    fn chosen(ways: &[Way], forced: Option<&str>, selection: &str) -> Result<String, String> {
        let selection = Selection::parse(selection).unwrap();
        choose(ways, forced, "here", &selection, &interfaces())
            .map(|way| format!("{} {}", way.provider, way.domain))
    }

    fn software() -> Vec<Way> {
        vec![
            way("shm", "shm", None),
            way("tcp;ofi_rxm", "lo", Some("127.0.0.1")),
            way("tcp;ofi_rxm", "eth0", Some("fe80::1")),
            way("tcp;ofi_rxm", "docker0", Some("172.17.0.1")),
            way("tcp;ofi_rxm", "eth0", Some("10.0.0.1")),
            way("tcp;ofi_rxm", "eth1", Some("10.1.0.1")),
            way("sockets", "eth0", Some("10.0.0.1")),
        ]
    }

    #[test]
    fn hardware_comes_first_and_then_tcp() {
        let mut ways = software();
        assert_eq!(chosen(&ways, None, "").unwrap(), "tcp;ofi_rxm eth0");
        ways.push(way("verbs;ofi_rxm", "mlx5_0", Some("10.9.0.1")));
        ways.push(way("verbs;ofi_rxm", "mlx5_1", Some("10.9.0.2")));
        assert_eq!(chosen(&ways, None, "").unwrap(), "verbs;ofi_rxm mlx5_0");
        assert!(is_hardware(&ways[7]) && !is_hardware(&ways[1]));
    }

    #[test]
    fn a_provider_is_forced_by_either_of_its_names() {
        let ways = software();
        assert_eq!(chosen(&ways, Some("sockets"), "").unwrap(), "sockets eth0");
        assert_eq!(chosen(&ways, Some("shm"), "").unwrap(), "shm shm");
        assert_eq!(chosen(&ways, Some("tcp;ofi_rxm"), "").unwrap(), "tcp;ofi_rxm eth0");
        let complaint = chosen(&ways, Some("verbs"), "").unwrap_err();
        for word in ["verbs", "host here", "tcp;ofi_rxm (eth0 10.0.0.1)", "sockets", "provider=NAME"] {
            assert!(complaint.contains(word), "{word}: {complaint}");
        }
        let mut short = ways;
        short.iter_mut().for_each(|way| way.is_enough = false);
        assert!(chosen(&short, None, "").is_err());
    }

    #[test]
    fn interfaces_are_selected() {
        let ways = software();
        assert_eq!(chosen(&ways, None, "eth1").unwrap(), "tcp;ofi_rxm eth1");
        assert_eq!(chosen(&ways, None, "lo").unwrap(), "tcp;ofi_rxm lo");
        assert_eq!(chosen(&ways, None, "172.16.0.0/12").unwrap(), "tcp;ofi_rxm docker0");
        assert!(chosen(&ways, None, "ib0").unwrap_err().contains("'ib0'"));
    }
}
