//! Where ranks can be reached: what each tells the others of itself, and in which order its addresses are tried.

use parnass_base::socket::InterfaceAddress;
use parnass_transport_stream::Selection;
use parnass_transport_stream::interfaces::{is_doubtful, is_in, is_usable};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What a rank tells all others: its host and its listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The name of its host, for messages.
    pub host: String,
    /// Names the machine and its network stack: where it is the same, loopback addresses lead there.
    pub machine: String,
    pub port: u16,
    pub addresses: Vec<Offer>,
}

/// Where the processes of a world are. Those of one host differ in their ports alone, and there may be a million of them.
#[derive(Debug)]
pub struct Contacts {
    /// One of each host.
    hosts: Vec<Contact>,
    /// For each process the place of its host, and its port.
    processes: Vec<(u32, u16)>,
}

impl Contacts {
    /// Of `size` processes that share the memory of this one, and need not be reached.
    pub fn none(size: u32) -> Contacts {
        Contacts { hosts: Vec::new(), processes: vec![(u32::MAX, 0); size as usize] }
    }

    /// What the processes have told of themselves; `None`: one of them is not understood.
    pub fn decode(contacts: &[impl AsRef<[u8]>]) -> Option<Contacts> {
        let mut all = Contacts { hosts: Vec::new(), processes: Vec::with_capacity(contacts.len()) };
        let mut places = BTreeMap::new();
        for bytes in contacts {
            let contact = Contact::decode(bytes.as_ref())?;
            let port = contact.port;
            let host = Contact { port: 0, ..contact };
            let place = *places.entry(host.encode()).or_insert(all.hosts.len() as u32);
            if place as usize == all.hosts.len() {
                all.hosts.push(host);
            }
            all.processes.push((place, port));
        }
        Some(all)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.processes.len()
    }

    /// Where process `number` is; `None`: it shares the memory of this one.
    pub fn get(&self, number: u32) -> Option<Contact> {
        let (place, port) = *self.processes.get(number as usize)?;
        let host = self.hosts.get(place as usize)?;
        Some(Contact { port, ..host.clone() })
    }
}

/// One address of a contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub address: IpAddr,
    /// Bits of it that name the network.
    pub prefix: u8,
    /// Whether its interface looks like one of containers, virtual machines or a private network: tried last.
    pub doubtful: bool,
}

/// The version of a contact's encoding.
const VERSION: u8 = 1;
/// Most addresses of a contact.
const OFFERS: usize = 32;
/// Longest name, in bytes.
const NAME_BYTES: usize = 120;

impl Contact {
    /// Of this process, listening at `port`, with those of `interfaces` that `selection` leaves.
    ///
    /// # Errors
    /// The selection leaves none.
    pub fn new(
        host: String,
        machine: String,
        port: u16,
        interfaces: &[InterfaceAddress],
        selection: &Selection,
    ) -> Result<Contact, String> {
        let mut addresses: Vec<Offer> = interfaces
            .iter()
            .filter(|entry| is_usable(entry.address) && selection.takes(entry))
            .map(|entry| Offer {
                address: entry.address,
                prefix: entry.prefix,
                doubtful: is_doubtful(&entry.interface),
            })
            .collect();
        if addresses.is_empty() {
            return Err(selection.complaint(&host, interfaces));
        }
        addresses.sort_by_key(|offer| offer.doubtful);
        addresses.truncate(OFFERS);
        let cut = |name: String| name.chars().filter(char::is_ascii).take(NAME_BYTES).collect();
        Ok(Contact { host: cut(host), machine: cut(machine), port, addresses })
    }

