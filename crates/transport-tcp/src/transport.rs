//! The network over TCP.

use crate::address::{Contact, Selection};
use crate::handshake::Identity;
use crate::incoming::Incoming;
use crate::keeper::{self, Keeper};
use crate::link::{Loss, Refusals, Shared, lock};
use crate::tuning::Tuning;
use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_base::lane::Message;
use parnass_base::socket::InterfaceAddress;
use parnass_base::{UserAddress, socket};
use parnass_transport::{Bulk, Network};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;

/// The longest payload that is sent before anybody has asked for it, in bytes.
const STREAM_BYTES: usize = 64 << 10;
/// Polls of the link that has spoken last between two looks at all links: where it is the only one, and else.
const LOOK_EVERY: (u32, u32) = (64, 4);

/// A socket that listens, before the peers are known.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<OwnedFd>,
    interfaces: Vec<InterfaceAddress>,
    contact: Contact,
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
        Ok(Listener { sockets, interfaces, contact })
    }

    /// What every other rank must be given, as bytes.
    pub fn contact(&self) -> Vec<u8> {
        self.contact.encode()
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.contact.port
    }
}

/// The name of the machine, as it runs now, that a [`Listener::contact`] is of; `None`: it is none.
pub fn machine_of(contact: &[u8]) -> Option<String> {
    Contact::decode(contact).map(|contact| contact.machine)
}

/// Names this machine as it runs now, and its network stack.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let stack = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), stack.display())
}

/// TCP between the ranks of a job.
#[derive(Debug)]
pub struct Tcp {
    shared: Arc<Shared>,
    polls: AtomicU32,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

impl Tcp {
    /// For rank `me` of the job with this key; `contacts` has what each rank's [`Listener::contact`] has given, by
    /// rank. `waker` is called, by a thread of its own, when something arrives after [`Network::arm`]; `on_loss` when
    /// a peer is lost.
    ///
    /// # Errors
    /// A contact is none, or the kernel refuses.
    pub fn new(
        listener: Listener,
        me: u32,
        key: &[u8; 32],
        contacts: &[impl AsRef<[u8]>],
        waker: Box<dyn Fn() + Send>,
        on_loss: Box<dyn Fn(Loss) + Send>,
    ) -> io::Result<Tcp> {
        Self::with(listener, me, key, contacts, waker, on_loss, Tuning::default())
    }

    /// As [`Tcp::new`], with other values than the defaults.
    ///
    /// # Errors
    /// As there.
    pub fn with(
        listener: Listener,
        me: u32,
        key: &[u8; 32],
        contacts: &[impl AsRef<[u8]>],
        waker: Box<dyn Fn() + Send>,
        on_loss: Box<dyn Fn(Loss) + Send>,
        tuning: Tuning,
    ) -> io::Result<Tcp> {
        let contacts: Option<Vec<Contact>> =
            contacts.iter().map(|bytes| Contact::decode(bytes.as_ref())).collect();
        let contacts = contacts.ok_or_else(|| {
            let text = "what a rank says of its addresses is not understood: use one release on all hosts";
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        let identity = Identity::new(key, me, contacts.len() as u32, tuning.encrypt);
        let shared = Arc::new(Shared::new(identity, contacts, listener.interfaces)?);
        let keeper = Keeper::new(shared.clone(), listener.sockets, waker, on_loss)?;
        let thread = std::thread::Builder::new()
            .name("parnass-tcp".into())
            .stack_size(128 << 10)
            .spawn(move || keeper.run())?;
        Ok(Tcp { shared, polls: AtomicU32::new(0), keeper: Mutex::new(Some(thread)) })
    }

    /// How many connections were refused, and why.
    pub fn refusals(&self) -> &Refusals {
        &self.shared.refusals
    }

    /// How many connections there are or are wanted.
    pub fn connections(&self) -> usize {
        self.shared.links().count()
    }

    /// Breaks the connection to a peer, as a fault of the network would: for tests.
    pub fn cut(&self, peer: u32) {
        if let crate::link::Stage::Up(socket, _) = &lock(&self.shared.link(peer).out).stage {
            let _ = rustix::net::shutdown(&**socket, rustix::net::Shutdown::Both);
        }
    }
}

impl Network for Tcp {
    fn me(&self) -> u32 {
        self.shared.identity.me
    }

    fn size(&self) -> u32 {
        self.shared.identity.size
    }

    fn stream_bytes(&self) -> usize {
        STREAM_BYTES
    }

    fn post(&self, target: u32, tag: u32, words: &[u64]) -> bool {
        self.shared.post(target, tag, words)
    }

    fn stream(&self, target: u32, tag: u32, words: &[u64], source: UserAddress, length: usize) -> bool {
        self.shared.stream(target, tag, words, source, length)
    }

    fn lend(&self, target: u32, tag: u32, word: u64, source: UserAddress, length: usize, then: Message) {
        self.shared.lend(target, tag, word, source, length, then);
    }

    fn poll(&self) -> bool {
        self.shared.send_gathered();
        if self.shared.has_told() {
            return true;
        }
        let mut incoming = match self.shared.incoming.try_lock() {
            Ok(incoming) => incoming,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody takes messages now.
            Err(TryLockError::WouldBlock) => return true,
        };
        if incoming.has_ready() || incoming.look_at_hot() {
            return true;
        }
        let every = if incoming.links() == 1 { LOOK_EVERY.0 } else { LOOK_EVERY.1 };
        if self.polls.fetch_add(1, Ordering::Relaxed).is_multiple_of(every) {
            self.shared.look(&mut incoming);
        }
        incoming.has_ready()
    }

    fn look(&self) -> bool {
        if self.poll() {
            return true;
        }
        let mut incoming = lock(&self.shared.incoming);
        self.shared.look(&mut incoming);
        // A look also writes where a socket has room again, and what was lent may be sent now.
        incoming.has_ready() || self.shared.has_told()
    }

    fn take(&self, limit: usize, accept: &mut dyn FnMut(&Message) -> bool) -> usize {
        let mut taken =
            Incoming::take(|| lock(&self.shared.incoming), limit, &*self.shared, &mut |message| {
                accept(message)
            });
        while let Some(message) = self.shared.next_told() {
            if !accept(&message) {
                self.shared.untell(message);
                break;
            }
            taken += 1;
        }
        taken
    }

    fn land(&self, payload: Bulk, target: UserAddress, length: usize, then: Message) -> bool {
        lock(&self.shared.incoming).land(payload, target, length, then, &*self.shared)
    }

    fn discard(&self, payload: Bulk) {
        lock(&self.shared.incoming).discard(payload, &*self.shared);
    }

    fn arm(&self) {
        self.shared.arm();
    }

    fn close(&self) {
        self.shared.close();
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.shared.close();
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.ring_keeper();
        if let Some(thread) = lock(&self.keeper).take() {
            let _ = thread.join();
        }
    }
}
