//! The network over TCP.

use crate::address::{Contact, Contacts};
use crate::keeper::{self, Keeper};
use crate::sockets::Sockets;
use parnass_base::socket::{self, InterfaceAddress};
use parnass_transport::Waker;
use parnass_transport_stream::handshake::Identity;
use parnass_transport_stream::interfaces::machine;
use parnass_transport_stream::{Books, Loss, Pair, Refusals, Selection, StreamNetwork, Streams, Tuning};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// TCP between the ranks of a job.
pub type Tcp = StreamNetwork<Sockets>;

/// A socket that listens, before the peers are known.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<OwnedFd>,
    interfaces: Vec<InterfaceAddress>,
    contact: Contact,
    refusals: Arc<Refusals>,
}

impl Listener {
    /// Listens at a port of the kernel's choice. `host` names this host in messages; of its interfaces those of
    /// `selection` are told to the peers.
    ///
    /// # Errors
    /// A sentence for a person: the kernel refuses, or the selection leaves nothing.
    pub fn new(host: &str, selection: &Selection) -> Result<Listener, String> {
        let refused = |error: io::Error| format!("cannot listen for TCP connections: {error}");
        let (sockets, port) = keeper::listen().map_err(refused)?;
        let interfaces = socket::interface_addresses().map_err(refused)?;
        let contact = Contact::new(host.to_owned(), machine(), port, &interfaces, selection)?;
        Ok(Listener { sockets, interfaces, contact, refusals: Arc::default() })
    }

    /// Where its connections are to be counted, and who is told of them.
    pub fn count_in(&self, books: Books) {
        self.refusals.count_in(books);
    }

    /// What every other rank must be given, as bytes.
    pub fn contact(&self) -> Vec<u8> {
        self.contact.encode()
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.contact.port
    }

    /// Joins rank `me` to the others of the job with this key; `contacts` has what each rank's [`Listener::contact`] has
    /// given, by rank. `waker` is called, by a thread of its own, when something arrives after
    /// [`parnass_transport::Network::arm`]; `on_loss` when a peer is lost.
    ///
    /// # Errors
    /// A contact is none, or the kernel refuses.
    pub fn join(
        self,
        me: u32,
        key: &[u8; 32],
        contacts: &[impl AsRef<[u8]>],
        waker: Waker,
        on_loss: Box<dyn Fn(Loss) + Send>,
        tuning: Tuning,
    ) -> io::Result<Tcp> {
        let contacts = Contacts::decode(contacts).ok_or_else(|| {
            let text = "what a rank says of its addresses is not understood: use one release on all hosts";
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        self.make(me, key, contacts, waker, on_loss, tuning)
    }

    /// For rank `me` of a world of `size` that needs no network for itself: for what [`admit`] brings.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn to_others(
        self,
        me: u32,
        size: u32,
        key: &[u8; 32],
        waker: Waker,
        on_loss: Box<dyn Fn(Loss) + Send>,
        tuning: Tuning,
    ) -> io::Result<Tcp> {
        self.make(me, key, Contacts::none(size), waker, on_loss, tuning)
    }

    fn make(
        self,
        me: u32,
        key: &[u8; 32],
        contacts: Contacts,
        waker: Waker,
        on_loss: Box<dyn Fn(Loss) + Send>,
        tuning: Tuning,
    ) -> io::Result<Tcp> {
        let identity = Identity::new(key, me, contacts.len() as u32, tuning.encrypt);
        let sockets = Sockets::new(self.contact.machine, contacts, self.interfaces)?;
        let streams = Arc::new(Streams::new(identity, sockets, self.refusals));
        let keeper = Keeper::new(streams.clone(), self.sockets, waker, on_loss)?;
        StreamNetwork::start(streams, "parnass-tcp", move || keeper.run())
    }
}

/// What a process is told of one of another world.
#[derive(Clone, Debug)]
pub struct Acquaintance {
    /// What its [`Listener::contact`] has given.
    pub contact: Vec<u8>,
    pub pair: Pair,
}

/// Makes processes of other worlds peers of this one. The number of the first; the others follow.
///
/// # Errors
/// What one says of its addresses is not understood, or there are too many.
pub fn admit(network: &Tcp, acquaintances: &[Acquaintance]) -> io::Result<u32> {
    let contacts: Option<Vec<Contact>> =
        acquaintances.iter().map(|one| Contact::decode(&one.contact)).collect();
    let contacts = contacts.ok_or_else(|| {
        let text = "what a process says of its addresses is not understood: use one release everywhere";
        io::Error::new(io::ErrorKind::InvalidData, text)
    })?;
    let pairs: Vec<Pair> = acquaintances.iter().map(|one| one.pair).collect();
    network.admit(&pairs, |first| network.carrier().learn(first, contacts))
}

/// The name of the machine, as it runs now, that a [`Listener::contact`] is of; `None`: it is none.
pub fn machine_of(contact: &[u8]) -> Option<String> {
    Contact::decode(contact).map(|contact| contact.machine)
}