    /// Leaves out the least promising address, unless it is the only one; whether it was not.
    pub fn drop_last(&mut self) -> bool {
        self.addresses.len() > 1 && self.addresses.pop().is_some()
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        for name in [&self.host, &self.machine] {
            bytes.push(name.len() as u8);
            bytes.extend(name.as_bytes());
        }
        bytes.extend(self.port.to_le_bytes());
        bytes.push(self.addresses.len() as u8);
        for offer in &self.addresses {
            bytes.extend([
                if offer.address.is_ipv4() { 4 } else { 6 },
                offer.prefix,
                u8::from(offer.doubtful),
            ]);
            match offer.address {
                IpAddr::V4(address) => bytes.extend(address.octets()),
                IpAddr::V6(address) => bytes.extend(address.octets()),
            }
        }
        bytes
    }

    /// From bytes; `None`: they are no contact of this version.
    pub fn decode(bytes: &[u8]) -> Option<Contact> {
        let mut rest = bytes;
        let mut take = |count: usize| -> Option<&[u8]> {
            let (first, behind) = rest.split_at_checked(count)?;
            rest = behind;
            Some(first)
        };
        if take(1)?[0] != VERSION {
            return None;
        }
        let mut names = Vec::new();
        for _ in 0..2 {
            let length = usize::from(take(1)?[0]);
            if length > NAME_BYTES {
                return None;
            }
            names.push(String::from_utf8(take(length)?.to_vec()).ok()?);
        }
        let port = u16::from_le_bytes(take(2)?.try_into().ok()?);
        let count = usize::from(take(1)?[0]);
        if count > OFFERS {
            return None;
        }
        let mut addresses = Vec::with_capacity(count);
        for _ in 0..count {
            let [family, prefix, doubtful] = take(3)?.try_into().ok()?;
            let (address, bits) = match family {
                4 => (IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(take(4)?).ok()?)), 32),
                6 => (IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(take(16)?).ok()?)), 128),
                _ => return None,
            };
            if prefix > bits || doubtful > 1 {
                return None;
            }
            addresses.push(Offer { address, prefix, doubtful: doubtful == 1 });
        }
        let machine = names.pop()?;
        rest.is_empty().then(|| Contact { host: names.pop().unwrap_or_default(), machine, port, addresses })
    }
}

