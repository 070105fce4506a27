//! The network over libfabric.

use crate::address::Contact;
use crate::endpoint::{Endpoint, SLOT};
use crate::engine::Engine;
use crate::fabric::Fabric;
use crate::keeper::Keeper;
use crate::library::Library;
use crate::provider::{Reads, choose, describe, is_hardware, reach};
use parnass_base::socket::interface_addresses;
use parnass_transport::Waker;
use parnass_transport_stream::handshake::Identity;
use parnass_transport_stream::{Books, Loss, Refusals, Selection, StreamNetwork, Streams, Tuning};
use std::io;
use std::sync::Arc;

/// Libfabric between the ranks of a job.
pub type Ofi = StreamNetwork<Fabric>;

/// Whether this machine has hardware of a fabric, as far as the kernel says: where it has none, libfabric need not be asked.
pub fn has_hardware() -> bool {
    ["/sys/class/infiniband", "/sys/class/cxi"]
        .iter()
        .any(|folder| std::fs::read_dir(folder).is_ok_and(|mut devices| devices.next().is_some()))
        || std::path::Path::new("/dev/kgni0").exists()
}

/// What there is on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The library, and its version.
    pub library: String,
    /// The ways that it offers, in words.
    pub ways: String,
    /// The provider that is taken where libfabric is, and whether it is one of hardware.
    pub chosen: Result<(String, bool), String>,
}

/// Looks at what there is on this machine; `forced` is the provider that the user names.
///
/// # Errors
/// There is no libfabric; what the linker says.
pub fn survey(forced: Option<&str>, selection: &Selection) -> Result<Survey, String> {
    let library = Library::load().map_err(|error| error.to_string())?;
    let ways = library.ways(SLOT).map_err(|error| format!("{library:?} lists no providers: {error}"))?;
    let interfaces = interface_addresses().map_err(|error| error.to_string())?;
    let chosen = choose(&ways.list, forced, "this", selection, &interfaces)
        .map(|way| (describe(std::slice::from_ref(way)), is_hardware(way)));
    Ok(Survey { library: format!("{library:?}"), ways: describe(&ways.list), chosen })
}

/// The provider that a [`Listener::contact`] is of; `None`: it is none.
pub fn provider_of(contact: &[u8]) -> Option<String> {
    Contact::decode(contact).map(|contact| contact.provider)
}

/// An endpoint that is open, before the peers are known.
#[derive(Debug)]
pub struct Listener {
    endpoint: Endpoint,
    contact: Contact,
    hardware: bool,
    refusals: Arc<Refusals>,
}

impl Listener {
    /// Opens an endpoint, of the provider that is `forced`, or of the best. `host` names this host in messages; of its addresses
    /// one of `selection` is used. `reads` says whether the memory of peers is to be read.
    ///
    /// # Errors
    /// A sentence for a person: there is no libfabric, or it does not have what is needed; what there is, and what to do.
    pub fn new(
        host: &str,
        forced: Option<&str>,
        selection: &Selection,
        reads: Reads,
    ) -> Result<Listener, String> {
        let library = Library::load().map_err(|error| {
            format!(
                "libfabric cannot be used on host {host}: {error}. Install it (Debian: apt install libfabric1), or use TCP: \
                 `mpiexec --tunable network=tcp`"
            )
        })?;
        let refused = |error: io::Error| format!("{library:?} on host {host} lists no providers: {error}");
        let ways = library.ways(SLOT).map_err(refused)?;
        let interfaces = interface_addresses().map_err(refused)?;
        let way = choose(&ways.list, forced, host, selection, &interfaces)?;
        let reads = reads.wants(way);
        let opened = Endpoint::open(&ways, way, reads).and_then(|mut endpoint| {
            let address = endpoint.name().map_err(|error| format!("address: {error}"))?;
            Ok((endpoint, address))
        });
        let (endpoint, address) = opened.map_err(|error| {
            format!(
                "{library:?} on host {host} cannot be used: {error}. Name another provider with `mpiexec --tunable \
                 provider=NAME`, or use TCP: `mpiexec --tunable network=tcp`"
            )
        })?;
        let contact = Contact::new(host, &way.provider, &reach(way), way.format, address, reads);
        Ok(Listener { endpoint, contact, hardware: is_hardware(way), refusals: Arc::default() })
    }

    /// Where its streams are to be counted, and who is told of them.
    pub fn count_in(&self, books: Books) {
        self.refusals.count_in(books);
    }

    /// What every other rank must be given, as bytes.
    pub fn contact(&self) -> Vec<u8> {
        self.contact.encode()
    }

    /// The provider.
    pub fn provider(&self) -> &str {
        &self.contact.provider
    }

    /// Whether its provider is one of hardware.
    pub fn is_hardware(&self) -> bool {
        self.hardware
    }

    /// Joins rank `me` to the others of the job with this key; `contacts` has what each rank's [`Listener::contact`] has
    /// given, by rank. `waker` is called, by a thread of its own, when something arrives after
    /// [`parnass_transport::Network::arm`]; `on_loss` when a peer is lost.
    ///
    /// # Errors
    /// A sentence for a person: a contact is none, or of another provider, or the kernel refuses.
    pub fn join(
        self,
        me: u32,
        key: &[u8; 32],
        contacts: &[impl AsRef<[u8]>],
        waker: Waker,
        on_loss: Box<dyn Fn(Loss) + Send>,
        tuning: Tuning,
    ) -> io::Result<Ofi> {
        let wrong = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        let decoded: Option<Vec<Contact>> =
            contacts.iter().map(|bytes| Contact::decode(bytes.as_ref())).collect();
        let contacts: Arc<[Contact]> = decoded
            .ok_or_else(|| {
                wrong(
                    "what a rank says of its endpoint is not understood: use one release on all hosts"
                        .to_owned(),
                )
            })?
            .into();
        contacts.iter().try_for_each(|other| self.contact.agree(other)).map_err(wrong)?;
        let identity = Identity::new(key, me, contacts.len() as u32, tuning.encrypt);
        let refusals = self.refusals;
        let engine = Engine::new(self.endpoint, identity, contacts.clone(), refusals.clone());
        let fabric = Fabric::new(engine, contacts, self.contact.provider)?;
        let streams = Arc::new(Streams::new(identity, fabric, refusals));
        let keeper = Keeper::new(streams.clone(), waker, on_loss);
        StreamNetwork::start(streams, "parnass-ofi", move || keeper.run())
    }
}