/// The addresses of a peer in the order in which they are tried: loopback on the same machine; networks that this
/// machine is in; others; and last what looks like containers' and private networks. An address that this machine has
/// itself leads to itself, and is left out unless the peer is on it.
pub fn candidates(mine: &[InterfaceAddress], machine: &str, peer: &Contact) -> Vec<SocketAddr> {
    let together = machine == peer.machine;
    let place = |offer: &Offer| -> Option<u32> {
        if offer.address.is_loopback() {
            return together.then_some(0);
        }
        if !together && mine.iter().any(|own| own.address == offer.address) {
            return None;
        }
        let same_network = mine.iter().any(|own| {
            own.prefix == offer.prefix
                && !own.address.is_loopback()
                && is_in(offer.address, own.address, own.prefix)
        });
        Some(1 + 2 * u32::from(offer.doubtful) + u32::from(!same_network))
    };
    let mut placed: Vec<(u32, SocketAddr)> = peer
        .addresses
        .iter()
        .filter_map(|offer| Some((place(offer)?, SocketAddr::new(offer.address, peer.port))))
        .collect();
    placed.sort_by_key(|(place, address)| (*place, address.is_ipv6()));
    placed.into_iter().map(|(_, address)| address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(interface: &str, address: &str, prefix: u8) -> InterfaceAddress {
        InterfaceAddress { interface: interface.into(), address: address.parse().unwrap(), prefix }
    }

    fn host(machine: &str, interfaces: &[InterfaceAddress]) -> Contact {
        let selection = Selection::default();
        Contact::new("host".into(), machine.into(), 7, interfaces, &selection).unwrap()
    }

    fn order(mine: &[InterfaceAddress], machine: &str, peer: &Contact) -> Vec<String> {
        candidates(mine, machine, peer).iter().map(|address| address.ip().to_string()).collect()
    }

    #[test]
    fn networks_in_common_come_first_and_those_of_containers_last() {
        let mine = [own("lo", "127.0.0.1", 8), own("docker0", "172.17.0.1", 16), own("eth0", "10.0.0.1", 24)];
        let theirs = [
            own("lo", "127.0.0.1", 8),
            own("docker0", "172.17.0.1", 16),
            own("virbr0", "192.168.122.1", 24),
            own("docker1", "172.17.0.2", 16),
            own("ib0", "fd00::2", 64),
            own("eth1", "192.168.7.2", 24),
            own("eth0", "10.0.0.2", 24),
            own("eth0", "fe80::1", 64),
        ];
        let peer = host("b", &theirs);
        let expected = ["10.0.0.2", "192.168.7.2", "fd00::2", "172.17.0.2", "192.168.122.1"];
        assert_eq!(order(&mine, "a", &peer), expected);
    }

    #[test]
    fn loopback_leads_to_the_same_machine_only() {
        let mine = [own("lo", "127.0.0.1", 8), own("eth0", "10.0.0.1", 24)];
        assert_eq!(order(&mine, "a", &host("a", &mine)), ["127.0.0.1", "10.0.0.1"]);
        assert!(order(&mine, "a", &host("b", &mine)).is_empty());
    }

    #[test]
    fn processes_of_one_host_are_kept_as_one_host_and_their_ports() {
        let eth = |address| [own("eth0", address, 24)];
        let told: Vec<Contact> = (0..6u16)
            .map(|rank| {
                let name = if rank % 2 == 0 { "a" } else { "b" };
                Contact {
                    port: 100 + rank,
                    ..host(name, &eth(if rank < 4 { "10.0.0.1" } else { "10.0.0.2" }))
                }
            })
            .collect();
        let bytes: Vec<Vec<u8>> = told.iter().map(Contact::encode).collect();
        let all = Contacts::decode(&bytes).unwrap();
        assert_eq!((all.len(), all.hosts.len()), (6, 4));
        assert!((0..6).zip(&told).all(|(rank, contact)| all.get(rank).as_ref() == Some(contact)));
        assert_eq!((all.get(6), Contacts::none(3).get(2)), (None, None));
        assert!(Contacts::decode(&[&bytes[0][..], &[]]).is_none());
    }

    #[test]
    fn a_selection_is_by_name_or_by_network() {
        let mine = [own("lo", "127.0.0.1", 8), own("eth0", "10.0.0.1", 24), own("eth1", "10.1.0.1", 24)];
        let select = |text: &str| {
            let selection = Selection::parse(text).unwrap();
            Contact::new("h".into(), "m".into(), 7, &mine, &selection)
                .map(|contact| contact.addresses.iter().map(|offer| offer.address).collect::<Vec<_>>())
        };
        assert_eq!(select("eth1").unwrap(), [mine[2].address]);
        assert_eq!(select("lo, 10.0.0.0/16").unwrap(), [mine[0].address, mine[1].address]);
        let complaint = select("ib0").unwrap_err();
        assert!(complaint.contains("'ib0'") && complaint.contains("eth1 10.1.0.1"), "{complaint}");
        assert!(Selection::parse("10.0.0.0/99").is_err());
    }

    proptest::proptest! {
        #[test]
        fn whatever_comes_is_a_contact_or_refused(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80), cut in 0usize..80) {
            let _ = Contact::decode(&bytes);
            let mine = [own("lo", "127.0.0.1", 8), own("eth0", "10.0.0.1", 24), own("eth1", "fd00::1", 64)];
            let whole = host("a", &mine);
            let encoded = whole.encode();
            proptest::prop_assert_eq!(Contact::decode(&encoded), Some(whole));
            let cut = cut % encoded.len();
            proptest::prop_assert_eq!(Contact::decode(&encoded[..cut]), None);
            let mut other = encoded;
            other[cut] ^= bytes.first().copied().unwrap_or(1) | 1;
            if let Some(contact) = Contact::decode(&other) {
                proptest::prop_assert_eq!(contact.encode(), other);
            }
        }
    }
}
